"""Layers of the ground, kept beside the base image: another ledger on this machine does not make them again.

Like the base image itself they depend on nothing of a project. What is kept is what was observed, under the hash of all
that it depends on, and the layer's plain bytes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from installers.layer import chunks_of
from installers.workshop import Workshop
from miner.core.errors import InfrastructureFault
from miner.core.hashing import hash_of
from miner.core.records import Layer, Observation
from miner.sandbox.base_image import layer_path


def kept(workshop: Workshop, inputs: Mapping[str, Any], make: Callable[[], Observation]) -> Observation:
    """Return what was observed for these inputs, by whichever ledger; make it where nobody has.

    Args:
        workshop: the tools.
        inputs: everything that the observation depends on.
        make: observes; a negative observation is not kept.
    """
    record = workshop.base_cache / f"{hash_of(inputs)}.ground"
    known = _recorded(record)
    if known is not None and _brought_back(workshop, known):
        return known
    seen = make()
    if seen.outcome == "ok":
        _keep(workshop, seen, record)
    return seen


def _recorded(record: Path) -> Observation | None:
    """Return what was kept, None where nothing was, or where a machine that went down has left a cut file."""
    try:
        return Observation.model_validate_json(record.read_bytes())
    except (FileNotFoundError, ValidationError):
        return None


def _layer(seen: Observation) -> Layer | None:
    layer = seen.payload["layer"]
    return None if layer is None else Layer.model_validate(layer)


def _brought_back(workshop: Workshop, seen: Observation) -> bool:
    """Put the layer among the blobs, and say whether it is there: its file may be gone, or damaged."""
    layer = _layer(seen)
    if layer is None or workshop.blobs.has(_digest(layer)):
        return True
    try:
        with layer_path(workshop.base_cache, layer.diff_id).open("rb") as file:
            workshop.blobs.put_stream(_digest(layer), chunks_of(file))
    except (FileNotFoundError, InfrastructureFault):
        return False
    return True


def _keep(workshop: Workshop, seen: Observation, record: Path) -> None:
    layer = _layer(seen)
    if layer is not None:
        file = layer_path(workshop.base_cache, layer.diff_id)
        part = file.with_suffix(f".{os.getpid()}.part")
        with part.open("wb") as out:
            workshop.blobs.copy_to(_digest(layer), out)
        part.replace(file)
    part = record.with_suffix(f".{os.getpid()}.part")
    part.write_text(seen.model_dump_json(), encoding="utf-8")
    part.replace(record)


def _digest(layer: Layer) -> str:
    return layer.diff_id.removeprefix("sha256:")

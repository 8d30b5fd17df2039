"""Images made here, brought into the engine."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import docker
from docker.errors import APIError, ImageLoadError, ImageNotFound

from miner.core.errors import DiskFull, InfrastructureFault
from miner.core.reasons import Reason
from miner.sandbox.engine import engine_faults, translate
from miner.sandbox.image_archive import ImageConfig, LayerSource, write_docker_archive


def load_image(
    client: docker.DockerClient,
    config: ImageConfig,
    layers: Sequence[LayerSource],
    tag: str,
    scratch: Path,
    *,
    held: Collection[str] = (),
) -> None:
    """Load an image and give it a tag; an image that the engine has already is not loaded again.

    Args:
        client: the engine.
        config: the image.
        layers: its layers, lowest first.
        tag: `name:tag` that will stand for it; an older image of this tag loses it.
        scratch: a folder for the archive.
        held: diff ids of lowest layers that the engine is thought to hold. Their bytes are left out at first; an engine
            that wants them all the same (not every storage can do without) gets the whole archive.

    Raises:
        InfrastructureFault: the engine is gone, full, or refuses the archive.
    """
    with engine_faults():
        if holds_image(client, config, tag):
            return
        thin = [replace(source, open=None) if source.layer.diff_id in held else source for source in layers]
        try:
            _load(client, config, thin, tag, scratch)
        except (APIError, ImageLoadError) as error:
            whole_differs = any(a.open is not b.open for a, b in zip(thin, layers, strict=True))
            if not whole_differs or isinstance(translate(error), DiskFull):
                raise
            _load(client, config, layers, tag, scratch)
        if not holds_image(client, config, tag):
            raise InfrastructureFault(f"the engine loaded another image as {tag}", reason=Reason.DOCKER_ERROR)


def holds_image(client: docker.DockerClient, config: ImageConfig, tag: str) -> bool:
    """Whether the engine has exactly this image under this tag.

    The classic storage names an image by its configuration. Others name it by its manifest; there its layers tell.
    """
    try:
        attrs = client.images.get(tag).attrs
    except ImageNotFound:
        return False
    same_layers = tuple(attrs["RootFS"].get("Layers") or ()) == config.diff_ids
    return same_layers and (needs_all_layers(attrs) or attrs["Id"] == config.image_id)


def needs_all_layers(attrs: Mapping[str, Any]) -> bool:
    """Whether the engine's storage takes an image only with the bytes of all its layers, from what it says of an image.

    Only containerd's image store names images by their manifest, and gives its descriptor (engine API 1.48).
    """
    return bool(attrs.get("Descriptor"))


def _load(
    client: docker.DockerClient, config: ImageConfig, layers: Sequence[LayerSource], tag: str, scratch: Path
) -> None:
    with tempfile.TemporaryFile(dir=scratch) as archive:
        write_docker_archive(config, layers, tag, archive)
        archive.seek(0)
        client.images.load(archive)

"""Images between the base and an environment: the base with layers on it, which many environments share.

Each image of a chain has a tag of its own, so that its layers stay in the engine and only what is new is ever sent.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import BinaryIO

from installers.layer import unpacked
from installers.workshop import Workshop
from miner.core.memo import KeyedLocks
from miner.core.records import Layer
from miner.sandbox.base_image import BaseImage
from miner.sandbox.image_archive import ImageConfig, LayerSource
from miner.sandbox.image_load import load_image

REPOSITORY = "swe-miner/ground"

_LOADING = KeyedLocks()
"""Workers that need the same image wait for the first of them."""


def stand_on(base: BaseImage, layers: Sequence[tuple[Layer, str]], packages: str = "") -> BaseImage:
    """Return the image with layers on top of another one; pure, nothing is loaded.

    Args:
        base: what it stands on.
        layers: each with a note that says where it comes from.
        packages: `name version architecture` of the Debian packages in the layers, one a line.
    """
    if not layers:
        return base
    config = base.config
    for layer, note in layers:
        config = config.with_layer(layer.diff_id, note)
    newer = {line.split(" ")[0] for line in packages.splitlines()}
    kept = [line for line in base.packages.splitlines() if line.split(" ")[0] not in newer]
    return BaseImage(
        image=_tag(config),
        digest=config.image_id,
        config=config,
        layers=(*base.layers, *(layer for layer, _ in layers)),
        packages="".join(f"{line}\n" for line in sorted({*kept, *packages.splitlines()})),
    )


def _tag(config: ImageConfig) -> str:
    return f"{REPOSITORY}:{config.image_id.removeprefix('sha256:')[:12]}"


def hold(workshop: Workshop, image: BaseImage) -> str:
    """Return the reference of a ground's image, which the engine holds when this returns, whoever has removed it.

    Raises:
        InfrastructureFault: the engine refuses, or a layer's blob is lost.
    """
    base = workshop.base
    if image.digest == base.digest and workshop.settings.docker.base_image is not None:
        return base.image
    with _LOADING.of(image.image), tempfile.TemporaryDirectory(dir=workshop.scratch) as folder:
        sources = [
            *base.sources(workshop.base_cache),
            *(
                LayerSource(layer, partial(_open, workshop, layer, Path(folder)))
                for layer in image.layers[len(base.layers) :]
            ),
        ]
        for count in range(len(base.layers) + 1, len(image.layers) + 1):
            _load(workshop, image, sources[:count], Path(folder))
    return image.image


def _load(workshop: Workshop, image: BaseImage, sources: Sequence[LayerSource], folder: Path) -> None:
    count = len(sources)
    config = image.config.model_copy(
        update={"diff_ids": image.config.diff_ids[:count], "notes": image.config.notes[:count]}
    )
    held = set(config.diff_ids[:-1])
    load_image(workshop.client, config, sources, _tag(config), folder, held=held)


def _open(workshop: Workshop, layer: Layer, folder: Path) -> BinaryIO:
    return unpacked(layer, workshop.blobs, folder).open("rb")

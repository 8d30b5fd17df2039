"""Images from layers: the base, the environment, the project. Same layers, same id; a lost image comes back."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import BinaryIO

import docker
from docker.errors import APIError, ImageNotFound

from installers.layer import unpacked
from installers.workshop import Workshop
from miner.core.blobs import BlobStore
from miner.core.records import Environment, Layer
from miner.sandbox.base_image import BaseImage
from miner.sandbox.engine import engine_faults
from miner.sandbox.image_archive import ImageConfig, LayerSource
from miner.sandbox.image_load import load_image

REPOSITORY = "swe-miner"

_PATH = "PATH=/opt/env/bin:/usr/local/bin:/usr/bin:/bin"
_NOTES = ("environment", "project")


def image_config(base: BaseImage, layers: Sequence[Layer]) -> ImageConfig:
    """Return the configuration of an image: the base's, the environment first on PATH, work in `/testbed`.

    Args:
        base: what it stands on.
        layers: the environment's, then the project's.
    """
    others = tuple(item for item in base.config.env if not item.startswith("PATH="))
    config = base.config.model_copy(
        update={
            "env": (_PATH, *others),
            "user": "1000:1000",
            "working_dir": "/testbed",
            "cmd": ("/bin/bash",),
            "stop_signal": "SIGKILL",
        }
    )
    for layer, note in zip(layers, _NOTES, strict=False):
        config = config.with_layer(layer.diff_id, note)
    return config


def tag_of(name: str, image_id: str) -> str:
    """Return the local tag of an image; names of images have no capitals and no two separators in a row."""
    return f"{REPOSITORY}/{name.lower()}:{image_id.removeprefix('sha256:')[:12]}"


def ensure_layers(workshop: Workshop, name: str, layers: Sequence[Layer]) -> str:
    """Return the tag of the image with these layers on the base, loaded into the engine if it is not there."""
    config = image_config(workshop.base, layers)
    tag = tag_of(name, config.image_id)
    with tempfile.TemporaryDirectory(dir=workshop.scratch) as folder:
        ours = [LayerSource(layer, partial(_open, layer, workshop.blobs, Path(folder))) for layer in layers]
        sources = [*workshop.base.sources(workshop.base_cache), *ours]
        held = {layer.diff_id for layer in workshop.base.layers}
        load_image(workshop.client, config, sources, tag, Path(folder), held=held)
    return tag


def _open(layer: Layer, blobs: BlobStore, folder: Path) -> BinaryIO:
    return unpacked(layer, blobs, folder).open("rb")


def ensure_image(workshop: Workshop, environment: Environment, instance_id: str) -> str:
    """Return the tag of an environment's image, which the engine holds when this returns; its id is always the same.

    Raises:
        InfrastructureFault: a layer's blob is lost, or the engine refuses.
    """
    return ensure_layers(workshop, instance_id, environment.layers[len(workshop.base.layers) :])


def remove_image(client: docker.DockerClient, tag: str) -> None:
    """Remove an image by its tag; what else uses its layers keeps them. An image that is not there is no error."""
    with engine_faults():
        try:
            client.images.remove(tag, noprune=False)
        except ImageNotFound:
            return
        except APIError as error:
            if error.response is None or error.response.status_code != 409:  # 409: a container still uses it
                raise

"""Images from layers: base, ground, environment, tree, project. Same layers, same id; a lost image comes back.

An engine keeps a layer once for each chain of layers below it, so everything is stacked in one order, what is shared by
most first. What several candidates share, up to the environment, has an image of its own: it holds the layers in the
engine, and only what is above them has to be brought in.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import docker
from docker.errors import APIError, ImageNotFound

from installers.ground_image import hold
from installers.layer import unpacked
from installers.rebuild import KEPT
from installers.workshop import Workshop
from miner.core.blobs import BlobStore
from miner.core.memo import KeyedLocks
from miner.core.records import Environment, Fact, Layer, Recipe
from miner.sandbox.base_image import BaseImage
from miner.sandbox.engine import engine_faults
from miner.sandbox.image_archive import ImageConfig, LayerSource
from miner.sandbox.image_load import holds_image, load_image

if TYPE_CHECKING:
    from installers.ground import Ground

REPOSITORY = "swe-miner"
SHARED = "environment"
"""Name of the images that hold what several candidates share; they can be had again."""
TREE = "tree"
"""Name of the images that hold a repository until the candidate's own image does."""

_LOADING = KeyedLocks()
_PATH = "PATH=/opt/env/bin:/usr/local/bin:/usr/bin:/bin"


def image_config(
    base: BaseImage, layers: Sequence[Layer], notes: Sequence[str], env: Mapping[str, str] | None = None
) -> ImageConfig:
    """Return the configuration of an image: the base's, the environment first on PATH, work in `/testbed`.

    Args:
        base: what it stands on.
        layers: those above it.
        notes: what each of these is.
        env: variables that win over the base's.
    """
    others = tuple(item for item in base.config.env if not item.startswith("PATH="))
    own = {name: value for name, value in (env or {}).items() if name != "PATH"}
    kept = tuple(item for item in others if item.partition("=")[0] not in own)
    config = base.config.model_copy(
        update={
            "env": (_PATH, *kept, *(f"{name}={value}" for name, value in sorted(own.items()))),
            "user": "1000:1000",
            "working_dir": "/testbed",
            "cmd": ("/bin/bash",),
            "stop_signal": "SIGKILL",
        }
    )
    for layer, note in zip(layers, notes, strict=True):
        config = config.with_layer(layer.diff_id, note)
    return config


def tag_of(name: str, image_id: str) -> str:
    """Return the local tag of an image; names of images have no capitals and no two separators in a row."""
    return f"{REPOSITORY}/{name.lower()}:{image_id.removeprefix('sha256:')[:12]}"


def notes_of(own: Sequence[Layer], *, has_build: bool) -> tuple[str, ...]:
    """Return what each layer above the base is: ground, the environment, what builds the project, tree, project."""
    top = ("environment", *(("build",) if has_build else ()), "tree", "project")
    return (*["ground"] * (len(own) - len(top)), *top)


def above(base: BaseImage, image: BaseImage) -> tuple[Layer, ...]:
    """Return the layers of an image above the base."""
    return image.layers[len(base.layers) :]


def assembled(
    workshop: Workshop, ground: Ground, recipe: Recipe, *, locked: Fact, built: Fact, installed: Fact
) -> Environment:
    """Return the environment that the steps of an attempt came to.

    Args:
        workshop: the tools.
        ground: what it stands on.
        recipe: what it was made from.
        locked: the lock.
        built: the environment's layer (`install.env`).
        installed: the project (`install.project`).
    """
    base, done = workshop.base, installed.payload
    layers = tuple(Layer.model_validate(item) for item in (built.payload["layer"], *done["layers"]))
    own = (*above(base, ground.task), *layers)
    plain = Environment(
        image="",
        base_digest=base.digest,
        layers=(*base.layers, *own),
        lock_sha256=locked.blobs["lock"],
        mode=done["mode"],
        rebuild_cmd=done["rebuild_cmd"],
        env=recipe.env,
    )
    return plain.model_copy(update={"image": _config_of(workshop, plain).image_id})


def _config_of(workshop: Workshop, environment: Environment) -> ImageConfig:
    own = environment.layers[len(workshop.base.layers) :]
    notes = notes_of(own, has_build=environment.mode in KEPT)
    return image_config(workshop.base, own, notes, environment.env)


def ensure_layers(
    workshop: Workshop,
    name: str,
    layers: Sequence[Layer],
    notes: Sequence[str],
    env: Mapping[str, str] | None = None,
    *,
    held: int = 0,
) -> str:
    """Return the tag of the image with these layers on the base, loaded into the engine if it is not there.

    Args:
        workshop: the tools.
        name: of the image.
        layers: those above the base, lowest first.
        notes: what each of these is.
        env: variables of the image.
        held: how many of the layers the engine is known to hold, in this order.

    Raises:
        InfrastructureFault: a layer's blob is lost, or the engine refuses.
    """
    base = workshop.base
    config = image_config(base, layers, notes, env)
    tag = tag_of(name, config.image_id)
    with engine_faults():
        if holds_image(workshop.client, config, tag):
            return tag
    there = {layer.diff_id for layer in (*base.layers, *layers[: max(held, _held(workshop, layers, notes))])}
    with tempfile.TemporaryDirectory(dir=workshop.scratch) as folder:
        ours = [LayerSource(layer, partial(_open, layer, workshop.blobs, Path(folder))) for layer in layers]
        sources = [*base.sources(workshop.base_cache), *ours]
        load_image(workshop.client, config, sources, tag, Path(folder), held=there)
    return tag


def _held(workshop: Workshop, layers: Sequence[Layer], notes: Sequence[str]) -> int:
    """Return how many of the layers an image in the engine has already, in this order, as far as is easily told."""
    for count in range(len(layers) - 1, 0, -1):
        name = {"environment": SHARED, "build": SHARED, "tree": TREE}.get(notes[count - 1])
        if name is None:
            break
        config = image_config(workshop.base, layers[:count], notes[:count])
        with engine_faults():
            if holds_image(workshop.client, config, tag_of(name, config.image_id)):
                return count
    return 0


def _open(layer: Layer, blobs: BlobStore, folder: Path) -> BinaryIO:
    return unpacked(layer, blobs, folder).open("rb")


def ensure_shared(workshop: Workshop, ground: BaseImage, layers: Sequence[Layer], notes: Sequence[str]) -> str:
    """Return the tag of the image that holds an environment's layers for all candidates that share them.

    Args:
        workshop: the tools.
        ground: what they stand on.
        layers: those above it.
        notes: what each of these is.
    """
    hold(workshop, ground)
    below = above(workshop.base, ground)
    every = (*["ground"] * len(below), *notes)
    tag = ""
    with _LOADING.of(layers[0].diff_id):
        for count in range(1, len(layers) + 1):
            own, known = (*below, *layers[:count]), len(below) + count - 1
            tag = ensure_layers(workshop, SHARED, own, every[: known + 1], held=known)
    return tag


def ensure_image(workshop: Workshop, environment: Environment, instance_id: str) -> str:
    """Return the tag of an environment's image, which the engine holds when this returns; its id is always the same.

    Raises:
        InfrastructureFault: a layer's blob is lost, or the engine refuses.
    """
    own = environment.layers[len(workshop.base.layers) :]
    notes = notes_of(own, has_build=environment.mode in KEPT)
    tag = ensure_layers(workshop, instance_id, own, notes, environment.env)
    tree = image_config(workshop.base, own[:-1], notes[:-1])
    remove_image(workshop.client, tag_of(TREE, tree.image_id))
    return tag


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

"""The base image of all environments: pulled by digest where the settings name one, else built here from packages.

Built: mmdebstrap -> normalised layer -> image with a fixed configuration. Same packages, same digest. The layer and the
record of the image are kept, so that a second call builds nothing, and loads nothing that the engine still has.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import docker
import structlog
from docker.errors import APIError, ImageNotFound
from docker.models.images import Image

from miner.core.errors import ConfigError, InfrastructureFault, MachineError
from miner.core.hashing import hash_of
from miner.core.reasons import Reason
from miner.core.records import Layer, Record
from miner.core.settings import Docker, base_packages
from miner.sandbox.base_tree import BUILDER, GID, UID, base_entries, keep, package_versions
from miner.sandbox.debootstrap import debootstrap, host_architecture
from miner.sandbox.engine import engine_faults
from miner.sandbox.image_archive import ImageConfig, LayerSource, deterministic_tar, read_tar
from miner.sandbox.image_load import load_image, needs_all_layers
from miner.sandbox.image_save import save_layers

REPOSITORY = "swe-miner/base"
_BUILD = "build-"
_READS_ONLY: dict[str, Any] = {
    "network_mode": "none",
    "cap_drop": ["ALL"],
    "read_only": True,
    "use_config_proxy": False,
}
_USERS = (f"{UID}:{GID}", str(UID), "miner")

_log = structlog.get_logger()


class BaseImage(Record):
    """What environments stand on.

    Attributes:
        image: reference by which the engine knows it.
        digest: digest of the configuration, `sha256:<hex>`.
        config: what images on top of it inherit.
        layers: lowest first; the size is 0 where the engine does not tell it.
        packages: `name version architecture` of each Debian package, one a line; empty if it has no dpkg.
    """

    image: str
    digest: str
    config: ImageConfig
    layers: tuple[Layer, ...]
    packages: str

    @property
    def architecture(self) -> str:
        """Architecture in the engine's words."""
        return self.config.architecture

    def sources(self, cache: Path) -> list[LayerSource]:
        """Return the layers with their tars, for images on top; a pulled base may have none."""
        return [_source(layer, layer_path(cache, layer.diff_id)) for layer in self.layers]


def ensure_base_image(client: docker.DockerClient, settings: Docker, cache: Path) -> BaseImage:
    """Return the base image, which the engine holds when this returns. Safe to call from several processes at once.

    Args:
        client: the engine.
        settings: which image, or which Debian suite and epoch.
        cache: folder for the built layer and its record.

    Raises:
        ConfigError: `docker.base_image` cannot serve as a base image.
        MachineError: this machine cannot build one.
        InfrastructureFault: the engine, a registry or Debian's archive failed.
    """
    with engine_faults():
        if settings.base_image is not None:
            return _given(client, settings.base_image, cache)
        architecture = str(client.version()["Arch"])
        with _locked(cache):
            base = _built(settings, architecture, cache)
            load_image(client, base.config, base.sources(cache), base.image, cache)
    return base


def known_base_image(settings: Docker, cache: Path) -> BaseImage | None:
    """Return the base image that was built here before, without asking the engine for its architecture.

    None where none was built, where images of several architectures were, and where the settings name an image.
    """
    if settings.base_image is not None:
        return None
    found = []
    for record in cache.glob("*.json"):
        base = BaseImage.model_validate_json(record.read_bytes())
        if record == _record(settings, base.architecture, cache):
            found.append(base)
    return found[0] if len(found) == 1 else None


def _record(settings: Docker, architecture: str, cache: Path) -> Path:
    """Return where the record of an image is kept, by all that it depends on."""
    return cache / f"{hash_of([BUILDER, settings.suite, settings.snapshot_epoch, base_packages(), architecture])}.json"


def _built(settings: Docker, architecture: str, cache: Path) -> BaseImage:
    packages, record = base_packages(), _record(settings, architecture, cache)
    if record.exists():
        base = BaseImage.model_validate_json(record.read_bytes())
        if all(source.open is not None for source in base.sources(cache)):
            return base
    if architecture != host_architecture():
        raise MachineError(
            f"the engine runs {architecture}, this machine is {host_architecture()}: no base image can be built here",
            next_step="set docker.base_image to an image by digest, or run on a machine like the engine's",
        )
    _log.info("building the base image, about a minute", suite=settings.suite, packages=len(packages))
    base = _build(settings, architecture, packages, cache)
    _replace(record, base.model_dump_json().encode())
    return base


def _build(settings: Docker, architecture: str, packages: tuple[str, ...], cache: Path) -> BaseImage:
    for abandoned in cache.glob(f"{_BUILD}*"):  # the lock is ours: whoever made it was killed
        shutil.rmtree(abandoned, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=cache, prefix=_BUILD) as folder:
        fresh, layer_tar = Path(folder) / "fresh.tar", Path(folder) / "layer.tar"
        debootstrap(fresh, suite=settings.suite, packages=packages, epoch=settings.snapshot_epoch)
        entries = list(base_entries(read_tar(fresh, keep)))
        with layer_tar.open("wb") as out:
            layer = deterministic_tar(entries, out, mtime=settings.snapshot_epoch)
            os.fsync(out.fileno())
        versions = package_versions(entries)
        layer_tar.replace(layer_path(cache, layer.diff_id))
    config = ImageConfig(
        architecture=architecture,
        created=settings.snapshot_epoch,
        diff_ids=(layer.diff_id,),
        notes=(f"debian {settings.suite}: {' '.join(packages)}",),
    )
    tag = f"{REPOSITORY}:{config.image_id.removeprefix('sha256:')[:12]}"
    return BaseImage(image=tag, digest=config.image_id, config=config, layers=(layer,), packages=versions)


def layer_path(cache: Path, diff_id: str) -> Path:
    """Return where the plain bytes of a layer are kept."""
    return cache / f"{diff_id.removeprefix('sha256:')}.tar"


def _source(layer: Layer, path: Path) -> LayerSource:
    if not path.exists():
        return LayerSource(layer, None)
    return LayerSource(layer.model_copy(update={"size": path.stat().st_size}), partial(_open, path))


def _open(path: Path) -> BinaryIO:
    return path.open("rb")


def _replace(path: Path, data: bytes) -> None:
    part = path.with_suffix(".part")
    part.write_bytes(data)
    part.replace(path)


@contextmanager
def _locked(cache: Path) -> Iterator[None]:
    """Hold the cache's lock between processes; it ends with the process that holds it."""
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _given(client: docker.DockerClient, reference: str, cache: Path) -> BaseImage:
    image = _present_or_pulled(client, reference)
    run = image.attrs["Config"]
    wrong = [
        *([] if run.get("User") in _USERS else [f"its user is {run.get('User')!r}, not {UID}:{GID}"]),
        *(["it has an entrypoint"] if run.get("Entrypoint") else []),
    ]
    if wrong:
        raise ConfigError(f"docker.base_image = {reference}: {'; '.join(wrong)}")
    diff_ids = tuple(image.attrs["RootFS"]["Layers"])
    config = ImageConfig(
        architecture=image.attrs["Architecture"],
        created=_seconds(image.attrs.get("Created")),
        diff_ids=diff_ids,
        notes=tuple(f"base {reference}" for _ in diff_ids),
        env=tuple(run.get("Env") or ()),
        labels=run.get("Labels") or {},
    )
    layers = tuple(Layer(diff_id=diff_id, size=0) for diff_id in diff_ids)
    if needs_all_layers(image.attrs):
        with _locked(cache):
            save_layers(client, reference, diff_ids, cache)
    return BaseImage(
        image=reference, digest=str(image.id), config=config, layers=layers, packages=_dpkg(client, reference)
    )


def _seconds(created: str | None) -> int:
    """Return a time as the engine writes it in seconds; an image without one has 1970, or the year 1 in old engines."""
    if not created:
        return 0
    return max(0, int(datetime.fromisoformat(created[:19] + "+00:00").timestamp()))


def _present_or_pulled(client: docker.DockerClient, reference: str) -> Image:
    try:
        return client.images.get(reference)
    except ImageNotFound:
        pass
    if "@sha256:" not in reference:
        raise ConfigError(
            f"docker.base_image = {reference}: the engine does not have it, and a tag may change its meaning",
            next_step="name it by digest: docker.base_image = name@sha256:...",
        )
    try:
        return client.images.pull(reference)
    except ImageNotFound as error:
        raise InfrastructureFault(
            f"docker.base_image = {reference}: its registry does not have it ({error})",
            reason=Reason.BASE_IMAGE_UNAVAILABLE,
            next_step="check docker.base_image and your access to its registry",
        ) from error


def _dpkg(client: docker.DockerClient, reference: str) -> str:
    command = ["dpkg-query", "--show", "--showformat", "${Package} ${Version} ${Architecture}\n"]
    container = client.containers.create(reference, command, **_READS_ONLY)
    try:
        container.start()
        status = container.wait()["StatusCode"]
        text = container.logs(stderr=False).decode()
    except APIError as error:
        if "executable file not found" not in str(error):
            raise
        return ""
    finally:
        container.remove(force=True)
    return "".join(sorted(text.splitlines(keepends=True))) if status == 0 else ""

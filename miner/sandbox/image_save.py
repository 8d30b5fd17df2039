"""The bytes of layers that only the engine has, for storages that take an image whole or not at all.

Read is what `docker save` gives: an archive with a `manifest.json` that names the configuration and the layers of each
image. Layers are plain in older engines, and may be gzip-compressed blobs since 25.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO

import docker

from miner.core.errors import InfrastructureFault
from miner.core.reasons import Reason

_CHUNK = 1 << 20
_GZIP = b"\x1f\x8b"


def save_layers(client: docker.DockerClient, reference: str, diff_ids: Sequence[str], folder: Path) -> None:
    """Write the plain bytes of an image's layers into a folder, as `<hex of the diff id>.tar`; known ones stay.

    Raises:
        InfrastructureFault: what the engine gives is not that image.
    """
    if all(_path(folder, diff_id).exists() for diff_id in diff_ids):
        return
    with tempfile.TemporaryFile(dir=folder) as archive:
        for chunk in client.images.get(reference).save(chunk_size=_CHUNK):
            archive.write(chunk)
        archive.seek(0)
        with tarfile.open(fileobj=archive, mode="r:") as tar:
            for diff_id, member in zip(diff_ids, _members(tar, diff_ids, reference), strict=True):
                _keep(tar, member, diff_id, folder)


def _members(tar: tarfile.TarFile, diff_ids: Sequence[str], reference: str) -> list[str]:
    """Return the members that hold the layers of the image; an archive may hold it for several platforms."""
    for image in json.loads(_content(tar, "manifest.json").read()):
        if json.loads(_content(tar, image["Config"]).read())["rootfs"]["diff_ids"] == list(diff_ids):
            return list(image["Layers"])
    raise _fault(f"the engine saved {reference} without the image that it describes")


def _keep(tar: tarfile.TarFile, member: str, diff_id: str, folder: Path) -> None:
    with tempfile.TemporaryDirectory(dir=folder, prefix="build-") as part:
        plain, digest = Path(part) / "layer.tar", hashlib.sha256()
        with _content(tar, member) as packed, _plain(packed) as stream, plain.open("wb") as out:
            while chunk := stream.read(_CHUNK):
                digest.update(chunk)
                out.write(chunk)
        if f"sha256:{digest.hexdigest()}" != diff_id:
            raise _fault(f"the engine saved other bytes as layer {diff_id}")
        plain.replace(_path(folder, diff_id))


def _content(tar: tarfile.TarFile, name: str) -> IO[bytes]:
    try:
        stream = tar.extractfile(name)
    except KeyError as error:
        raise _fault(f"the engine saved an archive without {name}") from error
    if stream is None:
        raise _fault(f"the engine saved {name} as something else than a file")
    return stream


def _plain(stream: IO[bytes]) -> IO[bytes] | gzip.GzipFile:
    start = stream.read(len(_GZIP))
    stream.seek(0)
    return gzip.GzipFile(fileobj=stream) if start == _GZIP else stream


def _path(folder: Path, diff_id: str) -> Path:
    return folder / f"{diff_id.removeprefix('sha256:')}.tar"


def _fault(message: str) -> InfrastructureFault:
    return InfrastructureFault(message, reason=Reason.DOCKER_ERROR)

"""Deterministic layers and images: pure functions from entries to bytes, so that equal inputs have equal digests.

A layer is an uncompressed tar: entries sorted by path, one mtime, numeric owners, no names, no extended attributes, PAX
records only where a value does not fit. An image is its canonical configuration JSON, whose sha256 is the image id
(OCI image specification, "Image Configuration"). The archive is what `docker load` reads (Docker image
specification v1.2: `manifest.json` with Config, RepoTags and Layers).
"""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, Literal

from pydantic import Field

from miner.core.hashing import canonical_json, sha256_bytes
from miner.core.records import Layer, Record

_CHUNK = 1 << 20
_TYPES = {
    "file": tarfile.REGTYPE,
    "dir": tarfile.DIRTYPE,
    "symlink": tarfile.SYMTYPE,
    "hardlink": tarfile.LNKTYPE,
    "whiteout": tarfile.REGTYPE,
}
_WHITEOUT = ".wh."

Opener = Callable[[], BinaryIO]


@dataclass(frozen=True, slots=True)
class TarEntry:
    """One entry of a layer.

    Attributes:
        path: relative to the root, "/" between parts, no `..`.
        kind: a "whiteout" deletes its path from the layers below (OCI image specification, "Whiteouts").
        link: target of a symlink as written; path of an entry that sorts earlier for a hard link.
        content: bytes of a file, or a function that opens a stream of exactly `size` bytes.
    """

    path: str
    kind: Literal["file", "dir", "symlink", "hardlink", "whiteout"]
    mode: int = 0o644
    uid: int = 0
    gid: int = 0
    link: str = ""
    content: bytes | Opener = b""
    size: int = 0

    @property
    def length(self) -> int:
        """Number of content bytes."""
        if self.kind != "file":
            return 0
        return len(self.content) if isinstance(self.content, bytes) else self.size

    @property
    def sort_key(self) -> bytes:
        """Order in the layer: by the bytes of the path, so that a folder comes before what is in it."""
        return self.path.encode("utf-8", "surrogateescape")

    def open(self) -> BinaryIO:
        """Return a stream of the content."""
        return io.BytesIO(self.content) if isinstance(self.content, bytes) else self.content()


class _Hashing(io.RawIOBase):
    """Pass bytes on, count and hash them."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self.sha256 = hashlib.sha256()
        self.size = 0

    def writable(self) -> bool:
        return True

    def write(self, data: bytes) -> int:  # type: ignore[override] # tarfile writes bytes only
        self._out.write(data)
        self.sha256.update(data)
        self.size += len(data)
        return len(data)


def deterministic_tar(entries: Iterable[TarEntry], out: BinaryIO, *, mtime: int = 0) -> Layer:
    """Write a layer to a stream and return its diff id and size; the order of the entries does not matter.

    Raises:
        ValueError: a path that is absolute, leads out, stands twice or has the name of a whiteout; a hard link whose
            target is not in the layer; a stream that is not as long as announced.
    """
    sink = _Hashing(out)
    seen: set[str] = set()
    with tarfile.open(
        fileobj=sink, mode="w|", format=tarfile.PAX_FORMAT, bufsize=_CHUNK, errors="surrogateescape"
    ) as tar:
        for entry in sorted(entries, key=lambda entry: entry.sort_key):
            _check(entry, seen)
            seen.add(entry.path)
            _add(tar, entry, mtime)
    return Layer(diff_id=f"sha256:{sink.sha256.hexdigest()}", size=sink.size)


def _check(entry: TarEntry, seen: set[str]) -> None:
    parts = PurePosixPath(entry.path).parts
    if not entry.path or entry.path != "/".join(parts) or ".." in parts or entry.path.startswith("/"):
        raise ValueError(f"not a clean relative path: {entry.path!r}")
    if entry.path in seen:
        raise ValueError(f"stands twice in the layer: {entry.path!r}")
    if parts[-1].startswith(_WHITEOUT):
        raise ValueError(f"would delete files of lower layers: {entry.path!r}")
    if entry.kind == "hardlink" and entry.link not in seen:
        raise ValueError(f"hard link {entry.path!r} to {entry.link!r}, which does not come before it")


def _add(tar: tarfile.TarFile, entry: TarEntry, mtime: int) -> None:
    info = tarfile.TarInfo(_written_path(entry))
    info.type, info.mode, info.mtime = _TYPES[entry.kind], entry.mode & 0o7777, mtime
    info.uid, info.gid, info.linkname, info.size = entry.uid, entry.gid, entry.link, entry.length
    if entry.kind != "file":
        tar.addfile(info)
        return
    with entry.open() as stream:
        try:
            tar.addfile(info, stream)
        except OSError as error:
            if "unexpected end of data" in str(error):
                raise ValueError(f"shorter than announced: {entry.path!r}") from error
            raise
        if stream.read(1):
            raise ValueError(f"longer than announced: {entry.path!r}")


def _written_path(entry: TarEntry) -> str:
    if entry.kind != "whiteout":
        return entry.path
    return str(PurePosixPath(entry.path).with_name(_WHITEOUT + PurePosixPath(entry.path).name))


class _Window(io.RawIOBase):
    """The part of a file from an offset on, `size` bytes long."""

    def __init__(self, archive: Path, offset: int, size: int) -> None:
        self._file = archive.open("rb")
        self._file.seek(offset)
        self._left = size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._file.read(min(len(buffer), self._left))
        buffer[: len(data)] = data
        self._left -= len(data)
        return len(data)

    def close(self) -> None:
        self._file.close()
        super().close()


@dataclass(frozen=True, slots=True)
class _Slice:
    """Opens one file inside an uncompressed tar on disk."""

    archive: Path
    offset: int
    size: int

    def __call__(self) -> BinaryIO:
        return io.BufferedReader(_Window(self.archive, self.offset, self.size))


def read_tar(archive: Path, keep: Callable[[str], bool] = lambda _: True) -> Iterator[TarEntry]:
    """Read the entries of an uncompressed tar on disk, such as an exported file system.

    Of files that are hard links of each other the first path in order becomes the file. Devices, pipes and sockets are
    left out. The archive must stay in place while the entries are used.

    Args:
        archive: the tar; the last of several members with one path counts.
        keep: told each cleaned path; what it refuses is left out, hard links to it excepted.
    """
    with tarfile.open(archive, mode="r:", errors="surrogateescape") as tar:
        members = {path: member for member in tar if (path := _clean(member.name))}
    groups: dict[str, list[str]] = {}
    for path, member in members.items():
        if not (member.isreg() or member.islnk()):
            if keep(path) and (member.isdir() or member.issym()):
                yield _entry(path, member, "dir" if member.isdir() else "symlink", link=member.linkname)
        elif keep(path):
            groups.setdefault(_origin(path, members), []).append(path)
    for origin, paths in groups.items():
        first, *others = sorted(paths, key=lambda path: path.encode("utf-8", "surrogateescape"))
        source = members[origin]
        content = _Slice(archive, source.offset_data, source.size)
        yield _entry(first, source, "file", content=content, size=source.size)
        for path in others:
            yield _entry(path, source, "hardlink", link=first)


def _clean(name: str) -> str:
    return "/".join(part for part in PurePosixPath(name).parts if part not in ("/", "."))


def _origin(path: str, members: Mapping[str, tarfile.TarInfo]) -> str:
    """Follow hard links to the member that holds the bytes."""
    for _ in range(len(members)):
        member = members.get(path)
        if member is None:
            raise ValueError(f"hard link to {path!r}, which is not in the archive")
        if not member.islnk():
            return path
        path = _clean(member.linkname)
    raise ValueError(f"hard links in a circle at {path!r}")


def _entry(
    path: str,
    member: tarfile.TarInfo,
    kind: Literal["file", "dir", "symlink", "hardlink"],
    *,
    link: str = "",
    content: bytes | Opener = b"",
    size: int = 0,
) -> TarEntry:
    link = link if kind in ("symlink", "hardlink") else ""
    return TarEntry(path, kind, member.mode, member.uid, member.gid, link, content, size)


class ImageConfig(Record):
    """The configuration of an image. Its canonical JSON is the image: same fields, same id.

    Attributes:
        created: seconds since 1970, a property of the inputs, never the time of the build.
        diff_ids: the layers, lowest first.
        notes: one line for each layer: where it comes from.
    """

    architecture: str
    created: int
    diff_ids: tuple[str, ...]
    notes: tuple[str, ...]
    env: tuple[str, ...] = ("PATH=/opt/env/bin:/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8")
    user: str = "1000:1000"
    working_dir: str = "/testbed"
    cmd: tuple[str, ...] = ("/bin/bash",)
    stop_signal: str = "SIGKILL"
    labels: dict[str, str] = Field(default_factory=dict)

    def with_layer(self, diff_id: str, note: str, *, labels: Mapping[str, str] | None = None) -> ImageConfig:
        """Return the configuration of this image with one more layer on top."""
        return self.model_copy(
            update={
                "diff_ids": (*self.diff_ids, diff_id),
                "notes": (*self.notes, note),
                "labels": {**self.labels, **(labels or {})},
            }
        )

    def json_bytes(self) -> bytes:
        """Return the configuration as the registry and the engine store it."""
        created = datetime.fromtimestamp(self.created, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        run = {
            "Cmd": self.cmd,
            "Env": self.env,
            "Labels": self.labels,
            "StopSignal": self.stop_signal,
            "User": self.user,
            "WorkingDir": self.working_dir,
        }
        document = {
            "architecture": self.architecture,
            "config": run,
            "created": created,
            "history": [{"created": created, "created_by": note} for note in self.notes],
            "os": "linux",
            "rootfs": {"diff_ids": self.diff_ids, "type": "layers"},
        }
        return canonical_json(document).encode()

    @property
    def image_id(self) -> str:
        """The image id of engines and the config digest of registries: `sha256:<hex>`."""
        return f"sha256:{sha256_bytes(self.json_bytes())}"


@dataclass(frozen=True, slots=True)
class LayerSource:
    """A layer and where its uncompressed tar can be read; None where the engine holds it already."""

    layer: Layer
    open: Opener | None


def write_docker_archive(config: ImageConfig, layers: Sequence[LayerSource], tag: str, out: BinaryIO) -> None:
    """Write what `docker load` reads. A layer without a source is named, but its bytes are left out.

    Raises:
        ValueError: the layers are not those of the configuration, or a stream is not as long as announced.
    """
    if tuple(source.layer.diff_id for source in layers) != config.diff_ids:
        raise ValueError("the layers are not those of the configuration")
    config_name = f"{config.image_id.removeprefix('sha256:')}.json"
    names = [f"{source.layer.diff_id.removeprefix('sha256:')}/layer.tar" for source in layers]
    manifest = [{"Config": config_name, "RepoTags": [tag], "Layers": names}]
    with tarfile.open(fileobj=out, mode="w|", format=tarfile.PAX_FORMAT, bufsize=_CHUNK) as tar:
        _add(tar, TarEntry(config_name, "file", content=config.json_bytes()), config.created)
        for name, source in dict(zip(names, layers, strict=True)).items():
            if source.open is not None:
                _add(tar, TarEntry(name, "file", content=source.open, size=source.layer.size), config.created)
        _add(tar, TarEntry("manifest.json", "file", content=json.dumps(manifest).encode()), config.created)

"""Content-addressed blobs: zstd-compressed, named by the sha256 of their plain bytes, on any fsspec URL."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import fsspec
import zstandard
from fsspec.implementations.local import LocalFileSystem

from miner.core.errors import BlobLost, ConfigError, DiskFull, InfrastructureFault, is_disk_full
from miner.core.hashing import sha256_bytes

_LEVEL = 6


class BlobStore:
    """Immutable bytes by digest. A put is atomic: a kill leaves no half blob under a final name.

    In a local folder a blob is on the disk when `put` returns, as a fact is that names it.

    Args:
        url: an fsspec URL or a local folder.

    Raises:
        ConfigError: nothing can be kept there.
    """

    def __init__(self, url: str) -> None:
        self._fs: Any
        try:
            self._fs, self._root = fsspec.core.url_to_fs(url)
            self._fs.makedirs(self._root, exist_ok=True)
            self._is_local = isinstance(self._fs, LocalFileSystem)
            self._kept_folders: set[str] = set()
        except (OSError, ValueError, ImportError) as error:
            raise ConfigError(
                f"blobs cannot be kept at {url}: {error}", next_step="choose another `paths.work` or `paths.blobs_url`"
            ) from error

    def _path(self, digest: str) -> str:
        return f"{self._root}/{digest[:2]}/{digest}.zst"

    def put(self, data: bytes) -> str:
        """Store bytes and return their sha256; a blob that is there already is written again only if it is damaged."""
        digest = sha256_bytes(data)
        if not self._is_whole(digest):
            self._write(digest, [zstandard.ZstdCompressor(level=_LEVEL).compress(data)])
        return digest

    def put_text(self, text: str) -> str:
        """Store text as UTF-8; surrogate escapes become the bytes that they stand for."""
        return self.put(text.encode("utf-8", "surrogateescape"))

    def put_stream(self, digest: str, chunks: Iterable[bytes], *, level: int = _LEVEL) -> None:
        """Store a large blob whose digest is known; a stream with another digest is an error and leaves nothing.

        Args:
            digest: of the plain bytes.
            chunks: these bytes.
            level: of the compression; the digest does not depend on it.
        """
        if self._is_whole(digest):
            return
        seen = hashlib.sha256()
        compressor = zstandard.ZstdCompressor(level=level).compressobj()

        def compressed() -> Iterator[bytes]:
            for chunk in chunks:
                seen.update(chunk)
                yield compressor.compress(chunk)
            yield compressor.flush()
            if seen.hexdigest() != digest:
                raise InfrastructureFault(f"blob {digest} was announced, {seen.hexdigest()} arrived")

        self._write(digest, compressed())

    def _write(self, digest: str, chunks: Iterable[bytes]) -> None:
        path = self._path(digest)
        part = f"{path}.{os.getpid()}-{threading.get_ident()}.part"
        try:
            self._fs.makedirs(path.rsplit("/", 1)[0], exist_ok=True)
            with self._fs.open(part, "wb") as file:
                for chunk in chunks:
                    file.write(chunk)
                if self._is_local:
                    file.flush()
                    os.fsync(file.fileno())
            self._fs.mv(part, path)
            if self._is_local:
                self._sync(path.rsplit("/", 1)[0])
        except OSError as error:
            if is_disk_full(error):
                raise DiskFull(f"no space left while writing blob {digest}") from error
            raise
        finally:
            if self._fs.exists(part):
                self._fs.rm(part)

    def _sync(self, folder: str) -> None:
        """Have the names in a folder on the disk, and, the first time, its own."""
        _sync_folder(folder)
        if folder not in self._kept_folders:
            _sync_folder(self._root)
            self._kept_folders.add(folder)

    def get(self, digest: str) -> bytes:
        """Return the bytes of a blob, checked against their digest.

        Raises:
            BlobLost: it is missing or damaged.
        """
        try:
            with self._fs.open(self._path(digest), "rb") as file:
                data = zstandard.ZstdDecompressor().decompressobj().decompress(file.read())
        except (FileNotFoundError, zstandard.ZstdError) as error:
            raise BlobLost(f"blob {digest} is missing or damaged") from error
        if sha256_bytes(data) != digest:
            raise BlobLost(f"blob {digest} is damaged: its bytes have another digest")
        return data

    def get_text(self, digest: str) -> str:
        """Return a blob as text; bytes that are not UTF-8 become surrogate escapes."""
        return self.get(digest).decode("utf-8", "surrogateescape")

    def copy_to(self, digest: str, out: BinaryIO) -> None:
        """Write the bytes of a large blob to a stream, piece by piece, checked against their digest at the end.

        Raises:
            BlobLost: it is missing or damaged; what was written so far is not to be used.
        """
        for chunk in self._chunks(digest):
            out.write(chunk)

    def _chunks(self, digest: str) -> Iterator[bytes]:
        """Yield the bytes of a blob, checked against their digest at the end."""
        seen = hashlib.sha256()
        try:
            with self._fs.open(self._path(digest), "rb") as file:
                for chunk in zstandard.ZstdDecompressor().read_to_iter(file):
                    seen.update(chunk)
                    yield chunk
        except (FileNotFoundError, zstandard.ZstdError) as error:
            raise BlobLost(f"blob {digest} is missing or damaged") from error
        if seen.hexdigest() != digest:
            raise BlobLost(f"blob {digest} is damaged: its bytes have another digest")

    def has(self, digest: str) -> bool:
        """Whether the blob is stored."""
        return bool(self._fs.exists(self._path(digest)))

    def touch(self, digest: str) -> bool:
        """Note that a blob is used now, where it lies in a local folder, and return whether it is stored."""
        if not self._is_local:
            return self.has(digest)
        try:
            os.utime(self._path(digest))
        except FileNotFoundError:
            return False
        return True

    def on_disk(self, digest: str) -> tuple[int, float] | None:
        """Return how many bytes of this machine's disk a blob takes and when it was last used; None where it is not."""
        try:
            found = Path(self._path(digest)).stat() if self._is_local else None
        except FileNotFoundError:
            return None
        return (found.st_size, found.st_mtime) if found is not None else None

    def remove(self, digest: str) -> None:
        """Remove a blob; one that is not there is no error."""
        with suppress(FileNotFoundError):
            self._fs.rm(self._path(digest))

    def _is_whole(self, digest: str) -> bool:
        """Whether the blob is stored with the bytes that its name says."""
        if not self.has(digest):
            return False
        try:
            for _ in self._chunks(digest):
                pass
        except InfrastructureFault:
            return False
        return True


def _sync_folder(path: str) -> None:
    """Have the names in a folder on the disk, too."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

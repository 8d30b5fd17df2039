"""Small tars in memory, and a tar that arrives in chunks: the form in which files go to and come from an engine."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator

from miner.sandbox.interface import Files


def tar_of(files: Files, uid: int) -> bytes:
    """Return a tar of files and folders, all of one owner; unpacked at `/`, it makes missing parents as root."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path, (data, mode) in files.items():
            info = tarfile.TarInfo(path.strip("/"))
            info.type = tarfile.DIRTYPE if path.endswith("/") else tarfile.REGTYPE
            info.size, info.mode, info.uid, info.gid = len(data), mode, uid, uid
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


class ChunkReader(io.RawIOBase):
    """A readable file over chunks of bytes."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._rest = b""

    def readable(self) -> bool:
        """Whether it can be read: always."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Return up to `size` bytes, fewer only at the end."""
        while size < 0 or len(self._rest) < size:
            chunk = next(self._chunks, b"")
            if not chunk:
                break
            self._rest += chunk
        end = len(self._rest) if size < 0 else size
        data, self._rest = self._rest[:end], self._rest[end:]
        return data


def first_regular_file(tar_stream: Iterator[bytes], max_bytes: int) -> bytes | None:
    """Return the first bytes of a tar's first member; None if that is no regular file."""
    with tarfile.open(fileobj=ChunkReader(tar_stream), mode="r|") as tar:
        member = tar.next()
        file = tar.extractfile(member) if member is not None and member.isreg() else None
        return None if file is None else file.read(max_bytes)

"""Look into a wheel without downloading it: the directory of a zip stands at its end, and servers send ranges.

A server that does not (RFC 9110 lets it) sends the whole file, which is taken where it is not too large.
"""

from __future__ import annotations

import io
import zipfile
import zlib

import requests

from miner.core.errors import IndexUnreachable, InfrastructureFault
from miner.core.index_access import ca_bundle
from miner.core.reasons import Reason
from miner.core.settings import Index

_BLOCK = 128 * 1024
_WHOLE = 32 * 1024 * 1024
_MEMBER = 4 * 1024 * 1024
_TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504})


class Unreadable(Exception):
    """A file of the index cannot be looked into: it is damaged, gone, or too large for a server without ranges."""


class RemoteFile(io.RawIOBase):
    """A file behind a URL, read in blocks as they are asked for.

    Args:
        settings: how patient to be with the index.
        url: of the file.
        size: of the file.

    Raises:
        IndexUnreachable: nothing answers.
        Unreadable: the server has no such file, or sends no ranges of a large one.
    """

    def __init__(self, settings: Index, url: str, size: int) -> None:
        super().__init__()
        self._settings = settings
        self._url = url
        self._size = size
        self._at = 0
        self._blocks: dict[int, bytes] = {}
        self._session = requests.Session()
        self._session.headers.update({"User-Agent": "swe-miner", "Accept-Encoding": "identity"})

    def close(self) -> None:
        """Close the connection, too."""
        self._session.close()
        super().close()

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It is."""
        return True

    def tell(self) -> int:
        """Return the place from which is read next."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, start + offset)
        return self._at

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override] # typeshed: WriteableBuffer
        """Read what follows, up to the end of a block."""
        if self._at >= self._size or not len(buffer):
            return 0
        number, offset = divmod(self._at, _BLOCK)
        part = self._block(number)[offset : offset + len(buffer)]
        buffer[: len(part)] = part
        self._at += len(part)
        return len(part)

    def _block(self, number: int) -> bytes:
        if number not in self._blocks:
            start = number * _BLOCK
            end = min(start + _BLOCK, self._size)
            answer = self._get({"Range": f"bytes={start}-{end - 1}"})
            if answer.status_code == requests.codes.partial_content:
                self._blocks[number] = answer.content
            elif len(answer.content) == self._size:
                whole = answer.content
                self._blocks |= {at // _BLOCK: whole[at : at + _BLOCK] for at in range(0, self._size, _BLOCK)}
            if len(self._blocks.get(number, b"")) != end - start:
                raise Unreadable(f"{self._url}: another file than the index states")
        return self._blocks[number]

    def _get(self, headers: dict[str, str]) -> requests.Response:
        bundle = ca_bundle(self._settings)
        options = {"timeout": self._settings.timeout_s, "verify": str(bundle) if bundle is not None else True}
        last: Exception | None = None
        for _ in range(self._settings.tries):
            try:
                with self._session.get(self._url, headers=headers, stream=True, **options) as answer:  # type: ignore[arg-type] # a dict of several types
                    if answer.status_code in _TRANSIENT:
                        last = _faulty(self._url, answer.status_code)
                        continue
                    if not answer.ok:
                        raise Unreadable(f"{self._url}: the index answers with status {answer.status_code}")
                    if answer.status_code != requests.codes.partial_content and self._size > _WHOLE:
                        raise Unreadable(f"{self._url}: the server sends no ranges")
                    _ = answer.content
                    return answer
            except requests.RequestException as error:
                last = IndexUnreachable(f"{self._url}: no answer ({error})")
        raise last or IndexUnreachable(f"{self._url}: no answer")


def _faulty(url: str, status: int) -> InfrastructureFault:
    return InfrastructureFault(f"{url}: the index answers with status {status}", reason=Reason.INDEX_ERROR)


class Wheel:
    """A wheel on the index, to be looked into.

    Raises:
        Unreadable: it is no zip, or cannot be had.
    """

    def __init__(self, settings: Index, url: str, size: int) -> None:
        self._file = io.BufferedReader(RemoteFile(settings, url, size), _BLOCK)
        try:
            self._zip = zipfile.ZipFile(self._file)
        except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
            raise Unreadable(f"{url}: {error}") from error

    def names(self) -> tuple[str, ...]:
        """Return the paths that it holds, as they are installed."""
        return tuple(_installed(name) for name in self._zip.namelist())

    def text(self, path: str) -> str:
        """Return the text of a file, "" for one that is not there or too large.

        Raises:
            Unreadable: its content is damaged.
        """
        info = next((one for one in self._zip.infolist() if _installed(one.filename) == path), None)
        if info is None or info.file_size > _MEMBER:
            return ""
        try:
            return self._zip.read(info).decode("utf-8", "replace")
        except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError, zlib.error) as error:
            raise Unreadable(f"{path}: {error}") from error


def _installed(path: str) -> str:
    """Return where a file of a wheel comes to lie in site-packages (`NAME.data/purelib` goes there, too)."""
    head, _, rest = path.partition("/")
    kind, _, below = rest.partition("/")
    return below if head.endswith(".data") and kind in ("purelib", "platlib") else path

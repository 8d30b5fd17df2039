"""Where the hours of GH Archive are: a folder, any fsspec URL, or a base URL over HTTP.

An hour is named `2025-05-01-0`, in UTC and without a leading zero, and its file `2025-05-01-0.json.gz` (documented:
https://www.gharchive.org/; with a leading zero it answers 404, its issue 105). An hour that is not there is a value.
What says nothing about the archive is a fault of the infrastructure, after a bounded number of tries: no connection, a
server error, a cut body, a page of HTML with status 200. Some clients are refused by their name (recorded, July 2026).
"""

from __future__ import annotations

import calendar
import re
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import IO, Any, TypeVar

import fsspec
import requests
import urllib3
from fsspec.implementations.local import LocalFileSystem
from tenacity import (
    Retrying,
    retry_if_exception_type,
    sleep_using_event,
    stop_after_attempt,
    stop_any,
    stop_when_event_set,
    wait_exponential,
    wait_random,
)

from miner.core.errors import ConfigError, DiskFull, InfrastructureFault, is_disk_full
from miner.core.index_access import without_login
from miner.core.reasons import Reason
from miner.crawlers.gharchive_lines import CHUNK

_HEADERS = {"User-Agent": "Mozilla/5.0 (compatible; swe-miner)", "Accept-Encoding": "identity"}
_MAX_WAIT_S = 60.0
_GONE = frozenset({404, 410})
_NO_HEAD = frozenset({405, 501})
_LOGIN = re.compile(r"//[^/@]*@")
_WORTH_A_TRY = frozenset({408, 425, 429})
_NEXT_STEP = (
    "check the network and `mine.archive`, then run the same command again; or fetch the hours into a folder and name"
    " that one: hours that are not there are only noted"
)

Answer = TypeVar("Answer")


class _Transient(Exception):
    """Worth another try; carries the fault that is raised when there is no other."""

    def __init__(self, fault: InfrastructureFault) -> None:
        super().__init__(str(fault))
        self.fault = fault


def hours_of(month: str) -> tuple[str, ...]:
    """Return the names of the hours of a month ("2025-05"), in order."""
    year, number = (int(part) for part in month.split("-"))
    days = calendar.monthrange(year, number)[1]
    return tuple(f"{month}-{day:02}-{hour}" for day in range(1, days + 1) for hour in range(24))


class HourArchive:
    """Opens hours by name; safe to share between threads.

    Args:
        location: a folder, an fsspec URL, or an http(s) URL below which the hours are.
        timeout_s: how long a connection over HTTP may be silent.
        tries: how often an hour is asked for over HTTP.
        wait_s: the first wait between two tries; it doubles, with jitter.
        stopped: no further try once it is set.

    Raises:
        ConfigError: no such folder, or no such kind of URL.
    """

    def __init__(
        self,
        location: str,
        *,
        timeout_s: float = 60.0,
        tries: int = 5,
        wait_s: float = 1.0,
        stopped: threading.Event | None = None,
    ) -> None:
        self._files: Any = None
        self._root = location.rstrip("/")
        self._timeout_s, self._tries, self._wait_s = timeout_s, tries, wait_s
        self._stopped = stopped or threading.Event()
        try:
            if location.startswith(("http://", "https://")):
                without_login(location)
                return
            self._files, self._root = fsspec.core.url_to_fs(location)
        except (ValueError, ImportError) as error:
            shown = _LOGIN.sub("//", location)
            raise ConfigError(f"mine.archive = {shown!r} cannot be opened: {error}") from error
        if isinstance(self._files, LocalFileSystem) and not self._files.isdir(self._root):
            raise ConfigError(f"mine.archive = {location!r} is no folder")

    def sizes(self, hours: Iterable[str]) -> dict[str, int | None]:
        """Return the sizes of the files of those hours that are there, in their order; None where nothing says it.

        Raises:
            InfrastructureFault: the archive does not answer as an archive does.
        """
        return self._asked(hours) if self._files is None else self._listed(hours)

    def _listed(self, hours: Iterable[str]) -> dict[str, int | None]:
        try:
            found = self._files.ls(self._root, detail=True)
        except FileNotFoundError:  # where folders are but parts of names
            return {}
        except OSError as error:
            raise _fault(f"{self._root}: cannot be listed ({error})") from error
        sizes = {entry["name"].rpartition("/")[2]: entry.get("size") for entry in found}
        return {hour: sizes[f"{hour}.json.gz"] for hour in hours if f"{hour}.json.gz" in sizes}

    def _asked(self, hours: Iterable[str]) -> dict[str, int | None]:
        found: dict[str, int | None] = {}
        with requests.Session() as session:
            for hour in hours:
                there, size = self._trying(partial(self._head, session), f"{self._root}/{hour}.json.gz")
                if there:
                    found[hour] = size
        return found

    def _head(self, session: requests.Session, url: str) -> tuple[bool, int | None]:
        shown = without_login(url)[0]
        try:
            for method in ("HEAD", "GET"):  # of which nothing is read but what stands before the body
                with session.request(
                    method, url, stream=True, allow_redirects=True, headers=_HEADERS, timeout=self._timeout_s
                ) as response:
                    if response.status_code not in _NO_HEAD:
                        break
            size = response.headers.get("Content-Length", "")
            return _is_there(response, shown), int(size) if size.isdecimal() else None
        except requests.RequestException as error:
            raise _Transient(_fault(f"{shown}: no answer ({type(error).__name__})")) from None

    @contextmanager
    def open(self, hour: str) -> Iterator[Iterator[bytes] | None]:
        """Give the bytes of an hour's file in chunks; None where there is no such file.

        Raises:
            InfrastructureFault: the archive does not answer as an archive does.
        """
        url = f"{self._root}/{hour}.json.gz"
        file = self._open_file(url) if self._files is not None else self._trying(self._download, url)
        if file is None:
            yield None
            return
        with file:
            yield _chunks(file, url)

    def _open_file(self, path: str) -> IO[bytes] | None:
        try:
            file: IO[bytes] = self._files.open(path, "rb")
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _fault(f"{path}: cannot be opened ({error})") from error
        return file

    def _trying(self, ask: Callable[[str], Answer], url: str) -> Answer:
        retrying = Retrying(
            sleep=sleep_using_event(self._stopped),
            stop=stop_any(stop_after_attempt(self._tries), stop_when_event_set(self._stopped)),
            wait=wait_exponential(multiplier=self._wait_s, max=_MAX_WAIT_S) + wait_random(0, self._wait_s),
            retry=retry_if_exception_type(_Transient),
            reraise=True,
        )
        try:
            return retrying(ask, url)
        except _Transient as error:
            raise error.fault from error

    def _download(self, url: str) -> IO[bytes] | None:
        """Fetch a whole file before it is read, so that a broken connection is never taken for the end of an hour."""
        shown = without_login(url)[0]
        file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - the caller closes it
        try:
            if self._copy(url, shown, file):
                return file
        except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
            file.close()
            cause = type(error).__name__  # its text may hold the URL, and a login in it
            raise _Transient(_fault(f"{shown}: no answer, or a cut one ({cause})")) from None
        except OSError as error:
            file.close()
            if is_disk_full(error):
                raise DiskFull(f"no space left while downloading {shown}") from error
            raise
        except BaseException:
            file.close()
            raise
        file.close()
        return None

    def _copy(self, url: str, shown: str, file: IO[bytes]) -> bool:
        with requests.get(url, stream=True, headers=_HEADERS, timeout=self._timeout_s) as response:
            if not _is_there(response, shown):
                return False
            # as they are on the server: some of them call the file's own gzip the encoding of the answer
            for chunk in response.raw.stream(CHUNK, decode_content=False):
                file.write(chunk)
        file.seek(0)
        head = file.read(64)
        if head.lstrip()[:1] == b"<":
            raise _Transient(_fault(f"{shown}: a page instead of an hour ({head!r})"))
        file.seek(0)
        return True


def _is_there(response: requests.Response, shown: str) -> bool:
    status = response.status_code
    if status in _GONE:
        return False
    if status != requests.codes.ok:
        fault = _fault(f"{shown}: the archive answers with status {status}")
        raise _Transient(fault) if status in _WORTH_A_TRY or status >= 500 else fault
    return True


def _chunks(file: IO[bytes], url: str) -> Iterator[bytes]:
    try:
        while chunk := file.read(CHUNK):
            yield chunk
    except OSError as error:
        raise _fault(f"{without_login(url)[0]}: cannot be read ({error})") from error


def _fault(message: str) -> InfrastructureFault:
    return InfrastructureFault(message, reason=Reason.HOURS_UNREACHABLE, next_step=_NEXT_STEP)

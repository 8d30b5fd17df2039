"""The package index: what it says of a project (PEP 503, 691, 700), and its files, checked and cached.

An unknown project is a value. Everything that says nothing about a project is a fault of the infrastructure, raised
after a bounded number of tries: no connection, a server error, a page of HTML where JSON was asked for, a cut body.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import requests
from packaging.version import Version
from pypi_simple import (
    ACCEPT_JSON_ONLY,
    DistributionPackage,
    ProjectPage,
    PyPISimple,
    UnsupportedRepoVersionError,
)
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

from miner.core.errors import DiskFull, IndexUnreachable, InfrastructureFault, is_disk_full
from miner.core.index_access import ca_bundle, index_url, pair_of_url, require_no_login, without_login
from miner.core.reasons import Reason
from miner.core.records import Record, SourceFile
from miner.core.settings import Index
from miner.crawlers.archive import SUFFIXES, suffix_of
from miner.crawlers.interface import Refused
from miner.project.versions import version_of

_MAX_WAIT_S = 30.0
_GONE = frozenset({404, 410})
_HASH_TRIES = 2
_Answer = TypeVar("_Answer")


class IndexFile(Record):
    """One file of a project, as the index states it."""

    filename: str
    url: str
    kind: str | None
    version: str | None
    sha256: str | None
    size: int | None
    uploaded_at: datetime | None
    yanked: bool
    requires_python: str | None


class ProjectFiles(Record):
    """All files of a project; `known` is false where the index knows no such project."""

    known: bool
    files: tuple[IndexFile, ...] = ()

    def of_version(self, version: Version) -> tuple[IndexFile, ...]:
        """Return the files of one version, by the rules of PEP 440."""
        return tuple(file for file in self.files if version_of(file.version) == version)

    def versions(self) -> tuple[Version, ...]:
        """Return the versions that have a file, in order."""
        return tuple(sorted({version for file in self.files if (version := version_of(file.version)) is not None}))


class _Transient(Exception):
    """Worth another try; carries the fault that is raised when there is no other."""

    def __init__(self, fault: InfrastructureFault) -> None:
        super().__init__(str(fault))
        self.fault = fault


class IndexClient:
    """Asks the index, with bounded retries; safe to share between threads.

    Args:
        settings: where the index is and how patient to be.
        cache: folder of downloads, by digest.
        max_bytes: the largest file to download.
        wait_s: the first wait between two tries; it doubles, with jitter.
        stopped: no further try once it is set.
    """

    def __init__(
        self,
        settings: Index,
        cache: Path,
        *,
        max_bytes: int = 512 << 20,
        wait_s: float = 0.5,
        stopped: threading.Event | None = None,
    ) -> None:
        self._settings = settings
        self._cache = cache
        self._max_bytes = max_bytes
        self._wait_s = wait_s
        self._stopped = stopped or threading.Event()

    def release_files(self, name: str) -> ProjectFiles:
        """Return what the index says about a project.

        Raises:
            IndexUnreachable: nothing answers.
            InfrastructureFault: it answers with an error or nonsense.
        """
        return self._retried(lambda: self._project(name))

    def download(self, file: SourceFile) -> Path:
        """Return a file of the index, checked against its announced digest.

        Raises:
            Refused: the file is larger than allowed, or twice in a row not the one that was announced.
            IndexUnreachable: nothing answers.
            InfrastructureFault: it answers with an error or a cut body.
        """
        path = self._cache / file.sha256[:2] / f"{file.sha256}{suffix_of(file.filename) or ''}"
        if path.is_file() and _sha256(path) == file.sha256:
            return path
        if (file.size or 0) > self._max_bytes:
            detail = f"{file.filename} has {file.size} bytes, more than {self._max_bytes}"
            raise Refused(Reason.ARCHIVE_TOO_LARGE, detail)
        for _ in range(_HASH_TRIES):
            found = self._retried(lambda: self._fetch(file, path))
            if found == file.sha256:
                return path
        detail = f"{file.filename}: announced as sha256 {file.sha256}, arrived as {found}"
        raise Refused(Reason.HASH_MISMATCH, detail)

    def _retried(self, attempt: Callable[[], _Answer]) -> _Answer:
        retrying = Retrying(
            sleep=sleep_using_event(self._stopped),
            stop=stop_any(stop_after_attempt(self._settings.tries), stop_when_event_set(self._stopped)),
            wait=wait_exponential(multiplier=self._wait_s, max=_MAX_WAIT_S) + wait_random(0, self._wait_s),
            retry=retry_if_exception_type(_Transient),
            reraise=True,
        )
        try:
            return retrying(attempt)
        except _Transient as error:
            raise error.fault from error

    def _project(self, name: str) -> ProjectFiles:
        endpoint, _ = without_login(index_url(self._settings))
        with _session(self._settings) as session, _faults(endpoint):
            url = PyPISimple(endpoint, session=session).get_project_url(name)
            response = session.get(url, headers={"Accept": ACCEPT_JSON_ONLY}, timeout=self._settings.timeout_s)
            if response.status_code in _GONE:
                return ProjectFiles(known=False)
            response.raise_for_status()
            # Not by its content type alone: the page of a proxy or of a rate limit comes with status 200, too.
            page = ProjectPage.from_json_data(response.json(), response.url)
            return ProjectFiles(known=True, files=tuple(_index_file(package) for package in page.packages))

    def _fetch(self, file: SourceFile, path: Path) -> str:
        """Download a file to its place in the cache if its digest is right; return the digest in any case."""
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, part = tempfile.mkstemp(prefix=".part-", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as out, _session(self._settings) as session, _faults(file.url):
                found = self._stream(session, file, out.write)
            if found == file.sha256:
                Path(part).replace(path)
            return found
        except OSError as error:
            if is_disk_full(error):
                raise DiskFull(f"no space left while downloading {file.filename}") from error
            raise
        finally:
            with suppress(FileNotFoundError):
                Path(part).unlink()

    def _stream(self, session: requests.Session, file: SourceFile, write: Callable[[bytes], Any]) -> str:
        digest, size = hashlib.sha256(), 0
        # identity: an archive that was packed once more on its way would arrive unpacked
        options: dict[str, Any] = {"headers": {"Accept-Encoding": "identity"}, "timeout": self._settings.timeout_s}
        with session.get(file.url, stream=True, **options) as response:
            response.raise_for_status()
            for chunk in response.iter_content(1 << 16):
                digest.update(chunk)
                size += len(chunk)
                if size > (file.size or self._max_bytes):
                    return f"more than {file.size or self._max_bytes} bytes"
                write(chunk)
        if file.size is not None and size < file.size:
            raise _Transient(_index_error(f"{file.url}: the body ends after {size} of {file.size} bytes"))
        return digest.hexdigest()


def index_hosts(client: IndexClient, settings: Index) -> tuple[str, ...]:
    """Return whom an installation may speak to, as `host:port`: the index, those of its files, the configured ones.

    The hosts of files are read from the page of `pip`, which every index with packages has.

    Raises:
        ConfigError: the index needs a login.
    """
    require_no_login(settings)
    urls = [index_url(settings), *(file.url for file in client.release_files("pip").files)]
    pairs = {pair for url in urls if (pair := pair_of_url(url))}
    return tuple(sorted(pairs | set(settings.extra_hosts)))


class _Session(requests.Session):
    """A session that logs in to the index alone, and trusts the CA bundle that boxes get, too."""

    def __init__(self, settings: Index) -> None:
        super().__init__()
        self._bundle = ca_bundle(settings)
        endpoint, self._login = without_login(index_url(settings))
        self._host = urlsplit(endpoint).netloc
        self.headers["User-Agent"] = "swe-miner"

    def request(self, method: str | bytes, url: str | bytes, *args: Any, **kwargs: Any) -> requests.Response:
        if self._bundle is not None:  # requests itself knows some of the variables only
            kwargs.setdefault("verify", str(self._bundle))
        if self._login is not None and urlsplit(str(url)).netloc == self._host:
            kwargs.setdefault("auth", self._login)
        return super().request(method, url, *args, **kwargs)


@contextmanager
def _session(settings: Index) -> Iterator[requests.Session]:
    """A session for one call: sessions are not made for use by several threads."""
    with _Session(settings) as session:
        yield session


def _index_error(message: str) -> InfrastructureFault:
    return InfrastructureFault(message, reason=Reason.INDEX_ERROR, next_step="check `index.url`, then run again")


@contextmanager
def _faults(url: str) -> Iterator[None]:
    """Name what went wrong while speaking to the index; all of it is worth another try, but for a refusal."""
    try:
        yield
    except requests.HTTPError as error:
        status = error.response.status_code
        fault = _index_error(f"{error.response.url}: the index answers with status {status}")
        if status in (408, 425, 429) or status >= 500:
            raise _Transient(fault) from error
        raise fault from error
    except (requests.exceptions.ChunkedEncodingError, requests.exceptions.ContentDecodingError) as error:
        raise _Transient(_index_error(f"{url}: the answer was cut or damaged ({error})")) from error
    except (
        requests.exceptions.MissingSchema,
        requests.exceptions.InvalidSchema,
        requests.exceptions.InvalidURL,
    ) as error:
        raise IndexUnreachable(f"{url!r} is not the address of a package index ({error})") from error
    except (UnsupportedRepoVersionError, ValueError) as error:  # ValueError: no JSON, or JSON of another shape
        text = str(error).splitlines()[0]
        raise _Transient(_index_error(f"{url}: the index answers, but not as PEP 691 asks ({text})")) from error
    except requests.RequestException as error:
        raise _Transient(IndexUnreachable(f"{url}: no answer ({error})")) from error
    except OSError as error:
        if error.errno is not None:
            raise
        raise IndexUnreachable(f"{url}: {error}") from error  # a CA bundle that is not there


def _index_file(package: DistributionPackage) -> IndexFile:
    uploaded = package.upload_time
    return IndexFile(
        filename=package.filename,
        url=package.url,
        kind=package.package_type,
        version=package.version,
        sha256=package.digests.get("sha256"),
        size=package.size,
        uploaded_at=None if uploaded is None else uploaded.astimezone(UTC),
        yanked=package.is_yanked,
        requires_python=package.requires_python,
    )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def choose_sdist(files: tuple[IndexFile, ...]) -> IndexFile | None:
    """Return the source distribution to take: the standard format first (PEP 625), then the other readable ones."""
    readable = [file for file in files if file.kind == "sdist" and suffix_of(file.filename) is not None]
    return min(readable, key=lambda file: (SUFFIXES.index(suffix_of(file.filename) or ""), file.filename), default=None)

"""Which Debian package holds a header, a shared library, a pkg-config file or a tool.

Asked is the archive's index of contents ("Contents-amd64", Debian wiki RepositoryFormat, "Contents indices") of the
suite of the base image. It is downloaded once into the work folder and reduced there to what is ever asked for.
"""

from __future__ import annotations

import gzip
import io
import re
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Literal

import requests
import structlog
from tenacity import retry, retry_if_exception_type, stop_after_attempt, wait_exponential

from installers.ground_image import hold
from installers.workshop import Workshop
from miner.core.errors import InfrastructureFault
from miner.core.index_access import ca_bundle
from miner.core.memo import KeyedLocks, Memo
from miner.core.reasons import Reason
from miner.core.records import Fact, Observation, Producer

PRODUCER = Producer(name="installers.debian", epoch=1)
KIND = "install.contents"
REDUCER = 1
"""Enters input hashes and names the reduced index: raise it when a rule here changes an answer."""

Sort = Literal["header", "library", "pkg-config", "tool"]

_TRIPLET = "(?:[a-z0-9_]+-linux-gnu/)?"
_PLACES: tuple[tuple[Sort, re.Pattern[str]], ...] = (
    ("header", re.compile(rf"usr/include/{_TRIPLET}(.+\.(?:h|hh|hpp|hxx|inc))\Z")),
    ("pkg-config", re.compile(rf"usr/(?:lib/{_TRIPLET}|share/)pkgconfig/(.+)\.pc\Z")),
    ("library", re.compile(rf"(?:usr/)?lib/{_TRIPLET}(lib[^/]+\.so(?:\.[^/]+)?)\Z")),
    ("tool", re.compile(r"(?:usr/)?s?bin/([^/]+)\Z")),
)
_ROOTS = tuple(b"usr/include/ usr/lib/ usr/share/pkgconfig/ lib/ usr/bin/ usr/sbin/ bin/ sbin/".split())
_OTHER_MACHINES = re.compile(r"-cross\Z|-(?:arm64|armhf|i386|amd64)-|mingw|\Aandroid-|\Alib(?:32|64|x32)")
_TRIES, _TIMEOUT_S = 4, 120.0
_NEXT_STEP = "check that Debian's package archive is reachable (http_proxy is passed on), then run it again"

_LOADING = KeyedLocks()
_log = structlog.get_logger()


def packages_with(workshop: Workshop, memo: Memo, sort: Sort, name: str) -> tuple[str, ...]:
    """Return the packages that hold something, the likeliest first; empty where none does.

    Args:
        workshop: the tools.
        memo: known facts; the answer is one.
        sort: of what is looked for.
        name: "libpq-fe.h" or "openssl/ssl.h"; "libmagic.so.1"; "libxml-2.0"; "pg_config".

    Raises:
        InfrastructureFault: the archive of Debian packages did not answer.
    """
    return tuple(holders(workshop, memo, sort, name).payload["packages"])


def holders(workshop: Workshop, memo: Memo, sort: Sort, name: str) -> Fact:
    """Return the fact about which packages hold something; negative where none does."""
    inputs = {
        "sort": sort,
        "name": name,
        "suite": workshop.settings.docker.suite,
        "architecture": workshop.base.architecture,
        "reducer": REDUCER,
    }
    return memo.measure(PRODUCER, KIND, f"{sort} {name}"[:200], inputs, lambda: _observe(workshop, sort, name))


def _observe(workshop: Workshop, sort: Sort, name: str) -> Observation:
    found = ranked(_lines(_index(workshop)), sort, name)
    if found:
        return Observation(payload={"packages": list(found)}, network=True)
    detail = f"no package holds the {sort} {name}"
    payload = {"packages": [], "detail": detail}
    return Observation(outcome=Reason.SYSTEM_PACKAGE_UNKNOWN.value, payload=payload, network=True)


def ranked(lines: Iterable[str], sort: Sort, name: str) -> tuple[str, ...]:
    """Return the packages that hold something, the likeliest first, from the lines of a reduced index.

    The fewer folders between the place where it is looked for and the file, the likelier; then development packages of
    libraries, then the shorter name.
    """
    wanted = name.strip("/")
    found: dict[str, tuple[int, bool, int, str]] = {}
    for line in lines:
        kind, _, rest = line.partition("\t")
        path, _, packages = rest.partition("\t")
        if kind == sort and (path == wanted or path.endswith(f"/{wanted}")):
            for section, package in (one.rsplit("/", 1) for one in packages.split(",")):
                key = (path.count("/"), not section.endswith("libdevel"), len(package), package)
                found[package] = min(found.get(package, key), key)
    return tuple(sorted(found, key=found.__getitem__))


def reduced(lines: Iterable[bytes]) -> Iterator[str]:
    """Return the lines of an index of contents that are ever asked for, as sort, name and packages."""
    for raw in lines:
        if not raw.startswith(_ROOTS):
            continue
        path, _, packages = raw.decode("utf-8", "replace").strip().rpartition(" ")
        path = path.rstrip()
        kept = ",".join(one for one in packages.split(",") if not _OTHER_MACHINES.search(PurePosixPath(one).name))
        if not kept:
            continue
        for sort, place in _PLACES:
            if (match := place.match(path)) is not None:
                yield f"{sort}\t{match[1]}\t{kept}\n"


def _lines(index: Path) -> Iterator[str]:
    with gzip.open(index, "rt", encoding="utf-8", newline="\n") as file:
        for line in file:
            yield line.rstrip("\n")


def _index(workshop: Workshop) -> Path:
    """Return the reduced index, downloaded if it is not there."""
    docker, architecture = workshop.settings.docker, workshop.base.architecture
    folder = workshop.settings.paths.work / "debian"
    index = folder / f"contents-{docker.suite}-{architecture}-{REDUCER}.gz"
    with _LOADING.of(str(index)):
        if not index.exists():
            folder.mkdir(parents=True, exist_ok=True)
            _log.info("downloading Debian's index of contents", suite=docker.suite, architecture=architecture)
            root = f"{_mirror(workshop)}/dists/{docker.suite}/main"
            part = index.with_suffix(".part")
            with gzip.GzipFile(part, "wb", mtime=0) as out:
                for name in (f"Contents-{architecture}.gz", "Contents-all.gz"):
                    contents = _unpacked(_download(workshop, f"{root}/{name}"))
                    out.writelines(line.encode() for line in reduced(contents))
            part.replace(index)
    return index


def _mirror(workshop: Workshop) -> str:
    """Return the address of the archive that the base image was made from, from apt's own list in it."""
    command = ["sh", "-c", "cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null"]
    with workshop.box(hold(workshop, workshop.base), network=False) as box:
        text = box.run(command, workdir="/").text
    suite = re.escape(workshop.settings.docker.suite)
    one_line = re.search(rf"^deb\s+(?:\[[^\]]*\]\s+)?(\S+)\s+{suite}\s", text, re.MULTILINE)
    stanza = re.search(rf"^URIs:\s*(\S+)(?:\n\S.*)*?\nSuites:.*\b{suite}\b", text, re.MULTILINE)
    found = one_line or stanza
    if found is None:
        raise InfrastructureFault(
            f"the base image names no archive of {workshop.settings.docker.suite} in /etc/apt",
            reason=Reason.SYSTEM_ARCHIVE_UNREACHABLE,
            next_step="check docker.suite and docker.base_image",
        )
    return found[1].rstrip("/")


def _download(workshop: Workshop, url: str) -> bytes:
    try:
        return _get(url, ca_bundle(workshop.settings.index))
    except requests.RequestException as error:
        raise InfrastructureFault(
            f"{url}: {error}", reason=Reason.SYSTEM_ARCHIVE_UNREACHABLE, next_step=_NEXT_STEP
        ) from error


@retry(
    retry=retry_if_exception_type(requests.RequestException),
    stop=stop_after_attempt(_TRIES),
    wait=wait_exponential(max=10),
    reraise=True,
)
def _get(url: str, bundle: Path | None) -> bytes:
    response = requests.get(url, timeout=_TIMEOUT_S, verify=True if bundle is None else str(bundle))
    response.raise_for_status()
    return response.content


def _unpacked(data: bytes) -> Iterator[bytes]:
    """Yield the lines of gzip-compressed text, which is much larger.

    Raises:
        InfrastructureFault: it is damaged.
    """
    try:
        yield from gzip.GzipFile(fileobj=io.BytesIO(data))
    except (OSError, EOFError, zlib.error) as error:
        raise InfrastructureFault(
            f"Debian's index of contents is damaged: {error}", reason=Reason.SYSTEM_ARCHIVE_UNREACHABLE
        ) from error

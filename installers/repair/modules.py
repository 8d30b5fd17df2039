"""Which distribution provides a module, and up to which version: by looking into the files that the index has.

As of a date, and never by a name alone: a distribution is an answer only where a file that was uploaded before the
date holds the module. Names are merely where to look (`aliases`). Every answer is a fact.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

from packaging.utils import canonicalize_name
from packaging.version import Version

from installers.pythons import admits
from installers.repair.aliases import candidates, is_known
from installers.repair.context import Release
from installers.repair.platforms import fits
from installers.repair.remote_zip import Unreadable, Wheel
from installers.workshop import Workshop
from miner.core.memo import Memo
from miner.core.reasons import Reason
from miner.core.records import Observation, Producer, SourceFile
from miner.crawlers.archive import ArchiveRefused, read_archive
from miner.crawlers.index import IndexClient, IndexFile, ProjectFiles, choose_sdist
from miner.crawlers.interface import Refused
from miner.project.versions import version_of

PRODUCER = Producer(name="installers.repair.modules", epoch=1)
PROVIDER = "install.provider"
RELEASES = "install.releases"
LAST_WITH = "install.last-with"

_SETTLED = timedelta(days=30)
_LARGEST_SDIST = 24 << 20
_MOST_RELEASES = 400
_DEFINED = (
    r"^[ \t]*(?:async )?(?:def|class) +{0}\b|^[ \t]*{0} *(?::[^=\n]*)?=(?!=)"
    r"|^[ \t]*(?:from +[\w.]+ +)?import [^\n]*\b{0}\b|^[ \t]+{0},?[ \t]*(?:#.*)?$|['\"]{0}['\"]"
)
_CODE = (".py", ".so", ".pyi")


@dataclass(frozen=True)
class Index:
    """The index as of a date, for one version of Python; its answers are facts."""

    workshop: Workshop
    memo: Memo
    cutoff: datetime
    python: str

    def releases(self, name: str) -> tuple[Release, ...]:
        """Return the versions of a distribution, oldest first; none of an unknown one."""
        name = canonicalize_name(name)

        def run() -> Observation:
            found = [self._release(version, files) for version, files in self._versions(name)]
            kept = [release.model_dump(mode="json") for release in found[-_MOST_RELEASES:]]
            return Observation(payload={"releases": kept}, network=True)

        fact = self.memo.measure(PRODUCER, RELEASES, f"dist-{name}", self._inputs(name=name), run)
        return tuple(Release.model_validate(item) for item in fact.payload["releases"])

    def provider(self, module: str) -> str | None:
        """Return the distribution that provides a module, None where none is found.

        Of several the one with the most releases as of the date, since a name alone may be anybody's.
        """

        def run() -> Observation:
            looked: list[str] = []
            found = self._providers(module, looked)
            if found:
                name, version, _ = max(found, key=lambda one: one[2])
                return Observation(payload={"distribution": name, "version": version, "looked": looked}, network=True)
            detail = f"no distribution was found that provides the module {module}; looked into: {', '.join(looked)}"
            payload = {"detail": detail, "looked": looked}
            return Observation(outcome=Reason.MODULE_UNKNOWN.value, payload=payload, network=True)

        fact = self.memo.measure(PRODUCER, PROVIDER, f"module-{module}", self._inputs(module=module), run)
        return str(fact.payload["distribution"]) if fact.ok else None

    def last_with(self, name: str, module: str, member: str) -> str | None:
        """Return the last version of a distribution that has a module, or a name in it, where the newest has not."""
        name = canonicalize_name(name)

        def run() -> Observation:
            looked: list[str] = []
            found = self._last_with(name, module, member, looked)
            return Observation(payload={"version": found, "looked": looked}, network=True)

        inputs = self._inputs(name=name, module=module, member=member)
        found = self.memo.measure(PRODUCER, LAST_WITH, f"dist-{name}", inputs, run).payload["version"]
        return None if found is None else str(found)

    def _inputs(self, **asked: str) -> dict[str, str]:
        return {"cutoff": self.cutoff.isoformat(), "python": self.python, **asked}

    @cached_property
    def _client(self) -> IndexClient:
        settings = self.workshop.settings
        return IndexClient(settings.index, settings.paths.work / "downloads", max_bytes=_LARGEST_SDIST)

    def _versions(self, name: str) -> list[tuple[Version, list[IndexFile]]]:
        """Return the files of each version as of the date, without those that are yanked, oldest first."""
        known: dict[Version, list[IndexFile]] = {}
        for file in self._project(name).files:
            version = version_of(file.version)
            if version is None or file.yanked or file.uploaded_at is None or file.uploaded_at >= self.cutoff:
                continue
            known.setdefault(version, []).append(file)
        return sorted(known.items())

    def _project(self, name: str) -> ProjectFiles:
        return self._client.release_files(name)

    def _release(self, version: Version, files: Sequence[IndexFile]) -> Release:
        uploaded = min((file.uploaded_at for file in files if file.uploaded_at is not None), default=None)
        return Release(
            version=str(version),
            uploaded=None if uploaded is None else uploaded.date(),
            wheel=any(fits(file.filename, self.python) for file in files if file.kind == "wheel"),
            requires_python=next((file.requires_python for file in files if file.requires_python), None),
        )

    def _providers(self, module: str, looked: list[str]) -> list[tuple[str, str, int]]:
        """Return those that provide a module: name, version, number of versions; one that is known ends the search."""
        found: list[tuple[str, str, int]] = []
        for name in candidates(module):
            versions = self._versions(name)
            version = self._looked_into(name, versions, module, looked) if versions else None
            if version is not None:
                found.append((name, version, len(versions)))
                if is_known(name, module):
                    return found[-1:]
        return found

    def _looked_into(
        self, name: str, versions: Sequence[tuple[Version, list[IndexFile]]], module: str, looked: list[str]
    ) -> str | None:
        """Return the version in which a distribution provides a module, None where the newest suitable one does not."""
        first = min(file.uploaded_at for _, files in versions for file in files if file.uploaded_at is not None)
        if first > self.cutoff - _SETTLED and not is_known(name, module):
            looked.append(f"{name}: younger than {_SETTLED.days} days")
            return None
        for version, files in self._newest(versions):
            inside = self._inside(files)
            if inside is not None:
                there = provides(inside.names(), module)
                looked.append(f"{name} {version}: {'has it' if there else 'has it not'}")
                return str(version) if there else None
        looked.append(f"{name}: nothing to look into")
        return None

    def _newest(self, versions: Sequence[tuple[Version, list[IndexFile]]]) -> Iterator[tuple[Version, list[IndexFile]]]:
        """Return the newest few versions that this Python can use, finished releases first."""
        usable = [
            (version, files)
            for version, files in reversed(versions)
            if any(admits(file.requires_python, self.python) for file in files)
        ]
        finished = [one for one in usable if not one[0].is_prerelease]
        yield from (finished or usable)[:3]

    def _last_with(self, name: str, module: str, member: str, looked: list[str]) -> str | None:
        """Look into the newest version, go back in growing steps until one has it, then halve what lies between.

        Only the last version of a series (X.Y) is looked into. One that cannot be looked into counts as one without.
        """
        series = self._series(name)

        def has(place: int) -> bool:
            version, files = series[place]
            inside = self._inside(files)
            there = inside is not None and _holds(inside, module, member)
            looked.append(f"{version}: {'has it' if there else 'has it not'}")
            return there

        place, step = len(series) - 1, 1
        if place < 1 or has(place):
            return None
        without = place
        while place > 0:
            place, step = max(0, place - step), step * 2
            if has(place):
                break
            without = place
        else:
            return None
        while without - place > 1:
            middle = (place + without) // 2
            place, without = (middle, without) if has(middle) else (place, middle)
        return str(series[place][0])

    def _series(self, name: str) -> list[tuple[Version, list[IndexFile]]]:
        """Return the last version of each series that this Python can use, oldest first."""
        series: dict[tuple[int, ...], tuple[Version, list[IndexFile]]] = {}
        for version, files in self._versions(name):
            if not version.is_prerelease and any(admits(file.requires_python, self.python) for file in files):
                series[version.release[:2]] = (version, files)
        return list(series.values())

    def _inside(self, files: Sequence[IndexFile]) -> _Inside | None:
        """Return what can be looked into of a version: a wheel, else its source distribution."""
        wheels = [file for file in files if file.kind == "wheel" and file.size]
        best = min(wheels, key=lambda file: (not fits(file.filename, self.python), file.size), default=None)
        for look in (self._wheel(best), self._sdist(files)):
            try:
                found = look()
            except (Unreadable, Refused, ArchiveRefused):
                continue
            if found is not None:
                return found
        return None

    def _wheel(self, file: IndexFile | None) -> Callable[[], _Inside | None]:
        def look() -> _Inside | None:
            if file is None or file.size is None:
                return None
            wheel = Wheel(self.workshop.settings.index, file.url, file.size)
            return _Inside(wheel.names, wheel.text)

        return look

    def _sdist(self, files: Sequence[IndexFile]) -> Callable[[], _Inside | None]:
        def look() -> _Inside | None:
            sdist = choose_sdist(tuple(files))
            if sdist is None or sdist.sha256 is None or sdist.uploaded_at is None:
                return None
            source = SourceFile(
                filename=sdist.filename,
                sha256=sdist.sha256,
                size=sdist.size,
                uploaded_at=sdist.uploaded_at,
                url=sdist.url,
            )
            tree = read_archive(self._client.download(source), sdist.filename, self.workshop.settings.measure.archive)
            contents = {_outside(path): entry.data for path, entry in tree.entries.items()}
            return _Inside(lambda: tuple(contents), lambda path: contents.get(path, b"").decode("utf-8", "replace"))

        return look


@dataclass(frozen=True)
class _Inside:
    """The paths in a file of the index, as they are installed, and their texts."""

    names: Callable[[], tuple[str, ...]]
    text: Callable[[str], str]


def _outside(path: str) -> str:
    """Return where a file of a source tree comes to lie when it is installed: without the folder for sources."""
    for folder in ("src/", "lib/", "python/"):
        if path.startswith(folder):
            return path.removeprefix(folder)
    return path


def provides(names: Sequence[str], module: str) -> bool:
    """Whether files, as they are installed, hold a module: a file, an extension, or a folder with code in it."""
    path = module.strip(".").replace(".", "/")
    file = re.compile(rf"{re.escape(path)}(?:\.py|\.(?:cpython-|abi3|pypy)[\w.-]*so|\.so)\Z")
    folder = f"{path}/"
    return any(file.match(name) or (name.startswith(folder) and name.endswith(_CODE)) for name in names)


def _holds(inside: _Inside, module: str, member: str) -> bool:
    if not member:
        return provides(inside.names(), module)
    path = module.replace(".", "/")
    texts = (inside.text(f"{path}.py"), inside.text(f"{path}/__init__.py"))
    return any(defines(text, member) for text in texts) or provides(inside.names(), f"{module}.{member}")


def defines(source: str, name: str) -> bool:
    """Whether a module's source defines or imports a name, or names it in a string (`__all__`, `__getattr__`)."""
    return re.search(_DEFINED.format(re.escape(name)), source, re.MULTILINE) is not None

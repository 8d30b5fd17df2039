"""A release pair by name: its id, what the index says about both versions, and the files to take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from packaging.utils import InvalidName, canonicalize_name
from packaging.version import InvalidVersion, Version

from miner.core.errors import ConfigError, InfrastructureFault
from miner.core.reasons import Reason
from miner.core.records import Observation, ReleasePair, SourceFile
from miner.crawlers.index import IndexClient, IndexFile, ProjectFiles, choose_sdist
from miner.crawlers.interface import negative

_NEAR = 5


def instance_id(pair: ReleasePair) -> str:
    """Return `pypi__name-VERSION`: a valid image name, and two different releases never share one.

    The name is normalised (PEP 503), so it has no `_`; the version is canonical (PEP 440), so it has no `-`, one `!` at
    most, which becomes `__`, and one `+` at most, which becomes `_`.

    Raises:
        ConfigError: the name or version is not a valid one.
    """
    try:
        name = canonicalize_name(pair.name, validate=True)
        version = str(Version(pair.new))
    except (InvalidName, InvalidVersion) as error:
        raise ConfigError(f"pairs: {pair.name} {pair.new}: {error}") from error
    return f"pypi__{name}-{version.replace('!', '__').replace('+', '_')}"


def check_pair(pair: ReleasePair) -> None:
    """See that a pair names a package and two versions of it, one after the other.

    Raises:
        ConfigError: it does not.
    """
    instance_id(pair)
    if _version(pair.old) >= _version(pair.new):
        raise ConfigError(f"pairs: {pair.name} {pair.old} -> {pair.new}: the old version is not the earlier one")


def look_up(pair: ReleasePair, index: IndexClient) -> Observation:
    """Return the index's entries for both versions of a pair."""
    project = index.release_files(pair.name)
    if not project.known:
        return negative(Reason.UNKNOWN_PACKAGE, f"the index knows no package {pair.name!r}", network=True)
    found: dict[str, list[dict[str, Any]]] = {}
    for key, text in (("old", pair.old), ("new", pair.new)):
        files = project.of_version(_version(text))
        if not files:
            return negative(Reason.UNKNOWN_VERSION, _no_version(pair.name, text, project), network=True)
        if choose_sdist(files) is None:
            kinds = ", ".join(sorted(file.filename for file in files))
            detail = f"{pair.name} {text} has no source distribution that can be read, only {kinds}"
            return negative(Reason.NO_SDIST, detail, network=True)
        found[key] = [file.model_dump(mode="json") for file in sorted(files, key=lambda file: file.filename)]
    return Observation(payload={"name": pair.name, **found}, network=True)


def _version(text: str) -> Version:
    try:
        return Version(text)
    except InvalidVersion as error:
        raise ConfigError(f"pairs: {error}") from error


def _no_version(name: str, text: str, project: ProjectFiles) -> str:
    wanted = Version(text)
    known = project.versions()
    below = [str(version) for version in known if version < wanted][-_NEAR:]
    above = [str(version) for version in known if version > wanted][:_NEAR]
    return f"{name} has no version {text}; near it are {', '.join(below + above) or 'none'}"


def sdists(looked_up: Mapping[str, Any]) -> tuple[SourceFile, SourceFile]:
    """Return the source distributions to take, old and new.

    Raises:
        InfrastructureFault: the index states no digest or no upload time (PEP 691, PEP 700).
    """
    old, new = (_source_file([IndexFile.model_validate(file) for file in looked_up[key]]) for key in ("old", "new"))
    return old, new


def _source_file(files: list[IndexFile]) -> SourceFile:
    file = choose_sdist(tuple(files))
    if file is None or file.sha256 is None or file.uploaded_at is None:
        name = file.filename if file else "a version without source distribution"
        raise InfrastructureFault(
            f"the index states no sha256 or no upload time of {name}",
            reason=Reason.INDEX_ERROR,
            next_step="use an index that answers as PEP 691 and PEP 700 ask",
        )
    return SourceFile(
        filename=file.filename,
        url=file.url,
        sha256=file.sha256,
        size=file.size,
        uploaded_at=file.uploaded_at,
        yanked=file.yanked,
    )

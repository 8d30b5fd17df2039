"""A release pair by name: its id, what the index says about both versions, and the files to take."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from packaging.utils import InvalidName, canonicalize_name
from packaging.version import InvalidVersion, Version

from miner.core.blobs import BlobStore
from miner.core.errors import ConfigError, InfrastructureFault
from miner.core.hashing import canonical_json
from miner.core.reasons import Reason
from miner.core.records import Observation, ReleasePair, Sdist, SourceFile
from miner.crawlers.index import IndexClient, IndexFile, ProjectFiles, choose_sdist
from miner.crawlers.interface import negative

ANSWER = "answer"
"""Name of the log that holds all that the index says about both versions: it differs between mirrors and days."""

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


def look_up(pair: ReleasePair, index: IndexClient, blobs: BlobStore) -> Observation:
    """Return the source distributions of both versions; all that the index says about them is a log.

    Raises:
        InfrastructureFault: the index states no digest or no upload time (PEP 691, PEP 700).
    """
    project = index.release_files(pair.name)
    if not project.known:
        return negative(Reason.UNKNOWN_PACKAGE, f"the index knows no package {pair.name!r}", network=True)
    chosen: dict[str, dict[str, Any]] = {}
    answer: dict[str, list[IndexFile]] = {}
    for key, text in (("old", pair.old), ("new", pair.new)):
        files = project.of_version(_version(text))
        if not files:
            return negative(Reason.UNKNOWN_VERSION, _no_version(pair.name, text, project), network=True)
        sdist = choose_sdist(files)
        if sdist is None:
            kinds = ", ".join(sorted(file.filename for file in files))
            detail = f"{pair.name} {text} has no source distribution that can be read, only {kinds}"
            return negative(Reason.NO_SDIST, detail, network=True)
        chosen[key] = _identity(sdist).model_dump(mode="json")
        answer[key] = sorted(files, key=lambda file: file.filename)
    logs = {ANSWER: blobs.put_text(canonical_json(answer))}
    return Observation(payload={"name": pair.name, **chosen}, logs=logs, network=True)


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


def _identity(file: IndexFile) -> Sdist:
    if file.sha256 is None or file.uploaded_at is None:
        raise InfrastructureFault(
            f"the index states no sha256 or no upload time of {file.filename}",
            reason=Reason.INDEX_ERROR,
            next_step="use an index that answers as PEP 691 and PEP 700 ask",
        )
    return Sdist(filename=file.filename, sha256=file.sha256, size=file.size, uploaded_at=file.uploaded_at)


def sdists(looked_up: Mapping[str, Any]) -> tuple[Sdist, Sdist]:
    """Return the source distributions to take, old and new."""
    old, new = (Sdist.model_validate(looked_up[key]) for key in ("old", "new"))
    return old, new


def source_files(
    looked_up: Mapping[str, Any], logs: Mapping[str, str], blobs: BlobStore
) -> tuple[SourceFile, SourceFile]:
    """Return the source distributions to take with their addresses, old and new."""
    answer = json.loads(blobs.get(logs[ANSWER]))
    urls = {file["filename"]: file["url"] for key in ("old", "new") for file in answer[key]}
    old, new = (SourceFile(**sdist.model_dump(), url=urls[sdist.filename]) for sdist in sdists(looked_up))
    return old, new

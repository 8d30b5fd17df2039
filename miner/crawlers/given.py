"""Pull requests that were given by hand, as lines of JSON, and where their repositories lie in a folder.

A line has at least `repo` ("owner/name") and `pull`; see `GivenPull` for the rest. Lines of public benchmarks are taken
as they are: what says what their tests do (`NOT_OURS`) is left out, for it is measured here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

from pydantic import AfterValidator, AwareDatetime, BeforeValidator, Field, ValidationError

from miner.core.errors import ConfigError
from miner.core.records import IssueLink, IssueText, Record, Visibility

NOT_OURS = frozenset({"instance_id", "version", "test_files", "fail_to_pass", "pass_to_pass", "source"})
_REPO = re.compile(r"[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+")
_OID = r"^[0-9a-f]{40}$"
_MORE = re.compile(r"(?:\.git)?(?:[^A-Za-z0-9_.-].*)?")  # what may follow a name: nothing that could belong to it


def _a_repo(text: str) -> str:
    if not _REPO.fullmatch(text) or {".", ".."} & set(text.split("/")):
        raise ValueError("a repository is written owner/name")
    return text


def _below(text: str) -> str:
    pure = PurePosixPath(text)
    if pure.is_absolute() or ".." in pure.parts:
        raise ValueError("a path starts at the folder of mirrors and stays in it")
    return pure.as_posix()


def _links(value: Any) -> Any:
    """Read a plain number as a link to that issue; whatever a link says of itself, it was given."""
    if not isinstance(value, list):
        return value
    plain = ({"number": item} if isinstance(item, int) else item for item in value)
    given = {"provenance": "given", "where": "given", "text": "", "confidence": "certain"}
    return [{**given, **item, "provenance": "given"} if isinstance(item, dict) else item for item in plain]


class GivenPull(Record):
    """A merged pull request, as it was given.

    Attributes:
        path: of its repository, below the folder of mirrors; None: by its name.
        base_commit: a base that was chosen by hand; None: as the merge shows it.
        head_commit: the last commit of the pull request; None: `refs/pull/N/head`.
        merge_commit: what the merge made; None: looked for on the default branch.
        statement: what the candidate is told; None: the texts of `issues`.
        links: issues that it closes, by number or as whole links.
    """

    repo: Annotated[str, AfterValidator(_a_repo)]
    pull: int = Field(ge=1)
    path: Annotated[str, AfterValidator(_below)] | None = None
    base_commit: str | None = Field(default=None, pattern=_OID)
    head_commit: str | None = Field(default=None, pattern=_OID)
    merge_commit: str | None = Field(default=None, pattern=_OID)
    statement: str | None = None
    issues: tuple[IssueText, ...] = ()
    links: Annotated[tuple[IssueLink, ...], BeforeValidator(_links)] = ()
    created_at: AwareDatetime | None = None
    merged_at: AwareDatetime | None = None
    closed_at: AwareDatetime | None = None
    visibility: Visibility | None = None


def read_pulls(path: Path) -> tuple[GivenPull, ...]:
    """Read a file of JSON lines.

    Raises:
        ConfigError: it cannot be read, a line is wrong, or a pull request stands twice; names the line.
    """
    found: dict[tuple[str, int], GivenPull] = {}
    for number, line in _lines(path):
        try:
            row = json.loads(line)
            given = {key: value for key, value in row.items() if key not in NOT_OURS}
            pull = GivenPull.model_validate(given)
        except (ValueError, AttributeError) as error:
            raise ConfigError(f"{path.name}, line {number}: {_first(error)}") from error
        if found.setdefault((pull.repo.lower(), pull.pull), pull) is not pull:
            raise ConfigError(f"{path.name}, line {number}: {pull.repo}#{pull.pull} stands twice")
    return tuple(found.values())


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"mine.git_pulls: {path.name} cannot be read ({error})") from error
    # not splitlines: a text in JSON may hold other characters that end lines for Python
    return ((number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip())


def _first(error: Exception) -> str:
    if isinstance(error, ValidationError):
        item = error.errors()[0]
        return f"{'.'.join(str(part) for part in item['loc'])}: {item['msg']}"
    return f"is no JSON object ({error})"


def looked_for(repo: str) -> str:
    """Return what is looked for in the folder of mirrors, for people."""
    owner, name = repo.split("/")
    return f"{owner}+{name}*/, {owner}__{name}*/, {repo}, {repo}.git"


def find_mirror(folder: Path, pull: GivenPull) -> PurePosixPath | None:
    """Return where the repository of a pull request lies in a folder, relative to it; None: nowhere."""
    if pull.path is not None:
        return _git_dir(folder, PurePosixPath(pull.path))
    owner, name = pull.repo.split("/")
    beside = [PurePosixPath(owner, entry) for entry in _named(folder / owner, name)]
    in_one = [PurePosixPath(entry) for mark in ("+", "__") for entry in _named(folder, f"{owner}{mark}{name}")]
    return next((found for place in (*in_one, *beside) if (found := _git_dir(folder, place)) is not None), None)


def _named(folder: Path, name: str) -> list[str]:
    """Return the entries of a folder that have this name, or go on with something that cannot belong to one."""
    if not folder.is_dir():
        return []
    entries = (entry.name for entry in folder.iterdir() if entry.name.lower().startswith(name.lower()))
    return sorted(entry for entry in entries if _MORE.fullmatch(entry[len(name) :]))


def _git_dir(folder: Path, place: PurePosixPath) -> PurePosixPath | None:
    """Return the git directory at a place: the folder itself, its `.git`, or the first one in it."""
    inside = sorted(entry.name for entry in (folder / place).iterdir()) if (folder / place).is_dir() else []
    for path in (place, place / ".git", *(place / entry for entry in inside)):
        if (folder / path / "HEAD").is_file() and (folder / path / "objects").is_dir():
            return path
    return None

"""Names of repositories: as people write them, in lists and in the list of those that are never mined."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path

from miner.core.errors import ConfigError
from miner.core.records import Record

FULL_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*/[A-Za-z0-9_.-]+")
"""Owners are at most 39 characters, and `_` is in those of managed users only; the forge knows better than we do."""
_OWNER = re.compile(r"([A-Za-z0-9][A-Za-z0-9_-]*)/\*")
_URL = re.compile(r"^(?:[a-z+]+://(?:[^@/]+@)?[^/]+/|[^@/]+@[^:/]+:)", re.IGNORECASE)
_KEYS = {"names", "ids"}


class OptOut(Record):
    """Who is never mined.

    Attributes:
        names: lower-case full names of repositories.
        owners: lower-case logins.
        ids: the forge's ids of repositories: they hold after a rename.
    """

    names: frozenset[str] = frozenset()
    owners: frozenset[str] = frozenset()
    ids: frozenset[int] = frozenset()

    def has_name(self, full_name: str) -> bool:
        """Whether a repository is opted out by this name of it."""
        lower = full_name.lower()
        return lower in self.names or lower.partition("/")[0] in self.owners

    def joined(self, other: OptOut) -> OptOut:
        """Return both lists together."""
        return OptOut(names=self.names | other.names, owners=self.owners | other.owners, ids=self.ids | other.ids)


def full_name(text: str, *, where: str) -> str:
    """Return the lower-case full name of a repository that is given by its name or its address.

    Raises:
        ConfigError: it is neither.
    """
    name = _URL.sub("", text.strip()).rstrip("/").removesuffix(".git")
    if not FULL_NAME.fullmatch(name) or name.endswith(("/.", "/..")):
        raise ConfigError(f"{where}: {text.strip()!r} is no repository", next_step="write owner/name, or its address")
    return name.lower()


def read_list(path: Path) -> tuple[str, ...]:
    """Return the names of a file with one repository a line; what follows a `#` is a comment.

    Raises:
        ConfigError: the file cannot be read, or a line is no repository.
    """
    lines = _text(path).splitlines()
    said = ((number, line.partition("#")[0].strip()) for number, line in enumerate(lines, start=1))
    return unique(full_name(name, where=f"{path.name}, line {number}") for number, name in said if name)


def unique(names: Iterable[str]) -> tuple[str, ...]:
    """Return each name once, where it stands first."""
    return tuple(dict.fromkeys(names))


def read_optout(path: Path) -> OptOut:
    """Return who stands in a file like the shipped `optout.toml`.

    Raises:
        ConfigError: the file cannot be read, or says something else.
    """
    try:
        said = tomllib.loads(_text(path))
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path.name}: {error}", next_step="compare with configs/optout.toml") from error
    names, ids = said.get("names", []), said.get("ids", [])
    if set(said) - _KEYS or not _all(names, str) or not _all(ids, int):
        raise ConfigError(
            f"{path.name}: it may hold `names`, a list of texts, and `ids`, a list of numbers",
            next_step="compare with configs/optout.toml",
        )
    owners = {found[1].lower() for name in names if (found := _OWNER.fullmatch(name.strip()))}
    repositories = {full_name(name, where=path.name) for name in names if not _OWNER.fullmatch(name.strip())}
    return OptOut(names=frozenset(repositories), owners=frozenset(owners), ids=frozenset(ids))


def _all(values: object, kind: type) -> bool:
    return isinstance(values, list) and all(type(value) is kind for value in values)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfigError(f"{path.name} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path.name} is not UTF-8: {error}") from error

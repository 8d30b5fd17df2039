"""What may stand in a draft: each field's own grammar, checked by the library or document that defines it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from installers.debian_names import is_package_name

_MOST = 600
_LONGEST = 400
_MOST_PACKAGES = 100
_MOST_VARIABLES = 50
_LONGEST_VALUE = 2000
_MOST_OPTIONS = 30
_SHOWN = 120
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}\Z")
_INSTALLER = re.compile(r"(?:UV|PIP)_")
_RUNNER = "pytest"


class Unfit(Exception):
    """Something of a draft is not of its grammar; the message says what, for people and for the model."""


def python(version: str, known: Sequence[str]) -> str:
    """Return a version of Python that may be chosen.

    Raises:
        Unfit: it may not.
    """
    if version not in known:
        raise Unfit(f"python: {_short(version)} is none of {', '.join(known)}")
    return version


def requirements(field: str, texts: Sequence[str], declared: Sequence[str], *, own: str) -> tuple[str, ...]:
    """Return requirements, those that are declared first and as they stand there, each once.

    Args:
        field: name of the field, for the message.
        texts: of the draft.
        declared: what is taken whatever it is.
        own: name of the project under test, which no index may answer for.

    Raises:
        Unfit: one is no plain PEP 508 requirement of a name and versions.
    """
    if len(texts) > _MOST:
        raise Unfit(f"{field}: more than {_MOST} entries")
    known = {_plain(text): text for text in declared}
    found = dict.fromkeys(known.get(_plain(text)) or _requirement(field, text, own) for text in texts)
    if field == "requirements" and not _names(found, _RUNNER) and canonicalize_name(own) != _RUNNER:
        found |= dict.fromkeys([text for text in declared if _names([text], _RUNNER)] or [_RUNNER])
    return (*(text for text in declared if text in found), *(text for text in found if text not in declared))


def _plain(text: str) -> str:
    """Return a requirement in the one form that all ways to write it share."""
    if len(text) > _LONGEST:
        return text
    try:
        requirement = Requirement(text)
    except (InvalidRequirement, RecursionError):
        return text
    requirement.name = canonicalize_name(requirement.name)
    return str(requirement)


def _requirement(field: str, text: str, own: str) -> str:
    if len(text) > _LONGEST or not text.isprintable():
        raise Unfit(f"{field}: {_short(text)} is too long, or holds control characters")
    try:
        requirement = Requirement(text)
    except InvalidRequirement as error:
        raise Unfit(f"{field}: {_short(text)} is no PEP 508 requirement ({str(error).splitlines()[0]})") from error
    except RecursionError as error:
        raise Unfit(f"{field}: {_short(text)} is nested too deep") from error
    if requirement.url is not None:
        raise Unfit(f"{field}: {_short(text)} names an address: only the package index is there")
    if own and canonicalize_name(requirement.name) == canonicalize_name(own):
        raise Unfit(f"{field}: {_short(text)} is the project itself, which is installed from its own tree")
    return str(requirement)


def _names(texts: Iterable[str], name: str) -> bool:
    return any(re.match(rf"{re.escape(name)}(?![\w.-])", _plain(text)) for text in texts)


def packages(names: Sequence[str], declared: Sequence[str]) -> tuple[str, ...]:
    """Return names of Debian packages, each once.

    Raises:
        Unfit: one is no name of a package (Debian policy 5.6.1).
    """
    if len(names) > _MOST_PACKAGES:
        raise Unfit(f"system_packages: more than {_MOST_PACKAGES} entries")
    for name in names:
        if name not in declared and (len(name) > _SHOWN or not is_package_name(name)):
            raise Unfit(f"system_packages: {_short(name)} is no name of a Debian package")
    return (*(name for name in declared if name in names), *dict.fromkeys(one for one in names if one not in declared))


def variables(field: str, pairs: Sequence[tuple[str, str]], declared: Mapping[str, str]) -> dict[str, str]:
    """Return variables of an environment.

    Raises:
        Unfit: a name or a value is none, one is set twice, or it is one of the installer's own.
    """
    found: dict[str, str] = {}
    for name, value in pairs:
        if declared.get(name) != value:
            _check_variable(field, name, value)
        if found.setdefault(name, value) != value:
            raise Unfit(f"{field}: {_short(name)} is set twice")
    if len(found) > _MOST_VARIABLES:
        raise Unfit(f"{field}: more than {_MOST_VARIABLES} variables")
    return found


def _check_variable(field: str, name: str, value: str) -> None:
    if not _NAME.match(name):
        raise Unfit(f"{field}: {_short(name)} is no name of a variable")
    if _INSTALLER.match(name):
        raise Unfit(f"{field}: {name} belongs to the installer: which index as of which date is not a recipe's to say")
    if len(value) > _LONGEST_VALUE or not value.isprintable():
        raise Unfit(f"{field}: the value of {name} is too long, or holds control characters")


def options(words: Sequence[str], declared: Sequence[str]) -> tuple[str, ...]:
    """Return words that are added to pytest's declared options; a draft that repeats these means the same.

    Raises:
        Unfit: too many, too long, or a word that does not fit on a command line.
    """
    new = words[len(declared) :] if declared and tuple(words[: len(declared)]) == tuple(declared) else words
    if len(new) > _MOST_OPTIONS:
        raise Unfit(f"addopts: more than {_MOST_OPTIONS} words")
    for word in new:
        if not word or len(word) > _LONGEST or not word.isprintable():
            raise Unfit(f"addopts: {_short(word)} is no word of a command line")
    return tuple(new)


def _short(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...")

"""Requirements on what is not on the package index (repositories, archives), turned to what the index has instead.

An environment is built from the index alone, so the nearest thing to a repository is its newest release as of the date,
and to an archive of a release that release.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator
from urllib.parse import unquote, urlsplit

from packaging.requirements import InvalidRequirement
from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    parse_sdist_filename,
    parse_wheel_filename,
)

from miner.project.model import Declared
from miner.project.versions import requirement_of

_URL = re.compile(
    r"(?:-e\s+)?(?:(?P<name>[A-Za-z0-9][\w.-]*)\s*(?P<extras>\[[^\]]*\])?\s*@\s*)?(?P<url>(?:\w+\+)?[a-z]+://\S+)"
)
_SCP = re.compile(r"(?:-e\s+)?(?:git|hg|svn|bzr)\+(?:ssh://)?[\w.-]+@[\w.-]+:(?P<path>\S+)")
_EGG = re.compile(r"[#&](?:egg|name)=([A-Za-z0-9][\w.-]*)(\[[^\]]*\])?")
_FROM = re.compile(r"(-py\d(?:\.\d+)?|-dev|-master|-main|-[0-9][\w.]*)\Z")


def from_index(declared: Iterable[Declared], notes: list[str], *, drop: bool = False) -> Iterator[Declared]:
    """Replace requirements on repositories and archives by what the index has under their names.

    Args:
        declared: any requirements; those on local paths stay as they are.
        notes: what was replaced or left out.
        drop: leave them out instead: the index may not have such a name.
    """
    for item in declared:
        text, _, marker = item.text.partition("; ") if "://" in item.text else (item.text, "", "")
        found = _on_index(text.strip())
        if found is None:
            yield item
        elif drop or not found:
            notes.append(f"{item.source}: {text.strip()!r} is not on the package index and is left out")
        else:
            notes.append(f"{item.source}: {text.strip()!r} is not on the package index, {found} of it is taken")
            yield item.model_copy(update={"text": found + (f"; {marker}" if marker else "")})


def _on_index(text: str) -> str | None:
    """Return the requirement that stands for a URL, "" where it names nothing; None where the text is no URL."""
    if text.startswith("file:") or "@ file:" in text:
        return None
    if scp := _SCP.match(text):
        egg = _EGG.search(scp["path"])
        return _named(egg[1], egg[2]) if egg else ""
    found = _URL.match(text)
    if found is None:
        return None
    parts = urlsplit(found["url"].partition("+")[2] if "+" in found["url"].partition("://")[0] else found["url"])
    exact = _release(unquote(posixpath.basename(parts.path)))
    egg = _EGG.search(f"#{parts.fragment}")
    if found["name"]:
        return _named(found["name"], found["extras"], exact)
    if egg:
        return _named(_FROM.sub("", egg[1]), egg[2], exact)
    return f"{exact[0]}=={exact[1]}" if exact else ""


def _named(name: str, extras: str | None, exact: tuple[str, str] | None = None) -> str:
    version = f"=={exact[1]}" if exact else ""
    text = f"{name}{extras or ''}{version}"
    try:
        return str(requirement_of(text))
    except InvalidRequirement:
        return ""


def _release(filename: str) -> tuple[str, str] | None:
    """Return name and version of a wheel or source distribution, None where a file is none by its name."""
    try:
        if filename.endswith(".whl"):
            name, version, *_ = parse_wheel_filename(filename)
        else:
            name, version = parse_sdist_filename(filename)
    except (InvalidWheelFilename, InvalidSdistFilename, ValueError):
        return None
    return name, str(version)

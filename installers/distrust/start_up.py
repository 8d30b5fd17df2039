"""What Python runs whenever it starts in an environment, and what its interpreter and programs are."""

from __future__ import annotations

import mmap
import posixpath
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import uv

from installers.distrust.look import MAX_TEXT, Look, text_of
from installers.distrust.path_files import OWNERS, VIRTUALENV, is_link, is_plain
from installers.layer import read

_CUSTOM = re.compile(r"(?:sitecustomize|usercustomize)(?:\.[^/]+|/.*|\Z)")
_PROGRAMS = re.compile(
    r"bin/(?:bash|sh|dash|env|git|printf|ls|cat|rm|cp|mv|ln|find|sed|awk|grep|tar|gcc|cc|g\+\+|c\+\+|ld|make|ldd|timeout"
    r"|as|ar|cpp|mktemp|touch|chmod|mkdir|sleep|kill|setsid|true|false|test|id|uname|cmp|sort|head|tail|xargs)"
)
_PYTHON = re.compile(r"bin/(?:python|pypy)[\d.]*")
_RUNS_PYTEST = re.compile(r"bin/(?:pytest|py\.test)")
_OF_ITSELF = re.compile(
    r"pyvenv\.cfg|\.gitignore|CACHEDIR\.TAG|lib64|lib(?:/python[\d.]+(?:/site-packages)?)?|bin|offline\.py|reinstall"
)
_BESIDE = re.compile(r"(?:bin|share|man|etc|include|doc|docs)(?:/.+)?|[A-Z]{4,}(?:\.\w+)*")
"""Where a distribution may lay files outside of `site-packages`: programs, data, pages, settings, headers, licences."""
_HOME = ("home", "implementation", "uv", "version_info", "include-system-site-packages", "prompt", "relocatable")


def customised(look: Look) -> Iterable[str]:
    """Yield modules that Python imports whenever it starts."""
    return (path for path in look.site.files if _CUSTOM.match(path) and not look.is_admitted(path))


def path_lines(look: Look) -> Iterable[str]:
    """Yield files whose lines Python runs, or takes for folders of modules, and that are not known."""
    for path, entry in look.site.files.items():
        if "/" in path or not path.lower().endswith(".pth") or look.is_admitted(path):
            continue
        text = text_of(entry)
        if text is None:
            yield path
        elif not (_is_known(path, look) or is_plain(text) or (look.is_own(path) and is_link(text, _finders(look)))):
            yield f"{path}: {text[:120]}"


def _finders(look: Look) -> frozenset[str]:
    return frozenset(path.removesuffix(".py") for path in look.linked if path.endswith(".py") and look.is_own(path))


def _is_known(path: str, look: Look) -> bool:
    if path == f"{VIRTUALENV}.pth":
        return read(look.site.files[path]).strip() == f"import {VIRTUALENV}".encode() and _is_of_uv(look)
    owner = OWNERS.get(path, ("", ""))[0]
    owners = look.site.owners.get(path, ())
    return bool(owners) and all(one.name == owner and look.site.is_as_recorded(path, one) for one in owners)


def _is_of_uv(look: Look) -> bool:
    """Whether the module that uv lays into an environment is the one that uv, which is ours, holds in itself."""
    entry = look.site.files.get(f"{VIRTUALENV}.py")
    if entry is None or entry.kind != "file" or not 0 < entry.length <= MAX_TEXT:
        return False
    return _uv_holds(read(entry))


@cache
def _uv_holds(text: bytes) -> bool:
    with Path(uv.find_uv_bin()).open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as program:
        return program.find(text) >= 0


def interpreter(look: Look) -> Iterable[str]:
    """Yield what would have another interpreter run, or other packages seen."""
    for path, entry in look.site.outside.items():
        if _PYTHON.fullmatch(path) and not _is_interpreter(entry.kind, entry.link, look):
            yield f"{path} is no link to the interpreter"
        elif path == "lib64" and entry.kind == "symlink" and entry.link != "lib":
            yield f"{path} is {entry.link}"
        elif path == "pyvenv.cfg":
            yield from (f"{path}: {line}" for line in _odd_lines(text_of(entry), look))


def _is_interpreter(kind: str, link: str, look: Look) -> bool:
    known = not look.executable or link == look.executable or _PYTHON.fullmatch(f"bin/{link}")
    return kind == "symlink" and bool(known)


def _odd_lines(text: str | None, look: Look) -> Iterable[str]:
    """Yield what of `pyvenv.cfg` (Python, "venv") is not as uv writes it."""
    lines = [line.partition("=") for line in (text or "").splitlines() if line.strip()]
    pairs = [(name.strip(), value.strip()) for name, _, value in lines]
    names = [name for name, _ in pairs]
    settings = dict(pairs)
    yield from (name for name in dict.fromkeys(names) if name not in _HOME or names.count(name) > 1)
    if settings.get("include-system-site-packages") != "false":
        yield "lets other packages in"
    if look.executable and settings.get("home") != posixpath.dirname(look.executable):
        yield f"home = {settings.get('home')}"


def programs(look: Look) -> Iterable[str]:
    """Yield what stands before a program that the runs use."""
    yield from (path for path in look.site.outside if _PROGRAMS.fullmatch(path))
    for one in look.site.distributions:
        for path in map(_outside, one.rows):
            if one.name != "pytest" and path is not None and _RUNS_PYTEST.fullmatch(path):
                yield f"{path} is of {one.name}"


def beside(look: Look) -> Iterable[str]:
    """Yield what lies outside of `site-packages`, or is said to, where no distribution has anything to lay."""
    for path in look.site.outside:
        if not _OF_ITSELF.fullmatch(path) and not _BESIDE.fullmatch(path):
            yield path
    for one in look.site.distributions:
        if not look.knows(one):
            places = (_outside(path) for path in one.rows)
            yield from (f"{place} is of {one.name}" for place in places if place is not None and not _may_lay(place))


def _may_lay(place: str) -> bool:
    return _BESIDE.fullmatch(place) is not None and _PYTHON.fullmatch(place) is None


def _outside(path: str) -> str | None:
    """Return the path in the environment that a row of a RECORD names outside of `site-packages`, None for others."""
    if path.startswith("/"):
        return path
    return path.removeprefix("../../../") if path.startswith("..") else None


def _is_settings(path: str) -> bool:
    return path in ("conftest.py", "tox.ini", "setup.cfg", "pyproject.toml") or bool(
        re.fullmatch(r"\.?pytest\.(?:ini|toml)", path)
    )


def settings_beside(look: Look) -> Iterable[str]:
    """Yield files that pytest reads where it runs tests of what is installed."""
    return (path for path in look.site.files if _is_settings(path) and not look.is_admitted(path))

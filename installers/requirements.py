"""From declared requirements to the lines of a recipe: the project itself out, duplicates merged, sources kept."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from miner.core.records import Record
from miner.project.model import Declared, Group
from miner.project.versions import requirement_of

_OWN_EXTRAS = re.compile(
    r"(?:-e\s+)?(?:file:(?://)?)?(?:\.|\./|/?(?:\$\{PROJECT_ROOT\}|\{root:uri\}|\{toxinidir\}|\{tox_root\})/?)"
    r"\[([\w\s.,-]+)\](?:#.*)?\Z"
)
_PATH = re.compile(r"(?:file:|\.{0,2}/|\.\Z|\.\[|\$\{)")
# Python -> the first pytest that runs on it, the newest Python first. The reporter knows pytest since 4.6.
_FIRST_PYTEST = (
    ("3.14", "8.0", "earlier ones use parts of `ast` that are gone"),
    ("3.10", "6.2.5", "earlier ones break on its syntax trees"),
    ("3.0", "4.6", "earlier ones are not known to the reporter"),
)
_NAMED = re.compile(r"([A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?)\s*(\[[\w\s.,-]*\])?\s*(?:[<>!=~]=?|===)[^;@/\s]*\s*\Z")
_URL = re.compile(r"[a-z+]+://|(?:git|hg|svn|bzr)\+", re.IGNORECASE)


class Line(Record):
    """One requirement of a recipe and every place that asks for it."""

    requirement: str
    sources: tuple[str, ...]


def expand(
    declared: Iterable[Declared], extras: Mapping[str, Group], project: str | None, notes: list[str]
) -> Iterator[Declared]:
    """Replace references to the project's own extras (`.[test]`, `name[test]`) by what they hold, cycles cut."""
    seen: set[str] = set()
    queue = list(declared)
    while queue:
        item = queue.pop(0)
        wanted = _own_extras(item.text, project)
        if wanted is None:
            yield item
            continue
        for extra in wanted:
            name = canonicalize_name(extra)
            if name not in extras:
                notes.append(f"{item.source}: the project has no extra {extra!r}")
            elif name not in seen:
                seen.add(name)
                queue[:0] = extras[name].requirements


def asks_for_own_extras(text: str) -> bool:
    """Whether a requirement is the project's own folder with extras, such as `.[test]`."""
    return bool(_OWN_EXTRAS.match(text.partition(";")[0].strip()))


def _own_extras(text: str, project: str | None) -> list[str] | None:
    """Return the extras of the project that a requirement asks for; None where it is not about the project."""
    if local := _OWN_EXTRAS.match(text.partition(";")[0].strip()):
        return [extra.strip() for extra in local.group(1).split(",") if extra.strip()]
    try:
        requirement = requirement_of(text)
    except InvalidRequirement:
        return None
    own = project is not None and canonicalize_name(requirement.name) == canonicalize_name(project)
    return sorted(requirement.extras) if own else None


def merge(runtime: Sequence[Declared], others: Sequence[Declared], notes: list[str]) -> tuple[Line, ...]:
    """Merge requirements by name and marker, run-time ones first.

    Specifiers of one name are joined. Where no version can satisfy all of them, the first ones win, with a note: the
    run-time dependencies before those of the tests.

    Args:
        runtime: what the project needs to run.
        others: what its tests need.
        notes: what was left out and why.
    """
    merged: dict[tuple[str, str], tuple[Requirement, list[str]]] = {}
    for item in (*runtime, *others):
        requirement = _parse(item, notes)
        if requirement is None:
            continue
        key = (canonicalize_name(requirement.name), str(requirement.marker or ""))
        known, sources = merged.setdefault(key, (requirement, []))
        if known is not requirement:
            _join(known, requirement, item.source, notes)
        if item.source not in sources:
            sources.append(item.source)
    return tuple(Line(requirement=str(requirement), sources=tuple(sources)) for requirement, sources in merged.values())


def _parse(item: Declared, notes: list[str]) -> Requirement | None:
    """Parse a requirement; a path, a URL or a text that is none is noted and left out.

    Of one whose version is none, such as `pytz>dev` before PEP 440, the name is taken.
    """
    text = item.text.strip()
    try:
        requirement = requirement_of(text)
    except InvalidRequirement as error:
        if named := _NAMED.match(text):
            notes.append(f"{item.source}: {text!r} is no requirement, any version of {named[1]} is taken")
            return requirement_of(f"{named[1]}{named[2] or ''}")
        if _PATH.match(text):
            notes.append(f"{item.source}: local path {text!r} is left out")
        elif _URL.search(text):
            notes.append(f"{item.source}: {text!r} is not on the package index and is left out")
        else:
            notes.append(f"{item.source}: {text!r} is no requirement ({str(error).splitlines()[0]})")
        return None
    if requirement.url is not None:
        notes.append(f"{item.source}: {text!r} is not on the package index and is left out")
        return None
    return requirement


def name_of(text: str) -> str:
    """Return the normalised name that a requirement is about, "" where a text is none."""
    try:
        return canonicalize_name(requirement_of(text).name)
    except InvalidRequirement:
        return ""


def marker_environment(python: str) -> dict[str, str]:
    """Return what markers say in an environment of ours with a version of Python ("3.11"), on whatever machine."""
    return {
        "python_version": python,
        "python_full_version": f"{python}.0",
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
        "os_name": "posix",
        "sys_platform": "linux",
        "platform_system": "Linux",
        "extra": "",
    }


def names(lines: Iterable[Line], python: str) -> frozenset[str]:
    """Return the normalised names of what lines ask for on a version of Python ("3.11") under Linux."""
    asked = [Requirement(line.requirement) for line in lines]
    return frozenset(canonicalize_name(one.name) for one in asked if holds(one, python))


def _join(known: Requirement, other: Requirement, source: str, notes: list[str]) -> None:
    known.extras |= other.extras
    joined = known.specifier & other.specifier
    if satisfiable(joined):
        known.specifier = joined
    else:
        notes.append(f"{source}: {other} contradicts {known}, which is taken")


def loosen_pytest(lines: Iterable[Line], python: str, notes: list[str]) -> tuple[Line, ...]:
    """Do not insist on a pytest that cannot run."""
    first = next(pytest for least, pytest, _ in _FIRST_PYTEST if Version(python) >= Version(least))
    found = []
    for line in lines:
        requirement = Requirement(line.requirement)
        old = not satisfiable(requirement.specifier & SpecifierSet(f">={first}"))
        if canonicalize_name(requirement.name) == "pytest" and old and holds(requirement, python):
            notes.append(f"{requirement} is not insisted on: no pytest before {first} runs on Python {python}")
            requirement.specifier = SpecifierSet()
        found.append(line.model_copy(update={"requirement": str(requirement)}))
    return tuple(found)


def holds(requirement: Requirement, python: str) -> bool:
    """Whether a requirement's marker holds on a version of Python."""
    return requirement.marker is None or requirement.marker.evaluate(marker_environment(python))


def satisfiable(specifiers: SpecifierSet) -> bool:
    """Whether some version can satisfy all specifiers: tried on their own bounds and the versions right beside them."""
    if not specifiers:
        return True
    candidates: list[str] = ["0", "99999"]
    for one in specifiers:
        bound = one.version.removesuffix(".*")
        candidates += [bound, f"{bound}.1", f"{bound}.0.1"]
        try:
            release = Version(bound).release
        except ValueError:
            return True  # an arbitrary-equality specifier (===) may name anything
        lower = _below(release)
        candidates += [lower] if lower else []
    return any(specifiers.contains(candidate, prereleases=True) for candidate in candidates)


def _below(release: Sequence[int]) -> str:
    """Return a version right below a release, "" below zero."""
    for index in range(len(release) - 1, -1, -1):
        if release[index]:
            parts = [*release[:index], release[index] - 1, 99999]
            return ".".join(str(part) for part in parts)
    return ""

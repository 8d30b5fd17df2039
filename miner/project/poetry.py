"""Poetry's own dependency tables, translated to PEP 508.

Format: https://python-poetry.org/docs/dependency-specification/ and https://python-poetry.org/docs/pyproject/.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from miner.project.model import Declarations, Declared, Group, GroupKind
from miner.project.text import both, string, strings, table
from miner.project.versions import specifiers_of, version_of

_PART = re.compile(r"\s*(\^|~=|~|===|==|>=|<=|!=|>|<|=)?\s*([^\s,^~=<>!]+)")


def read_poetry(poetry: Mapping[str, Any], path: str, notes: list[str]) -> Declarations:
    """Return what `[tool.poetry]` declares."""
    where = f"{path}: tool.poetry"
    dependencies = table(poetry, "dependencies", where, notes)
    everything = _requirements(dependencies, f"{where}.dependencies", notes)
    optional = {name for name, spec in dependencies.items() if isinstance(spec, dict) and spec.get("optional") is True}
    python = dependencies.get("python")
    modules, roots = _packages(poetry.get("packages"), f"{where}.packages", notes)
    return Declarations(
        source=path,
        name=string(poetry.get("name"), f"{where}.name", notes),
        version=string(poetry.get("version"), f"{where}.version", notes),
        requires_python=_alternatives(python, f"{where}.dependencies.python", notes)
        if isinstance(python, str)
        else None,
        classifiers=strings(poetry.get("classifiers"), f"{where}.classifiers", notes),
        runtime=tuple(item for name, items in everything.items() if name not in optional for item in items),
        groups=(*_extras(poetry, everything, where, notes), *_groups(poetry, where, notes)),
        modules=modules,
        roots=roots,
    )


def _extras(
    poetry: Mapping[str, Any], dependencies: Mapping[str, tuple[Declared, ...]], where: str, notes: list[str]
) -> list[Group]:
    """An extra lists names of optional dependencies (or, in poetry 1.0's form, whole requirements)."""
    found = []
    for extra, names in table(poetry, "extras", where, notes).items():
        place = f"{where}.extras.{extra}"
        items: list[Declared] = []
        for name in strings(names, place, notes):
            known = dependencies.get(name) or dependencies.get(name.lower())
            items += known if known else (Declared(text=name, source=place),)
        found.append(Group(name=extra, kind=GroupKind.EXTRA, requirements=tuple(items)))
    return found


def _groups(poetry: Mapping[str, Any], where: str, notes: list[str]) -> list[Group]:
    tables = {
        name: (table(group, "dependencies", f"{where}.group.{name}", notes), f"{where}.group.{name}.dependencies")
        for name, group in table(poetry, "group", where, notes).items()
    }
    if legacy := table(poetry, "dev-dependencies", where, notes):
        tables.setdefault("dev", (legacy, f"{where}.dev-dependencies"))
    return [
        Group(
            name=name,
            kind=GroupKind.DEPENDENCY_GROUP,
            requirements=tuple(item for items in _requirements(content, place, notes).values() for item in items),
        )
        for name, (content, place) in tables.items()
    ]


def _requirements(content: Mapping[str, Any], place: str, notes: list[str]) -> dict[str, tuple[Declared, ...]]:
    """Translate a table name -> constraint; a list holds constraints for different environments."""
    found: dict[str, tuple[Declared, ...]] = {}
    for name, spec in content.items():
        if name == "python":
            continue
        items = []
        for entry in spec if isinstance(spec, list) else [spec]:
            text = _requirement(name, entry, f"{place}.{name}", notes)
            if text is not None:
                items.append(Declared(text=text, source=place))
        found[name] = tuple(items)
    return found


def _requirement(name: str, spec: Any, place: str, notes: list[str]) -> str | None:
    if isinstance(spec, str):
        return name + specifiers(spec, place, notes)
    if not isinstance(spec, dict):
        notes.append(f"{place}: is a value of type {type(spec).__name__}, expected a constraint")
        return None
    for key in ("path", "git", "url"):
        if key in spec:
            return f"{name} @ {spec[key]}"
    extras = strings(spec.get("extras"), f"{place}.extras", notes)
    version = string(spec.get("version"), f"{place}.version", notes) or "*"
    markers = [_python_marker(spec.get("python"), place, notes), string(spec.get("markers"), f"{place}.markers", notes)]
    if platform := string(spec.get("platform"), f"{place}.platform", notes):
        markers.append(f"sys_platform == '{platform}'")
    condition = both(*(marker for marker in markers if marker))
    listed = f"[{','.join(extras)}]" if extras else ""
    return f"{name}{listed}{specifiers(version, place, notes)}" + (f"; {condition}" if condition else "")


def specifiers(constraint: str, place: str, notes: list[str]) -> str:
    """Translate one constraint to PEP 440; of alternatives (`||`) the last one, the newest by custom, is taken."""
    alternatives = constraint.split("||")
    if len(alternatives) > 1:
        notes.append(f"{place}: of the alternatives {constraint!r} only the last one is read")
    translated = _translate(alternatives[-1])
    if translated is None:
        notes.append(f"{place}: the constraint {constraint!r} is not understood, any version is taken")
        return ""
    return translated


def _alternatives(constraint: str, place: str, notes: list[str]) -> str | None:
    """Translate the constraint on Python, alternatives kept."""
    parts = [_translate(part) for part in re.split(r"\|\|?", constraint)]
    if None in parts:
        notes.append(f"{place}: the constraint {constraint!r} is not understood")
        return None
    return None if "" in parts else " || ".join(part for part in parts if part)


def _python_marker(constraint: Any, place: str, notes: list[str]) -> str | None:
    """Translate the `python` key of a dependency to a marker."""
    if not isinstance(constraint, str) or not (translated := _alternatives(constraint, place, notes)):
        return None
    return " or ".join(
        " and ".join(_comparison(part) for part in alternative.split(",")) for alternative in translated.split(" || ")
    )


def _comparison(specifier: str) -> str:
    operator, version = re.fullmatch(r"([=!<>~]+)(.*)", specifier.strip()).groups()  # type: ignore[union-attr]  # from _translate
    name = "python_version" if version.removesuffix(".*").count(".") < 2 else "python_full_version"
    return f"{name} {operator} '{version.removesuffix('.*') if name == 'python_version' else version}'"


def _translate(constraint: str) -> str | None:
    """Translate carets, tildes, wildcards and bare versions; None where it is no constraint."""
    constraint = constraint.strip()
    if constraint in ("", "*"):
        return ""
    if _PART.sub("", constraint).strip(" ,"):
        return None
    parts = [_bound(operator or "", version) for operator, version in _PART.findall(constraint)]
    translated = ",".join(part or "invalid" for part in parts if part != "")
    return translated if specifiers_of(translated) is not None else None


def _bound(operator: str, version: str) -> str | None:
    wildcard = version.endswith((".*", ".x"))
    bare = version[:-2] if wildcard else version
    if version == "*":
        return ""
    known = version_of(bare)
    if known is None:
        return None
    release = known.release
    if operator == "^":
        return f">={bare},<{_caret(release)}"
    if operator == "~":
        return f">={bare},<{_bump(release, 0 if len(release) == 1 else 1)}"
    if operator in ("", "="):
        return f"=={bare}.*" if wildcard else f"=={bare}"
    if wildcard and operator not in ("==", "!="):
        return f"{operator}{bare}"
    return f"{operator}{version if not wildcard else bare + '.*'}"


def _caret(release: Sequence[int]) -> str:
    """The next version that may break: the left-most part that is not zero goes up."""
    for index, part in enumerate(release):
        if part:
            return _bump(release, index)
    return _bump(release, len(release) - 1)


def _bump(release: Sequence[int], index: int) -> str:
    bumped = [*release[:index], release[index] + 1]
    return ".".join(str(part) for part in (bumped if len(bumped) > 1 else [*bumped, 0]))


def _packages(value: Any, place: str, notes: list[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Read `packages = [{include = "x", from = "src"}]`; entries for the sdist only are left out."""
    modules, roots = [], []
    for entry in value if isinstance(value, list) else []:
        include = entry.get("include") if isinstance(entry, dict) else None
        if not isinstance(include, str):
            notes.append(f"{place}: an entry without `include` is left out")
            continue
        formats = entry.get("format", "wheel")
        if "wheel" not in ([formats] if isinstance(formats, str) else formats):
            continue
        name = re.sub(r"(/\*\*?)*(/\*\.py)?$", "", include).removesuffix(".py").strip("/")
        modules.append(name.replace("/", "."))
        roots.append(str(entry.get("from", "")).strip("/"))
    return tuple(modules), tuple(dict.fromkeys(roots))

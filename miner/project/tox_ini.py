"""tox.ini (and `[tool.tox] legacy_tox_ini`): what the test environments install and run.

Format: https://tox.wiki/en/latest/config.html. A factor that names a Python becomes an environment marker; another
factor (`cov`, `django42`) belongs to an environment that is not ours, and its lines are left out with a note.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping

from miner.project.model import Declarations, Declared, Group, GroupKind
from miner.project.requirements import parse_requirement_lines, read_requirements, relative
from miner.project.text import Ini, both, lines, read_ini, read_toml, string, strings, table

_CONDITION = re.compile(r"(!?[\w.{},!-]+?)\s*:(?![/\\])\s*(.*)")
_FACTOR = re.compile(r"[a-z0-9_.!{},-]+")
_PYTHON = re.compile(r"py(\d)\.?(\d*)$")
_TEST_ENVIRONMENT = re.compile(r"testenv(?::.*(?<![a-z])(?:tests?|unit|pytest|py\d*|pypy3?)(?![a-z]).*)?$")
_SUBSTITUTION = re.compile(r"\{env:[^:}]+:([^}]*)\}|\{(?:toxinidir|tox_root)\}/?")
_RUNNERS = (
    "pytest",
    "py.test",
    "nosetests",
    "nose2",
    "unittest",
    "trial",
    "stestr",
    "testr",
    "green",
    "ward",
    "zope-testrunner",
)


def read_tox(files: Mapping[str, bytes], path: str) -> Declarations:
    """Return the dependencies, extras and test runners of the test environments of a tox.ini."""
    notes: list[str] = []
    return _declarations(files, read_ini(files, path, notes), path, notes)


def read_tox_toml(files: Mapping[str, bytes], path: str) -> Declarations:
    """Return the same of a pyproject.toml: `legacy_tox_ini`, or the base environment of tox 4's own table."""
    notes: list[str] = []
    tox = table(table(read_toml(files, path, []), "tool", path, []), "tox", path, notes)
    legacy = string(tox.get("legacy_tox_ini"), f"{path}: tool.tox.legacy_tox_ini", notes)
    if legacy is not None:
        return _declarations(files, read_ini({path: legacy.encode()}, path, notes), path, notes)
    base = table(tox, "env_run_base", f"{path}: tool.tox", notes)
    where = f"{path}: tool.tox.env_run_base"
    group = Group(
        name="testenv",
        kind=GroupKind.TOX,
        requirements=tuple(
            Declared(text=text, source=where) for text in strings(base.get("deps"), f"{where}.deps", notes)
        ),
        extras=strings(base.get("extras"), f"{where}.extras", notes),
    )
    return Declarations(source=path, groups=(group,) if base else (), notes=tuple(notes))


def _declarations(files: Mapping[str, bytes], sections: Ini, path: str, notes: list[str]) -> Declarations:
    groups, runners = [], []
    for name, section in sections.items():
        if not _TEST_ENVIRONMENT.match(name):
            continue
        where = f"{path}: {name}"
        deps = tuple(
            dict.fromkeys(
                item
                for line, marker in _lines(sections, section.get("deps", ""), where, notes)
                for item in _dependency(files, line, marker, path, where, notes)
            )
        )
        extras = tuple(
            extra.strip()
            for line, _ in _lines(sections, section.get("extras", ""), where, notes)
            for extra in line.split(",")
            if extra.strip()
        )
        if deps or extras:
            groups.append(Group(name=name, kind=GroupKind.TOX, requirements=deps, extras=extras))
        runners += [found for line in lines(section.get("commands", "")) if (found := _runner(line))]
    return Declarations(source=path, groups=tuple(groups), runners=tuple(dict.fromkeys(runners)), notes=tuple(notes))


def _lines(
    sections: Ini, value: str, where: str, notes: list[str], stack: tuple[str, ...] = ()
) -> Iterator[tuple[str, str]]:
    """Yield (line, marker): references to other sections followed, conditions turned into markers."""
    for raw in lines(value):
        raw = _SUBSTITUTION.sub(r"\1", raw)
        line, marker = raw, ""
        condition = _CONDITION.fullmatch(raw)
        if condition and _FACTOR.fullmatch(condition.group(1)):
            holds = factor_marker(condition.group(1))
            if holds is False:
                notes.append(f"{where}: {raw!r} is for another environment")
                continue
            line, marker = condition.group(2), holds if isinstance(holds, str) else ""
        reference = re.fullmatch(r"\{\[([^\]]+)\](\w+)\}", line)
        if not reference:
            yield line, marker
        elif line in stack:
            notes.append(f"{where}: {line} refers to itself")
        else:
            target = sections.get(reference.group(1), {}).get(reference.group(2), "")
            for inner, other in _lines(sections, target, where, notes, (*stack, line)):
                yield inner, both(marker, other)


def _dependency(
    files: Mapping[str, bytes], line: str, marker: str, path: str, where: str, notes: list[str]
) -> Iterator[Declared]:
    if not line:
        return
    if include := re.fullmatch(r"-r\s*(.+)", line):
        found = read_requirements(files, relative(path, include.group(1)), notes)
    elif "{" in line:
        notes.append(f"{where}: {line!r} holds a substitution that is not read")
        return
    else:
        found = parse_requirement_lines(line, where, notes)
    for item in found:
        text, _, own = item.text.partition(";")
        yield item.model_copy(update={"text": f"{text.strip()}; {both(own, marker)}"}) if marker else item


def factor_marker(condition: str) -> str | bool:
    """Return the marker of a factor condition such as `py{37,38}-!cov`; True and False where it needs none."""
    alternatives = [_conjunction(part) for part in expand_braces(condition)]
    if True in alternatives:
        return True
    return " or ".join(part for part in alternatives if isinstance(part, str)) or False


def _conjunction(factors: str) -> str | bool:
    markers = [_factor(factor) for factor in factors.split("-") if factor]
    if False in markers:
        return False
    return " and ".join(marker for marker in markers if isinstance(marker, str)) or True


def _factor(factor: str) -> str | bool:
    negated, name = factor.startswith("!"), factor.lstrip("!")
    if python := _PYTHON.fullmatch(name):
        major, minor = python.groups()
        if minor:
            return f"python_version {'!=' if negated else '=='} '{major}.{minor}'"
        return f"python_version {'<' if negated == (major == '3') else '>='} '3'"
    if name in ("py", "python", "test", "tests", "unit", "linux"):
        return not negated
    if name.startswith(("pypy", "cpython")):
        return f"implementation_name {'!=' if negated else '=='} '{'pypy' if name.startswith('pypy') else 'cpython'}'"
    return negated


def expand_braces(text: str) -> list[str]:
    """Expand `py{37,38}-{a,b}` and top-level commas to every combination."""
    parts = re.split(r"\{([^{}]*)\}", text)
    choices = [part.split(",") if index % 2 else [part] for index, part in enumerate(parts)]
    if any(len(choice) > 50 for choice in choices) or len(parts) > 9:
        return []
    combined = ["\0".join(item) for item in itertools.islice(itertools.product(*choices), 1000)]
    return [piece for item in combined for piece in item.replace("\0", "").split(",") if piece]


def _runner(command: str) -> str | None:
    """Name the test runner that a command starts, through `python -m` and `coverage run -m` too."""
    words = [word.rpartition("/")[2] for word in command.lstrip("-! ").split()[:6]]
    found = next((word for word in words if word in _RUNNERS), None)
    return "pytest" if found == "py.test" else found

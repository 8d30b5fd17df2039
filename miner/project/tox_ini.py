"""tox.ini (and `[tool.tox] legacy_tox_ini`): what the test environments install and run.

Format: https://tox.wiki/en/latest/config.html. An environment's section inherits from `[testenv]`. Where lines there
depend on factors that name no Python (`django42: Django>=4.2,<5`), there is one group for each combination of them in
`envlist`, called like the environments that it stands for; factors that name a Python become markers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from miner.project.model import Declarations, Declared, Group, GroupKind, PythonHint
from miner.project.requirements import (
    Requirements,
    parse_requirement_lines,
    read_constraints,
    read_requirements_file,
    relative,
)
from miner.project.text import Ini, both, lines, read_ini
from miner.project.tox_factors import (
    environments,
    expand_braces,
    factor_marker,
    is_ordinary,
    other_factors,
    python_of,
    pythons_of,
)

__all__ = ["expand_braces", "factor_marker", "read_tox", "read_tox_text", "runner"]

_CONDITION = re.compile(r"(!?[\w.{},!-]+?)\s*:(?![/\\])\s*(.*)")
_FACTOR = re.compile(r"[a-z0-9_.!{},-]+")
_TEST_ENVIRONMENT = re.compile(r"testenv(?::.*(?<![a-z])(?:tests?|unit|pytest|py\d*|pypy3?)(?![a-z]).*)?$")
_SUBSTITUTION = re.compile(r"\{env:[^:}]+:([^}]*)\}|\{(?:toxinidir|tox_root)\}/?")
_INNER_SUBSTITUTION = re.compile(r"\{(?:toxinidir|tox_root)\}/?")
_REFERENCE = re.compile(r"\{\[([^\]]+)\]([\w-]+)\}")
_INCLUDE = re.compile(r"(?:-r|--requirement)(?:\s+|=)?(.+)")
_CONSTRAINT = re.compile(r"(?:-c|--constraint)(?:\s+|=)?(\S+)")
_INSTALL_CONSTRAINT = re.compile(r"(?:\s-c\s*|\s--constraint[\s=])(\S+)")
_DEPTH = 20
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
    return _Reading(files, path, read_ini(files, path, notes), notes).declarations()


def read_tox_text(files: Mapping[str, bytes], text: str, path: str) -> Declarations:
    """Return the same of the text of a tox.ini that stands in another file."""
    notes: list[str] = []
    return _Reading(files, path, read_ini({path: text.encode()}, path, notes), notes).declarations()


def runner(command: str) -> str | None:
    """Name the test runner that a command starts, through `python -m` and `coverage run -m` too."""
    words = [word.rpartition("/")[2] for word in command.lstrip("-! ").split()[:6]]
    found = next((word for word in words if word in _RUNNERS), None)
    return "pytest" if found == "py.test" else found


@dataclass
class _Reading:
    files: Mapping[str, bytes]
    path: str
    sections: Ini
    notes: list[str]

    def declarations(self) -> Declarations:
        """Read all sections."""
        tox = {**self.sections.get("tox:tox", {}), **self.sections.get("tox", {})}
        names = environments(self._substituted(tox.get("envlist") or tox.get("env_list") or ""))
        groups, runners = [], []
        for name in self.sections:
            if not _TEST_ENVIRONMENT.match(name):
                continue
            section = {**self.sections.get("testenv", {}), **self.sections[name]}
            groups += self._combinations(section, names) if name == "testenv" else []
            groups.append(self._group(name, section, frozenset(), self.notes))
            runners += [found for line in lines(self.sections[name].get("commands", "")) if (found := runner(line))]
        where = f"{self.path}: tox.envlist"
        return Declarations(
            source=self.path,
            groups=tuple(group for group in groups if group.requirements or group.extras or group.groups),
            runners=tuple(dict.fromkeys(runners)),
            pythons=tuple(PythonHint(kind="tox", version=version, source=where) for version in pythons_of(names)),
            notes=tuple(self.notes),
        )

    def _substituted(self, value: str) -> str:
        """Return a value with `{[section]key}` and `{env:X:default}` filled in, once."""
        filled = _SUBSTITUTION.sub(r"\1", value)
        return _REFERENCE.sub(lambda found: self.sections.get(found[1], {}).get(found[2], ""), filled)

    def _combinations(self, section: Mapping[str, str], names: tuple[str, ...]) -> list[Group]:
        """Return one group for each combination of factors in `names` that `[testenv]` says something about.

        There are none where some name has no factor beside its Python: that is the ordinary environment.
        """
        own = {name.removeprefix("testenv:") for name in self.sections if name.startswith("testenv:")}
        explicit = {name for braced in own for name in expand_braces(braced)}
        combined: dict[frozenset[str], list[str]] = {}
        for name in names:
            if name not in explicit:
                combined.setdefault(other_factors(name), []).append(name)
        if frozenset() in combined:
            return []
        plain = self._group("", section, frozenset(), [])
        found = []
        for factors, members in combined.items():
            group = self._group(_braced(members), section, factors, [])
            if factors and is_ordinary(factors) and _content(group) != _content(plain):
                found.append(group)
        return found

    def _group(self, name: str, section: Mapping[str, str], factors: frozenset[str], notes: list[str]) -> Group:
        where = f"{self.path}: {name or 'testenv'}"
        deps: list[Declared] = []
        constraints: list[Declared] = []
        for line, marker in self._lines(section.get("deps", ""), where, factors, notes):
            read = self._dependency(line, where, notes)
            deps += [_marked(item, marker) for item in read.requirements]
            constraints += [_marked(item, marker) for item in read.constraints]
        for target in self._constraint_files(section, where, factors):
            constraints += read_constraints(self.files, relative(self.path, target), notes)
        return Group(
            name=name,
            kind=GroupKind.TOX,
            requirements=tuple(dict.fromkeys(deps)),
            extras=self._words(section.get("extras", ""), where, factors, notes),
            groups=self._words(section.get("dependency_groups", ""), where, factors, notes),
            constraints=tuple(dict.fromkeys(constraints)),
        )

    def _words(self, value: str, where: str, factors: frozenset[str], notes: list[str]) -> tuple[str, ...]:
        found = (word.strip() for line, _ in self._lines(value, where, factors, notes) for word in line.split(","))
        return tuple(dict.fromkeys(word for word in found if word))

    def _constraint_files(self, section: Mapping[str, str], where: str, factors: frozenset[str]) -> list[str]:
        """Return the files of the tree that bound versions: by `constraints`, `install_command`, `PIP_CONSTRAINT`."""
        command = self._substituted(section.get("install_command", ""))
        settings = [line for line, _ in self._lines(section.get("setenv", ""), where, factors, [])]
        given = [line.partition("=")[2].strip() for line in settings if line.startswith("PIP_CONSTRAINT")]
        named = [line for line, _ in self._lines(section.get("constraints", ""), where, factors, [])]
        targets = [*_INSTALL_CONSTRAINT.findall(f" {command}"), *(word for value in given for word in value.split())]
        return [target for target in (*targets, *named) if relative(self.path, target) in self.files]

    def _lines(
        self, value: str, where: str, factors: frozenset[str], notes: list[str], stack: tuple[str, ...] = ()
    ) -> Iterator[tuple[str, str]]:
        """Yield (line, marker): references to other sections followed, conditions turned into markers."""
        for raw in lines(value):
            raw = _SUBSTITUTION.sub(r"\1", _INNER_SUBSTITUTION.sub("", raw))
            line, marker = raw, ""
            condition = _CONDITION.fullmatch(raw)
            if condition and _FACTOR.fullmatch(condition.group(1)):
                holds = factor_marker(condition.group(1), factors)
                if holds is False:
                    notes.append(f"{where}: {raw!r} is for another environment")
                    continue
                line, marker = condition.group(2), holds if isinstance(holds, str) else ""
            reference = _REFERENCE.fullmatch(line)
            if not reference:
                yield line, marker
            elif line in stack or len(stack) > _DEPTH:
                notes.append(f"{where}: {line} refers to itself")
            else:
                target = self.sections.get(reference.group(1), {}).get(reference.group(2), "")
                for inner, other in self._lines(target, where, factors, notes, (*stack, line)):
                    yield inner, both(marker, other)

    def _dependency(self, line: str, where: str, notes: list[str]) -> Requirements:
        if not line:
            return Requirements()
        if include := _INCLUDE.fullmatch(line):
            return read_requirements_file(self.files, relative(self.path, include.group(1)), notes)
        if bounds := _CONSTRAINT.fullmatch(line):
            if "://" in line:
                notes.append(f"{where}: {bounds.group(1)} is not in the tree")
                return Requirements()
            return Requirements(
                constraints=read_constraints(self.files, relative(self.path, bounds.group(1)), notes),
            )
        if "{" in line:
            notes.append(f"{where}: {line!r} holds a substitution that is not read")
            return Requirements()
        return Requirements(requirements=parse_requirement_lines(line, where, notes))


def _marked(item: Declared, marker: str) -> Declared:
    if not marker:
        return item
    text, _, own = item.text.partition(";")
    return item.model_copy(update={"text": f"{text.strip()}; {both(own, marker)}"})


def _content(group: Group) -> tuple[object, ...]:
    """Return what tells groups apart beside where they stand."""
    return (
        [item.text for item in group.requirements],
        group.extras,
        group.groups,
        [item.text for item in group.constraints],
    )


def _braced(names: list[str]) -> str:
    """Return the name of the section that would stand for all these environments: `testenv:py{36,37}-django32`."""
    pythons = [factor.removeprefix("py") for name in names for factor in name.split("-") if python_of(factor)]
    rest = "-".join(factor for factor in names[0].split("-") if factor in other_factors(names[0]))
    versions = f"py{{{','.join(dict.fromkeys(pythons))}}}-" if pythons else ""
    return f"testenv:{versions}{rest}"

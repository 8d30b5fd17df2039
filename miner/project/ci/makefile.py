"""Makefiles: the recipes of targets, prerequisites first, and targets that test as jobs of their own.

Format: https://www.gnu.org/software/make/manual/make.html. Functions and patterns are not computed.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from miner.project.ci.reading import Reading
from miner.project.ci.tree import Tree
from miner.project.command_options import split_options
from miner.project.commands import Meaning, sounds_like_tests
from miner.project.shell import ROOT, Shell

_NAMES = ("GNUmakefile", "makefile", "Makefile")
_VALUED = frozenset({"-C", "--directory", "-f", "--file", "--makefile", "-j", "-o", "-W", "-I", "-l"})
_ASSIGNMENT = re.compile(r"(?:export\s+|override\s+)*([A-Za-z_][\w.-]*)\s*(\?|\+|:{1,3}|!)?=\s*(.*)\Z", re.DOTALL)
_RULE = re.compile(r"([^\t:=#][^:=#]*?)\s*::?(?!=)\s*([^=;]*?)(?:;(.*))?\Z", re.DOTALL)
_REFERENCE = re.compile(r"\$(?:\(([^()]*)\)|\{([^{}]*)\}|([@<^*?+$]))")
_CONDITION = re.compile(r"(ifeq|ifneq|ifdef|ifndef)\b\s*(.*)\Z")
_PAIR = re.compile(r"\(([^,]*),([^)]*)\)\Z|[\"']([^\"']*)[\"']\s+[\"']([^\"']*)[\"']\Z")
_UNKNOWN = "${{make}}"
_MAX_LINES = 5_000
_MAX_TEXT = 5_000
_DEEPEST = 8
_MOST_REFERENCES = 50_000
_TARGET = re.compile(r"[\w./-]+\Z")


@dataclass
class _Rule:
    prerequisites: list[str] = field(default_factory=list)
    recipe: list[str] = field(default_factory=list)


class Makefile:
    """The rules and variables of a Makefile.

    Attributes:
        rules: target -> its prerequisites and recipe.
        variables: name -> text, references not expanded; None where it comes from a command.
        exported: names that recipes see in their environment.
    """

    def __init__(self, text: str) -> None:
        """Read a text; lines that are not understood are skipped."""
        self.rules: dict[str, _Rule] = {}
        self.variables: dict[str, str | None] = {}
        self.exported: set[str] = set()
        self._left = _MOST_REFERENCES
        self._read(_logical_lines(text))

    def _read(self, lines: Sequence[str]) -> None:
        current: list[_Rule] = []
        states: list[bool] = []
        inside_define = False
        for line in lines:
            stripped = line.strip()
            if inside_define or stripped.startswith("define "):
                inside_define = not stripped.startswith("endef")
            elif line.startswith("\t"):
                if all(states):
                    for rule in current:
                        rule.recipe.append(stripped)
            elif self._condition(stripped, states) or not stripped or stripped.startswith("#") or not all(states):
                continue
            else:
                current = self._statement(" ".join(re.sub(r"(?<!\\)\s#.*\Z", "", stripped).split()), current)

    def _condition(self, line: str, states: list[bool]) -> bool:
        """Take `ifeq` and its like; a condition that is not known holds."""
        if match := _CONDITION.match(line):
            states.append(self._holds(match[1], match[2].strip()))
        elif re.match(r"else\b", line) and states:
            states[-1] = not states[-1]
        elif re.match(r"endif\b", line) and states:
            states.pop()
        else:
            return False
        return True

    def _holds(self, word: str, rest: str) -> bool:
        if word in ("ifdef", "ifndef"):
            return (self.variables.get(rest, "") != "") == (word == "ifdef")
        pair = _PAIR.match(rest)
        if not pair:
            return True
        one, two = (
            self.expand((text or "").strip(), {})
            for text in (pair.groups()[:2] if pair[1] is not None else pair.groups()[2:])
        )
        if _UNKNOWN in one or _UNKNOWN in two:
            return True
        return (one == two) == (word == "ifeq")

    def _statement(self, line: str, current: list[_Rule]) -> list[_Rule]:
        if match := _ASSIGNMENT.match(line):
            self._assign(match[1], match[2] or "", match[3])
            if line.startswith("export"):
                self.exported.add(match[1])
            return current
        if line.startswith("export "):
            self.exported.update(line.split()[1:])
            return current
        rule = _RULE.match(line)
        if not rule:
            return current
        found = []
        for target in self.expand(rule[1], {}).split():
            if _TARGET.match(target) and not target.startswith("."):
                known = self.rules.setdefault(target, _Rule())
                known.prerequisites += self.expand(rule[2].partition("|")[0], {}).split()
                if rule[3]:
                    known.recipe.append(rule[3].strip())
                found.append(known)
        return found

    def _assign(self, name: str, sign: str, text: str) -> None:
        if sign == "!":
            self.variables[name] = None
        elif sign == "+":
            self.variables[name] = f"{self.variables.get(name) or ''} {text}".strip()
        elif sign != "?" or name not in self.variables:
            self.variables[name] = text

    def expand(self, text: str, given: Mapping[str, str | None], depth: int = 0) -> str:
        """Replace references to variables; `given` ones win. What a function computes is not known."""

        def replaced(found: re.Match[str]) -> str:
            if found[3]:
                return "$" if found[3] == "$" else str(given.get(found[3]) or _UNKNOWN)
            name = found[1] if found[1] is not None else found[2]
            if not re.fullmatch(r"[\w.-]+", name):
                return _UNKNOWN
            held = given.get(name, self.variables.get(name, _DEFAULTS.get(name, "")))
            self._left -= 1
            if held is None or depth > _DEEPEST or self._left < 0:
                return _UNKNOWN
            return self.expand(held, given, depth + 1) if "$" in held else held

        return _REFERENCE.sub(replaced, text)[:_MAX_TEXT]


_DEFAULTS = {"MAKE": "make", "SHELL": "/bin/sh", "RM": "rm -f"}


def _logical_lines(text: str) -> list[str]:
    return re.sub(r"\\\r?\n[ \t]*", " ", text).splitlines()[:_MAX_LINES]


def follow_make(reading: Reading, found: Meaning, shell: Shell, guarded: bool) -> bool:
    """Follow `make`: the targets that it is asked for, else the first one."""
    targets: list[str] = []
    folder, chosen = shell.folder, ""
    for option, held in split_options(found.arguments, _VALUED):
        name, sign, text = held.text.partition("=")
        if option in ("-C", "--directory"):
            folder = shell.path(held.text)
        elif option in ("-f", "--file", "--makefile"):
            chosen = held.text
        elif not option and sign:
            shell.variables[name] = text if held.known else None
        elif not option:
            targets.append(held.text)
    makefile = _makefile(reading.tree, folder, chosen)
    if makefile is None:
        return False
    shell.folder = folder
    first = next(iter(makefile.rules), "")
    known = [target for target in targets or [first] if target in makefile.rules]
    done: set[str] = set()
    for target in known:
        run_target(reading, makefile, target, shell, done, guarded=guarded)
    return bool(known)


def _makefile(tree: Tree, folder: str, chosen: str) -> Makefile | None:
    for name in (chosen,) if chosen else _NAMES:
        path = tree.inside(posixpath.join(folder, name))
        text = tree.text(path, []) if path is not None else None
        if path is not None and text is not None:
            return tree.once("make", path, partial(Makefile, text))
    return None


def run_target(
    reading: Reading, makefile: Makefile, target: str, shell: Shell, done: set[str], *, guarded: bool = False
) -> None:
    """Read a target that was not made yet: its prerequisites, then each line of its recipe in a shell of its own."""
    key = f"make {shell.folder} {target}"
    rule = makefile.rules.get(target)
    if rule is None or target in done or not reading.once(key) or not reading.budget.spend():
        return
    done.add(target)
    with reading.entering(key):
        for prerequisite in dict.fromkeys(rule.prerequisites):
            run_target(reading, makefile, prerequisite, shell, done, guarded=guarded)
        given = {**shell.variables, "@": target, "<": rule.prerequisites[0] if rule.prerequisites else ""}
        for line in rule.recipe:
            inner = shell.child()
            for name in sorted(makefile.exported & makefile.variables.keys()):
                held = makefile.expand(makefile.variables[name] or _UNKNOWN, given)
                inner.variables[name] = None if _UNKNOWN in held else held
                inner.exported.add(name)
            inner.run(makefile.expand(line.lstrip("@-+ \t"), given), guarded=guarded)


def make_jobs(tree: Tree) -> Iterator[Reading]:
    """Yield the targets of the project's own Makefile that test, as jobs of their own."""
    folder = posixpath.normpath(posixpath.join(ROOT, tree.folder))
    name = next((name for name in _NAMES if posixpath.join(tree.folder, name) in tree.files), None)
    makefile = _makefile(tree, folder, name) if name else None
    if makefile is None or name is None:
        return
    for target in list(makefile.rules):
        if sounds_like_tests(target) or target == "check":
            reading = Reading(tree, f"{posixpath.join(tree.folder, name)}: {target}")
            run_target(reading, makefile, target, reading.shell(tree.folder), set())
            if reading.tests:
                yield reading

"""Static reading of shell text: which commands surely run, with which words, variables and in which folder.

Nothing is executed. Conditions are decided where their variables and files are known; what stands under one that is
not known is marked as guarded. A command counts as successful, so that what follows `||` is left out.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from miner.project.shell_conditions import matches_glob, test
from miner.project.shell_syntax import Case, For, Function, Group, If, Node, Not, Script, Simple, While, parse_shell
from miner.project.shell_tokens import ShellSyntaxError
from miner.project.shell_words import Variables, Word, fields, value

ROOT = "/tree"
"""The folder that a tree is checked out in, as scripts see it."""

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(\+?)=")
_PROBES = frozenset({"command", "which", "type", "hash", "grep", "egrep", "fgrep", "diff", "cmp"})
_EXPORTS = frozenset({"export", "declare", "typeset", "readonly", "local"})
_MAX_STEPS = 3_000
_MAX_ITEMS = 30
_DEEPEST = 12
_TOO_LONG = "a script is too long to be followed to its end"
_TOO_DEEP = "scripts call each other too deeply to be followed"
_LATER = re.compile(r"GITHUB_ENV|BASH_ENV")


@dataclass(frozen=True)
class Command:
    """One command as it would run.

    Attributes:
        words: after expansion, prefixes such as `sudo` still there.
        variables: set for this command alone.
        folder: where it runs, below `ROOT` where it is in the tree.
        guarded: it stands under a condition that is not known.
    """

    words: tuple[Word, ...]
    variables: Variables = field(default_factory=dict)
    folder: str = ROOT
    guarded: bool = False

    @property
    def text(self) -> str:
        """The command as one line."""
        return " ".join(word.text for word in self.words)


class Host(Protocol):
    """What a shell script may ask of what is around it."""

    def exists(self, path: str) -> bool | None:
        """Whether an absolute path is there, None where that is not known."""

    def script(self, path: str) -> str | None:
        """Return the text of a script of the tree."""

    def command(self, command: Command, shell: Shell) -> None:
        """Take a command that is none of the shell's own."""


@dataclass
class Budget:
    """How many commands are still read; loops and scripts that call each other come to an end by it."""

    steps: int = _MAX_STEPS
    whole: Budget | None = None

    def spend(self) -> bool:
        """Take one step; whether there was one left, here and in the budget that this one is a part of."""
        self.steps -= 1
        return (self.whole is None or self.whole.spend()) and self.steps >= 0

    @property
    def spent(self) -> bool:
        """Whether nothing is left."""
        return self.steps < 0 or (self.whole is not None and self.whole.spent)


class _Stop(Exception):
    """`exit` or `return`."""


@dataclass
class Shell:
    """The state of a shell that reads a script.

    Attributes:
        variables: all that are set; None where a value is not known.
        exported: names of those that commands see.
        later: variables that later steps of the same job see (`$GITHUB_ENV`).
        notes: what could not be read.
        depth: number of scripts and functions that it is inside of.
        budget: shared with all scripts that it starts.
    """

    host: Host
    variables: dict[str, str | None] = field(default_factory=dict)
    exported: set[str] = field(default_factory=set)
    functions: dict[str, Node] = field(default_factory=dict)
    folder: str = ROOT
    later: dict[str, str | None] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    depth: int = 0
    budget: Budget = field(default_factory=Budget)

    def run(self, text: str, *, guarded: bool = False) -> None:
        """Read a script; one that is broken is read line by line, and lines that are broken are left out."""
        if self.depth > _DEEPEST:
            self._note(_TOO_DEEP)
            return
        try:
            scripts = [parse_shell(text)]
        except ShellSyntaxError as error:
            self._note(f"shell text is not followed as a whole: {error}")
            scripts = list(_lines(text))
        try:
            for script in scripts:
                self._script(script, guarded)
        except _Stop:
            pass

    def environment(self) -> dict[str, str | None]:
        """Return the variables that commands see."""
        return {name: self.variables.get(name) for name in sorted(self.exported) if name in self.variables}

    def child(self) -> Shell:
        """Return a shell that a script is run in: with the exported variables, and what it counts goes on."""
        variables = {**self.environment(), "PWD": self.folder}
        return Shell(
            self.host,
            variables,
            set(self.exported),
            {},
            self.folder,
            self.later,
            self.notes,
            self.depth + 1,
            self.budget,
        )

    def path(self, name: str) -> str:
        """Return a path as seen from the folder that the shell is in."""
        return posixpath.normpath(posixpath.join(self.folder, name))

    def _note(self, note: str) -> None:
        if note not in self.notes:
            self.notes.append(note)

    def _exists(self, name: str) -> bool | None:
        return self.host.exists(self.path(name))

    def _script(self, script: Script, guarded: bool) -> bool | None:
        status: bool | None = True
        for operator, node in script:
            if (operator == "&&" and status is False) or (operator == "||" and status is True):
                continue
            unsure = operator in ("&&", "||") and status is None
            status = self._node(node, guarded or unsure)
        return status

    def _node(self, node: Node, guarded: bool) -> bool | None:
        if not self.budget.spend():
            self._note(_TOO_LONG)
            raise _Stop
        match node:
            case Simple():
                return self._simple(node, guarded)
            case Not():
                status = self._node(node.node, guarded)
                return None if status is None else not status
            case If():
                return self._if(node, guarded)
            case Group():
                return self._group(node, guarded)
            case Function():
                self.functions[node.name] = node.body
            case For():
                self._for(node, guarded)
            case While():
                self._condition(node.condition, guarded)
                self._script(node.body, guarded=True)
            case Case():
                self._case(node, guarded)
        return True

    def _condition(self, script: Script, guarded: bool) -> bool | None:
        """Run a condition; what an ordinary command in it answers is not known."""
        status = self._script(script, guarded)
        last = script[-1][1] if script else None
        while isinstance(last, Not):
            last = last.node
        decided = (
            isinstance(last, Simple) and bool(last.words) and last.words[0] in ("[", "[[", "test", "true", "false", ":")
        )
        return status if decided else None

    def _if(self, node: If, guarded: bool) -> bool | None:
        for condition, body in node.branches:
            holds = self._condition(condition, guarded)
            if holds:
                return self._script(body, guarded)
            if holds is None:
                self._script(body, guarded=True)
                guarded = True
        return self._script(node.otherwise, guarded)

    def _group(self, node: Group, guarded: bool) -> bool | None:
        if not node.subshell:
            return self._script(node.body, guarded)
        before, exported, folder = dict(self.variables), set(self.exported), self.folder
        try:
            return self._script(node.body, guarded)
        except _Stop:
            return True
        finally:
            self.variables, self.exported, self.folder = before, exported, folder

    def _for(self, node: For, guarded: bool) -> None:
        items = [word for raw in node.words for word in fields(raw, self.variables)]
        if not all(item.known for item in items) or len(items) > _MAX_ITEMS:
            self.variables[node.name] = None
            self._script(node.body, guarded=True)
            return
        for item in items:
            self.variables[node.name] = item.text
            self._script(node.body, guarded)

    def _case(self, node: Case, guarded: bool) -> None:
        subject = value(node.subject, self.variables)
        for patterns, body in node.arms:
            expanded = [value(pattern, self.variables) for pattern in patterns]
            if not subject.known:
                self._script(body, guarded=True)
            elif any(matches_glob(subject.text, pattern.text) for pattern in expanded if pattern.known):
                self._script(body, guarded)
                return

    def _simple(self, node: Simple, guarded: bool) -> bool | None:
        words = list(node.words)
        own: dict[str, str | None] = {}
        while words and (match := _ASSIGNMENT.match(words[0])):
            raw = words.pop(0)[match.end() :]
            held = value(raw, self.variables)
            text = held.text if held.known and not guarded else None
            own[match[1]] = self._appended(match[1], raw, text) if match[2] else text
        if not words:
            self.variables.update(own)
            return True
        if words[0] in ("[", "[[", "test"):
            return test(tuple(words), self.variables, self._exists)
        expanded = tuple(word for raw in words for word in fields(raw, self.variables))
        if not expanded:
            return True
        return self._run(Command(expanded, own, self.folder, guarded), node.redirects)

    def _appended(self, name: str, raw: str, text: str | None) -> str | None:
        before = self.variables.get(name, "")
        if before is None or text is None:
            return None
        return f"{before} {text}".strip() if raw.startswith("(") else before + text

    def _run(self, command: Command, redirects: Sequence[tuple[str, str]]) -> bool | None:
        name, arguments = command.words[0].text, command.words[1:]
        if name in _EXPORTS:
            self._export(arguments, command.guarded)
        elif name == "unset":
            for word in arguments:
                self._unset(word.text, command.guarded)
        elif name in ("cd", "pushd"):
            self._change(arguments)
        elif name in ("exit", "return") and not command.guarded:
            raise _Stop
        elif name in ("source", "."):
            return self._source(command)
        elif name == "eval":
            if all(word.known for word in arguments):
                self._nested(" ".join(word.text for word in arguments), arguments, command.guarded)
        elif name in self.functions:
            self._call(self.functions[name], command)
        elif name in ("echo", "printf"):
            self._echo(command, redirects)
        elif name in ("false", "true", ":"):
            return name != "false"
        else:
            self.host.command(command, self)
            return None if name in _PROBES or _asks(command) else True
        return True

    def _export(self, arguments: Iterable[Word], guarded: bool) -> None:
        for word in arguments:
            name, sign, text = word.text.partition("=")
            if not name.isidentifier():
                continue
            if sign:
                self.variables[name] = text if word.known and not guarded else None
            self.exported.add(name)

    def _unset(self, name: str, guarded: bool) -> None:
        if guarded and name in self.variables:
            self.variables[name] = None
        else:
            self.variables.pop(name, None)

    def _change(self, arguments: Sequence[Word]) -> None:
        target = next((word for word in arguments if not word.text.startswith("-") or word.text == "-"), None)
        if target is None or not target.known:
            self.folder = "/unknown"
        elif target.text == "-":
            self.folder = self.variables.get("OLDPWD") or ROOT
        else:
            self.variables["OLDPWD"] = self.folder
            self.folder = self.path(target.text)
        self.variables["PWD"] = self.folder

    def _echo(self, command: Command, redirects: Sequence[tuple[str, str]]) -> None:
        """`echo NAME=value >> "$GITHUB_ENV"` sets a variable of the steps that follow."""
        if not any(_LATER.search(target) for _, target in redirects) or len(command.words) < 2:
            return
        word = command.words[1]
        text = word.text.removeprefix("export ")
        name, sign, held = text.partition("=")
        if sign and name.isidentifier():
            self.later[name] = held if word.known and not command.guarded else None

    def _source(self, command: Command) -> bool | None:
        target = command.words[1] if len(command.words) > 1 else Word("", known=False)
        text = self.host.script(self.path(target.text)) if target.known else None
        if text is None:
            return True
        self._nested(text, command.words[2:], command.guarded)
        return True

    def _nested(self, text: str, arguments: Sequence[Word], guarded: bool) -> None:
        with_arguments = _positional(arguments)
        self._deeper(lambda: self.run(text, guarded=guarded), with_arguments)

    def _call(self, body: Node, command: Command) -> None:
        def run() -> None:
            try:
                self._node(body, command.guarded)
            except _Stop:
                if self.budget.spent:
                    raise

        self._deeper(run, _positional(command.words[1:]))

    def _deeper(self, run: Callable[[], None], arguments: Mapping[str, str | None]) -> None:
        if self.depth >= _DEEPEST:
            self._note(_TOO_DEEP)
            return
        before = {name: self.variables[name] for name in arguments if name in self.variables}
        self.variables.update(arguments)
        self.depth += 1
        try:
            run()
        finally:
            self.depth -= 1
            for name in arguments:
                self.variables.pop(name, None)
            self.variables.update(before)


def _asks(command: Command) -> bool:
    """Whether a command is there for its answer: `git diff --quiet`, `python -c "..."`."""
    first, second = command.words[0].text, command.words[1].text if len(command.words) > 1 else ""
    return (first == "git" and second in ("diff", "rev-parse", "describe", "show-ref")) or (
        first.startswith("python") and second == "-c"
    )


def _positional(arguments: Sequence[Word]) -> dict[str, str | None]:
    """Return `$1` and its like, and `$@`."""
    found = {str(number): word.text if word.known else None for number, word in enumerate(arguments[:9], 1)}
    every = " ".join(word.text for word in arguments)
    known = all(word.known for word in arguments)
    return {**found, "@": every if known else None, "*": every if known else None}


def _lines(text: str) -> Iterable[Script]:
    for line in text.splitlines():
        try:
            yield parse_shell(line)
        except ShellSyntaxError:
            continue

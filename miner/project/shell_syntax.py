"""Shell text to a tree of commands: the part of sh and bash that CI files are written in. Nothing is run.

Grammar: https://pubs.opengroup.org/onlinepubs/9799919799/utilities/V3_chap02.html and the bash manual.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache

from miner.project.shell_tokens import ShellSyntaxError, Token, tokens

_DEEPEST = 40
_MAX_CHARS = 200_000
_REDIRECTS = frozenset({"&>>", "&>", "<<<", "<<-", "<<", ">>", ">&", "<&", ">|", "<>", ">", "<"})
_CLOSES = frozenset({"then", "do", "done", "fi", "elif", "else", "esac", "}"})


@dataclass(frozen=True)
class Simple:
    """One simple command: raw words, and redirections as (operator, raw word)."""

    words: tuple[str, ...]
    redirects: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Not:
    """`! command`."""

    node: Node


@dataclass(frozen=True)
class If:
    """`if`: conditions and their bodies, and what follows `else`."""

    branches: tuple[tuple[Script, Script], ...]
    otherwise: Script


@dataclass(frozen=True)
class For:
    """`for name in words`."""

    name: str
    words: tuple[str, ...]
    body: Script


@dataclass(frozen=True)
class While:
    """`while` or `until`."""

    condition: Script
    body: Script


@dataclass(frozen=True)
class Case:
    """`case subject in`: patterns and their bodies."""

    subject: str
    arms: tuple[tuple[tuple[str, ...], Script], ...]


@dataclass(frozen=True)
class Group:
    """`{ ...; }` or `( ... )`."""

    body: Script
    subshell: bool


@dataclass(frozen=True)
class Function:
    """`name() { ...; }`."""

    name: str
    body: Node


Node = Simple | Not | If | For | While | Case | Group | Function
Script = tuple[tuple[str, Node], ...]
"""Commands, each with the operator before it: ";" (also a line end and "&"), "&&", "||" or "|"."""


@lru_cache(maxsize=512)
def parse_shell(text: str) -> Script:
    """Return the commands of a text.

    Raises:
        ShellSyntaxError: it is no shell script as far as it is read here.
    """
    if len(text) > _MAX_CHARS:
        raise ShellSyntaxError("it is too long")
    parser = _Parser(tokens(text))
    script = parser.script()
    if parser.peek.kind != "end":
        raise ShellSyntaxError(f"{parser.peek.text!r} is out of place")
    return script


class _Parser:
    def __init__(self, found: list[Token]) -> None:
        self._tokens = found
        self._at = 0
        self._depth = 0

    @property
    def peek(self) -> Token:
        return self._tokens[self._at]

    def next(self) -> Token:
        token = self._tokens[self._at]
        self._at = min(self._at + 1, len(self._tokens) - 1)
        return token

    def script(self, stop: Collection[str] = _CLOSES) -> Script:
        """Read commands up to a reserved word, a closing bracket, the end of an arm or the end of the text."""
        found: list[tuple[str, Node]] = []
        operator = ";"
        while True:
            while self._is_operator("\n", ";", "&"):
                self.next()
            if self.peek.kind == "end" or self._is_operator(")", ";;", ";&", ";;&") or self._is_word(*stop):
                break
            found.append((operator, self._command()))
            operator = ";"
            if self._is_operator("&&", "||", "|", "|&"):
                operator = self.next().text.replace("|&", "|")
                while self._is_operator("\n"):
                    self.next()
        return tuple(found)

    def _is_operator(self, *texts: str) -> bool:
        return self.peek.kind == "operator" and self.peek.text in texts

    def _is_word(self, *texts: str) -> bool:
        return self.peek.kind == "word" and self.peek.text in texts

    def _expect(self, text: str) -> None:
        if self.next().text != text:
            raise ShellSyntaxError(f"{text!r} is missing")

    def _command(self) -> Node:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise ShellSyntaxError("it is nested too deeply")
        node = self._any_command()
        self._depth -= 1
        return node

    def _any_command(self) -> Node:
        token = self.peek
        if self._is_operator("("):
            return self._group(")", subshell=True)
        if token.kind == "word" and token.text in ("if", "for", "while", "until", "case", "{", "!", "time", "function"):
            self.next()
            return self._compound(token.text)
        return self._simple()

    def _compound(self, word: str) -> Node:
        if word == "if":
            return self._redirected(self._if())
        if word in ("while", "until"):
            return self._redirected(self._while())
        if word == "for":
            return self._redirected(self._for())
        if word == "case":
            return self._redirected(self._case())
        if word == "function":
            name = self.next().text
            if self._is_operator("("):
                self.next()
                self._expect(")")
            return self._function(name)
        if word == "{":
            self._at -= 1
            return self._group("}", subshell=False)
        return Not(self._command()) if word == "!" else self._command()

    def _group(self, closing: str, *, subshell: bool) -> Node:
        self.next()
        body = self.script()
        self._expect(closing)
        return self._redirected(Group(body, subshell))

    def _redirected(self, node: Node) -> Node:
        """Skip what a compound command is redirected to."""
        while self._is_operator(*_REDIRECTS):
            self.next()
            self.next()
        return node

    def _if(self) -> If:
        branches: list[tuple[Script, Script]] = []
        otherwise: Script = ()
        while True:
            condition = self.script()
            self._expect("then")
            branches.append((condition, self.script()))
            closing = self.next().text
            if closing == "else":
                otherwise = self.script()
                closing = self.next().text
            if closing == "fi":
                return If(tuple(branches), otherwise)
            if closing != "elif":
                raise ShellSyntaxError("'fi' is missing")

    def _while(self) -> While:
        condition = self.script()
        return While(condition, self._body())

    def _for(self) -> For:
        name, words = self.next().text, []
        while self._is_operator("\n"):
            self.next()
        if self._is_word("in"):
            self.next()
            while self.peek.kind == "word":
                words.append(self.next().text)
        else:
            words = ['"$@"']
        return For(name, tuple(words), self._body())

    def _body(self) -> Script:
        while self._is_operator("\n", ";"):
            self.next()
        self._expect("do")
        body = self.script()
        self._expect("done")
        return body

    def _case(self) -> Case:
        subject = self.next().text
        arms: list[tuple[tuple[str, ...], Script]] = []
        while self._is_operator("\n"):
            self.next()
        self._expect("in")
        while True:
            while self._is_operator("\n"):
                self.next()
            if self._is_word("esac"):
                self.next()
                return Case(subject, tuple(arms))
            arms.append((self._patterns(), self.script()))
            if self._is_operator(";;", ";&", ";;&"):
                self.next()
            elif not self._is_word("esac"):
                raise ShellSyntaxError("'esac' is missing")

    def _patterns(self) -> tuple[str, ...]:
        if self._is_operator("("):
            self.next()
        patterns = []
        while not self._is_operator(")"):
            if self.peek.kind == "word":
                patterns.append(self.peek.text)
            elif not self._is_operator("|"):
                raise ShellSyntaxError("')' is missing")
            self.next()
        self.next()
        return tuple(patterns)

    def _function(self, name: str) -> Function:
        while self._is_operator("\n"):
            self.next()
        return Function(name, self._command())

    def _simple(self) -> Node:
        words: list[str] = []
        redirects: list[tuple[str, str]] = []
        while True:
            if self.peek.kind == "word":
                words.append(self.next().text)
            elif self._is_operator(*_REDIRECTS):
                operator = self.next().text
                if words and words[-1].isdigit():
                    words.pop()  # the number of a file, as in 2>/dev/null
                target = self.next()
                if target.kind != "word":
                    raise ShellSyntaxError("a redirection leads nowhere")
                redirects.append((operator, target.text))
            elif len(words) == 1 and self._is_operator("("):
                self.next()
                self._expect(")")
                return self._function(words[0])
            else:
                break
        if not words and not redirects:
            raise ShellSyntaxError(f"{self.peek.text!r} is out of place")
        return Simple(tuple(words), tuple(redirects))

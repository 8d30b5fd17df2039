"""The environments of a tox configuration, with the conditions and substitutions of one of them.

Formats: https://tox.wiki/en/latest/config.html: tox.ini, setup.cfg, tox.toml and both forms in pyproject.toml.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from miner.project.ci.tree import Tree
from miner.project.shell import ROOT, Shell
from miner.project.text import parse_ini, read_ini, read_toml, string, table
from miner.project.tox_factors import environments, expand_braces

UNKNOWN = "${{tox}}"
"""What stands for a text that is only known when tox runs."""
_CONDITION = re.compile(r"[a-z0-9_.!{},-]+\Z")
_BRACE = re.compile(r"\{([^{}]*)\}")
_REFERENCE = re.compile(r"\[([^\]]*)\]([\w.-]+)\Z")
_MAX_TEXT = 20_000
_DEEPEST = 10
_MOST = 5_000

Values = Mapping[str, str]
"""Key -> text, one item a line, of one environment."""


class ToxFile:
    """The environments of one configuration file.

    Attributes:
        path: in the tree.
        envlist: names of the environments that `tox` runs without being told.
    """

    def __init__(self, tree: Tree, path: str) -> None:
        """Read a file; one that is no tox configuration holds no environments."""
        self.path = path
        sections = _sections(tree, path)
        core = "tox:tox" if posixpath.basename(path) == "setup.cfg" else "tox"
        self._sections = {("tox" if name == core else name): section for name, section in sections.items()}
        top = self._sections.get("tox", {})
        self.envlist = environments(top.get("envlist", "") or top.get("env_list", ""))
        self.exists = any(name == "tox" or name.startswith("testenv") for name in self._sections)

    def by_python(self, python: str) -> tuple[str, ...]:
        """Return the environments that tox-gh-actions and tox-travis run on a Python."""
        for section, key in (("gh-actions", "python"), ("gh", "python"), ("travis", "python"), ("tox:travis", python)):
            for line in self._sections.get(section, {}).get(key, "").splitlines():
                name, _, names = line.partition("=" if "=" in line else ":")
                if name.strip() == python:
                    return environments(names)
        return ()

    def values(self, name: str) -> Values:
        """Return the settings of an environment, those of `[testenv]` below its own; conditions are not decided yet."""
        own: Values = {}
        for section, values in self._sections.items():
            if section.startswith("testenv:") and name in (section[8:].strip(), *environments(section[8:])):
                own = values
                break
        base = own.get("base", "").strip()
        parent = self._sections.get(f"testenv:{base}", {}) if base and base != name else {}
        return {**self._sections.get("testenv", {}), **parent, **own}

    def lookup(self, section: str, key: str) -> str:
        """Return what `{[section]key}` stands for."""
        return self._sections.get(section or "testenv", {}).get(key, "")


def _sections(tree: Tree, path: str) -> Mapping[str, Values]:
    name = posixpath.basename(path)
    if name in ("tox.ini", "setup.cfg"):
        return read_ini(tree.files, path, [])
    content = read_toml(tree.files, path, [])
    if name == "pyproject.toml":
        content = table(table(content, "tool", path, []), "tox", path, [])
    legacy = string(content.get("legacy_tox_ini"), path, [])
    return parse_ini(legacy, path, []) if legacy is not None else _of_toml(content)


def _of_toml(content: Mapping[str, Any]) -> dict[str, Values]:
    """Turn tox 4's own tables into the sections of a tox.ini."""
    lines = _TomlLines(content)
    sections: dict[str, Values] = {}
    if content:
        sections["tox"] = lines.section({key: value for key, value in content.items() if not isinstance(value, dict)})
    base = table(content, "env_run_base", "", [])
    if base:
        sections["testenv"] = lines.section(base)
    for name, env in table(content, "env", "", []).items():
        if isinstance(env, dict):
            sections[f"testenv:{name}"] = lines.section(env)
    return sections


class _TomlLines:
    """Values of a TOML configuration as the lines that an INI file would hold; references are followed."""

    def __init__(self, content: Mapping[str, Any]) -> None:
        self._content = content
        self._left = _MOST

    def section(self, values: Mapping[str, Any]) -> Values:
        return {key: self._text(value, 0) for key, value in values.items()}

    def _text(self, value: Any, depth: int) -> str:
        self._left -= 1
        if self._left < 0 or depth > _DEEPEST:
            return ""
        if isinstance(value, list):
            if value and depth and all(isinstance(item, str) for item in value):
                return shlex.join(value)
            return "\n".join(self._text(item, depth + 1) for item in value)
        if isinstance(value, dict):
            if "replace" in value:
                return self._replaced(value, depth)
            return "\n".join(f"{key} = {self._text(held, depth + 1)}" for key, held in value.items())
        return str(value)

    def _replaced(self, value: Mapping[str, Any], depth: int) -> str:
        """Write a substitution: what a reference leads to, or the default of another one."""
        if value["replace"] != "ref":
            default = value.get("default", "")
            return self._text(default, depth + 1) if isinstance(default, list) else str(default)
        found: Any = self._content
        for key in value["of"] if isinstance(value.get("of"), list) else ():
            found = found.get(key) if isinstance(found, dict) and isinstance(key, str) else None
        return self._text(found, depth + 1) if found else ""


class Expansion:
    """Values of one environment with conditions decided and substitutions made."""

    def __init__(
        self, configuration: ToxFile, values: Values, factors: frozenset[str], name: str, shell: Shell
    ) -> None:
        """Expand for an environment that a shell runs."""
        self._configuration = configuration
        self._values = values
        self._left = _MOST
        self._factors = factors
        self._name = name
        self._shell = shell
        self.folder = posixpath.normpath(posixpath.join(ROOT, posixpath.dirname(configuration.path)))

    def text(self, key: str) -> str:
        """Return the lines that hold as one."""
        return " ".join(self.lines(key))

    def lines(self, key: str) -> list[str]:
        """Return the lines that hold for the environment, comments and continuations taken out."""
        text = self._expand(self._values.get(key, ""), 0)
        found: list[str] = []
        joined = re.sub(r"\\\n\s*", " ", text)
        for raw in joined.splitlines():
            line = re.sub(r"(?:\A|\s)#.*\Z", "", raw).strip()
            condition = _condition(line)
            if condition is not None:
                if not self._holds(condition[0]):
                    continue
                line = condition[1]
            if line:
                found.append(line)
        return found

    def variables(self) -> Iterator[tuple[str, str | None]]:
        """Yield the variables that `setenv` sets."""
        for key in ("setenv", "set_env"):
            for line in self.lines(key):
                name, sign, held = line.partition("=")
                if sign and name.strip().isidentifier():
                    text = held.strip().strip("\"'")
                    yield name.strip(), None if UNKNOWN in text else text

    def _holds(self, condition: str) -> bool:
        alternatives: Iterable[str] = expand_braces(condition)
        return any(
            all(
                (factor.lstrip("!") in self._factors) != factor.startswith("!")
                for factor in alternative.split("-")
                if factor
            )
            for alternative in alternatives
        )

    def _expand(self, text: str, depth: int) -> str:
        if depth > _DEEPEST:
            return ""
        for _ in range(_DEEPEST):
            replaced = _BRACE.sub(lambda found: self._substitute(found[1], depth), text)
            if replaced == text or len(replaced) > _MAX_TEXT:
                break
            text = replaced
        return text.replace("\0(", "{").replace("\0)", "}")[:_MAX_TEXT]

    def _substitute(self, inner: str, depth: int) -> str:
        self._left -= 1
        if self._left < 0:
            return _kept(UNKNOWN)
        if inner in ("toxinidir", "tox_root"):
            return self.folder
        if inner in ("envname", "env_name"):
            return self._name
        if inner in ("envpython", "env_python", "basepython"):
            return "python"
        if inner.startswith("posargs"):
            return inner.partition(":")[2]
        if inner in ("envbindir", "env_bin_dir"):
            return "bin"
        if reference := _REFERENCE.match(inner):
            return self._expand(self._configuration.lookup(reference[1], reference[2]), depth + 1)
        if inner.startswith("env:"):
            name, _, default = inner[4:].partition(":")
            held = self._shell.variables.get(name, default)
            return _kept(UNKNOWN) if held is None else held
        if inner in ("opts", "packages", "/", ":") or inner.startswith("tty:"):
            return {"/": "/", ":": ":"}.get(inner, "")
        if "," in inner or (re.fullmatch(r"[a-z0-9.!-]+", inner) and inner not in self._values):
            return _kept(f"{{{inner}}}")  # braces of factors, or of something else
        return _kept(UNKNOWN) if inner not in self._values else self._expand(self._values[inner], depth + 1)


def _condition(line: str) -> tuple[str, str] | None:
    """Part `factor,other: value` into condition and value; None where a line has no condition."""
    head, colon, tail = line.partition(":")
    factors = ",".join(part.strip() for part in head.split(","))
    if not colon or (tail and not tail[0].isspace()) or not _CONDITION.match(factors):
        return None
    return factors, tail.strip()


def _kept(text: str) -> str:
    """Hide braces from further substitution."""
    return text.replace("{", "\0(").replace("}", "\0)")

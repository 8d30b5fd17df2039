"""Tasks that pyproject.toml and hatch.toml name: hatch environments and scripts, scripts of pdm and poe.

Formats: https://hatch.pypa.io/latest/config/environment/overview/, https://pdm-project.org/latest/usage/scripts/,
https://poethepoet.natn.io/.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from typing import Any

from miner.project.ci.reading import Reading
from miner.project.ci.texts import mapping, sequence, text
from miner.project.ci.tree import Tree
from miner.project.commands import Meaning
from miner.project.installs import Installs, pip
from miner.project.shell import ROOT, Budget, Shell
from miner.project.shell_words import Word
from miner.project.text import read_toml

_TABLES = {"pdm": ("pdm", "scripts"), "poe": ("poe", "tasks"), "rye": ("rye", "scripts"), "task": ("taskipy", "tasks")}
_HATCH_TEST = ("pytest",)


def _tool(tree: Tree) -> Mapping[str, Any]:
    return mapping(read_toml(tree.files, posixpath.join(tree.folder, "pyproject.toml"), []).get("tool"))


def follow_hatch(reading: Reading, found: Meaning, shell: Shell, guarded: bool) -> bool:
    """Follow `hatch run env:script`, `hatch run command`, `hatch -e env run` and `hatch test`."""
    words = [word.text for word in found.arguments if word.known]
    environments = mapping(mapping(mapping(_tool(reading.tree)).get("hatch")).get("envs"))
    own = read_toml(reading.tree.files, posixpath.join(reading.tree.folder, "hatch.toml"), [])
    environments = environments or mapping(own.get("envs"))
    name = "default"
    for option in ("-e", "--env"):
        if option in words and words.index(option) + 1 < len(words):
            name = words.pop(words.index(option) + 1)
            words.remove(option)
    if words[:1] == ["test"]:
        name, words = "hatch-test", ["run", "run"]
    if "run" not in words:
        return False
    script = next((word for word in words[words.index("run") + 1 :] if not word.startswith(("-", "+"))), "")
    if ":" in script:
        name, _, script = script.partition(":")
    if not script or (name not in environments and name not in ("default", "hatch-test")):
        return False
    return _run_hatch(reading, environments, name.partition(".")[0], script, words, shell, guarded)


def _run_hatch(
    reading: Reading,
    environments: Mapping[str, Any],
    name: str,
    script: str,
    words: list[str],
    shell: Shell,
    guarded: bool,
) -> bool:
    held = _inherited(environments, name, 0)
    key = f"hatch {name} {script}"
    if not reading.once(key):
        return False
    with reading.entering(key), reading.isolated():
        if not guarded:
            where = f"hatch environment {name}"
            listed = [
                text(item) for key_ in ("dependencies", "extra-dependencies") for item in sequence(held.get(key_))
            ]
            listed += _HATCH_TEST if name == "hatch-test" else ()
            features = tuple(text(item) for item in sequence(held.get("features")))
            groups = tuple(text(item) for item in sequence(held.get("dependency-groups")))
            reading.install(
                pip([Word(item) for item in listed]) | Installs(extras=features, groups=groups), ROOT, where
            )
        scripts = mapping(held.get("scripts"))
        lines = [text(line) for line in sequence(scripts.get(script))]
        if not lines and name == "hatch-test":
            lines = ["pytest"]
        for variable, value in mapping(held.get("env-vars")).items():
            shell.variables[variable] = text(value)
            shell.exported.add(variable)
        for line in lines or [" ".join(words[words.index("run") + 1 :]).partition(":")[2] or script]:
            _scripted(line.replace("{args:", "").replace("{args}", "").rstrip("}"), scripts, shell, guarded, 0)
    return True


def _scripted(line: str, scripts: Mapping[str, Any], shell: Shell, guarded: bool, depth: int) -> None:
    """Run a line of a script, which may name another script."""
    first = line.lstrip("- ").partition(" ")[0]
    if first in scripts and depth < 5 and shell.budget.spend():
        for other in sequence(scripts[first]):
            _scripted(text(other), scripts, shell, guarded, depth + 1)
        return
    shell.run(line.lstrip("- "), guarded=guarded)


def _inherited(environments: Mapping[str, Any], name: str, depth: int) -> dict[str, Any]:
    """Return an environment with those below it that it stands on; `default` is below all others."""
    own = mapping(environments.get(name))
    template = text(own.get("template")) or ("default" if name not in ("default", "hatch-test") else "")
    base = _inherited(environments, template, depth + 1) if template and template != name and depth < 5 else {}
    return {**base, **own, "scripts": {**mapping(base.get("scripts")), **mapping(own.get("scripts"))}}


def follow_task(reading: Reading, found: Meaning, shell: Shell, guarded: bool) -> bool:
    """Follow `pdm run task`, `poe task` and their like."""
    section, key = _TABLES[found.tool]
    tasks = mapping(mapping(_tool(reading.tree).get(section)).get(key))
    name = next((word.text for word in found.arguments if not word.text.startswith("-") and word.text != "run"), "")
    lines = list(_lines(tasks, name, reading.budget, 0))
    if not lines or not reading.once(f"{found.tool} {name}"):
        return False
    with reading.entering(f"{found.tool} {name}"):
        for line in lines:
            shell.run(line, guarded=guarded)
    return True


def _lines(tasks: Mapping[str, Any], name: str, budget: Budget, depth: int) -> Iterator[str]:
    """Yield the commands of a task; a sequence names other tasks, or holds commands."""
    task = tasks.get(name)
    if depth > 5 or task is None or not budget.spend():
        return
    if isinstance(task, str):
        yield task
        return
    held = mapping(task)
    for key in ("cmd", "shell"):
        value = held.get(key)
        if value:
            yield " ".join(map(text, value)) if isinstance(value, list) else text(value)
    for other in (
        *sequence(held.get("composite")),
        *sequence(held.get("sequence")),
        *(task if isinstance(task, list) else ()),
    ):
        inner = text(other) or text(mapping(other).get("ref")) or text(mapping(other).get("cmd"))
        if inner.partition(" ")[0] in tasks:
            yield from _lines(tasks, inner.partition(" ")[0], budget, depth + 1)
        else:
            yield inner

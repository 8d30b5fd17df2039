"""tox environments as jobs: what one of them installs, sets and runs, by its name.

Formats: https://tox.wiki/en/latest/config.html. Other than `miner.project.tox_ini`, which reads all environments as
groups of requirements, this reads the one that is run, with its very factors.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence

from miner.project.ci.reading import Reading, bounds_of
from miner.project.ci.tox_file import UNKNOWN, Expansion, ToxFile
from miner.project.ci.tree import Tree
from miner.project.ci.versions import NO_CPYTHON
from miner.project.command_options import split_options
from miner.project.commands import Meaning, sounds_like_tests
from miner.project.installs import Installs, pip
from miner.project.shell import ROOT, Shell
from miner.project.shell_words import Word
from miner.project.tox_factors import environments, is_ordinary, other_factors, python_of

_VALUED = frozenset(
    {"-e", "-c", "-f", "-m", "-x", "-p", "-o", "--conf", "--workdir", "--skip-env", "--result-json", "--override", "-s"}
    | {"--discover", "--installpkg", "--root", "--parallel", "--skip-missing-interpreters"}
)
_MOST = 40
_OTHER_SYSTEM = re.compile(r"(?:\A|-)(?:win|mac|osx|darwin)\w*(?:\Z|-)")
_FILES = ("tox.ini", "tox.toml", "pyproject.toml", "setup.cfg")


def follow_tox(reading: Reading, found: Meaning, shell: Shell, guarded: bool) -> bool:
    """Follow `tox`: the environment that it runs; of several, one that tests."""
    asked, unknown, chosen = _asked(found.arguments, shell)
    configuration = _configuration(reading.tree, shell, chosen)
    if configuration is None:
        return False
    names = _named(configuration, asked, reading.python, unknown)
    if not names:
        return False
    name = _testing(configuration, names)
    if len(names) > 1:
        reading.note(f"tox runs {len(names)} environments, {name} is read")
    run_environment(reading, configuration, name, shell, guarded=guarded)
    return True


def _asked(arguments: Sequence[Word], shell: Shell) -> tuple[list[str], bool, str]:
    """Return the names after `-e` or in TOXENV, whether they are unknown, and the file after `-c`."""
    names: list[str] = []
    unknown, chosen = False, ""
    until = next((at for at, word in enumerate(arguments) if word.text == "--"), len(arguments))
    for option, held in split_options(arguments[:until], _VALUED):
        if option == "-e":
            unknown = unknown or not held.known
            names += environments(held.text) if held.known else ()
        elif option == "-c" and held.known:
            chosen = held.text
        elif option == "-f" and held.known:
            unknown = True
    variable = shell.variables.get("TOXENV", "")
    if not names and not unknown:
        names += environments(variable or "")
        unknown = variable is None
    return names, unknown, chosen


def _configuration(tree: Tree, shell: Shell, chosen: str) -> ToxFile | None:
    folders = dict.fromkeys((shell.folder, posixpath.join(ROOT, tree.folder)))
    candidates = (
        [shell.path(chosen)] if chosen else [posixpath.join(folder, name) for folder in folders for name in _FILES]
    )
    for candidate in candidates:
        path = tree.inside(candidate)
        for name in (path, f"{path}/tox.ini") if chosen else (path,):
            if name in tree.files and (found := _file(tree, str(name))).exists:
                return found
    return None


def _file(tree: Tree, path: str) -> ToxFile:
    return tree.once("tox", path, lambda: ToxFile(tree, path))


def _named(configuration: ToxFile, asked: Sequence[str], python: str | None, unknown: bool) -> list[str]:
    """Return the environments that run: those asked for, those of the Python, those of the list that fit."""
    if asked and asked != ["ALL"]:
        return [_of_python(name, python) for name in asked]
    by_python = configuration.by_python(python) if python else ()
    if by_python:
        return list(by_python)
    short = f"py{python.replace('.', '')}" if python else ""
    listed = configuration.envlist or (("py",) if not unknown else ())
    fitting = [name for name in listed if short and short in name.split("-")]
    fitting += [name for name in listed if python and python in name.split("-")]
    if unknown and not fitting:
        return [short] if short else []
    if fitting and any(python_of(factor) for name in listed for factor in name.split("-")):
        return fitting
    return list(listed)


def _of_python(name: str, python: str | None) -> str:
    """`py` and `python` in a name stand for the Python that runs tox, in conditions too."""
    if python is None:
        return name
    short = f"py{python.replace('.', '')}"
    return "-".join(short if factor in ("py", "py3", "python") else factor for factor in name.split("-"))


def _testing(configuration: ToxFile, names: Sequence[str]) -> str:
    """Return the one that is the most like an ordinary run of the tests: of equal ones the last one."""

    def rank(place: int) -> tuple[bool, bool, int, int]:
        name = names[place]
        others = other_factors(name)
        tests = any(
            map(
                sounds_like_tests,
                values.splitlines() if (values := configuration.values(name).get("commands", "")) else [],
            )
        )
        return tests or not others, is_ordinary(others), -len(others), place

    return names[max(range(len(names)), key=rank)]


def run_environment(
    reading: Reading, configuration: ToxFile, name: str, shell: Shell, *, guarded: bool = False
) -> None:
    """Read one environment: its dependencies, variables and commands."""
    key = f"tox {name}"
    if not reading.once(key):
        return
    factors = frozenset(name.split("-"))
    values = configuration.values(name)
    version = next((python_of(factor) for factor in name.split("-") if python_of(factor)), None)
    if any(NO_CPYTHON.match(factor) for factor in factors):
        reading.foreign = True
        reading.pythons.clear()
    elif version and not reading.pythons and not reading.foreign:
        reading.set_python(version)
    where = f"{configuration.path}: {name}"
    expand = Expansion(configuration, values, factors, name, shell)
    with reading.entering(key), reading.isolated():
        if not guarded:
            _install(reading, expand, where)
        inner = shell.child()
        inner.folder = posixpath.normpath(
            posixpath.join(shell.folder, expand.text("changedir") or expand.text("change_dir") or ".")
        )
        for variable, held in expand.variables():
            inner.variables[variable] = held
            inner.exported.add(variable)
        for line in (*expand.lines("commands_pre"), *expand.lines("commands")):
            inner.run(line.lstrip("- "), guarded=guarded)


def _install(reading: Reading, expand: Expansion, where: str) -> None:
    folder = expand.folder
    words = [word for line in expand.lines("deps") for word in _dependency(line)]
    reading.install(pip(words), folder, where)
    reading.install(Installs(constraints=bounds_of(dict(expand.variables()))), folder, where)
    extras = tuple(part for line in expand.lines("extras") for part in re.split(r"[\s,]+", line) if part)
    groups = tuple(part for line in expand.lines("dependency_groups") for part in re.split(r"[\s,]+", line) if part)
    reading.install(Installs(extras=extras, groups=groups), folder, where)
    for line in expand.lines("install_command"):
        bounds = [
            held.text
            for option, held in split_options([Word(part) for part in line.split()], {"-c", "--constraint"})
            if option in ("-c", "--constraint")
        ]
        reading.install(Installs(constraints=tuple(bounds)), folder, where)


def _dependency(line: str) -> Iterator[Word]:
    """Part a line of `deps` into words of pip; a requirement with a marker is one word."""
    known = UNKNOWN not in line
    match = re.match(r"(-[rce]|--requirement|--constraint|--editable)[\s=]*(.+)", line)
    if match:
        yield Word(match[1])
        yield Word(match[2].strip().strip("\"'"), known)
    elif not line.startswith("-"):
        yield Word(line, known)


def tox_jobs(tree: Tree) -> Iterator[Reading]:
    """Yield the environments of the tree's own configuration that test, as jobs of their own."""
    for name in _FILES:
        path = posixpath.join(tree.folder, name)
        if path not in tree.files or not (configuration := _file(tree, path)).exists:
            continue
        for env in configuration.envlist[:_MOST] or ("py",):
            if _OTHER_SYSTEM.search(env):
                continue
            reading = Reading(tree, f"{path}: {env}")
            run_environment(reading, configuration, env, reading.shell(tree.folder))
            if reading.tests:
                yield reading
        return

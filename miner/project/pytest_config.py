"""The pytest configuration of a project, read without pytest.

Rules: https://docs.pytest.org/en/stable/reference/customize.html (which file wins; sections never merge across files).
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from typing import Any

from miner.core.records import Record
from miner.project.text import lines, read_ini, read_toml, strings, table

DEFAULT_PYTHON_FILES = ("test_*.py", "*_test.py")


class PytestConfig(Record):
    """What pytest would take from the first file that configures it.

    Attributes:
        python_files: glob patterns of test modules.
        testpaths: where pytest looks when it is given no path.
        addopts: options that are put before the command line, split as a shell would.
        markers: registered markers, one declaration each.
        required_plugins: PEP 508 requirements without which pytest refuses to start.
        source: the file that wins, or None where none configures pytest.
        notes: what could not be read.
    """

    python_files: tuple[str, ...] = DEFAULT_PYTHON_FILES
    testpaths: tuple[str, ...] = ()
    addopts: tuple[str, ...] = ()
    markers: tuple[str, ...] = ()
    required_plugins: tuple[str, ...] = ()
    source: str | None = None
    notes: tuple[str, ...] = ()


_Options = Mapping[str, Any]
_Reader = Callable[[Mapping[str, bytes], str, list[str]], _Options | None]


def read_pytest_config(files: Mapping[str, bytes], folder: str = "") -> PytestConfig:
    """Return the configuration that pytest takes from the files of one folder.

    Args:
        files: path -> content of the declaration files of the tree.
        folder: the project's folder, "" for the root of the tree.
    """
    prefix = f"{folder}/" if folder else ""
    notes: list[str] = []
    for name, read in _READERS:
        path = prefix + name
        options = read(files, path, notes) if path in files else None
        if options is not None:
            return _config(options, path, notes)
    return PytestConfig(notes=tuple(notes))


def _config(options: _Options, path: str, notes: list[str]) -> PytestConfig:
    python_files = options.get("python_files")
    return PytestConfig(
        python_files=DEFAULT_PYTHON_FILES
        if python_files is None
        else _args(python_files, f"{path}: python_files", notes),
        testpaths=_args(options.get("testpaths"), f"{path}: testpaths", notes),
        addopts=_args(options.get("addopts"), f"{path}: addopts", notes),
        markers=_lines(options.get("markers"), f"{path}: markers", notes),
        required_plugins=_args(options.get("required_plugins"), f"{path}: required_plugins", notes),
        source=path,
        notes=tuple(notes),
    )


def _args(value: Any, where: str, notes: list[str]) -> tuple[str, ...]:
    """Read an option of pytest's type "args": shell words in an INI file, a list as it is in TOML."""
    if not isinstance(value, str):
        return strings(value, where, notes)
    try:
        return tuple(shlex.split(value))
    except ValueError as error:
        notes.append(f"{where}: is not a line of shell words ({error})")
        return tuple(value.split())


def _lines(value: Any, where: str, notes: list[str]) -> tuple[str, ...]:
    return lines(value) if isinstance(value, str) else strings(value, where, notes)


def _pytest_ini(files: Mapping[str, bytes], path: str, notes: list[str]) -> _Options:
    """A pytest.ini wins even when it is empty."""
    return read_ini(files, path, notes).get("pytest", {})


def _pytest_toml(files: Mapping[str, bytes], path: str, notes: list[str]) -> _Options:
    """Since pytest 9: a pytest.toml wins even when it is empty."""
    return table(read_toml(files, path, notes), "pytest", path, notes)


def _pyproject(files: Mapping[str, bytes], path: str, notes: list[str]) -> _Options | None:
    """`[tool.pytest.ini_options]` since pytest 6, native `[tool.pytest]` since pytest 9."""
    tool = table(read_toml(files, path, notes), "tool", path, notes)
    own = table(tool, "pytest", path, notes)
    options = table(own, "ini_options", path, notes) or {key: own[key] for key in own if key != "ini_options"}
    return options or ({} if "ini_options" in own else None)


def _tox_ini(files: Mapping[str, bytes], path: str, notes: list[str]) -> _Options | None:
    return read_ini(files, path, notes).get("pytest")


def _setup_cfg(files: Mapping[str, bytes], path: str, notes: list[str]) -> _Options | None:
    return read_ini(files, path, notes).get("tool:pytest")


_READERS: tuple[tuple[str, _Reader], ...] = (
    ("pytest.toml", _pytest_toml),
    (".pytest.toml", _pytest_toml),
    ("pytest.ini", _pytest_ini),
    (".pytest.ini", _pytest_ini),
    ("pyproject.toml", _pyproject),
    ("tox.ini", _tox_ini),
    ("setup.cfg", _setup_cfg),
)

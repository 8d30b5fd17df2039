"""The interpreters that environments can be built on (`configs/pythons.toml`), and the choice among them."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from packaging.version import Version
from pydantic import ValidationError

from miner.core.errors import ConfigError
from miner.core.records import Record
from miner.core.settings import configs_dir
from miner.project.versions import specifiers_of

# A recipe names X.Y only, so a late patch release is tried too, for bounds like ">=3.11.2".
_LATE_PATCH = 99


class Python(Record):
    """One interpreter of the base image.

    Attributes:
        version: "3.11", what recipes name.
        executable: where it is in the image.
        released: the day of X.Y.0.
        end_of_life: the last day on which X.Y got security fixes.
    """

    version: str
    executable: str
    released: date
    end_of_life: date


def load_pythons(path: Path | None = None) -> tuple[Python, ...]:
    """Read the interpreters, oldest first; the shipped file by default.

    Raises:
        ConfigError: the file is missing, wrong, or names no interpreter.
    """
    file = path or configs_dir() / "pythons.toml"
    try:
        pythons = read_pythons(tomllib.loads(file.read_text(encoding="utf-8")).get("python", []))
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read ({error.strerror})") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, ValidationError) as error:
        raise ConfigError(f"{file}: {error}") from error
    if not pythons:
        raise ConfigError(f"{file}: names no [[python]]")
    return pythons


def read_pythons(entries: Iterable[Mapping[str, Any]]) -> tuple[Python, ...]:
    """Return interpreters from their entries, oldest first.

    Raises:
        ValidationError: an entry is none.
    """
    pythons = (Python.model_validate(entry) for entry in entries)
    return tuple(sorted(pythons, key=lambda python: Version(python.version)))


def admits(requires_python: str | None, version: str) -> bool:
    """Whether a `requires-python` (alternatives parted by " || ") admits X.Y; one that is not readable admits all."""
    if requires_python is None:
        return True
    sets = [specifiers_of(part) for part in requires_python.split("||")]
    return any(one is None or one.contains(f"{version}.{patch}") for one in sets for patch in (0, _LATE_PATCH))


def choose_python(pythons: Sequence[Python], requires_python: str | None, day: date) -> tuple[Python | None, str]:
    """Return the newest admitted interpreter that was released on that day, and a note ("" where there is none).

    Where every admitted one is younger, the oldest of them is taken: it is the closest to what the project knew.
    """
    admitted = sorted(
        (python for python in pythons if admits(requires_python, python.version)),
        key=lambda python: Version(python.version),
    )
    alive = [python for python in admitted if python.released <= day]
    if alive:
        return alive[-1], ""
    if not admitted:
        return None, ""
    return admitted[0], f"Python {admitted[0].version} was released after the change; no admitted one is older"

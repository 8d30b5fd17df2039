"""Reading of declaration files that never raises: what cannot be read becomes a note."""

from __future__ import annotations

import configparser
import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

Ini = Mapping[str, Mapping[str, str]]

_CODING = re.compile(rb"\A(?:[^\n]*\n)?[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
_MAX_PARTS = 20
_MAX_BYTES = 4 << 20
_BARE, _BASIC, _LITERAL = r"(?<![\w-])[\w-]++", r'"(?:[^"\\]|\\.)*+"', r"'[^']*+'"
_LONG_KEY = re.compile(rf"(?:(?:{_BARE}|{_BASIC}|{_LITERAL})[ \t]*+\.[ \t]*+){{{_MAX_PARTS}}}")


def decode(data: bytes, path: str, notes: list[str]) -> str | None:
    """Return the text of a file (UTF-8, or what its coding line or Latin-1 says), or None where it is no text."""
    if len(data) > _MAX_BYTES:
        notes.append(f"{path}: {len(data)} bytes are too many, so it is not read")
        return None
    if b"\0" in data:
        notes.append(f"{path}: holds NUL bytes, so it is not read")
        return None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        pass
    declared = _CODING.match(data)
    encoding = declared.group(1).decode("ascii", "replace") if declared else "latin-1"
    try:
        text = data.decode(encoding)
    except (UnicodeDecodeError, LookupError):
        notes.append(f"{path}: is neither UTF-8 nor {encoding}, so it is not read")
        return None
    if not declared:
        notes.append(f"{path}: is not UTF-8, read as Latin-1")
    return text


def read_toml(files: Mapping[str, bytes], path: str, notes: list[str]) -> dict[str, Any]:
    """Return a TOML file's table; empty where the file is missing or wrong."""
    if path not in files:
        return {}
    text = decode(files[path], path, notes)
    if text is None:
        return {}
    content, problem = _toml(text)
    if problem:
        notes.append(f"{path}: is not valid TOML ({problem})")
    return content


@lru_cache(maxsize=32)
def _toml(text: str) -> tuple[dict[str, Any], str]:
    """Return the table that a text holds, which nobody changes, and what is wrong with it; each text is parsed once.

    Keys of many parts are refused: parsing them takes time that grows with the square of their number.
    """
    if any(line.count(".") >= _MAX_PARTS and _LONG_KEY.search(line) for line in text.split("\n")):
        return {}, f"a key has more than {_MAX_PARTS} parts"
    try:
        return tomllib.loads(text), ""
    except (ValueError, RecursionError) as error:  # not only TOMLDecodeError: a number may have too many digits
        return {}, str(error)


def read_ini(files: Mapping[str, bytes], path: str, notes: list[str]) -> Ini:
    """Return the sections of an INI file with case kept and no interpolation; empty where missing or wrong."""
    if path not in files:
        return {}
    text = decode(files[path], path, notes)
    return {} if text is None else parse_ini(text, path, notes)


def parse_ini(text: str, path: str, notes: list[str]) -> Ini:
    """Return the sections of an INI text; a section or key given twice takes its last value."""
    parser = configparser.RawConfigParser(strict=False, allow_no_value=True, default_section="\0none")
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # the documented way to keep the case of keys
    try:
        parser.read_string(text, path)
    except (configparser.Error, AttributeError) as error:  # AttributeError: value under a key that has none
        notes.append(f"{path}: is not a valid INI file ({str(error).splitlines()[0]})")
        return {}
    return {name: {key: value or "" for key, value in parser.items(name)} for name in parser.sections()}


def table(value: Any, key: str, where: str, notes: list[str]) -> dict[str, Any]:
    """Return `value[key]` where both are tables; a wrong type is noted, a missing one is an empty table."""
    if value is not None and not isinstance(value, Mapping):
        notes.append(f"{where}: is {_kind(value)}, expected a table")
    found = value.get(key) if isinstance(value, Mapping) else None
    if isinstance(found, dict):
        return found
    if found is not None:
        notes.append(f"{where}: {key} is {_kind(found)}, expected a table")
    return {}


def strings(value: Any, where: str, notes: list[str]) -> tuple[str, ...]:
    """Return a list of strings; a single string or entries of a wrong type are noted and left out."""
    if value is None:
        return ()
    if not isinstance(value, Sequence) or isinstance(value, (str, bytes)):
        notes.append(f"{where}: is {_kind(value)}, expected a list of strings")
        return ()
    wrong = [item for item in value if not isinstance(item, str)]
    if wrong:
        notes.append(f"{where}: holds {_kind(wrong[0])}, expected strings only")
    return tuple(item for item in value if isinstance(item, str))


def string(value: Any, where: str, notes: list[str]) -> str | None:
    """Return a string, or None where it is missing or (with a note) of a wrong type."""
    if value is None or isinstance(value, str):
        return value
    notes.append(f"{where}: is {_kind(value)}, expected a string")
    return None


def lines(value: str) -> tuple[str, ...]:
    """Return the stripped lines of a value that are neither empty nor comments."""
    stripped = (line.strip() for line in value.splitlines())
    return tuple(line for line in stripped if line and not line.startswith(("#", ";")))


def words(text: str) -> frozenset[str]:
    """Return the words of a text: a set of names, written so that people can read it."""
    return frozenset(text.split())


def both(*markers: str) -> str:
    """Join markers so that all of them hold; empty ones hold always."""
    parts = list(dict.fromkeys(marker.strip() for marker in markers if marker.strip()))
    return parts[0] if len(parts) == 1 else " and ".join(f"({p})" if " or " in p else p for p in parts)


def _kind(value: Any) -> str:
    return f"a value of type {type(value).__name__}"

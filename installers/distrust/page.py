"""`docs/distrust.md`: the tables of mechanisms, for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from installers.distrust.after_install import INSTALLATION
from installers.distrust.integrity import ALTERATIONS
from installers.distrust.loaded import BUILDS, LOADED, Loader
from installers.distrust.options import OPTIONS_ALLOWED, SETTINGS_ALLOWED, Allowed
from installers.distrust.path_files import OWNERS
from installers.distrust.rewritten import MODULES
from installers.distrust.tree import EDITS
from installers.distrust.weakening import MECHANISMS

_HEAD = """\
# What voids an attempt of a language model

Generated from the tables in `installers/distrust`; a test compares. A model's recipe that would change which tests run,
or what runs them, is void (`model-weakens-tests`), and so is a session that edits the repository
(`model-edits-source`). What the project itself declares, and what rungs that ask no model have tried, is nobody's
weakening.
"""


def page() -> str:
    """Return the page."""
    parts = (
        _HEAD,
        _section("In a recipe", "", ((one.name, one.reason) for one in MECHANISMS)),
        _section(
            "In the environment that was built from it",
            "The layer is read as bytes. What the project itself asks for, and what that asks for, is its own matter.",
            ((one.name, one.reason) for one in ALTERATIONS),
        ),
        _section(
            "After the project was installed",
            "The project's layer is read on top of the environment, and what it was built with as well: "
            "all of the above holds there too.",
            INSTALLATION.items(),
        ),
        _section(
            "In the repository, after a session of the agent",
            "Two archives are compared, outside of the box.",
            EDITS.items(),
        ),
        _section(
            "Modules that builds write, which are no edits", "Patterns of names, wherever they lie.", _patterns(MODULES)
        ),
        _section("Options for pytest that a recipe may add", _VALUES, _allowed(OPTIONS_ALLOWED)),
        _section("Settings of pytest that a recipe may override", _VALUES, _allowed(SETTINGS_ALLOWED)),
        _section(
            "Files whose lines Python may run when it starts",
            "Beside those of setuptools' namespace packages, and uv's own.",
            ((file, f"{owner}: {reason}") for file, (owner, reason) in OWNERS.items()),
        ),
        _section("Entry points that load by themselves", "In runs of tests, beside pytest's own.", _loaders(LOADED)),
        _section("Entry points that load in every build", "", _loaders(BUILDS)),
    )
    return "\n".join(parts)


_VALUES = "With a value of the form that is shown; every other option and setting is void."


def _section(title: str, text: str, rows: Iterable[tuple[str, str]]) -> str:
    lines = [f"## {title}", "", *([text, ""] if text else []), "| name | why |", "|---|---|"]
    return "\n".join([*lines, *(f"| `{name}` | {reason} |" for name, reason in rows), ""])


def _patterns(table: Iterable[tuple[str, str]]) -> Iterable[tuple[str, str]]:
    return ((pattern.replace("|", "\\|"), reason) for pattern, reason in table)


def _loaders(table: Mapping[str, Loader]) -> Iterable[tuple[str, str]]:
    for group, loader in table.items():
        known = ", ".join(f"`{name}`" for name in sorted(loader.known))
        yield group, f"{loader.when}{f'; may be brought by {known}' if known else ''}"


def _allowed(table: dict[str, Allowed]) -> Iterable[tuple[str, str]]:
    for name, allowed in table.items():
        value = "" if allowed.value is None else f"=`{allowed.value}`".replace("|", "\\|")
        yield name, f"{value + ' ' if value else ''}{allowed.reason}"

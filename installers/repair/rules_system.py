"""Rules for what lies outside of the package index: Debian packages, and variables of the environment."""

from __future__ import annotations

from installers.repair.context import Context
from installers.repair.edits import compiled, required, with_env, with_packages
from installers.repair.kinds import Kind
from installers.repair.rule import Rule, rule
from miner.core.records import Recipe

_NO_PACKAGE = frozenset({"python", "python2", "python3", "pip", "pip3", "pytest", "py.test", "virtualenv", "tox"})
"""Programs that come with the environment, or not at all."""
_COMPILERS = frozenset({"gcc", "g++", "cc", "c++", "x86_64-linux-gnu-gcc", "clang", "make"})
_DISPLAYS = {
    "qt": {"QT_QPA_PLATFORM": "offscreen"},
    "sdl": {"SDL_VIDEODRIVER": "dummy", "SDL_AUDIODRIVER": "dummy"},
    "matplotlib": {"MPLBACKEND": "Agg"},
    "tk": {"MPLBACKEND": "Agg"},
}
"""Variables with which a tool kit does without a display, of its documentation."""
_IDENTITY = {
    "GIT_AUTHOR_NAME": "miner",
    "GIT_AUTHOR_EMAIL": "miner@localhost",
    "GIT_COMMITTER_NAME": "miner",
    "GIT_COMMITTER_EMAIL": "miner@localhost",
}


def tool_chain(recipe: Recipe, subject: str, _context: Context) -> Recipe | None:
    """Give a project that compiles something the tool chain."""
    return compiled(recipe) if subject.rpartition("/")[2] in _COMPILERS else None


def debian_package(recipe: Recipe, subject: str, context: Context) -> Recipe | None:
    """Ask for the Debian package that has a header, a library or a program."""
    if subject in _NO_PACKAGE or subject.rpartition("/")[2] in _COMPILERS:
        return None
    found = context.package(subject)
    return None if found is None else with_packages(recipe, found)


def time_zone(recipe: Recipe, subject: str, _context: Context) -> Recipe | None:
    """Give time zones: the data as a distribution, the local one as a variable."""
    return required(recipe, "tzdata") if subject == "data" else with_env(recipe, TZ="UTC")


def user_name(recipe: Recipe, _subject: str, _context: Context) -> Recipe | None:
    """Name the user, who has no line in the image's list."""
    return with_env(recipe, LOGNAME="miner", USER="miner")


def git_identity(recipe: Recipe, _subject: str, _context: Context) -> Recipe | None:
    """Give git an identity to commit with."""
    return with_env(recipe, **_IDENTITY)


def utf8_locale(recipe: Recipe, _subject: str, _context: Context) -> Recipe | None:
    """Set the one locale that every image has and that is not ASCII."""
    return with_env(recipe, LC_ALL="C.UTF-8", LANG="C.UTF-8")


def no_display(recipe: Recipe, subject: str, _context: Context) -> Recipe | None:
    """Tell a tool kit to do without a display."""
    return with_env(recipe, **_DISPLAYS[subject]) if subject in _DISPLAYS else None


RULES: tuple[Rule, ...] = (
    rule(
        "tool-chain",
        tool_chain,
        "a compiler is needed where the project is built or tested ({subject})",
        Kind.MISSING_TOOL,
    ),
    rule(
        "debian-package",
        debian_package,
        "{subject} is part of a Debian package",
        Kind.MISSING_HEADER,
        Kind.MISSING_LIBRARY,
        Kind.MISSING_TOOL,
    ),
    rule("time-zone", time_zone, "time zones are not known ({subject})", Kind.TIME_ZONE),
    rule("user-name", user_name, "the user has no name", Kind.USER),
    rule("git-identity", git_identity, "git does not know whose commits it makes", Kind.GIT_IDENTITY),
    rule("utf8-locale", utf8_locale, "the locale is not there", Kind.LOCALE),
    rule("no-display", no_display, "{subject} can do without a display", Kind.NEEDS_DISPLAY),
)

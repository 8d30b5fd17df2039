"""The interpreters that environments can be built on (`configs/pythons.toml`), and the choice among them.

The choice is pure, and this is its one rule. An interpreter *fits* where every `requires-python` admits it. It is
*alive* on a day from its release until `DEAD_AFTER` its end of life. Of those that fit, the first of these wins:

1. the newest alive one that the project itself names (CI, tox, classifiers, `.python-version`);
2. where it names only others: the oldest alive one that is newer than those, which is the closest to what it knew;
3. where it names none: the newest alive one that had been out for `SETTLED_AFTER`, since what a project depends on
   takes some months to follow a new interpreter; a `requires-python` that admits only younger ones wins over that;
4. where none that fits is alive: the one that is closest to the day, with a note, rather than none at all.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from packaging.specifiers import SpecifierSet
from packaging.version import Version
from pydantic import Field, ValidationError

from miner.core.errors import ConfigError
from miner.core.reasons import Reason
from miner.core.records import Record
from miner.core.settings import Settings, configs_dir
from miner.project.versions import specifiers_of

SETTLED_AFTER = timedelta(days=180)
"""NumPy and the like have wheels for a new interpreter two to six months after its release."""
DEAD_AFTER = timedelta(days=365)
"""Projects go on with an interpreter for about a year after its last security fix; then their tools drop it."""

# A recipe names X.Y only, so a late patch release is tried too, for bounds like ">=3.11.2".
_LATE_PATCH = 99
_NAMED = re.compile(r"\s*(\d{1,2})\.(\d{1,3})(?!\d)")
_NEWER = 12  # minor versions beyond the list that are tried, to see whether a requirement asks for the future


class Build(Record):
    """One build of an interpreter by python-build-standalone, as uv's own list of downloads has it.

    Attributes:
        release: "3.8.20".
        build: date of the build, "20241002".
        sha256: of the archive, by the architecture in the engine's words.
    """

    release: str
    build: str
    sha256: dict[str, str]


class Python(Record):
    """One interpreter.

    Attributes:
        version: "3.11", what recipes name.
        executable: where it is in an image.
        released: the day of X.Y.0.
        end_of_life: the last day on which X.Y got security fixes.
        last_pytest: the last pytest that runs on it; None where none has dropped it.
        managed: the build that uv installs; None where there is none.
    """

    version: str
    executable: str
    released: date
    end_of_life: date
    last_pytest: str | None = None
    managed: Build | None = None


class Hints(Record):
    """What a project says about interpreters: specifiers (">=3.8"), or versions ("3.8") that it names.

    Attributes:
        requires_python: every one has to admit an interpreter; alternatives in one are parted by " || ".
        classifiers: of its metadata.
        tox: of its tox, nox or hatch environments.
        ci: of the jobs that run its tests.
        pinned: of `.python-version`, `runtime.txt` and their like.
    """

    requires_python: tuple[str, ...] = ()
    classifiers: tuple[str, ...] = ()
    tox: tuple[str, ...] = ()
    ci: tuple[str, ...] = ()
    pinned: tuple[str, ...] = ()

    @property
    def named(self) -> dict[Version, str]:
        """X.Y that is named -> by what, the surest first."""
        fields = {"CI": self.ci, "tox": self.tox, "a pin": self.pinned, "classifiers": self.classifiers}
        found: dict[Version, str] = {}
        for source, texts in fields.items():
            for text in texts:
                if (match := _NAMED.match(text)) is not None:
                    found.setdefault(Version(f"{match[1]}.{match[2]}"), source)
        return found

    @property
    def bounds(self) -> tuple[SpecifierSet, ...]:
        """Specifiers that stand elsewhere than in `requires-python`: they are followed where something else is left."""
        texts = (*self.ci, *self.tox, *self.pinned, *self.classifiers)
        found = (specifiers_of(text.strip()) for text in texts if text.strip()[:1] in set("<>=!~"))
        return tuple(one for one in found if one is not None)


class Choice(Record):
    """The interpreter of a recipe, and why.

    Attributes:
        python: None where no interpreter of the list fits.
        note: why this one, "" where that needs no words.
        reason: why there is none.
    """

    python: Python | None = None
    note: str = ""
    reason: Reason | None = Field(default=None)


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


def chosen_among(settings: Settings) -> tuple[Python, ...]:
    """Return the interpreters that recipes may name: all, or those of `measure.pythons`.

    Raises:
        ConfigError: `measure.pythons` names one that is not listed.
    """
    known, names = load_pythons(), settings.measure.pythons
    if unknown := set(names) - {python.version for python in known}:
        raise ConfigError(f"measure.pythons: configs/pythons.toml does not list {', '.join(sorted(unknown))}")
    return tuple(python for python in known if not names or python.version in names)


def read_pythons(entries: Iterable[Mapping[str, Any]]) -> tuple[Python, ...]:
    """Return interpreters from their entries, oldest first.

    Raises:
        ValidationError: an entry is none.
    """
    return tuple(sorted((Python.model_validate(entry) for entry in entries), key=_number))


def _number(python: Python) -> Version:
    return Version(python.version)


def admits(requires_python: str | None, version: str) -> bool:
    """Whether a `requires-python` (alternatives parted by " || ") admits X.Y; one that is not readable admits all."""
    if requires_python is None:
        return True
    sets = [specifiers_of(part) for part in requires_python.split("||")]
    return any(one is None or _contains(one, version) for one in sets)


def _contains(bounds: SpecifierSet, version: str) -> bool:
    return any(bounds.contains(f"{version}.{patch}") for patch in (0, _LATE_PATCH))


def choose_python(pythons: Sequence[Python], hints: Hints, day: date) -> Choice:
    """Return the interpreter for a project as it was on a day, by the rule of this module."""
    listed = sorted(pythons, key=_number)
    named, newest = hints.named, _number(listed[-1])
    fitting = [python for python in listed if _fits(hints, python.version)]
    if not fitting or _names_only(named, lambda one: one.major < newest.major or one > newest):
        return _none(hints, listed)
    fitting = [one for one in fitting if all(_contains(bound, one.version) for bound in hints.bounds)] or fitting
    alive = [python for python in fitting if python.released <= day <= python.end_of_life + DEAD_AFTER]
    if not alive:
        return _closest(fitting, day)
    return _known(alive, named) or _settled(alive, day)


def _fits(hints: Hints, version: str) -> bool:
    return all(admits(text, version) for text in hints.requires_python)


def _names_only(named: Mapping[Version, str], kind: Callable[[Version], bool]) -> bool:
    return bool(named) and all(map(kind, named))


def _known(alive: Sequence[Python], named: Mapping[Version, str]) -> Choice | None:
    """Return the newest one that is named, else the one after those that are; None where that says nothing."""
    known = [python for python in alive if _number(python) in named]
    if known:
        return Choice(
            python=known[-1], note=f"Python {known[-1].version}: newest of its day in {_by(known[-1], named)}"
        )
    older = [version for version in named if version < _number(alive[-1])]
    if not older:
        return None
    chosen = next(python for python in alive if _number(python) > max(older))
    return Choice(python=chosen, note=f"Python {chosen.version}: the project names {max(older)}, no longer alive")


def _by(python: Python, named: Mapping[Version, str]) -> str:
    return named[_number(python)]


def _settled(alive: Sequence[Python], day: date) -> Choice:
    settled = [python for python in alive if python.released + SETTLED_AFTER <= day]
    if settled:
        return Choice(python=settled[-1], note="")
    return Choice(python=alive[0], note=f"Python {alive[0].version} was new, but nothing older fits")


def _closest(fitting: Sequence[Python], day: date) -> Choice:
    """Return the last one that had been released, or the first that came later: none was alive."""
    released = [python for python in fitting if python.released <= day]
    if released:
        chosen = released[-1]
        return Choice(python=chosen, note=f"Python {chosen.version} was past its end of life; no living one fits")
    note = f"Python {fitting[0].version} was released after the change; no older one fits"
    return Choice(python=fitting[0], note=note)


def _none(hints: Hints, listed: Sequence[Python]) -> Choice:
    """Say why nothing of the list fits."""
    newest = _number(listed[-1])
    future = [f"{newest.major}.{newest.minor + step}" for step in range(1, _NEWER)] + [f"{newest.major + 1}.0"]
    older = [f"{newest.major}.{minor}" for minor in range(newest.minor + 1)]
    asked = " and ".join(hints.requires_python) or ", ".join(map(str, sorted(hints.named)))
    note = f"the project asks for Python {asked}; configured: {', '.join(python.version for python in listed)}"
    three, two = (any(_fits(hints, one) for one in versions) for versions in (older, ("2.7",)))
    if _names_only(hints.named, lambda one: one.major < newest.major) or (two and not three):
        return Choice(note=note, reason=Reason.PYTHON_2_ONLY)
    if not three and not any(_fits(hints, version) for version in future):
        return Choice(note=note, reason=Reason.NO_PYTHON)
    newer = not three or _names_only(hints.named, lambda one: one > newest)
    return Choice(note=note, reason=Reason.PYTHON_TOO_NEW if newer else Reason.NO_PYTHON)

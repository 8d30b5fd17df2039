"""Test files that cannot be collected, which the patches do not explain; pure.

The criterion is the same for everything: no import of a test file fails both as it is at the base commit and with both
patches applied. What only the gold patch makes collectable is explained by it. Beside what the criterion counts stands
what it leaves to the share of passing tests, so that a better environment can be looked for: errors of other kinds, and
files that only the patches make fail.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Literal

from installers.share import collectors, is_below
from miner.core.excerpt import last_error
from miner.core.records import Legible, Record, RunOutcome

# What pytest says of a module or a conftest file whose import fails, and what pkg_resources and importlib.metadata say
# of a distribution that is not there.
_SAID = re.compile(r"^ImportError while (?:importing test module|loading conftest) ", re.MULTILINE)
_RAISED = re.compile(
    r"^(?:E +)?(?:\w+\.)*(?:ModuleNotFoundError|ImportError|PackageNotFoundError|DistributionNotFound"
    r"|(?:Contextual)?VersionConflict|ConftestImportFailure)\b",
    re.MULTILINE,
)


class Broken(Record):
    """Something that cannot be collected.

    Attributes:
        path: a file or folder; "" where pytest itself cannot be used.
        at: "base" where it cannot be collected at the base commit, nor with both patches; "gold" where that is so with
            both patches only: then they ask for something that the environment does not hold.
        cause: whether it is an import that fails, or pytest itself that cannot be used.
        error: pytest's last line about it.
    """

    path: Legible
    at: Literal["base", "gold"]
    cause: Literal["import", "other"]
    error: Legible

    @property
    def counts(self) -> bool:
        """Whether it is one by the criterion."""
        return self.at == "base" and self.cause == "import"


def broken_collections(base: RunOutcome | None, after: RunOutcome) -> tuple[Broken, ...]:
    """Return what is broken, sorted by its path.

    Args:
        base: of the test files at the base commit, with no patch; None where that was not run.
        after: of a collection with both patches; of a bare package, which has none, with no patch.
    """
    before = _errors(base) if base is not None else {}
    later = _errors(after)
    found = [_broken(path, "base", text) for path, text in before.items() if _overlaps(path, later)]
    found += [_broken(path, "gold", text) for path, text in later.items() if not _overlaps(path, before)]
    return tuple(sorted(found, key=lambda one: one.path))


def _broken(path: str, at: Literal["base", "gold"], text: str) -> Broken:
    cause: Literal["import", "other"] = "import" if not path or is_import_error(text) else "other"
    return Broken(path=path, at=at, cause=cause, error=last_error(text))


def _errors(run: RunOutcome) -> dict[str, str]:
    """Return what could not be collected, file or folder, and pytest's text about it.

    "" stands for everything: pytest did not start, or did not come to the end of its collection.
    """
    found = {name.partition("::")[0]: text for name, text in collectors(run).items()}
    unusable = not run.started or (run.stopped and not run.results and not any(run.collected))
    if unusable and run.exit_status is not None:
        found.setdefault("", run.stopped)
    return found


def is_import_error(text: str) -> bool:
    """Whether pytest's text about a collector says that an import failed."""
    return _SAID.search(text) is not None or _RAISED.search(text) is not None


def _overlaps(path: str, others: Collection[str]) -> bool:
    return any(is_below(path, other) or is_below(other, path) for other in others)

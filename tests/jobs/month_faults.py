"""A forge to disturb: what a run comes to that nothing disturbs, and tables of what may go wrong."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from forge import Forge, World
from forge_month import TOKEN, Known, known_in, library, mend, report, run, settings

from miner.core.errors import ForgeLimited, ForgeToken, ForgeUnreachable, InfrastructureFault
from miner.core.settings import Settings

NAMES = ("octo/alpha", "octo/beta", "octo/gamma")
LONG = "octo/gamma"
DOCUMENTS = ("repositories", "pages", "pulls", "more", "issues")


def words(what: str) -> dict[str, str]:
    """Files by which a gate stops a pull request, so that it is not fetched."""
    return {f"docs/{what}.md": "Words\n", f"docs/{what}-more.md": "More\n"}


@dataclass(frozen=True)
class Place:
    """A forge, and what a run comes to that nothing disturbs."""

    forge: Forge
    folder: Path
    known: Known

    def settings(self, folder: Path, **changes: Any) -> Settings:
        return settings(folder, self.forge, *NAMES, measure__crawl__page_size=10, **changes)

    def copy(self, folder: Path) -> Path:
        """What the undisturbed run left behind, in another folder."""
        shutil.copytree(self.folder, folder, dirs_exist_ok=True)
        return folder


@contextmanager
def undisturbed(folder: Path) -> Iterator[Place]:
    """Make the forge, and run the job once."""
    world = World(folder / "forge")
    alpha, beta, gamma = (library(world, name) for name in NAMES)
    mend(alpha, "one")
    named = report(alpha, "named")
    mend(alpha, "named", named, body=f"Fixes #{named.number}", closes=[], files=words("named"))
    several = [report(alpha, f"part{number}") for number in range(4)]
    mend(alpha, "several", several[0], body="", closes=several, files=words("several"))
    mend(beta, "two", merge="rebase")
    for day in range(1, 22):
        mend(gamma, f"day{day}", at=f"2025-05-{day:02}T12:00:00Z", body="Nothing.", closes=[], files=words(f"day{day}"))
    mend(gamma, "linked", files=words("linked"))
    with Forge(world) as forge, pytest.MonkeyPatch.context() as patch:
        patch.setenv("GITHUB_TOKEN", TOKEN)
        chosen = settings(folder / "undisturbed", forge, *NAMES, measure__crawl__page_size=10)
        run(chosen)
        assert {entry.document for entry in forge.log.of("graphql")} == set(DOCUMENTS)
        yield Place(forge, folder / "undisturbed", known_in(chosen))


def some(table: Iterable[str], *quick: str) -> list[Any]:
    """The cases of a table: these at any time, the others in the long tests."""
    return [case if case in quick else pytest.param(case, marks=pytest.mark.slow) for case in table]


PASSING: dict[str, tuple[str, dict[str, Any]]] = {
    "500": ("server-error", {"status": 500}),
    "502": ("server-error", {"status": 502}),
    "503": ("server-error", {"status": 503}),
    "504": ("server-error", {"status": 504}),
    "html": ("html", {}),
    "truncated": ("truncated", {}),
    "half": ("half", {}),
    "closed": ("closed", {}),
    "reset": ("reset", {}),
    "went-wrong": ("went-wrong", {}),
    "timeout": ("went-wrong", {"timeout": True}),
    "slow": ("slow", {"seconds": 1.5}),
    "primary": ("primary", {"reset_s": 1.5}),
    "primary-429": ("primary", {"reset_s": 1.5, "status": 429}),
    "rate-limited": ("rate-limited", {"reset_s": 1.5}),
    "rate-limit": ("rate-limited", {"reset_s": 1.5, "kind": "RATE_LIMIT"}),
    "secondary": ("secondary", {"retry_after": 0}),
    "secondary-429": ("secondary", {"retry_after": 0, "status": 429}),
}
"""Faults that go by: name -> (fault of the forge, its options)."""
PATIENT = {"github__max_wait_s": 70, "github__timeout_s": 1}


LASTING: dict[str, tuple[str, dict[str, Any], type[InfrastructureFault]]] = {
    "500": ("server-error", {}, ForgeUnreachable),
    "html": ("html", {}, ForgeUnreachable),
    "half": ("half", {}, ForgeUnreachable),
    "closed": ("closed", {}, ForgeUnreachable),
    "went-wrong": ("went-wrong", {}, ForgeUnreachable),
    "resource-limits": ("resource-limits", {}, ForgeUnreachable),
    "primary": ("primary", {"reset_s": 3000}, ForgeLimited),
    "rate-limited": ("rate-limited", {"reset_s": 3000}, ForgeLimited),
    "secondary": ("secondary", {}, ForgeLimited),
    "secondary-429": ("secondary", {"status": 429, "retry_after": 60}, ForgeLimited),
    "bad-credentials": ("bad-credentials", {}, ForgeToken),
    "under-scoped": ("under-scoped", {}, ForgeToken),
}
"""Faults that stay: name -> (fault of the forge, its options, the error that ends the run)."""


GRAPHQL_ONLY = {"went-wrong", "timeout", "rate-limited", "rate-limit", "resource-limits"}
GIT_PASSING = {
    "500": ("/info/refs", "server-error", {}),
    "502": ("/git-upload-pack", "server-error", {"status": 502}),
    "cut": ("/git-upload-pack", "truncated", {}),
    "closed": ("/info/refs", "closed", {}),
    "reset": ("/git-upload-pack", "reset", {}),
    "html": ("/info/refs", "html", {}),
}


def check_recovers(place: Place, folder: Path, *faults: str, **changes: Any) -> None:
    before = len(place.forge.log)
    chosen = place.settings(folder, **{**PATIENT, **changes})
    summary = run(chosen)
    assert {entry.fault for entry in list(place.forge.log)[before:]} == {"", *faults}, "they were met"
    assert (summary.faulted, summary.units_faulted) == (0, 0)
    assert known_in(chosen) == place.known


def check_ends(place: Place, chosen: Settings, expected: type[InfrastructureFault]) -> None:
    with pytest.raises(expected) as raised:
        run(chosen)
    assert raised.value.exit_code == expected.exit_code
    assert raised.value.next_step
    check_goes_on(place, chosen)


def check_goes_on(place: Place, chosen: Settings) -> None:
    known = known_in(chosen)
    assert known.decisions.items() <= place.known.decisions.items()
    assert {row[3] for row in known.intake.values()} <= {None}, "no repository is refused for it"
    place.forge.heal()
    assert run(chosen).units_faulted == 0
    assert known_in(chosen) == place.known

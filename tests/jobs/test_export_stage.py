"""What is not public stays so in every later run, and a secret is found before a candidate is accepted."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from crawlers.index_server import IndexServer
from planted import LOCK as LOCK_TEXT
from planted import plant
from typer.testing import CliRunner
from world import Pair, files, options, project, publish, settings

from exporters.parquet import read_rows
from exporters.release import LOCK
from miner.cli import app
from miner.core.ledger import Ledger
from miner.core.reasons import Reason, Stage
from miner.core.records import State
from miner.jobs import monthly, release
from miner.jobs.summary import Summary

pytestmark = pytest.mark.loopback

SECRET = "gh" + "p_" + "abcdefghijklmnopqrstuvwxyz0123456789"
"""A token that looks real, put together at run time: no text in this file has the shape of one."""


@pytest.fixture
def server() -> Iterator[IndexServer]:
    with IndexServer() as found:
        yield found


def mined(folder: Path, server: IndexServer, *pairs: Pair, visibility: str = "public", source: str = "pypi") -> Summary:
    chosen = settings(folder, server, *pairs, release__visibility=visibility, release__sources=f'["{source}"]')
    plant(chosen)
    return monthly.run(chosen, quiet=True)


def published(folder: Path) -> bytes:
    return b"".join(files(folder / "out").values())


class TestVisibility:
    @pytest.mark.parametrize("closed", ["hold-out", "private"])
    def test_a_candidate_stays_closed_in_a_later_run_with_default_settings(
        self, closed: str, server: IndexServer, tmp_path: Path
    ) -> None:
        hidden, shown = publish(server, "hidden"), publish(server, "shown")
        assert mined(tmp_path, server, hidden, visibility=closed).tasks == 0
        assert mined(tmp_path, server, hidden, shown).tasks == 1
        rows = read_rows((tmp_path / "out" / "data" / "test-00000-of-00001.parquet").read_bytes())
        assert [row["instance_id"] for row in rows] == ["pypi__shown-1.1"]
        assert (b"hidden" in published(tmp_path)) == (closed == "private")

    def test_no_run_opens_by_its_settings_what_a_stricter_one_closed(self, server: IndexServer, tmp_path: Path) -> None:
        one = publish(server, "one")
        for given, stands in (("public", "public"), ("private", "private"), ("hold-out", "hold-out")):
            mined(tmp_path, server, one, visibility=given)
            assert self.stands(tmp_path, server) == stands
        for given in ("public", "private"):
            mined(tmp_path, server, one, visibility=given)
            assert self.stands(tmp_path, server) == "hold-out"

    def test_what_a_pair_says_of_itself_wins(self, server: IndexServer, tmp_path: Path) -> None:
        one, two = publish(server, "one"), publish(server, "two")
        assert mined(tmp_path, server, {**one, "visibility": "hold-out"}, two).tasks == 1
        assert mined(tmp_path, server, one, two).tasks == 1
        assert mined(tmp_path, server, {**one, "visibility": "public"}, two).tasks == 2
        assert mined(tmp_path, server, one, two).tasks == 2

    def test_visibility_is_nothing_measured(self, server: IndexServer, tmp_path: Path) -> None:
        one = publish(server, "one")
        mined(tmp_path, server, one)
        assert mined(tmp_path, server, {**one, "visibility": "private"}).measured == 0

    def test_an_accepted_candidate_that_is_not_public_stays_accepted_in_the_ledger(
        self, server: IndexServer, tmp_path: Path
    ) -> None:
        summary = mined(tmp_path, server, {**publish(server, "one"), "visibility": "private"})
        assert [one.state for one in summary.decisions] == [State.ACCEPTED]
        assert (summary.funnel[-1].passed, summary.tasks) == (1, 0)
        [row] = read_rows((tmp_path / "out" / "rejected.parquet").read_bytes())
        assert (row["code"], row["stage"]) == ("not-public", "export")

    def test_a_release_of_another_source_counts_it_and_shows_nothing(self, server: IndexServer, tmp_path: Path) -> None:
        assert mined(tmp_path, server, publish(server, "hidden"), source="github").tasks == 0
        assert b"alpha" not in (tmp_path / "out" / "rejected.parquet").read_bytes()
        assert b"source-not-released" in published(tmp_path)

    def stands(self, folder: Path, server: IndexServer) -> str:
        [row] = Ledger(settings(folder, server).paths.ledger).candidates()
        return str(row.visibility)


def test_what_cannot_be_screened_is_a_fault_and_not_accepted(server: IndexServer, tmp_path: Path) -> None:
    chosen = settings(tmp_path, server, publish(server, "one"))
    plant(chosen)
    [lock] = (tmp_path / "var" / "blobs").rglob(f"{hashlib.sha256(LOCK_TEXT.encode()).hexdigest()}*")
    lock.write_bytes(b"damaged")
    summary = monthly.run(chosen, quiet=True)
    [decision] = summary.decisions
    assert (decision.state, decision.stage, decision.code) == (State.FAULTED, "export", Reason.INTERNAL_ERROR)
    assert (summary.funnel[-1].entered, summary.funnel[-1].faulted, summary.faulted) == (1, 1, 1)
    assert summary.tasks == 0


class TestSecret:
    @pytest.fixture
    def leaky(self, server: IndexServer) -> Pair:
        module = project("leaky", "1.1", fixed=True)["leaky.py"]
        return publish(server, "leaky", new={"leaky.py": module + f"\nTOKEN = {SECRET!r}\n".encode()})

    def test_is_found_before_the_decision_and_ledger_funnel_and_release_say_the_same(
        self, leaky: Pair, server: IndexServer, tmp_path: Path
    ) -> None:
        summary = mined(tmp_path, server, leaky, publish(server, "clean"))
        by_id = {one.instance_id: one for one in summary.decisions}
        decision = by_id["pypi__leaky-1.1"]
        assert (decision.state, decision.stage, decision.code) == (State.REJECTED, "export", Reason.SECRET_FOUND)
        assert decision.sentence == "candidate.patch: GitHub Token"
        export = summary.funnel[-1]
        assert (export.stage, export.entered, export.rejected, export.passed) == (
            Stage.EXPORT,
            2,
            {"secret-found": 1},
            1,
        )
        assert summary.tasks == 1
        [row] = read_rows((tmp_path / "out" / "rejected.parquet").read_bytes())
        assert (row["instance_id"], row["code"]) == ("pypi__leaky-1.1", "secret-found")
        assert SECRET.encode() not in published(tmp_path)
        again = release.rebuild(settings(tmp_path, server), tmp_path / "out" / LOCK, tmp_path / "again")
        assert (again.accepted, again.rejected) == (1, 1)

    def test_is_said_by_why(self, leaky: Pair, server: IndexServer, tmp_path: Path) -> None:
        mined(tmp_path, server, leaky)
        said = CliRunner().invoke(app, ["why", "pypi__leaky-1.1", *options(tmp_path, server, leaky)]).stdout
        assert said.startswith("pypi__leaky-1.1: rejected at export (secret-found)\n  candidate.patch: GitHub Token\n")
        assert "  export    secrets                fail = 1 [secret-found]" in said
        assert SECRET not in said

    def test_is_no_reason_against_what_is_not_public(self, leaky: Pair, server: IndexServer, tmp_path: Path) -> None:
        summary = mined(tmp_path, server, {**leaky, "visibility": "private"})
        assert [one.state for one in summary.decisions] == [State.ACCEPTED]
        assert SECRET.encode() not in published(tmp_path)

"""Faults of the infrastructure, and bugs, are never taken for a property of a task; a rerun ends all the same."""

from __future__ import annotations

import errno
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import fsspec
import pytest
from crawlers.index_server import IndexServer
from fsspec.implementations.local import LocalFileSystem
from planted import plant
from sqlalchemy import Engine, event
from world import Pair, content, options, pair, publish, quiet_pair, settings

from installers.pythons import load_pythons
from miner.core.blobs import BlobStore
from miner.core.errors import DiskFull, DockerUnavailable, IndexUnreachable, SweMinerError
from miner.core.ledger import Ledger
from miner.core.reasons import Reason
from miner.core.records import Fact, Observation, ReleasePair, State
from miner.core.settings import Settings
from miner.crawlers.index import IndexClient
from miner.crawlers.pypi import PypiSource
from miner.jobs import monthly
from miner.jobs.audit import why
from miner.jobs.summary import Summary
from validators.case import Reader

pytestmark = pytest.mark.loopback


@pytest.fixture
def server() -> Iterator[IndexServer]:
    with IndexServer() as found:
        yield found


def quiet_pairs(server: IndexServer, names: str) -> list[Pair]:
    return [quiet_pair(server, f"pkg{name}") for name in names]


def run(chosen: Settings, **more: Any) -> Summary:
    return monthly.run(chosen, quiet=True, **more)


def ledger_of(chosen: Settings) -> Ledger:
    return Ledger(chosen.paths.ledger)


def states(summary: Summary) -> dict[str, tuple[State, Reason | None]]:
    return {one.instance_id: (one.state, one.code) for one in summary.decisions}


REJECTED = (State.REJECTED, Reason.NO_TEST_CHANGE)


class TestIndex:
    def test_index_that_never_answers_ends_a_run_of_many_candidates(self, tmp_path: Path) -> None:
        with IndexServer() as gone:
            pairs = quiet_pairs(gone, "abcdef")
        chosen = settings(tmp_path, gone, *pairs, run__workers=1)
        with pytest.raises(IndexUnreachable) as raised:
            run(chosen)
        assert raised.value.exit_code == 8
        assert "no answer" in str(raised.value)
        ledger = ledger_of(chosen)
        assert [(one.state, one.code) for one in ledger.decisions()] == [(State.FAULTED, "index-unreachable")]
        assert [row.status for row in ledger.runs()] == ["faulted"]
        assert ledger.count_facts() == 0

    def test_index_that_does_not_answer_for_one_candidate_leaves_it_faulted_and_the_others_go_on(
        self, server: IndexServer, tmp_path: Path
    ) -> None:
        chosen = settings(tmp_path, server, *quiet_pairs(server, "abc"))
        server.fail("/simple/pkgb/", "reset")
        summary = run(chosen)
        assert states(summary) == {
            "pypi__pkga-1.1": REJECTED,
            "pypi__pkgb-1.1": (State.FAULTED, Reason.INDEX_UNREACHABLE),
            "pypi__pkgc-1.1": REJECTED,
        }
        assert (summary.faulted, summary.funnel[0].faulted, summary.funnel[0].passed) == (1, 1, 2)

    def test_index_that_is_gone_half_way_leaves_what_a_rerun_completes_to_the_same_content(
        self, server: IndexServer, tmp_path: Path
    ) -> None:
        pairs = quiet_pairs(server, "abcde")
        undisturbed = settings(tmp_path / "undisturbed", server, *pairs)
        disturbed = settings(tmp_path / "disturbed", server, *pairs, run__workers=1)
        run(undisturbed)
        server.fail("", "reset", after=8)
        with pytest.raises(IndexUnreachable):
            run(disturbed)
        before = ledger_of(disturbed).count_facts()
        assert before == 5  # two candidates whole, and the page of the third
        assert not disturbed.paths.release.exists()
        server.heal()
        summary = run(disturbed)
        assert (summary.measured, summary.faulted) == (2 * 5 - before, 0)
        assert content(disturbed.paths.release) == content(undisturbed.paths.release)

    def test_answer_that_is_none_says_nothing_about_the_candidate(self, server: IndexServer, tmp_path: Path) -> None:
        faults = ["html", "500", "cut", "reset"]
        spoilt = {f"{kind}{fault}": (kind, fault) for kind in ("simple", "files") for fault in faults}
        pairs = [one for name in spoilt for one in (quiet_pair(server, f"bad{name}"), pair(f"unknown{name}"))]
        chosen = settings(tmp_path, server, *pairs, run__workers=1)
        for name, (kind, fault) in spoilt.items():
            server.fail(f"/{kind}/bad{name}", fault)
        summary = run(chosen)
        assert summary.faulted == len(spoilt)
        for name, (_, fault) in spoilt.items():
            code = Reason.INDEX_UNREACHABLE if fault == "reset" else Reason.INDEX_ERROR
            assert states(summary)[f"pypi__bad{name}-1.1"] == (State.FAULTED, code)
            assert states(summary)[f"pypi__unknown{name}-1.1"] == (State.REJECTED, Reason.UNKNOWN_PACKAGE)
            [kept] = ledger_of(chosen).faults_of(f"pypi__bad{name}-1.1")
            assert (kept.reason, kept.run_id) == (code, summary.run_id)
        server.heal()
        healed = states(run(chosen))
        assert {healed[f"pypi__bad{name}-1.1"] for name in spoilt} == {REJECTED}

    def test_no_that_an_index_takes_back_hours_later_is_taken_back(self, server: IndexServer, tmp_path: Path) -> None:
        again = {"measure__recheck_after_hours": 0}
        chosen = settings(tmp_path, server, quiet_pair(server, "pkg"), **again)
        server.fail("/simple/pkg/", "404")
        [first] = run(chosen).decisions
        assert (first.code, first.final) == (Reason.UNKNOWN_PACKAGE, False)
        server.heal()
        [second] = run(chosen).decisions
        assert (second.code, second.final) == (Reason.NO_TEST_CHANGE, True)


class TestDiskFull:
    def test_blobs_that_do_not_fit_end_the_run_and_a_rerun_completes(self, server: IndexServer, tmp_path: Path) -> None:
        pairs = quiet_pairs(server, "abc")
        plenty = settings(tmp_path / "plenty", server, *pairs)
        run(plenty)
        scarce = settings(tmp_path, server, *pairs, run__workers=1, paths__blobs_url=f"scarce://{tmp_path}/blobs")
        fsspec.register_implementation("scarce", Scarce, clobber=True)
        Scarce.files_left = 3
        with pytest.raises(DiskFull) as raised:
            run(scarce)
        assert raised.value.exit_code == 9
        known = ledger_of(scarce).count_facts()
        assert 0 < known < 6
        assert not list((tmp_path / "blobs").rglob("*.part"))
        Scarce.files_left = 1000
        summary = run(scarce)
        assert (summary.faulted, summary.measured) == (0, 6 - known)
        assert content(scarce.paths.release) == content(plenty.paths.release)

    def test_ledger_that_is_full_ends_the_run_and_a_rerun_completes(self, server: IndexServer, tmp_path: Path) -> None:
        chosen = settings(tmp_path, server, *quiet_pairs(server, "abcd"))
        ledger_of(chosen).close()
        with sqlite3.connect(tmp_path / "var" / "ledger.sqlite3") as connection:
            [[pages]] = connection.execute("PRAGMA page_count")
        with bounded_databases(pages + 1), pytest.raises(DiskFull) as raised:
            run(chosen)
        assert raised.value.exit_code == 9
        summary = run(chosen)
        assert states(summary) == {f"pypi__pkg{name}-1.1": REJECTED for name in "abcd"}
        assert 0 < summary.measured <= 8

    def test_any_other_file_that_does_not_fit_ends_the_run_too(self, server: IndexServer, tmp_path: Path) -> None:
        chosen = settings(tmp_path, server, *quiet_pairs(server, "ab"))
        full = OSError(errno.ENOSPC, "No space left on device", "scratch")
        with pytest.raises(DiskFull, match="scratch"):
            run(chosen, source=source(chosen, pkgb=full))


class TestBug:
    def test_bug_that_one_candidate_meets_is_kept_with_its_traceback_and_the_others_go_on(
        self, server: IndexServer, tmp_path: Path
    ) -> None:
        chosen = settings(tmp_path, server, *quiet_pairs(server, "abc"))
        summary = run(chosen, source=source(chosen, pkgb=ZeroDivisionError("one by zero")))
        assert states(summary) == {
            "pypi__pkga-1.1": REJECTED,
            "pypi__pkgb-1.1": (State.FAULTED, Reason.INTERNAL_ERROR),
            "pypi__pkgc-1.1": REJECTED,
        }
        [bug] = [one for one in summary.decisions if one.state is State.FAULTED]
        assert (bug.stage, bug.sentence) == ("extract", "ZeroDivisionError: one by zero")
        [kept] = ledger_of(chosen).faults_of("pypi__pkgb-1.1")
        assert kept.message.startswith("ZeroDivisionError: one by zero\nTraceback (most recent call last):\n")
        assert "miner/jobs/steps.py" in kept.message
        assert str(Path(monthly.__file__).parents[2]) not in kept.message, "a ledger can be handed over"
        assert states(run(chosen))["pypi__pkgb-1.1"] == REJECTED

    def test_bug_that_every_candidate_meets_does_not_end_the_run(self, server: IndexServer, tmp_path: Path) -> None:
        names = "abcde"
        chosen = settings(tmp_path, server, *quiet_pairs(server, names), run__workers=1)
        buggy = source(chosen, **{f"pkg{name}": KeyError(name) for name in names})
        assert run(chosen, source=buggy).faulted == 5

    def test_error_that_concerns_the_whole_run_ends_it(self, server: IndexServer, tmp_path: Path) -> None:
        chosen = settings(tmp_path, server, *quiet_pairs(server, "ab"))
        error = SweMinerError("everything is wrong")
        with pytest.raises(SweMinerError, match="everything is wrong"):
            run(chosen, source=source(chosen, pkgb=error))
        assert [row.status for row in ledger_of(chosen).runs()] == ["failed"]

    def test_fault_in_the_middle_of_an_installation_keeps_what_was_measured_before_it(
        self, server: IndexServer, tmp_path: Path
    ) -> None:
        chosen = settings(tmp_path, server, publish(server, "pkga"))
        plant(chosen)
        ledger = ledger_of(chosen)
        ledger.invalidate(why="lost", producer="installers.health")
        with pytest.raises(DockerUnavailable):
            run(chosen)
        account = why(ledger, Reader(BlobStore(chosen.paths.blobs), load_pythons()), "pypi__pkga-1.1")
        assert (account.decision.state, account.decision.stage) == (State.FAULTED, "install")
        kinds = [fact.kind for fact in account.facts]
        assert kinds[:2] == ["source.look_up", "source.extract"]
        assert {"install.lock", "install.env"} < set(kinds)
        assert kinds[-1] == "install.project"
        assert [met.reason for met in account.faults] == ["docker-unavailable"]

    def test_blob_that_is_damaged_is_a_fault_of_its_candidates_alone(self, server: IndexServer, tmp_path: Path) -> None:
        chosen = settings(tmp_path, server, *quiet_pairs(server, "ab"))
        run(chosen)
        [fact] = [one for one in ledger_of(chosen).facts_of("pypi__pkgb-1.1") if one.key.kind == "source.extract"]
        [file] = (tmp_path / "var" / "blobs").rglob(f"{fact.blobs['diff']}*")
        file.write_bytes(b"\0" * 50)
        summary = run(chosen)
        assert states(summary)["pypi__pkga-1.1"] == REJECTED
        assert states(summary)["pypi__pkgb-1.1"] == (State.FAULTED, Reason.INTERNAL_ERROR)
        assert fact.blobs["diff"] in summary.decisions[1].sentence
        ledger_of(chosen).invalidate(why="damaged", producer="pypi.extract", subject="pypi__pkgb-1.1")
        assert states(run(chosen))["pypi__pkgb-1.1"] == REJECTED

    def test_fact_whose_blob_is_gone_is_measured_again(self, server: IndexServer, tmp_path: Path) -> None:
        chosen = settings(tmp_path, server, *quiet_pairs(server, "ab"))
        first = run(chosen)
        [fact] = [one for one in ledger_of(chosen).facts_of("pypi__pkgb-1.1") if one.key.kind == "source.extract"]
        [file] = (tmp_path / "var" / "blobs").rglob(f"{fact.blobs['diff']}*")
        file.unlink()
        again = run(chosen)
        assert (again.measured, states(again)) == (1, states(first))
        facts = [one for one in ledger_of(chosen).facts_of("pypi__pkgb-1.1") if one.key.kind == "source.extract"]
        assert [(one.key.ordinal, one.blobs) for one in facts] == [(0, fact.blobs), (1, fact.blobs)]
        assert run(chosen).measured == 0


class TestSignals:
    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_signal_while_the_index_hangs_ends_the_run_and_a_rerun_completes(
        self, number: signal.Signals, server: IndexServer, tmp_path: Path
    ) -> None:
        pairs = quiet_pairs(server, "abc")
        undisturbed = settings(tmp_path / "undisturbed", server, *pairs)
        run(undisturbed)
        server.slow_s = 60.0
        server.fail("/files/pkgc", "slow")
        chosen = options(tmp_path, server, *pairs, run__workers=1, index__timeout_s=0.8, index__tries=9)
        with started("run", *chosen) as process:
            assert process.stdout is not None
            seen = next(line for line in process.stdout if line.startswith("- pypi__pkgb"))
            process.send_signal(number)
            _, err = process.communicate(timeout=30)
        assert "no-test-change" in seen
        assert process.returncode == 130
        assert err.startswith(f"error: stopped by {number.name}\nnext: run the same command again")
        disturbed = settings(tmp_path, server, *pairs)
        ledger = ledger_of(disturbed)
        assert [row.status for row in ledger.runs()] == ["interrupted"]
        assert {one.instance_id for one in ledger.decisions()} == {"pypi__pkga-1.1", "pypi__pkgb-1.1"}
        server.heal()
        assert run(disturbed).faulted == 0
        assert content(disturbed.paths.release) == content(undisturbed.paths.release)


class Scarce(LocalFileSystem):
    """Local files, until no more of them fit; of the last one a part is written."""

    protocol = "scarce"
    files_left = 0

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return str(super()._strip_protocol(str(path).removeprefix("scarce://")))

    def _open(self, path: str, mode: str = "rb", **kwargs: Any) -> Any:
        file = super()._open(path, mode, **kwargs)
        if mode == "wb":
            type(self).files_left -= 1
            if self.files_left < 0:
                file.write(b"part")
                file.close()
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        return file


@contextmanager
def bounded_databases(pages: int) -> Iterator[None]:
    """Let SQLite say that the disk is full where a database would grow beyond a number of pages."""

    def bound(connection: Any, _record: Any) -> None:
        connection.execute(f"PRAGMA max_page_count={pages}")

    event.listen(Engine, "connect", bound)
    try:
        yield
    finally:
        event.remove(Engine, "connect", bound)


def source(chosen: Settings, **errors: Exception) -> PypiSource:
    """The real source, which raises when it comes to extract one of these packages."""

    class Broken(PypiSource):
        def extract(self, item: ReleasePair, looked_up: Fact) -> Observation:
            if item.name in errors:
                raise errors[item.name]
            return super().extract(item, looked_up)

    work = chosen.paths.work
    index = IndexClient(chosen.index, work / "downloads")
    return Broken(chosen.pairs, index, BlobStore(chosen.paths.blobs), work / "repos", chosen.measure.archive)


@contextmanager
def started(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """The program as a process of its own."""
    command = [str(Path(sys.executable).with_name("swe-miner")), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()

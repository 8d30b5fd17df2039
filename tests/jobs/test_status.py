"""`swe-miner status` and the heartbeat under it: with no run, while one goes on, after its end, its kill, its cap."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from crawlers.index_server import IndexServer
from test_faults import started
from typer.testing import CliRunner
from world import options, pair, quiet_pair, settings

from miner.cli import app
from miner.core.ledger import Ledger
from miner.core.memo import utc_now
from miner.core.reasons import Reason, Stage
from miner.core.records import Decision, Intake, State
from miner.core.settings import Run, Settings
from miner.jobs import monthly
from miner.jobs.caps import Caps, Spent
from miner.jobs.heartbeat import Heartbeat, Pulse, heartbeat_file, read_heartbeat
from miner.jobs.status import Status, status

pytestmark = pytest.mark.loopback


@pytest.fixture
def server() -> Iterator[IndexServer]:
    with IndexServer() as found:
        yield found


def call(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    return done.exit_code, done.stdout


def asked(*chosen: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(call("status", "--json", *chosen)[1])
    Status.model_validate(found)
    return found


def beat_of(chosen: Settings) -> Heartbeat:
    found = read_heartbeat(heartbeat_file(chosen, Ledger(chosen.paths.ledger).id))
    assert found is not None
    return found


class TestState:
    def test_no_run_makes_nothing_and_says_how_to_begin(self, server: IndexServer, tmp_path: Path) -> None:
        chosen = ["-c", f"paths.work={tmp_path / 'none'}"]
        code, text = call("status", *chosen)
        assert (code, text) == (0, f"no run yet\n\nnext      swe-miner run {' '.join(chosen)}\n")
        assert not list(tmp_path.iterdir())
        Ledger(settings(tmp_path, server).paths.ledger).close()
        assert asked(*options(tmp_path, server))["state"] == "none"

    def test_run_that_is_done(self, server: IndexServer, tmp_path: Path) -> None:
        chosen = options(tmp_path, server, quiet_pair(server, "pkga"), pair("gone"))
        assert call("run", "--json", *chosen)[0] == 0
        found = asked(*chosen)
        assert (found["state"], found["source"], found["month"], found["faults"]) == ("done", "pypi", None, {})
        assert [(one["stage"], one["done"], one["total"]) for one in found["stages"]] == [
            ("discover", 1, 1),
            ("mine", 2, 2),
        ]
        assert [stage["entered"] for stage in found["funnel"]] == [2, 1, 1, 0, 0, 0]
        assert found["next"].startswith(f"swe-miner funnel --config {tmp_path}")

    def test_run_with_faults_is_to_be_run_again(self, server: IndexServer, tmp_path: Path) -> None:
        chosen = options(tmp_path, server, quiet_pair(server, "pkga"), quiet_pair(server, "pkgb"))
        server.fail("/simple/pkga/", "500")
        call("run", *chosen)
        found = asked(*chosen)
        assert (found["state"], found["faults"]) == ("done", {"index-error": 1})
        assert found["next"].startswith("swe-miner run --config")

    def test_run_that_is_killed(self, server: IndexServer, tmp_path: Path) -> None:
        server.slow_s = 30
        server.fail("/files/pkgb", "slow")
        chosen = options(tmp_path, server, *(quiet_pair(server, f"pkg{name}") for name in "ab"), run__workers=1)
        with started("run", *chosen) as process:
            assert process.stdout is not None
            next(line for line in process.stdout if line.startswith("- pypi__pkga"))
            assert asked(*chosen)["state"] == "running"
            code, text = call("run", *chosen)
            assert code == 0
            assert text.startswith("already running since 20")
            assert "UTC, mine " in text
            process.send_signal(signal.SIGKILL)
            process.wait(10)
        found = asked(*chosen)
        assert (found["state"], found["stages"][0]["done"]) == ("killed", 1)
        assert found["funnel"][0]["entered"] == 1
        assert found["next"].startswith("swe-miner run --config")

    def test_run_that_holds_the_ledger_and_says_nothing_is_stale(self, server: IndexServer, tmp_path: Path) -> None:
        chosen = settings(tmp_path, server)
        ledger = Ledger(chosen.paths.ledger)
        ledger.begin_run("r", "run", chosen, {})
        Pulse(heartbeat_file(chosen, ledger.id), chosen, "r", "run").start(0.01)
        with ledger.exclusive():
            assert status(chosen).state == "running"
            assert status(chosen, now=utc_now() + timedelta(minutes=2)).state == "stale"
        assert status(chosen).state == "killed"

    @pytest.mark.parametrize("damage", [b"", b"{}", b"\xff\xfe", None])
    def test_heartbeat_that_cannot_be_read_is_none(
        self, damage: bytes | None, server: IndexServer, tmp_path: Path
    ) -> None:
        chosen = settings(tmp_path, server, quiet_pair(server, "pkga"))
        monthly.run(chosen, quiet=True)
        [file] = (tmp_path / "var" / "heartbeat").iterdir()
        file.unlink() if damage is None else file.write_bytes(damage)
        found = status(chosen)
        assert (found.state, found.heard_s, found.spent) == ("done", None, Spent())
        assert [(one.stage, one.done) for one in found.stages] == [("discover", 1), ("mine", 1)]

    def test_next_command_names_the_month_of_the_run(self, server: IndexServer, tmp_path: Path) -> None:
        mined = settings(tmp_path, server, mine__source="github", mine__month="2025-05")
        Ledger(mined.paths.ledger).begin_run("r", "run", mined, {})
        chosen = settings(tmp_path, server, pair("x"))
        found = status(chosen, ["-c", "paths.work=my work"])
        assert (found.state, found.source, found.month) == ("killed", "github", "2025-05")
        assert found.next == "swe-miner run --source github --month 2025-05 -c 'paths.work=my work'"

    def test_next_command_after_a_pilot_that_was_cut_is_the_pilot(self, server: IndexServer, tmp_path: Path) -> None:
        flown = settings(tmp_path, server, mine__source="github", mine__month="2025-05", mine__pilot=50)
        Ledger(flown.paths.ledger).begin_run("r", "pilot", flown, {})
        chosen = settings(tmp_path, server, mine__source="github", mine__month="2025-05")
        assert status(chosen).next == "swe-miner run --pilot 50"


class TestMonths:
    """A ledger of two months and a pilot between them."""

    @pytest.fixture
    def chosen(self, server: IndexServer, tmp_path: Path) -> Settings:
        made = settings(tmp_path, server, mine__source="github", mine__month="2025-05")
        ledger = Ledger(made.paths.ledger)
        self.month(ledger, made, "2025-04", "run", accepted=10, codes={Reason.WEAK_LINK: 60, Reason.LOCK_FAILED: 30})
        self.month(ledger, made, "2025-05", "pilot", accepted=1, codes={Reason.REVERT: 9})
        self.month(ledger, made, "2025-05", "run", accepted=30, codes={Reason.WEAK_LINK: 20, Reason.LOCK_FAILED: 50})
        return made

    def month(
        self, ledger: Ledger, chosen: Settings, month: str, command: str, *, accepted: int, codes: dict[Reason, int]
    ) -> None:
        mine = chosen.mine.model_copy(update={"month": month})
        run_id = f"{command}-{month}"
        ledger.begin_run(run_id, command, chosen.model_copy(update={"mine": mine}), {})
        linked = accepted + sum(codes.values())
        ledger.add_intake(Intake(unit="o/r", month=month, merged=1000, linked=linked, unlinked=1000 - linked), run_id)
        ledger.add_intake(Intake(unit="o/s", month=month, refused=Reason.REPOSITORY_FORK), run_id)
        ledger.add_intake(Intake(unit="o/t", month=month, fault=Reason.FORGE_ERROR), run_id)
        sorts = [(State.ACCEPTED, Stage.EXPORT, None)] * accepted
        sorts += [(State.REJECTED, code.stage, code) for code, number in codes.items() for _ in range(number)]
        for number, (state, stage, code) in enumerate(sorts):
            name = f"{run_id}-{number}"
            ledger.decide(run_id, "", Decision(instance_id=name, state=state, stage=stage, code=code, sentence="s"), ())
        ledger.end_run(run_id, "done")

    def test_yield_stands_against_that_of_earlier_months(self, chosen: Settings) -> None:
        found = status(chosen)
        assert [(one.month, one.linked, one.accepted, one.per_thousand) for one in found.yields] == [
            ("2025-05", 100, 30, 30.0),
            ("2025-04", 100, 10, 10.0),
        ]
        assert found.yields[0].linked_share == 0.1
        half = found.yields[0].model_copy(update={"decided": 50, "accepted": 15})
        assert half.per_thousand == 30.0, "what was come to stands for all"

    def test_reasons_that_moved_most_come_first(self, chosen: Settings) -> None:
        moved = [(one.code, round(100 * (one.share - one.before))) for one in status(chosen).moved]
        assert moved == [("weak-link", -40), ("lock-failed", 20)]

    def test_units_that_met_a_fault_are_counted(self, chosen: Settings) -> None:
        found = status(chosen)
        assert found.faults == {"forge-error": 1}
        assert [(one.stage, one.done, one.left) for one in found.stages] == [("discover", 3, None), ("mine", 100, 0)]

    def test_funnel_begins_with_the_newest_discovery_of_each_month(self, chosen: Settings) -> None:
        work = f"paths.work={chosen.paths.work}"
        found = json.loads(call("funnel", "--json", "-c", work)[1])["discovery"]
        assert (found["units"], found["taken"], found["merged"], found["linked"]) == (6, 2, 2000, 200)
        assert (found["refused"], found["faulted"]) == ({"repository-fork": 2}, {"forge-error": 2})


class TestCaps:
    def test_run_stops_cleanly_and_keeps_what_was_completed(
        self, server: IndexServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        pairs = [quiet_pair(server, f"pkg{number}") for number in range(6)]
        monthly.run(settings(tmp_path, server, *pairs[:2]), quiet=True)
        released = (tmp_path / "out" / "release.lock").read_bytes()
        times = iter([*[0.0] * 4, *[7200.0] * 100])
        monkeypatch.setattr("miner.jobs.watch.Caps", ticking(lambda: next(times)))
        chosen = settings(tmp_path, server, *pairs, run__max_hours=1, run__workers=1)
        summary = monthly.run(chosen, quiet=True)
        assert (summary.capped, len(summary.decisions), summary.release) == ("run.max_hours=1 is over", 2, "")
        assert (tmp_path / "out" / "release.lock").read_bytes() == released
        found = status(chosen)
        assert (found.state, found.capped, found.next) == ("capped", summary.capped, "swe-miner run")
        assert (found.stages[1].done, found.stages[1].left) == (2, 4)
        assert len(monthly.run(settings(tmp_path, server, *pairs), quiet=True).decisions) == 6

    def test_exit_code_says_that_there_is_work_left(self, server: IndexServer, tmp_path: Path) -> None:
        chosen = options(tmp_path, server, pair("gone"), run__max_hours=0)
        code, text = call("run", *chosen)
        assert code == 16
        assert "stopped at a cap: run.max_hours=0 is over; no release: what it came to is a sample" in text
        assert not (tmp_path / "out").exists()

    def test_points_are_a_cap_and_a_cap_stays(self) -> None:
        spent = iter([0, 99, 100])
        caps = Caps(Run(max_points=100), lambda: Spent(points=next(spent)))
        assert [caps.allow() for _ in range(5)] == [True, True, False, False, False]
        assert caps.stopped == "run.max_points=100: 100 are spent"

    def test_without_a_cap_nothing_is_asked(self) -> None:
        assert Caps(Run(), lambda: pytest.fail("asked")).allow()


def ticking(clock: Callable[[], float]) -> Callable[..., Caps]:
    return lambda run, spent: Caps(run, spent, clock)


class TestHeartbeat:
    def test_is_written_whole_and_by_itself(self, server: IndexServer, tmp_path: Path) -> None:
        file = tmp_path / "deep" / "beat.json"
        pulse = Pulse(file, settings(tmp_path, server), "r", "run")
        pulse.start(0.002)
        pulse.begin("mine", 10_000)
        end, seen = time.monotonic() + 0.4, set()
        number = 0
        while time.monotonic() < end:
            decision = Decision(instance_id=f"x-{number}", state=State.REJECTED, stage=Stage.SCREEN, sentence="s")
            pulse.decided(decision)
            pulse.decided(decision.model_copy(update={"state": State.ACCEPTED}))
            found = read_heartbeat(file)
            assert found is not None, "half a heartbeat"
            seen.add(found.at)
            number += 1
        pulse.end("done")
        last = read_heartbeat(file)
        assert last is not None
        assert len(seen) > 10
        assert (last.state, last.decided, last.stages[0].done) == ("done", {State.ACCEPTED: number}, number)
        assert [path.name for path in file.parent.iterdir()] == ["beat.json"]

    def test_run_goes_on_where_it_cannot_be_written(self, server: IndexServer, tmp_path: Path) -> None:
        (tmp_path / "var").mkdir()
        (tmp_path / "var" / "heartbeat").write_text("in the way")
        assert monthly.run(settings(tmp_path, server, pair("gone")), quiet=True).faulted == 0

    def test_says_what_was_discovered_and_how_it_ended(self, server: IndexServer, tmp_path: Path) -> None:
        chosen = settings(tmp_path, server, quiet_pair(server, "pkga"), pair("gone"))
        summary = monthly.run(chosen, quiet=True)
        found = beat_of(chosen)
        assert (found.run_id, found.state, found.measured) == (summary.run_id, "done", summary.measured)
        assert (found.merged, found.linked, found.decided) == (2, 2, {State.REJECTED: 2})
        assert [stage.ended_at is not None for stage in found.stages] == [True, True]

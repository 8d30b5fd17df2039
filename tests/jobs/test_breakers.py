"""What spreads over many repositories is never taken for a property of any of them: breakers, canaries, suspects."""

from __future__ import annotations

import itertools
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pytest
from crawlers.index_server import IndexServer
from planted import _Planter, know_base_image
from test_faults import REJECTED, ledger_of, run, started, states
from world import Pair, options, pair, project, publish, quiet_pair, settings

from miner.core.errors import (
    ForgeUnreachable,
    IndexUnreachable,
    InfrastructureFault,
    Interrupted,
)
from miner.core.ledger import Ledger
from miner.core.memo import utc_now
from miner.core.reasons import Reason
from miner.core.records import Fact, FactKey, Observation, State
from miner.core.settings import Settings
from miner.jobs import breakers as module
from miner.jobs import context as context_module
from miner.jobs import rounds
from miner.jobs.breakers import Breakers, OpenBreaker
from miner.jobs.canaries import Service, canaries
from miner.jobs.spread import signature, spreads

pytestmark = pytest.mark.loopback

NAMES = "abcdef"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits begin with a hundredth of a second."""
    monkeypatch.setattr(module, "_FIRST_WAIT_S", 0.01)


@pytest.fixture
def server() -> Iterator[IndexServer]:
    with IndexServer() as found:
        yield found


def quiet(server: IndexServer) -> list[Pair]:
    return [quiet_pair(server, f"pkg{name}") for name in NAMES]


def finals(chosen: Settings) -> set[str]:
    """Codes by which a candidate stands rejected for good."""
    return {str(one.code) for one in ledger_of(chosen).decisions() if one.state is State.REJECTED and one.final}


def out_of_use(chosen: Settings) -> list[tuple[str, str]]:
    return [(fact.outcome, why) for fact, why in ledger_of(chosen).tombstoned()]


class TestIndexThatAnswers404ForAWhile:
    @pytest.mark.parametrize(("workers", "well_for"), [(1, 0), (3, 0), (2, 3)])
    def test_no_rejection_comes_of_it(self, workers: int, well_for: int, server: IndexServer, tmp_path: Any) -> None:
        chosen = settings(tmp_path, server, *quiet(server), run__workers=workers, run__pause_max_s=20)
        server.fail("/simple/", "404", after=well_for, times=6)
        summary = run(chosen)
        assert set(states(summary).values()) == {REJECTED}
        assert all(one.final for one in summary.decisions)
        assert {outcome for outcome, _ in out_of_use(chosen)} == {"unknown-package"}
        assert any("knows no project 'pip'" in why for _, why in out_of_use(chosen))
        assert run(chosen).measured == 0

    def test_run_ends_where_it_does_not_recover_and_a_later_one_completes(
        self, server: IndexServer, tmp_path: Any
    ) -> None:
        chosen = settings(tmp_path, server, *quiet(server), run__workers=1)
        server.fail("/simple/", "404", after=3)
        with pytest.raises(IndexUnreachable, match="knows no project 'pip'"):
            run(chosen)
        found = {one.instance_id: (one.state, one.code) for one in ledger_of(chosen).decisions()}
        assert found == {
            **{f"pypi__pkg{name}-1.1": REJECTED for name in "abc"},
            "pypi__pkgd-1.1": (State.FAULTED, Reason.INDEX_ERROR),
        }
        assert [row.status for row in ledger_of(chosen).runs()] == ["faulted"]
        server.heal()
        assert set(states(run(chosen)).values()) == {REJECTED}

    def test_second_no_is_not_final_while_nobody_is_known(self, server: IndexServer, tmp_path: Any) -> None:
        chosen = settings(tmp_path, server, *quiet(server)[:2], measure__recheck_after_hours=0)
        server.fail("/simple/pkga/", "404", times=1)
        [first, _] = run(chosen).decisions
        assert (first.code, first.final) == (Reason.UNKNOWN_PACKAGE, False)
        server.fail("/simple/", "404")
        with pytest.raises(IndexUnreachable):
            run(chosen)
        assert "unknown-package" not in finals(chosen)
        server.heal()
        assert set(states(run(chosen)).values()) == {REJECTED}

    def test_second_no_is_final_where_everybody_else_is_known(self, server: IndexServer, tmp_path: Any) -> None:
        chosen = settings(tmp_path, server, pair("gone"), measure__recheck_after_hours=0)
        assert [one.final for one in run(chosen).decisions] == [False]
        assert [one.final for one in run(chosen).decisions] == [True]
        assert finals(chosen) == {"unknown-package"}
        assert out_of_use(chosen) == []

    def test_answer_that_spreads_is_asked_for_again_though_the_canary_is_well(
        self, server: IndexServer, tmp_path: Any
    ) -> None:
        chosen = settings(tmp_path, server, *quiet(server), run__workers=1)
        server.fail("/simple/pkg", "404", times=len(NAMES))
        summary = run(chosen)
        assert set(states(summary).values()) == {REJECTED}
        assert len(out_of_use(chosen)) == len(NAMES)

    def test_answer_that_is_the_same_again_stands_and_is_not_final(self, server: IndexServer, tmp_path: Any) -> None:
        chosen = settings(tmp_path, server, *(pair(f"gone{name}") for name in NAMES), run__workers=1)
        summary = run(chosen)
        assert {(one.code, one.final) for one in summary.decisions} == {(Reason.UNKNOWN_PACKAGE, False)}
        assert len(out_of_use(chosen)) == len(NAMES)
        assert run(chosen).measured == 0


def test_service_that_is_never_well_for_long_leaves_faults_and_no_rejections(
    server: IndexServer, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = itertools.cycle([False, True])

    def flapping(_settings: Settings) -> dict[Service, Callable[[], None]]:
        def ask() -> None:
            if not next(answers):
                raise LOST

        return {Service.INDEX: ask}

    monkeypatch.setattr(rounds, "canaries", flapping)
    chosen = settings(tmp_path, server, pair("gone"), quiet_pair(server, "pkg"), run__pause_max_s=20)
    summary = run(chosen)
    assert states(summary) == {
        "pypi__gone-1.1": (State.FAULTED, Reason.INDEX_UNREACHABLE),
        "pypi__pkg-1.1": REJECTED,
    }
    assert len(out_of_use(chosen)) == 3


class TestResolver:
    """A lock that fails for everybody at once; what a container would show is made up."""

    def test_environments_that_could_not_be_locked_for_a_while_are_made_later(
        self, server: IndexServer, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        chosen = settings(tmp_path, server, *(publish(server, f"pkg{name}") for name in NAMES), run__workers=1)
        know_base_image(chosen)
        seen: list[str] = []
        detail = "resolving the dependencies failed: because pytest was not found in the package registry"

        def fails_at_first(subject: str, kind: str, found: Observation) -> Observation:
            if kind == "install.lock" and found.payload["packages"] and subject not in seen:
                seen.append(subject)  # each date that the ladder falls back to is a lock of its own
                return Observation(outcome="lock-failed", payload={"detail": detail}, network=True)
            return found

        class Canned(_Planter):
            def __init__(self, settings: Settings, closing: ExitStack, source: Any = None) -> None:
                super().__init__(settings, closing, fails_at_first)

        monkeypatch.setattr(context_module, "Context", Canned)
        summary = run(chosen)
        assert {one.state for one in summary.decisions} == {State.ACCEPTED}
        assert {(outcome, why.partition(":")[0]) for outcome, why in out_of_use(chosen)} == {("lock-failed", "suspect")}
        assert len(out_of_use(chosen)) == len(seen)  # one environment for all of them, measured once for each date


class TestOneBadRepository:
    def test_opens_no_breaker(self, server: IndexServer, tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
        bad = [{"name": "bad", "old": f"1.{n}", "new": f"1.{n + 1}"} for n in range(6)]
        for number in range(7):
            server.release("bad", f"1.{number}", project("bad", f"1.{number}", fixed=False))
        server.fail("/simple/bad/", "500")
        chosen = settings(tmp_path, server, *bad, *quiet(server)[:2], run__workers=1)
        summary = run(chosen)
        assert summary.faulted == 6
        assert [states(summary)[f"pypi__pkg{name}-1.1"] for name in "ab"] == [REJECTED] * 2

    def test_three_candidates_that_all_fail_end_the_run_as_many_do(self, tmp_path: Any) -> None:
        with IndexServer() as gone:
            pairs = quiet(gone)[:3]
        chosen = settings(tmp_path, gone, *pairs, run__workers=1)
        with pytest.raises(IndexUnreachable, match="no answer"):
            run(chosen)
        assert {one.state for one in ledger_of(chosen).decisions()} == {State.FAULTED}


def test_stop_ends_a_pause_at_once(server: IndexServer, tmp_path: Any) -> None:
    chosen = options(tmp_path, server, *quiet(server), run__workers=1, run__pause_max_s=600)
    server.fail("/simple/", "404", after=2)
    with started("run", *chosen) as process:
        assert process.stdout is not None
        paused = next(line for line in process.stdout if line.startswith("! paused"))
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=10)
    assert "knows no project 'pip'" in paused
    assert (process.returncode, err.partition("\n")[0]) == (130, "error: stopped by SIGTERM"), err
    ledger = Ledger(settings(tmp_path, server).paths.ledger)
    assert [row.status for row in ledger.runs()] == ["interrupted"]
    assert [one.final for one in ledger.decisions() if one.code == "unknown-package"] == [False]
    assert [fact.outcome for fact, _ in ledger.tombstoned()] == ["unknown-package"]


# The rules themselves

FAULT = InfrastructureFault("the engine broke an operation", reason=Reason.DOCKER_ERROR)
LOST = IndexUnreachable("https://index.invalid/simple/x/: no answer")


@dataclass(frozen=True)
class Piece:
    name: str
    group: str
    error: InfrastructureFault | None = None
    negatives: tuple[Fact, ...] = ()

    def in_doubt(self) -> Piece:
        return self

    def suspected(self, fault: InfrastructureFault) -> Piece:
        return replace(self, error=fault, negatives=())


def good(number: int) -> Piece:
    return Piece(f"good{number}", f"good{number}")


def bad(number: int, error: InfrastructureFault = LOST, group: str | None = None) -> Piece:
    return Piece(f"bad{number}", group or f"bad{number}", error)


def refused(number: int, detail: str, producer: str = "pypi.look_up") -> Piece:
    key = FactKey(kind="x", subject=f"s{number}", input_hash="", producer=producer, epoch=1)
    fact = Fact(key=key, observed_at=datetime(2025, 1, 1, tzinfo=UTC), outcome="no", payload={"detail": detail})
    return Piece(f"no{number}", f"no{number}", negatives=(fact,))


@dataclass
class Stage:
    """A stage over pieces of work that end as they are told, with canaries that answer as they are told.

    Attributes:
        sick: number of times that the index's canary fails.
    """

    sick: int = 0
    patience_s: float = 5.0
    has_canary: bool = True
    events: list[str] = field(default_factory=list)
    taken_out: list[str] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        known: dict[Service, Callable[[], None]] = {Service.INDEX: self.ask} if self.has_canary else {}
        self.breakers: Breakers[Piece] = Breakers(known, self.stop, self.patience_s, self, self.take_out)

    def ask(self) -> None:
        self.events.append("asked")
        self.sick -= 1
        if self.sick >= 0:
            raise LOST

    def take_out(self, facts: Iterable[Fact], why: str) -> None:
        self.taken_out += [fact.key.subject for fact in facts]

    def paused(self, breaker: OpenBreaker) -> None:
        self.events.append("paused")

    def resumed(self, breaker: OpenBreaker) -> None:
        self.events.append("resumed")

    def work(self, *pieces: Piece) -> Stage:
        for piece in pieces:
            self.breakers.enter()
            self.breakers.note(piece)
            self.breakers.attend()
        return self

    @property
    def suspects(self) -> set[str]:
        return set(self.breakers.suspects)


def test_nobody_is_asked_as_long_as_nothing_is_odd() -> None:
    assert Stage().work(*map(good, range(50))).events == []


def test_canary_that_is_well_is_not_asked_for_each_odd_piece_and_once_more_at_the_end() -> None:
    stage = Stage().work(good(1), bad(1, group="one"), bad(2, group="one"), good(2))
    assert stage.events == ["asked"]
    stage.breakers.attend(at_the_end=True)
    assert stage.events == ["asked", "asked"]
    assert stage.suspects == set()


def test_canary_that_fails_pauses_the_stage_until_it_is_well() -> None:
    stage = Stage(sick=3).work(good(1), refused(1, "unknown"), good(2))
    assert stage.events == ["asked", "paused", "asked", "asked", "asked", "resumed"]
    assert (stage.suspects, stage.taken_out) == ({"no1"}, ["s1"])


def test_nothing_begins_while_the_stage_is_paused_and_what_ends_meanwhile_is_suspect() -> None:
    stage, began = Stage(sick=5), threading.Event()
    stage.breakers.note(refused(1, "unknown"))

    def worker() -> None:
        stage.breakers.note(refused(2, "unknown"))  # was on its way
        stage.breakers.enter()
        began.set()

    thread = threading.Thread(target=worker, daemon=True)
    thread.start()
    assert not began.wait(0.2)
    stage.breakers.attend()
    thread.join(5)
    assert began.is_set()
    assert stage.suspects == {"no1", "no2"}


def test_service_that_does_not_recover_ends_the_stage_with_its_fault_and_its_suspects_met_it() -> None:
    stage = Stage(sick=1000, patience_s=0.05)
    with pytest.raises(IndexUnreachable):
        stage.work(good(1), refused(1, "unknown"))
    [suspect] = stage.breakers.unsettled()
    assert (suspect.name, suspect.error, suspect.negatives) == ("no1", LOST, ())


def test_fault_without_a_canary_ends_the_stage_when_it_spreads() -> None:
    stage = Stage()
    with pytest.raises(InfrastructureFault, match="the engine broke"):
        stage.work(*(bad(number, FAULT) for number in range(3)))
    assert Stage().work(*(bad(number, FAULT, "one") for number in range(30))).suspects == set()
    assert Stage().work(good(1), *(bad(number, FAULT) for number in range(4)), good(2)).suspects == set()


def test_fault_that_spreads_though_the_canary_is_well_is_tried_again_with_growing_waits_up_to_a_bound() -> None:
    stage = Stage(patience_s=0.3)
    with pytest.raises(IndexUnreachable):
        stage.work(*(bad(number) for number in range(1000)))
    assert 3 <= stage.events.count("paused") <= 8
    stage = Stage().work(*(bad(number) for number in range(4)), good(1))
    assert stage.events.count("resumed") == 1
    assert {"bad0", "bad1", "bad2"} <= stage.suspects


def test_stop_ends_a_pause() -> None:
    stage = Stage(sick=1000, patience_s=600)
    threading.Timer(0.1, stage.stop.set).start()
    with pytest.raises(Interrupted):
        stage.work(refused(1, "unknown"))
    stage.breakers.note(refused(2, "unknown"))
    with pytest.raises(Interrupted):
        stage.breakers.enter()


def test_what_rests_on_a_suspect_answer_is_suspect_too() -> None:
    stage, first = Stage(sick=1), refused(1, "unknown")
    stage.work(first)
    stage.work(replace(first, name="later", group="later"))
    assert stage.suspects == {"no1", "later"}


def test_answer_of_before_the_recovery_is_suspect_however_late_it_is_told() -> None:
    stage, before, after = Stage(sick=1), refused(2, "unknown"), refused(3, "unknown")
    [fact] = after.negatives
    stage.work(refused(1, "unknown"))
    stage.work(before, replace(after, negatives=(fact.model_copy(update={"observed_at": utc_now()}),)))
    assert stage.suspects == {"no1", "no2"}


def test_what_depended_on_no_service_that_can_be_asked_is_left_alone_until_it_spreads() -> None:
    pieces = [refused(number, "the commits are gone", "git.extract") for number in range(5)]
    assert Stage().work(*pieces[:4]).suspects == set()
    assert len(Stage().work(*pieces).suspects) == 5


SAME = [
    (("https://a.invalid/one/: no answer", "pypi__one"), ("https://a.invalid/two/: no answer", "pypi__two")),
    (("the index knows no package 'one'", "pypi__one"), ("the index knows no package 'two-more'", "pypi__two-more")),
    (("page 12 of octo/cat failed", "octo__cat"), ("page 3 of hub/dog failed", "hub__dog")),
    (("fatal: 1a2b3c4d is not a tree", "o__r"), ("fatal: 99aa11bb is not a tree", "p__q")),
    (("no /var/lib/a.b/x.whl", "o__r"), ("no /srv/c", "p__q")),
    (
        ("because one was not found in the package registry and you require one, it fails", "o__r"),
        ("because two was not found in the package registry and you require two, it fails", "p__q"),
    ),
    (("first line\nsecond", "o__r"), ("first line\nanother", "p__q")),
]  # fmt: skip


@pytest.mark.parametrize("pair", SAME)
def test_the_same_error_of_two_repositories_has_one_signature(pair: Any) -> None:
    one, other = pair
    assert signature("x", *one) == signature("x", *other)
    assert signature("x", *one) != signature("y", *one)


def test_other_errors_have_other_signatures() -> None:
    said = ["no answer", "the index answers with status", "the answer was cut", "no solution", "no solution found"]
    assert len({signature("x", text, "o__r") for text in said}) == len(said)


@pytest.mark.parametrize(
    ("recent", "fault", "expected"),
    [
        ("aaa", True, True),
        ("aaa", False, False),
        ("-aaaa", True, False),
        ("-aaaaa", True, True),
        ("-----aaaaa", True, False),
        ("----aaaaa", False, True),
        ("bbbbbaaaaa", True, False),
    ],
)
def test_signature_has_spread(recent: str, fault: bool, expected: bool) -> None:
    outcomes = [(f"g{place}", None if one == "-" else one) for place, one in enumerate(recent)]
    assert spreads(outcomes, "a", fault=fault) is expected
    assert not spreads([("one", found) for _, found in outcomes], "a", fault=fault)


class TestCanaries:
    def test_index_is_well_where_its_canary_is_known(self, server: IndexServer, tmp_path: Any) -> None:
        chosen = settings(tmp_path, server)
        ask = canaries(chosen)[Service.INDEX]
        ask()
        for fault in ("404", "500", "html", "reset", "garbage"):
            server.fail("/simple/pip/", fault, times=1)
            with pytest.raises(InfrastructureFault):
                ask()
        ask()
        server.project("other")
        canaries(settings(tmp_path, server, index__canary="other"))[Service.INDEX]()

    def test_forge_is_asked_for_its_limit_which_is_free(
        self, server: IndexServer, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("GITHUB_TOKEN", "t" * 20)
        chosen = settings(tmp_path, server, mine__source="github", github__api_url="http://127.0.0.1:1")
        with pytest.raises(ForgeUnreachable):
            canaries(chosen)[Service.FORGE]()

    def test_only_what_a_run_depends_on_has_one(self, server: IndexServer, tmp_path: Any) -> None:
        assert set(canaries(settings(tmp_path, server, pair("x")))) == {Service.INDEX}
        named = settings(tmp_path, server, pair("x"), docker__base_image="registry.invalid/base:1")
        assert set(canaries(named)) == {Service.INDEX, Service.REGISTRY}
        with pytest.raises(InfrastructureFault):
            canaries(named)[Service.REGISTRY]()

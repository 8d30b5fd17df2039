"""Recorded replies stand for an endpoint: a run is repeated without one, and without money."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from desk_bench import MODEL, Bench, asking, saying
from tiny_endpoint import TinyEndpoint

from installers.models.desk import Desk, desk_of, recorded_desk
from installers.models.interface import Reply, RequestRefused, ToolCall, ToolsUnsupported, Trouble
from installers.models.kept import REPLY
from installers.models.replay import ReplayModel, read, record
from installers.models.scripted import ScriptedModel
from miner.core.errors import ConfigError
from miner.core.ledger import fact_id
from miner.core.memo import utc_now
from miner.core.reasons import Reason
from miner.core.settings import Endpoint, Price, Settings, load_settings


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_what_was_recorded_is_said_again_try_by_try(bench: Bench, tmp_path: Path) -> None:
    call = ToolCall(id="1", name="run", arguments="{}")
    desk = bench.desk(ScriptedModel([saying("a"), saying("b", calls=(call,)), saying("ü \\ud800")]))
    said = [bench.ask(desk, asking(text), ordinal=n).reply for text, n in (("x", 0), ("x", 1), ("y", 0))]
    file = tmp_path / "replies.jsonl"
    assert record(bench.ledger, bench.blobs, file) == 3
    model = ReplayModel(file)
    assert [model.recall(asking(text), n) for text, n in (("x", 0), ("x", 1), ("y", 0))] == said
    assert model.complete(asking("x")) == said[0]


def test_a_call_in_text_is_said_again_with_the_mark_of_another_ledger(bench: Bench, tmp_path: Path) -> None:
    how, call = "Write ```call {} run", "I look.\n```call {} run\nls\n```"
    desk = bench.desk(ScriptedModel([saying(call.format("0badc0de"))]))
    bench.ask(desk, asking(how.format("0badc0de")))
    record(bench.ledger, bench.blobs, tmp_path / "replies.jsonl")
    model = ReplayModel(tmp_path / "replies.jsonl")
    for mark in ("0badc0de", "12345678"):
        assert model.complete(asking(how.format(mark))).text == call.format(mark)
    assert "0badc0de" not in (tmp_path / "replies.jsonl").read_text()


def test_a_file_depends_on_what_was_said_alone(tmp_path: Path) -> None:
    written = []
    for name, texts in (("one", ("x", "y")), ("two", ("y", "x"))):
        (tmp_path / name).mkdir()
        bench = Bench(tmp_path / name)
        desk = bench.desk(ScriptedModel(lambda request: saying(request.messages[0].content)))
        for text in texts:
            bench.ask(desk, asking(text))
        record(bench.ledger, bench.blobs, tmp_path / f"{name}.jsonl")
        written.append((tmp_path / f"{name}.jsonl").read_bytes())
    assert written[0] == written[1]


def test_that_it_does_not_fit_is_known_to_a_run_without_an_endpoint_and_to_a_replay(
    bench: Bench, tmp_path: Path
) -> None:
    small = {MODEL: Price(input=1, output=1, context=2000)}
    with pytest.raises(RequestRefused, match="do not fit") as first:
        bench.ask(bench.desk(ScriptedModel([]), prices=small), asking("x" * 8000))
    [fact] = bench.facts(REPLY)
    assert (first.value.fact, fact.network, fact.measures["tries"]) == (fact_id(fact.key), False, 0)
    bench.now = lambda: utc_now() + timedelta(hours=7)
    with pytest.raises(RequestRefused) as again:
        bench.ask(recorded_desk([MODEL], bench.blobs, Endpoint()), asking("x" * 8000))
    assert (str(again.value), again.value.fact) == (str(first.value), first.value.fact)
    record(bench.ledger, bench.blobs, tmp_path / "replies.jsonl")
    (tmp_path / "other").mkdir()
    other = Bench(tmp_path / "other")
    with pytest.raises(RequestRefused) as replayed:
        other.ask(other.desk(ReplayModel(tmp_path / "replies.jsonl")), asking("x" * 8000))
    assert str(replayed.value) == str(first.value)


def test_refusals_are_said_again_as_what_they_were(bench: Bench, tmp_path: Path) -> None:
    script = [RequestRefused("too long"), ToolsUnsupported("no tools")]
    desk = bench.desk(ScriptedModel(script))
    for text in ("x", "y"):
        with pytest.raises(RequestRefused):
            bench.ask(desk, asking(text))
    record(bench.ledger, bench.blobs, tmp_path / "replies.jsonl")
    model = ReplayModel(tmp_path / "replies.jsonl")
    with pytest.raises(RequestRefused, match="too long") as refused:
        model.complete(asking("x"))
    assert not isinstance(refused.value, ToolsUnsupported)
    with pytest.raises(ToolsUnsupported, match="no tools"):
        model.complete(asking("y"))


def test_what_was_taken_out_of_use_is_not_recorded(bench: Bench, tmp_path: Path) -> None:
    bench.ask(bench.desk(ScriptedModel([saying("wrong")])))
    bench.ledger.invalidate(why="a bug", producer="installers.models")
    bench.ask(bench.desk(ScriptedModel([saying("right")])))
    file = tmp_path / "replies.jsonl"
    assert record(bench.ledger, bench.blobs, file) == 1
    assert ReplayModel(file).complete(asking()).text == "right"


def test_what_a_file_does_not_hold_is_a_fault_that_costs_nothing(tmp_path: Path) -> None:
    (tmp_path / "replies.jsonl").write_text("")
    with pytest.raises(Trouble, match=r"replies\.jsonl holds no reply of small to this request \(try 3\)") as fault:
        ReplayModel(tmp_path / "replies.jsonl").recall(asking(), 3)
    assert (fault.value.reason, fault.value.again, fault.value.free) == (Reason.MODEL_UNREACHABLE, False, True)


@pytest.mark.parametrize(
    "line",
    ["{", "[]", "null", '{"request": "a"}', '{"request": "a", "ordinal": 0, "more": 1}', "[" * 100_000],
    ids=["cut", "list", "null", "no-ordinal", "unknown-field", "deep"],
)
def test_a_line_that_is_none_is_an_error_that_says_where(tmp_path: Path, line: str) -> None:
    file = tmp_path / "replies.jsonl"
    file.write_text('{"request": "a", "ordinal": 0, "reply": {}}\n\n' + line + "\n")
    with pytest.raises(ConfigError, match=r"replies\.jsonl:3: no recorded reply"):
        ReplayModel(file)
    file.write_text('{"request": "a", "ordinal": 0, "reply": {"text": "x\u2028y"}}\n')
    assert [one.reply for one in read(file)] == [Reply(text="x\u2028y")]


def test_a_file_that_is_not_there_is_an_error_of_the_configuration(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        ReplayModel(tmp_path / "none.jsonl")


def _settings(*overrides: str) -> Settings:
    return load_settings(overrides=["run.max_cost=1", *overrides], environ={})


def _desk(bench: Bench, settings: Settings, environ: dict[str, str]) -> Desk:
    desk = desk_of(settings, bench.spending, "r", blobs=bench.blobs, environ={"OPENAI_MODEL": "small", **environ})
    assert desk is not None
    return desk


def test_a_run_is_repeated_with_the_server_stopped_and_in_another_ledger(tmp_path: Path) -> None:
    priced = _settings("prices.small.input=1", "prices.small.output=2")
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    bench, file = Bench(tmp_path / "first"), tmp_path / "replies.jsonl"
    with TinyEndpoint() as server:
        asked = _desk(bench, priced, server.environ)
        first = [bench.ask(asked, ordinal=number) for number in range(3)]
        assert len(server.bodies) == 3
    assert [bench.ask(_desk(bench, priced, server.environ), ordinal=number) for number in range(3)] == first
    with pytest.raises(Trouble):
        bench.ask(
            _desk(
                bench, _settings("prices.small.input=1", "prices.small.output=2", "endpoint.tries=1"), server.environ
            ),
            ordinal=3,
        )
    assert bench.charged()[:3] == [7 * 1000 + 3 * 2000] * 3
    record(bench.ledger, bench.blobs, file)

    other = Bench(tmp_path / "second")
    replayed = _desk(other, _settings(f"endpoint.replay={file}"), {})
    again = [other.ask(replayed, ordinal=number) for number in range(3)]
    assert [one.reply for one in again] == [one.reply for one in first]
    assert [one.fact for one in again] == [one.fact for one in first]
    assert other.charged() == [], "nobody was paid"

"""The fold of a report's lines into the outcome of a run: right for every way a test ends, and for any bytes."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from miner.core.records import TestStatus
from miner.sandbox.outcomes import parse_events, read_run

PASSED = [("setup", "passed", {}), ("call", "passed", {}), ("teardown", "passed", {})]
ASSERTION = {"exc": ["AssertionError", "Exception"], "message": "assert 0", "longrepr": "E   assert 0"}
XFAIL = {"wasxfail": "known"}


def lines(events):
    """The bytes of a report: the events, numbered."""
    return b"".join(json.dumps({**event, "n": n}).encode() + b"\n" for n, event in enumerate(events))


def session():
    return {"event": "session", "schema": 1, "pytest": "8.4.2", "python": "3.11.9", "rootdir": "/testbed"}


def collected(*ids):
    return {"event": "collected", "ids": list(ids), "part": 0, "parts": 1, "total": len(ids)}


def start(nodeid):
    return {"event": "start", "nodeid": nodeid}


def report(nodeid, when, outcome, more=None):
    return {"event": "report", "nodeid": nodeid, "when": when, "outcome": outcome, "duration": 0.1, **(more or {})}


def test_events(nodeid, phases):
    """The lines of one test."""
    return [start(nodeid), *(report(nodeid, *phase) for phase in phases)]


test_events.__test__ = False


def finish(status=0):
    return {"event": "finish", "exitstatus": status}


def fold(phases):
    """The one result of a run of one test."""
    events = [session(), collected("a.py::t"), *test_events("a.py::t", phases), finish()]
    return read_run(lines(events)).results[0]


def phases(**said):
    """Phases of a test that passes, where nothing else is said."""
    return [(when, *said.get(when, ("passed", {}))) for when in ("setup", "call", "teardown")]


@pytest.mark.parametrize(
    ("lines_of_test", "status", "phase"),
    [
        pytest.param(PASSED, "passed", "call", id="passes"),
        pytest.param(phases(call=("failed", ASSERTION)), "failed", "call", id="fails"),
        pytest.param(phases(teardown=("failed", {})), "error", "teardown", id="passes-and-errs-in-teardown"),
        pytest.param(phases(call=("failed", {}), teardown=("failed", {})), "failed", "call", id="fails-and-errs"),
        pytest.param([PASSED[2]], "skipped", "call", id="no-call-reported"),
        pytest.param([("setup", "failed", {}), PASSED[2]], "error", "setup", id="setup-fails"),
        pytest.param([("setup", "skipped", {}), PASSED[2]], "skipped", "setup", id="skip-mark"),
        pytest.param(phases(call=("skipped", {})), "skipped", "call", id="skips-inside"),
        pytest.param(phases(call=("skipped", XFAIL)), "xfailed", "call", id="xfail"),
        pytest.param([("setup", "skipped", XFAIL), PASSED[2]], "xfailed", "setup", id="xfail-without-run"),
        pytest.param(phases(call=("passed", XFAIL)), "xpassed", "call", id="xpass"),
        pytest.param(phases(call=("failed", {"longrepr": "[XPASS(strict)]"})), "failed", "call", id="strict-xpass"),
        pytest.param(
            phases(call=("skipped", XFAIL), teardown=("failed", {})), "error", "teardown", id="xfail-teardown"
        ),
        pytest.param(
            [PASSED[0], ("call", "failed", {"subtest": "i=2"}), *PASSED[1:]], "failed", "call", id="subtest-fails"
        ),
        pytest.param(
            [PASSED[0], ("call", "passed", {"subtest": "i=1"}), *PASSED[1:]], "passed", "call", id="subtests-pass"
        ),
        pytest.param([("???", "failed", {"longrepr": "worker 'gw0' crashed"})], "error", "crash", id="worker-crash"),
        pytest.param(list(reversed(PASSED)), "passed", "call", id="phases-out-of-order"),
    ],
)
def test_status(lines_of_test, status, phase):
    said = fold(lines_of_test)
    assert (said.status, said.phase) == (status, phase)


def test_failure_keeps_its_text_and_the_classes_of_its_exception():
    said = fold(phases(call=("failed", ASSERTION)))
    assert (said.message, said.text) == ("assert 0", "E   assert 0")
    assert said.exceptions == ("AssertionError", "Exception")


def test_test_that_was_running_at_the_end_is_an_error_and_is_named():
    outcome = read_run(lines([session(), *test_events("a.py::t", PASSED), *test_events("a.py::u", PASSED[:1])]))
    assert not outcome.finished
    assert (outcome.running, outcome.unfinished) == ("a.py::u", {"a.py::u"})
    assert [(item.nodeid, item.status) for item in outcome.results] == [("a.py::t", "passed"), ("a.py::u", "error")]


def test_call_that_passed_without_its_teardown_is_not_passed():
    outcome = read_run(lines([session(), *test_events("a.py::t", PASSED[:2])]))
    assert outcome.results[0].status is TestStatus.ERROR


@pytest.mark.parametrize(
    "events",
    [
        [*test_events("a.py::t", PASSED), *test_events("a.py::t", PASSED)],
        [collected("a.py::t", "a.py::t"), *test_events("a.py::t", PASSED)],
        test_events("a.py::t", [PASSED[0], ("call", "rerun", ASSERTION), *PASSED]),
    ],
    ids=["run-twice", "collected-twice", "rerun-after-failure"],
)
def test_id_that_stands_for_more_than_one_run_is_marked(events):
    outcome = read_run(lines([session(), *events, finish()]))
    assert outcome.repeated == {"a.py::t"}
    assert outcome.results[0].status is TestStatus.PASSED


def test_three_collections_and_their_order():
    own, first, second = (lines([session(), collected("a.py::t", f"a.py::t[{n}]"), finish()]) for n in range(3))
    outcome = read_run(own, first, second)
    assert outcome.collected == tuple(frozenset({"a.py::t", f"a.py::t[{n}]"}) for n in range(3))


def test_collection_that_did_not_end_is_an_empty_set():
    assert read_run(lines([session(), collected("a.py::t")]), lines([session()])).collected == ({"a.py::t"}, set())


def test_chunks_of_a_large_collection_are_one_collection():
    chunks = [{**collected(f"a.py::t{n}"), "part": n, "parts": 3, "total": 3} for n in range(3)]
    assert read_run(lines([session(), *chunks])).collected == (frozenset(f"a.py::t{n}" for n in range(3)),)


def test_broken_and_skipped_collectors():
    broken = {"event": "collect", "nodeid": "a.py", "outcome": "failed", "longrepr": "E   ImportError: x"}
    skipped = {"event": "collect", "nodeid": "b.py", "outcome": "skipped", "message": "Skipped: no numpy"}
    outcome = read_run(lines([session(), broken, skipped, collected(), finish(2)]))
    assert outcome.collect_errors == {"a.py": "E   ImportError: x"}
    assert outcome.collect_skips == {"b.py": "Skipped: no numpy"}
    assert outcome.exit_status == 2


def test_conftest_that_cannot_be_imported_is_an_error_of_the_whole_session():
    log = (
        "noise\nImportError while loading conftest '/testbed/tests/conftest.py'.\nE   ImportError: cannot import new\n"
    )
    outcome = read_run(b"", log=log, exit_status=4)
    assert not outcome.started
    assert "cannot import new" in outcome.collect_errors[""]
    assert outcome.exit_status == 4


def test_session_that_started_does_not_take_errors_from_what_tests_print():
    log = "ImportError while loading conftest '/testbed/conftest.py'."
    assert read_run(lines([session(), finish()]), log=log).collect_errors == {}


@pytest.mark.parametrize(
    ("event", "words"),
    [
        ({"event": "interrupt", "exc": ["Exit"], "message": "no luck"}, "no luck"),
        ({"event": "interrupt", "exc": ["KeyboardInterrupt"], "message": ""}, "KeyboardInterrupt"),
        ({"event": "internalerror", "message": "INTERNALERROR> KeyError"}, "KeyError"),
        ({**finish(1), "stopped": "stopping after 1 failures"}, "stopping after 1 failures"),
    ],
)
def test_why_a_session_stopped_early(event, words):
    assert words in read_run(lines([session(), event, finish(2)])).stopped


def test_last_line_cut_by_a_kill_is_no_damage():
    data = lines([session(), *test_events("a.py::t", PASSED)])
    assert read_run(data[:-5]).damaged == 0


@pytest.mark.parametrize(
    "foreign",
    [
        b"PASSED tests/test_a.py::t\n",
        b"\xff\xfe\x00\n",
        b'{"event":"report","nodeid":"a.py::u","when":"call","outcome":"passed"}\n',
        b'{"event":"report","nodeid":"a.py::u","when":"call","outcome":"passed","n":0}\n',
        b'{"event":"report","nodeid":"a.py::u","when":"call","outcome":"passed","n":99999999999}\n',
        b'[1]\n"text"\n' + b"[" * 100_000 + b"\n",
    ],
    ids=["text", "bytes", "no-number", "number-again", "number-far-away", "no-object"],
)
def test_lines_that_the_reporter_did_not_write_are_counted_and_ignored(foreign):
    events = [session(), collected("a.py::t"), *test_events("a.py::t", PASSED), finish()]
    data = lines(events)
    at = data.index(b"\n") + 1
    outcome = read_run(data[:at] + foreign + data[at:])
    assert outcome.damaged == foreign.count(b"\n")
    assert outcome.model_copy(update={"damaged": 0}) == read_run(data)


def test_lost_lines_are_counted():
    rows = lines([session(), *test_events("a.py::t", PASSED), finish()]).splitlines(keepends=True)
    assert read_run(b"".join(rows[:2] + rows[4:])).damaged == 2


def test_lone_surrogates_in_an_id_become_escapes_that_can_be_stored():
    data = lines([session(), *test_events("a\udc80.py::t", PASSED)])
    assert read_run(data).results[0].nodeid == "a\\udc80.py::t"


@pytest.mark.parametrize(
    "nodeid", ["a.py::t[a b]", "a.py::t[ - ]", "a.py::t[x::y]", "a.py::t[\n]", "a.py::t[é\u2028]", "a.py::t[]"]
)
def test_odd_ids_are_kept_exactly(nodeid):
    assert read_run(lines([session(), *test_events(nodeid, PASSED)])).results[0].nodeid == nodeid


def test_long_text_keeps_its_head_and_its_end():
    said = fold(phases(call=("failed", {"longrepr": "head" + "x" * 50_000 + "tail"})))
    assert said.text.startswith("head")
    assert said.text.endswith("tail")
    assert len(said.text) < 10_000


# --- properties ---

outcomes = st.sampled_from(["passed", "failed", "skipped"])
extras = st.sampled_from([{}, XFAIL, ASSERTION])
one_test = st.tuples(st.tuples(outcomes, extras), st.tuples(outcomes, extras), st.tuples(outcomes, st.just({})))


@st.composite
def suites(draw):
    """Lines of some tests, one list a test; a test may be cut off after any of its lines."""
    tests = []
    for number, (setup, call, teardown) in enumerate(draw(st.lists(one_test, max_size=5))):
        whole = test_events(f"a.py::t{number}", phases(setup=setup, call=call, teardown=teardown))
        tests.append(whole[: draw(st.integers(1, 4))])
    return tests


def interleave(draw, tests):
    """Mix the lines of tests as workers of pytest-xdist do: each test's own order is kept."""
    queues = [list(test) for test in tests]
    mixed = []
    while any(queues):
        queue = draw(st.sampled_from([queue for queue in queues if queue]))
        mixed.append(queue.pop(0))
    return mixed


@given(st.data(), suites())
def test_results_do_not_depend_on_how_workers_interleave(data, tests):
    plain = read_run(lines([session(), *(event for test in tests for event in test)]))
    mixed = read_run(lines([session(), *interleave(data.draw, tests)]))
    assert mixed.results == plain.results
    assert mixed.unfinished == plain.unfinished


@given(st.data(), suites())
def test_report_cut_anywhere_gives_the_same_results_for_tests_that_had_ended(data, tests):
    whole = lines([session(), *(event for test in tests for event in test), finish()])
    full = {item.nodeid: item for item in read_run(whole).results}
    cut = read_run(whole[: data.draw(st.integers(0, len(whole)))])
    assert cut.damaged == 0
    assert {item.nodeid for item in cut.results} <= set(full)
    for item in cut.results:
        assert item == full[item.nodeid] or item.nodeid in cut.unfinished


@given(suites())
def test_test_without_its_last_line_never_passes(tests):
    outcome = read_run(lines([session(), *(event for test in tests for event in test)]))
    assert not [i for i in outcome.results if i.status is TestStatus.PASSED and i.nodeid in outcome.unfinished]


@given(st.binary(max_size=400))
def test_any_bytes_give_an_outcome(data):
    read_run(data, data, data)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=5,
)
keys = st.sampled_from(["nodeid", "when", "outcome", "ids", "exc", "message", "longrepr", "wasxfail", "exitstatus"])
kinds = st.sampled_from(["session", "collect", "collected", "start", "report", "finish", "interrupt", "other"])
odd_events = st.tuples(kinds, st.dictionaries(keys, json_values)).map(lambda pair: {**pair[1], "event": pair[0]})


@given(st.lists(odd_events, max_size=6))
def test_events_with_values_of_any_type_give_an_outcome(events):
    data = lines(events)
    assert parse_events(data).damaged == 0
    read_run(data, data)

"""Excerpts: the line that tells the cause is there, within the budget, whatever stands around it, always the same."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structured_bench import DAY, RECIPE, fact

from installers.brief.excerpt import relevant, steady
from installers.brief.failures import Deciding, deciding, failure, failure_of
from installers.interface import Attempt, Signature
from installers.repair.signatures import signatures_of_log
from miner.core.blobs import BlobStore
from miner.core.ledger import fact_id
from miner.core.records import RunOutcome, TestResult, TestStatus

TELLING = {
    # step: the line that tells the cause
    "lock": "  cause: Because nothere was not found in the package registry and you require nothere, we can conclude",
    "environment": "src/x.c:10:10: fatal error: libpq-fe.h: No such file or directory",
    "project": "ModuleNotFoundError: No module named 'Cython'",
    "health": "E   ImportError: cannot import name 'Markup' from 'jinja2' (/opt/env/lib/jinja2/__init__.py)",
    "suite": "E       fixture 'mocker' not found",
    "build-lock": "error in demo setup command: use_2to3 is invalid.",
}
NOISE = st.sampled_from(
    [
        "creating build/temp.linux-x86_64-3.9",
        "copying demo/a.py -> build/lib/demo",
        "running build_ext",
        "tests/test_a.py::test_x PASSED [ 12%]",
        "  warnings.warn('old')",
        "gcc -pthread -B /usr -Wall -fPIC -I/usr/include -c src/y.c -o build/y.o " + "-DX=1 " * 90,
        "",
        "done",
        "    return f(x)",
        "0 error(s), 3 warning(s)",
    ]
)


@given(
    st.sampled_from(sorted(TELLING)),
    st.lists(NOISE, max_size=400),
    st.lists(NOISE, max_size=400),
    st.integers(300, 4000),
)
@settings(max_examples=150, deadline=None)
def test_the_telling_line_is_there_within_the_budget(step, before, after, budget):
    log = "\n".join([*before, TELLING[step], *after])
    signatures = signatures_of_log(step, log)
    assert signatures
    text = relevant(log, signatures, budget)
    assert len(text) <= budget
    assert TELLING[step][:250].strip() in text


@given(st.text(), st.lists(st.builds(Signature, kind=st.text(max_size=9), subject=st.text(max_size=9)), max_size=3))
@settings(max_examples=200, deadline=None)
def test_any_text_has_an_excerpt(log, signatures):
    for budget in (0, 1, 40, 400):
        assert len(relevant(log, signatures, budget)) <= budget
    assert steady(steady(log)) == steady(log)


def test_what_fits_and_tells_is_taken_whole():
    log = "error: No solution found\n  cause: Because a was not found\n"
    assert relevant(log, (), 1000) == log.strip()


def test_the_head_stays_and_gaps_are_marked():
    log = (
        "error: Failed to build `a==1`\n"
        + "x = 1\n" * 500
        + "a.c:1:1: fatal error: zlib.h: No such file\n"
        + "y\n" * 500
    )
    text = relevant(log, [Signature(kind="missing-header", subject="zlib.h")], 600)
    assert text.startswith("error: Failed to build `a==1`\n")
    assert "fatal error: zlib.h" in text
    assert text.count("lines left out]") == 2


def test_the_first_signature_comes_before_all_others():
    log = "\n".join(f"ModuleNotFoundError: No module named 'm{number:03}'" for number in range(500))
    assert "'m321'" in relevant(log, [Signature(kind="missing-module", subject="m321")], 300)


def test_a_long_line_is_cut_around_its_evidence():
    line = "x" * 3000 + " No module named 'yaml' ImportError: No module named 'yaml' " + "y" * 5000
    text = relevant(f"{line}\n" * 3, [Signature(kind="missing-module", subject="yaml")], 400)
    assert "No module named 'yaml'" in text
    assert len(text) <= 400


def test_what_a_build_lacks_is_found():
    log = "copying a\n" * 300 + "ModuleNotFoundError: No module named 'flit.buildapi'\n" + "copying b\n" * 300
    signature = Signature(kind="build-needs-module", subject="flit: flit.buildapi")
    assert "No module named 'flit.buildapi'" in relevant(log, [signature], 300)


def test_a_cause_that_no_single_pattern_finds_is_found_by_its_words():
    log = "a\n" * 400 + "pytest: error: unrecognized arguments: --cov=demo\n" + "b\n" * 400
    assert "--cov=demo" in relevant(log, [Signature(kind="unknown-option", subject="--cov")], 200)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("/cache/builds-v0/.tmpXTEn4y/x.py", "/cache/builds-v0/.tmpA1b2C3/x.py"),
        ("<A object at 0x7f0011223344>", "<A object at 0x7f55aabbccdd>"),
        ("= 3 failed in 0.12s =", "= 3 failed in 45.01s ="),
        ("2026-11-30 10:00:01,123 ERROR x", "2026-12-01 23:59:59 ERROR x"),
        ("at /tmp/pip-build-abc/demo", "at /tmp/pip-build-xyz/demo"),
        ("connect to localhost:45123 failed", "connect to localhost:33007 failed"),
        ("id 0b7f1b1e-1111-2222-3333-444455556666", "id aaaaaaaa-1111-2222-3333-444455556666"),
        ("\x1b[31merror\x1b[0m: x", "error: x"),
        ("10%\r90%\rx", "10%\n90%\nx"),
        (
            "up to 2017-12-14T00:00:00Z. The latest version satisfying the requirement is v84.2.1, published at "
            "2026-10-20T19:01:35.678Z. Consider using `exclude-newer-package` to override",
            "up to 2017-12-14T00:00:00Z.",
        ),
    ],
)
def test_what_changes_from_run_to_run_is_taken_out(first, second):
    assert steady(first) == steady(second)


@pytest.mark.parametrize(
    "text", ["before 2017-12-14T00:00:00Z", "published at 2021-12-09T21:15:01Z", "python3.8 10.2.1"]
)
def test_what_tells_something_stays(text):
    assert steady(text) == text


def test_an_excerpt_of_a_very_long_log_is_quick_and_right():
    log = "gcc -c x.c\n" * 400_000 + "x.c:1:1: fatal error: zlib.h: No such file or directory\n" + "make: end\n" * 1000
    assert "zlib.h" in relevant(log, [Signature(kind="missing-header", subject="zlib.h")], 500)


HOSTILE = {
    "ids without end": "a::" * 150_000,
    "spaces without end": "E " + " " * 400_000,
    "empty lines": "\n \n" * 150_000,
    "one path": "/a" * 200_000,
    "names": "from a import " * 30_000,
    "escapes": "\x1b]" * 200_000,
    "colons": "x: " * 150_000,
    "quotes": "No such file or directory: '" * 15_000,
    "E lines": "E   a.b.c\n" * 50_000,
}


@pytest.mark.parametrize("case", HOSTILE)
def test_no_log_takes_long(case):
    started = time.process_time()
    signatures = [Signature(kind=kind, subject="x") for kind in ("missing-module", "missing-tool", "unknown-option")]
    assert len(relevant(HOSTILE[case], signatures, 1000)) <= 1000
    assert time.process_time() - started < 5


# --- runs of tests


def failing(number, message="ModuleNotFoundError: No module named 'yaml'", status=TestStatus.FAILED):
    text = f"def test_{number}():\n>       import yaml\nE   {message}\n\ntests/test_a.py:{number}: Error"
    return TestResult(nodeid=f"tests/test_a.py::test_{number}", status=status, message=message, text=text)


def run(*results, **more):
    return RunOutcome(results=results, started=True, finished=True, collected=(frozenset("ab"),), **more)


NO_YAML = Signature(kind="missing-module", subject="yaml")
NO_MOCKER = Signature(kind="missing-fixture", subject="mocker")


def test_many_equal_failures_are_one_example():
    outcome = run(*(failing(number) for number in range(500)), failing(900, "fixture 'mocker' not found"))
    text = failure_of([Deciding("tests", "", outcome)], [NO_YAML, NO_MOCKER], 4000)
    assert text.startswith(
        "== tests\n501 failed; 251 of the failures were looked at\n-- missing-module: yaml (250 tests)"
    )
    assert text.count("No module named 'yaml'") == 1
    assert "-- " in text


def test_the_kinds_of_failures_stand_in_the_order_of_the_signatures():
    outcome = run(
        failing(1, "ValueError: 3"),
        failing(2, "ValueError: 3"),
        failing(3, "fixture 'mocker' not found"),
        collect_errors={"tests/test_b.py": "E   ModuleNotFoundError: No module named 'yaml'"},
    )
    text = failure_of([Deciding("tests", "", outcome)], [NO_YAML, NO_MOCKER], 4000)
    titles = [line for line in text.splitlines() if line.startswith("-- ")]
    assert [title[3:20] for title in titles] == ["missing-module: y", "missing-fixture: ", "ValueError: 3 (2 "]
    assert "1 of the files cannot be collected" in text


def test_what_the_collection_has_told_the_tests_do_not_tell_again():
    errors = {"tests/test_b.py": "E   ModuleNotFoundError: No module named 'yaml'"}
    found = [
        Deciding("collection", "", run(collect_errors=errors)),
        Deciding("tests", "", run(failing(1), collect_errors=errors)),
    ]
    text = failure_of(found, [NO_YAML], 4000)
    assert text.count("No module named 'yaml'") == 1
    assert "== tests\n1 failed" in text


def test_a_run_that_was_ended_says_by_what():
    outcome = RunOutcome(started=True, timed_out=True, running="tests/test_a.py::test_slow", limit="")
    text = failure_of([Deciding("tests", "", outcome)], [], 1000)
    assert "the limit of time was reached" in text
    assert "did not come to its end (in tests/test_a.py::test_slow)" in text


@given(
    st.lists(st.text(max_size=60), max_size=20),
    st.dictionaries(st.text(max_size=10), st.text(max_size=60), max_size=4),
    st.integers(0, 3000),
)
@settings(max_examples=100, deadline=None)
def test_a_run_keeps_its_budget(messages, errors, budget):
    outcome = run(*(failing(number, message) for number, message in enumerate(messages)), collect_errors=errors)
    assert len(failure_of([Deciding("tests", "log", outcome)], [NO_YAML], budget)) <= budget


# --- which log decides


def known(tmp_path, *facts):
    blobs = BlobStore(str(tmp_path / "blobs"))
    made = [one(blobs) for one in facts]
    help_ = SimpleNamespace(memo=SimpleNamespace(used=made), workshop=SimpleNamespace(blobs=blobs))
    return help_, tuple(fact_id(one.key) for one in made)


def attempt(outcome, steps, **more):
    return Attempt(
        repository="r", rung="declared", number=0, recipe=RECIPE, cutoff=DAY, outcome=outcome, steps=steps, **more
    )


def step(kind, outcome, log, **payload):
    return lambda blobs: fact(
        kind, outcome, logs={"log": blobs.put_text(log)}, payload={"detail": "it failed", **payload}
    )


def test_the_log_of_the_furthest_step_decides(tmp_path):
    help_, steps = known(
        tmp_path,
        step("install.lock", "ok", "locked"),
        step("install.env", "build-failed", "first"),
        step("install.project", "project-install-failed", "E: no compiler"),
    )
    (found,) = deciding(attempt("project-install-failed", steps), help_)
    assert (found.step, found.log) == ("installation of the project", "E: no compiler")


def test_of_a_healthy_attempt_what_its_tests_and_its_build_say(tmp_path):
    def ran(kind):
        payload = {"steps": [{"name": "events", "exit_code": 1, "limit": None}], "ended": None, "reports_cut": False}
        return lambda blobs: fact(kind, "ok", logs={"events": blobs.put_text(f"log of {kind}")}, payload=payload)

    build = step("install.project", "ok", "x.c:1:1: fatal error: yaml.h: No such file or directory")
    help_, steps = known(tmp_path, build, ran("install.health"), ran("install.suite"))
    lacking = (Signature(kind="missing-header", subject="yaml.h"),)
    more = {"mode": "compiled", "signatures": lacking, "share": 0.5}
    assert [one.log[:10] for one in deciding(attempt("ok", steps, **more), help_)] == ["x.c:1:1: f", "log of ins"]
    assert len(deciding(attempt("ok", steps, **more, broken=2), help_)) == 3
    assert deciding(attempt("ok", steps, share=1.0), help_) == ()
    assert "yaml.h" in failure(attempt("ok", steps, **more), help_, 800)


def test_the_lock_of_a_build_is_named(tmp_path):
    help_, steps = known(tmp_path, step("install.lock", "lock-failed", "no", purpose="build"))
    (found,) = deciding(attempt("lock-failed", steps), help_)
    assert found.step == "lock of what builds the project"


def test_a_step_that_printed_nothing_has_its_own_words(tmp_path):
    help_, steps = known(tmp_path, step("install.project", "project-install-failed", ""))
    assert failure(attempt("project-install-failed", steps), help_, 500) == "== installation of the project\nit failed"


def test_a_void_attempt_has_its_own_words_and_not_the_log_of_a_step_that_was_made_good(tmp_path):
    help_, steps = known(
        tmp_path, step("install.lock", "lock-failed", "no such version"), step("install.env", "ok", "")
    )
    void = attempt("model-weakens-tests", steps, detail="the environment would weaken the tests")
    assert failure(void, help_, 500) == "the environment would weaken the tests"


def test_an_attempt_without_steps_has_its_own_words(tmp_path):
    help_, _ = known(tmp_path)
    assert failure(attempt("model-reply-unusable", (), detail="two objects"), help_, 500) == "two objects"
    assert deciding(attempt("model-reply-unusable", ()), help_) == ()


def test_the_excerpt_module_is_pure():
    source = Path(__file__).parents[2] / "installers/brief/excerpt.py"
    assert not any(word in source.read_text() for word in ("open(", "subprocess", "requests", "docker"))

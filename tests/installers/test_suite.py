"""A candidate's own tests at the base commit, in real containers: how many pass, whatever they do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from bench import Known, small
from tiny import environment_of, patch_of, recipe_of

from installers.broken import broken_collections
from installers.health import TestSide
from installers.reports import log_of
from installers.share import Suite
from installers.suite import run_of_suite, suite, suite_of
from installers.workshop import Workshop
from miner.core.records import Fact

pytestmark = pytest.mark.docker

MODULE = {"src/shop.py": "def double(x):\n    return x + x + 1\n"}
FIXED = {"src/shop.py": "def double(x):\n    return x + x\n"}
TESTS = {
    "tests/test_a.py": "import pytest\n\ndef test_one(): pass\n\ndef test_two(): pass\n\n"
    "@pytest.mark.xfail\ndef test_known(): assert 0\n\n@pytest.mark.skip\ndef test_not_here(): pass\n",
    "tests/test_b.py": "from shop import double\n\ndef test_double(): assert double(2) == 4\n",
}
NAMES = (*TESTS, "tests/test_new.py")


@pytest.fixture
def run(workshop: Workshop) -> Callable[..., Fact]:
    def run(files, names=NAMES, patch=b"", gold=b"", known=None, limits=None, **recipe) -> Fact:
        shop = replace(workshop, settings=small(workshop.settings, **(limits or {})))
        side = TestSide(tuple(names), patch, gold)
        environment = environment_of(shop, files)
        return suite(shop, (known or Known()).memo(), "test-suite", environment, recipe_of(**recipe), side)

    return run


def numbers(found: Suite) -> tuple[int, int, int]:
    return found.passed, found.total, found.skipped


def test_files_of_the_base_run_once_without_any_patch(run, workshop: Workshop) -> None:
    fact = run({**MODULE, **TESTS}, patch=b"not even a patch", gold=b"")
    found = suite_of(fact, workshop.blobs)
    assert fact.ok
    assert numbers(found) == (3, 4, 1)
    assert found.failed == ("tests/test_b.py::test_double",)
    assert found.missing == ("tests/test_new.py",)
    assert [step["name"] for step in fact.payload["steps"]] == ["events"]
    assert "1 failed, 2 passed" in log_of(fact, workshop.blobs)
    assert run_of_suite(fact, workshop.blobs).finished


def test_what_the_gold_patch_fixes_does_not_speak_against_the_environment(run, workshop: Workshop) -> None:
    fact = run({**MODULE, **TESTS}, patch=b"x", gold=patch_of(MODULE, FIXED))
    found = suite_of(fact, workshop.blobs)
    assert numbers(found) == (3, 3, 1)
    assert found.fixed == ("tests/test_b.py::test_double",)
    assert fact.payload["gold"]["missing"] == []
    again = workshop.blobs.get_text(fact.logs["gold-events"])
    assert "tests/test_b.py" in again
    assert "tests/test_a.py" not in again


def test_where_enough_pass_the_gold_patch_is_not_asked(run, workshop: Workshop) -> None:
    more = {"tests/test_c.py": "".join(f"def test_{n}(): pass\n" for n in range(9))}
    fact = run({**MODULE, **TESTS, **more}, (*NAMES, *more), b"x", patch_of(MODULE, FIXED))
    assert fact.payload["gold"] is None
    assert numbers(suite_of(fact, workshop.blobs)) == (12, 13, 1)


def test_candidate_without_a_test_at_the_base_has_no_share(run, workshop: Workshop) -> None:
    fact = run(MODULE, ("tests/test_new.py",), patch=b"x")
    found = suite_of(fact, workshop.blobs)
    assert (found.share, found.missing, found.ended) == (None, ("tests/test_new.py",), "")


def test_hanging_test_still_gives_a_number(run, workshop: Workshop) -> None:
    hang = {"tests/test_b.py": "import time\n\ndef test_hang(): time.sleep(600)\n\ndef test_after(): pass\n"}
    fact = run({**MODULE, **TESTS, **hang}, patch=b"x", gold=patch_of(MODULE, FIXED), limits={"timeout_s": 6.0})
    found = suite_of(fact, workshop.blobs)
    assert numbers(found) == (3, 5, 1)
    assert found.unfinished == ("tests/test_b.py::test_after", "tests/test_b.py::test_hang")
    assert found.timed_out
    assert fact.payload["gold"] is None


def test_whole_suite_is_what_the_projects_own_configuration_collects(run, workshop: Workshop) -> None:
    files = {f"tests/part{n % 7}/test_{n}.py": "def test_x(): pass\n" for n in range(210)}
    other = {
        "tests/conftest.py": "collect_ignore = ['test_only_elsewhere.py']\n",
        "tests/test_only_elsewhere.py": "import no_such_module\n",
        "tests/lost/conftest.py": "import no_such_module\n",
        "tests/lost/test_lost.py": "def test_x(): pass\n",
    }
    names = tuple(path for path in (*files, *other) if path.rpartition("/")[2].startswith("test_"))
    fact = run({**MODULE, **files, **other}, names)
    found = suite_of(fact, workshop.blobs)
    assert fact.payload["test_files"] == ["tests"]
    assert found.passed == 210
    assert "no_such_module" in next(iter(found.uncollected.values()))
    outcome = run_of_suite(fact, workshop.blobs)
    assert [one.cause for one in broken_collections(outcome, outcome)] == ["import"]


def test_many_files_with_long_names(run, workshop: Workshop) -> None:
    folder = f"tests/{'long' * 50}"
    files = {f"{folder}/test_{n}_{'x' * 200}.py": "def test_x(): pass\n" for n in range(120)}
    fact = run({**MODULE, **files}, tuple(files), patch=b"x", limits={"timeout_s": 300.0})
    assert len(fact.payload["test_files"]) == 120
    assert numbers(suite_of(fact, workshop.blobs)) == (120, 120, 0)


def test_same_environment_and_files_are_measured_once(run) -> None:
    known = Known()
    first, second = (run({**MODULE, **TESTS}, known=known) for _ in range(2))
    assert first == second
    assert len(known.facts) == 1

"""The verdict: lists of exact, stable node ids, with a cause for each flip."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from synthetic_runs import XF, XP, E, F, P, S, ids, result, run

from miner.core.records import Cause, RunOutcome
from validators.verdict import family, holds, verdict

# --- the measured pairs, as outcomes ---


@pytest.mark.parametrize(
    ("failed_before", "failed_after", "total", "flips"),
    [
        pytest.param(10, 0, 293, 10, id="sqlparse"),
        pytest.param(1, 0, 58, 1, id="tomlkit"),
        pytest.param(2, 0, 65, 2, id="pluggy"),
        pytest.param(11, 0, 92, 11, id="parse"),
        pytest.param(4, 2, 23, 2, id="wcwidth"),
        pytest.param(0, 0, 191, 0, id="humanize"),
    ],
)
def test_counts_of_measured_pairs(failed_before, failed_after, total, flips):
    names = ids(total)
    before = run({name: F if number < failed_before else P for number, name in enumerate(names)})
    after = run({name: F if number < failed_after else P for number, name in enumerate(names)})
    said = verdict(before, after)
    assert len(said.fail_to_pass) == flips
    assert len(said.fail_to_fail) == failed_after
    assert len(said.pass_to_pass) == total - failed_before
    assert said.pass_to_fail == said.vanished == said.unstable == ()


def test_tests_behind_a_collection_error_flip_with_that_cause():
    """tabulate: 10 failed, 157 passed, 1 collection error -> 174 passed."""
    seen, hidden = ids(167), ids(7, module="test/test_textwrapper.py")
    before = run(
        {name: F if number < 10 else P for number, name in enumerate(seen)},
        collect_errors={"test/test_textwrapper.py": "E   ImportError: cannot import name '_CustomTextWrap'"},
    )
    said = verdict(before, run(dict.fromkeys(seen + hidden, P)))
    assert len(said.fail_to_pass) == 17
    assert [said.causes[name] for name in hidden] == [Cause.COLLECTION] * 7
    assert len(said.pass_to_pass) == 157


@pytest.mark.parametrize("collections_before", [1, 2])
def test_ids_that_hold_the_time_neither_flip_nor_vanish(collections_before):
    """marshmallow: 752 -> 752 passed, two parameter ids hold the current time."""
    steady = ids(750)

    def at(*seconds):
        return [f"tests/test_fields.py::test_datetime[{kind}-10:00:0{second}]" for second in seconds for kind in "ab"]

    before = run(dict.fromkeys(steady + at(1), P), other=steady + at(2), collections=collections_before)
    after = run(dict.fromkeys(steady + at(5), P), other=steady + at(6))
    said = verdict(before, after)
    assert said.fail_to_pass == said.vanished == ()
    assert len(said.pass_to_pass) == 750
    assert set(at(1) + at(5)) <= set(said.unstable)


# --- single rules ---


@pytest.mark.parametrize(
    ("before", "after", "listed"),
    [
        (P, P, "pass_to_pass"),
        (F, P, "fail_to_pass"),
        (E, P, "fail_to_pass"),
        (S, P, "skipped"),
        (XF, P, "unjudged"),
        (XP, P, "unjudged"),
        (P, F, "pass_to_fail"),
        (P, E, "pass_to_fail"),
        (P, S, "skipped"),
        (P, XF, "unjudged"),
        (F, F, "fail_to_fail"),
        (E, F, "fail_to_fail"),
        (F, S, None),
        (F, XF, None),
        (XF, XF, None),
        (XP, F, None),
        (S, S, None),
    ],
)
def test_table_of_statuses(before, after, listed):
    said = verdict(run({"a.py::t": before}), run({"a.py::t": after}))
    assert lists_of(said) == ({listed: ("a.py::t",)} if listed else {})


def test_absent_before_is_a_flip_with_that_cause():
    said = verdict(run({"a.py::t[x]": P}), run({"a.py::t[x]": P, "a.py::t[y]": P}))
    assert said.causes == {"a.py::t[y]": Cause.ABSENT}


def test_absent_after_is_vanished():
    assert verdict(run({"a.py::t": P, "a.py::u": P}), run({"a.py::u": P})).vanished == ("a.py::t",)


def test_new_test_that_fails_after_is_fail_to_fail():
    assert verdict(run({}), run({"a.py::t": F})).fail_to_fail == ("a.py::t",)


def test_module_that_cannot_be_collected_after_is_pass_to_fail():
    after = run({"b.py::t": P}, collect_errors={"a.py": "SyntaxError"})
    assert verdict(run({"a.py::t": P, "b.py::t": P}), after).pass_to_fail == ("a.py::t",)


def test_module_that_skips_itself_before_is_skipped_not_a_flip():
    before = run({}, collect_skips={"a.py": "could not import 'numpy'"})
    said = verdict(before, run({"a.py::t": P}))
    assert lists_of(said) == {"skipped": ("a.py::t",)}


def test_conftest_that_cannot_be_imported_before_stands_for_the_whole_session():
    before = RunOutcome(collect_errors={"": "ImportError while loading conftest"}, exit_status=4)
    assert verdict(before, run({"a.py::t": P})).causes == {"a.py::t": Cause.COLLECTION}


@pytest.mark.parametrize(
    ("exceptions", "cause"),
    [
        (("AssertionError", "Exception"), Cause.ASSERTION),
        (("MyCheck", "AssertionError", "Exception"), Cause.ASSERTION),
        (("Failed", "OutcomeException"), Cause.ASSERTION),
        (("AttributeError", "Exception"), Cause.ERROR),
        ((), Cause.ASSERTION),
    ],
)
def test_cause_comes_from_the_class_of_the_exception_and_its_bases(exceptions, cause):
    before = run({"a.py::t": F}).model_copy(update={"results": (result("a.py::t", F, exceptions),)})
    assert verdict(before, run({"a.py::t": P})).causes == {"a.py::t": cause}


def test_id_that_only_one_collection_of_the_after_side_found_is_unstable():
    after = run({"a.py::t": P, "a.py::u": P}, other=["a.py::u"])
    said = verdict(run({"a.py::t": F, "a.py::u": F}), after)
    assert said.unstable == ("a.py::t",)
    assert said.fail_to_pass == ("a.py::u",)


def test_after_side_that_was_collected_once_lists_nothing():
    said = verdict(run({"a.py::t": F, "a.py::u": P}), run({"a.py::t": P, "a.py::u": P}, collections=1))
    assert lists_of(said) == {"unstable": ("a.py::t", "a.py::u")}


def test_second_collection_that_did_not_end_lists_nothing():
    assert lists_of(verdict(run({"a.py::t": F}), run({"a.py::t": P}, other=[]))) == {"unstable": ("a.py::t",)}


@pytest.mark.parametrize("side", ["before", "after"])
def test_id_that_stands_for_two_tests_is_unstable(side):
    twice = {"repeated": frozenset({"a.py::t"})}
    before = run({"a.py::t": F}, **(twice if side == "before" else {}))
    after = run({"a.py::t": P}, **(twice if side == "after" else {}))
    assert lists_of(verdict(before, after)) == {"unstable": ("a.py::t",)}


def test_crash_before_is_a_failure_of_the_running_test_and_says_nothing_of_the_rest():
    before = run({"a.py::t": E}, finished=False, unfinished=frozenset({"a.py::t"}), running="a.py::t")
    before = before.model_copy(update={"collected": (frozenset({"a.py::t", "a.py::u"}),)})
    said = verdict(before, run({"a.py::t": P, "a.py::u": P}))
    assert lists_of(said) == {"fail_to_pass": ("a.py::t",), "unjudged": ("a.py::u",)}


@pytest.mark.parametrize("limit", ["timed_out", "out_of_memory"])
def test_test_in_which_a_limit_of_the_whole_run_struck_is_not_judged(limit):
    before = run({"a.py::t": E}, finished=False, unfinished=frozenset({"a.py::t"}), **{limit: True})
    assert lists_of(verdict(before, run({"a.py::t": P}))) == {"unjudged": ("a.py::t",)}


@pytest.mark.parametrize(
    ("collector", "nodeid", "below"),
    [
        ("tests/test_a.py", "tests/test_a.py::T::t", True),
        ("tests/test_a.py", "tests/test_a.pyx::t", False),
        ("tests/test_a.py::T", "tests/test_a.py::T::t", True),
        ("tests/test_a.py::T", "tests/test_a.py::Tx::t", False),
        ("tests", "tests/test_a.py::t", True),
        ("tests", "tests2/test_a.py::t", False),
        ("tests/__init__.py", "tests/sub/test_a.py::t", True),
        ("", "a.py::t", True),
        (".", "a.py::t", True),
    ],
)
def test_what_lies_below_a_collector(collector, nodeid, below):
    assert holds(collector, nodeid) is below


@pytest.mark.parametrize(
    ("nodeid", "function"),
    [
        ("a.py::t[x-[y]]", "a.py::t"),
        ("[odd]/a.py::T::t[a::b]", "[odd]/a.py::T::t"),
        ("README.rst", "README.rst"),
    ],
)
def test_family_of_an_id(nodeid, function):
    assert family(nodeid) == function


# --- properties ---

NAMES = [f"{module}::test_{name}" for module in ("a.py", "b.py", "d/c.py") for name in ("x", "y[1]", "y[2]", "z")]
LISTS = ("fail_to_pass", "pass_to_pass", "fail_to_fail", "pass_to_fail", "unstable", "vanished", "skipped", "unjudged")
statuses = st.dictionaries(st.sampled_from(NAMES), st.sampled_from([P, F, E, S, XF, XP]))
collectors = st.dictionaries(st.sampled_from(["a.py", "b.py", "d", ""]), st.just("error"), max_size=2)
names = st.frozensets(st.sampled_from(NAMES), max_size=3)


@st.composite
def runs(draw, min_collections=2):
    """A run: any statuses, some ids in one collection only, some repeated, some collectors broken."""
    mine = draw(statuses)
    other = (frozenset(mine) - draw(names)) | draw(names)
    count = draw(st.integers(min_collections, 2))
    return run(mine, other=other, collections=count, repeated=draw(names), collect_errors=draw(collectors))


def lists_of(said):
    """The lists of a verdict that are not empty."""
    return {name: getattr(said, name) for name in LISTS if getattr(said, name)}


@given(runs(min_collections=1), runs())
def test_lists_are_disjoint_and_sorted(before, after):
    lists = [getattr(verdict(before, after), name) for name in LISTS]
    together = [nodeid for listed in lists for nodeid in listed]
    assert len(together) == len(set(together))
    assert all(list(listed) == sorted(set(listed)) for listed in lists)


@given(runs(min_collections=1), runs())
def test_every_test_that_passes_after_is_in_exactly_one_list(before, after):
    said = verdict(before, after)
    together = [*said.fail_to_pass, *said.pass_to_pass, *said.skipped, *said.unjudged, *said.unstable]
    for item in after.results:
        if item.status is P:
            assert together.count(item.nodeid) == 1


@given(runs(), runs())
def test_lists_hold_only_ids_of_every_collection(before, after):
    said = verdict(before, after)
    everywhere = after.collected[0] & after.collected[1]
    listed = {*said.fail_to_pass, *said.pass_to_pass, *said.fail_to_fail}
    assert listed <= everywhere
    assert not listed & (before.repeated | after.repeated)


@given(runs(), runs())
def test_swapped_sides_swap_the_flips(before, after):
    there, back = verdict(before, after), verdict(after, before)
    assert there.pass_to_pass == back.pass_to_pass
    assert there.unstable == back.unstable
    assert there.skipped == back.skipped
    assert set(there.pass_to_fail) | set(there.vanished) == set(back.fail_to_pass)


@given(runs())
def test_run_against_itself_flips_nothing(outcome):
    said = verdict(outcome, outcome)
    assert said.fail_to_pass == said.pass_to_fail == said.vanished == ()


@given(runs(min_collections=1), runs())
def test_each_flip_has_a_cause_and_nothing_else_has_one(before, after):
    said = verdict(before, after)
    assert tuple(sorted(said.causes)) == said.fail_to_pass

"""Gates: each rule on both sides of each threshold, the sample that passes all the same, and what the funnel counts."""

from collections import Counter

import pytest
from crawled_pulls import (
    ID,
    WHEN,
    closed_by,
    crawled_case,
    files,
    issue,
    judged,
    link,
    pull,
    repository,
)
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from synthetic_runs import F, P, run
from test_rules import candidate

from installers.share import Suite
from miner.core.reasons import Reason, Stage
from miner.core.records import BuildMode, Environment, Recipe, State
from miner.core.settings import load_settings
from miner.crawlers.github.answers import Crawled
from miner.crawlers.github.linking import Judged, judge_links
from miner.crawlers.github.model import Actor, ChangedFile, Closer, Issue, Pull, Repository
from miner.jobs.funnel import funnel
from validators.crawl_rules import GATES, in_sample, sampled_gates
from validators.decide import decide
from validators.interface import Case, Negative
from validators.rules import evaluate
from validators.verdict import verdict

SHIPPED = load_settings(environ={}).policy


def policy(**pulls):
    """The shipped policy with other rules about pull requests, and no sample unless one is asked for."""
    return SHIPPED.model_copy(update={"pulls": SHIPPED.pulls.model_copy(update={"gate_sample": 0.0, **pulls})})


def finding(one, rule, by=None):
    return next(found for found in evaluate(one, by or policy()) if found.rule == rule)


def said(one, rule, by=None):
    """Outcome and code of one rule."""
    found = finding(one, rule, by)
    return found.outcome, found.code


PASSES = ("pass", None)


def test_ordinary_pull_request_passes_all_gates_and_waits_for_its_commits():
    findings = evaluate(crawled_case(), policy())
    assert [(found.rule, found.outcome) for found in findings[: len(GATES)]] == [(rule.name, "pass") for rule in GATES]
    decision = decide("o__r-34", findings)
    assert (decision.state, decision.stage) == (State.PENDING, Stage.EXTRACT)
    assert "commits-available" in decision.sentence


@pytest.mark.parametrize(
    ("changes", "code", "words"),
    [
        ({"references": {12: issue(12)}}, None, "closes #12"),
        ({"references": {12: issue(12), 13: issue(13)}, "body": "Fixes #12, fixes #13"}, None, "closes #12, #13"),
        ({"closing": (issue(12),), "body": ""}, None, "closes #12; the forge lists #12 as closed, but no text"),
        ({"references": {12: "gone"}}, Reason.ISSUE_GONE, "#12 does not exist"),
        ({"references": {12: "moved"}}, Reason.ISSUE_GONE, "#12 is in another repository now"),
        ({"references": {12: "pull"}}, Reason.ISSUE_IS_PULL, "#12 is a pull request"),
        ({"body": "Fixes x/y#5"}, Reason.ISSUE_ELSEWHERE, "x/y#5 is an issue of another repository"),
        ({"body": "See #12"}, Reason.NO_LINKED_ISSUE, "neither the forge nor a text says"),
    ],
)
def test_linked_issue(changes, code, words):
    told = Crawled(repository=repository(newest_number=40), pull=pull(**changes))
    links = judge_links(told)
    found = finding(crawled_case(crawled=told, links=links), "linked-issue")
    assert (found.code, found.value) == (code, len(links.issues))
    assert words in found.detail


def test_no_link_at_all_is_said_in_the_words_of_its_reason():
    found = finding(crawled_case(links=judged(issues=(), reason=Reason.NO_LINKED_ISSUE)), "linked-issue")
    assert (found.code, found.detail) == (Reason.NO_LINKED_ISSUE, Reason.NO_LINKED_ISSUE.meaning)


@pytest.mark.parametrize("asked", ["weak", "strong", "certain"])
@pytest.mark.parametrize("best", ["weak", "strong", "certain"])
def test_link_confidence_counts_the_surest_link(asked, best):
    links = judged(link(confidence="weak"), link(confidence=best, where="closingIssuesReferences"))
    order = ("weak", "strong", "certain")
    enough = order.index(best) >= order.index(asked)
    found = finding(crawled_case(links=links), "link-confidence", policy(min_link_confidence=asked))
    assert (found.outcome, found.code) == (PASSES if enough else ("fail", Reason.WEAK_LINK))
    assert enough or f"is {best}" in found.detail


@pytest.mark.parametrize(
    ("sure", "issues"),
    [
        (link(99, confidence="certain"), (issue(12),)),
        (link(12, confidence="certain", repository="x/y"), (issue(12),)),
    ],
    ids=["to what is no issue", "to another repository"],
)
def test_link_that_leads_to_no_issue_makes_no_other_one_surer(sure, issues):
    links = judged(sure, link(12, confidence="weak"), issues=issues)
    asked = policy(min_link_confidence="strong")
    assert said(crawled_case(links=links), "link-confidence", asked) == ("fail", Reason.WEAK_LINK)


@pytest.mark.parametrize(
    ("base", "default", "closers", "expected"),
    [
        ("main", "main", (), PASSES),
        ("release/1.x", "main", (), ("fail", Reason.NOT_DEFAULT_BRANCH)),
        ("main", "develop", (), ("fail", Reason.NOT_DEFAULT_BRANCH)),
        ("main", "master", (), ("fail", Reason.NOT_DEFAULT_BRANCH)),
        ("master", "main", (), PASSES),
        ("main", None, (), PASSES),
        ("develop", "main", (closed_by(34),), PASSES),
        ("develop", "main", (closed_by(33),), ("fail", Reason.NOT_DEFAULT_BRANCH)),
        ("develop", "main", (closed_by(34, repository_id=8),), ("fail", Reason.NOT_DEFAULT_BRANCH)),
        ("develop", "main", (closed_by(34, repository_id=None),), ("fail", Reason.NOT_DEFAULT_BRANCH)),
        ("develop", "main", (Closer(at=WHEN, commit="c" * 40),), ("fail", Reason.NOT_DEFAULT_BRANCH)),
    ],
)
@pytest.mark.parametrize("where", ["closing", "references"])
def test_default_branch_is_todays_unless_the_forge_closed_the_issue_by_the_merge(
    base, default, closers, expected, where
):
    closed = issue(12, closers=closers)
    known = {"closing": (closed,)} if where == "closing" else {"references": {12: closed, 13: "gone"}}
    told = Crawled(repository=repository(default_branch=default), pull=pull(base_branch=base, **known))
    one = crawled_case(crawled=told)
    assert said(one, "default-branch") == expected
    assert said(one, "default-branch", policy(default_branch_only=False)) == PASSES


@pytest.mark.parametrize(
    ("author", "code"),
    [
        (None, None),
        (Actor(login="ada", kind="User"), None),
        (Actor(login="acme", kind="Organization"), None),
        (Actor(login="robotics-fan", kind="User"), None),
        (Actor(login="my-renovate", kind="User"), None),
        (Actor(login="some-app", kind="Bot"), Reason.BOT_AUTHOR),
        (Actor(login="imported", kind="Mannequin"), Reason.BOT_AUTHOR),
        (Actor(login="Some-App[BOT]", kind="User"), Reason.BOT_AUTHOR),
        (Actor(login="pyup-bot", kind="User"), Reason.BOT_AUTHOR),
        (Actor(login="Dependabot-preview", kind="User"), Reason.BOT_AUTHOR),
    ],
    ids=lambda value: value.login if isinstance(value, Actor) else str(value),
)
def test_author(author, code):
    found = finding(crawled_case(pull(author=author)), "human-author")
    assert found.code == code
    assert (author is not None and author.login in found.detail) == (code is not None)


@pytest.mark.parametrize(
    ("title", "body", "reverts"),
    [
        ('Revert "Parse empty things"', "", True),
        ('  revert "Parse', "", True),
        ('Revert "Revert "Parse""', "", True),
        ("Parse", "Reverts o/r#31", True),
        ("Parse", "Why not.\r\n\r\nThis reverts commit 0123abc, since it broke.", True),
        ("Revert to the old parser", "Fixes #12", False),
        ('Do not "revert" twice', "", False),
        ("Parse", "This reverts commit of the database", False),
        ("Parse", "It never reverts o/r#31", False),
        ("Parse", "> This reverts commit 0123abc", False),
        ("Parse", "Reverts what was done", False),
    ],
)
def test_revert(title, body, reverts):
    one = crawled_case(pull(title=title, body=body))
    assert said(one, "no-revert") == (("fail", Reason.REVERT) if reverts else PASSES)
    assert said(one, "no-revert", policy(reverts=True)) == PASSES


BUMPS = [
    "Bump requests from 2.31.0 to 2.32.0",
    "Bump requests from 2.31.0 to 2.32.0 in /docs",
    "build(deps-dev): bump the dev group across 1 directory with 3 updates",
    "chore(deps): Bump urllib3 and requests",
    "[Security] Bump jinja2 from 2.10 to 2.11",
    "⬆️ Bump actions/checkout from 3 to 4",
    "Update numpy requirement from <2.0 to <3.0",
    "Update dependency ruff to v0.5.0",
    "fix(deps): update dependency numpy to v2",
    "chore(deps): update all non-major dependencies",
    "chore(deps): update actions/checkout action to v4",
    "Update python Docker tag to v3.12",
    "Update ruff to 0.5.0",
    "Pin dependencies",
    "chore(deps): lock file maintenance",
    "Scheduled weekly dependency update for week 21",
    "[pre-commit.ci] pre-commit autoupdate",
]
NO_BUMPS = [
    "Support requests 2.32",
    "Fix the bump allocator",
    "Bump the limit of retries",
    "Update the parser to handle empty things",
    "Update README",
    "Speed up dependency resolution",
]
LOCKS = ("requirements/dev.txt", "poetry.lock", ".github/workflows/ci.yml", "pyproject.toml", "docs/requirements.txt")


@pytest.mark.parametrize(("title", "bump"), [*((t, True) for t in BUMPS), *((t, False) for t in NO_BUMPS)])
def test_title_of_a_dependency_bump(title, bump):
    one = crawled_case(pull(*LOCKS, title=title))
    found = finding(one, "no-dependency-bump")
    assert (found.outcome, found.code) == (("fail", Reason.DEPENDENCY_BUMP) if bump else PASSES)
    assert not bump or ("requirements/dev.txt" in found.detail and found.value == len(LOCKS))
    assert said(one, "no-dependency-bump", policy(dependency_bumps=True)) == PASSES


@pytest.mark.parametrize(
    ("path", "bump"),
    [
        ("setup.py", True),
        ("backend/requirements-test.in", True),
        ("constraints.txt", True),
        ("uv.lock", True),
        (".pre-commit-config.yaml", True),
        ("environment.yml", True),
        ("pkg/core.py", False),
        ("tests/test_core.py", False),
        ("pkg/data.txt", False),
        ("CHANGES.md", False),
    ],
)
def test_a_bump_changes_nothing_but_files_of_dependencies(path, bump):
    found = said(crawled_case(pull("poetry.lock", path, title=BUMPS[0])), "no-dependency-bump")
    assert found == (("fail", Reason.DEPENDENCY_BUMP) if bump else PASSES)


def test_a_bump_whose_files_are_not_all_listed_is_not_judged():
    partly = pull(*LOCKS, title=BUMPS[0], changed_files=len(LOCKS) + 1)
    assert said(crawled_case(partly), "no-dependency-bump") == PASSES


@pytest.mark.parametrize(
    ("count", "code", "words"),
    [
        (0, Reason.TOO_FEW_FILES, "0 files changed, the policy asks for 2"),
        (1, Reason.TOO_FEW_FILES, "1 files changed, the policy asks for 2"),
        (2, None, ""),
        (15, None, ""),
        (16, Reason.TOO_MANY_CHANGED_FILES, "16 files changed, 15 are allowed"),
        (3000, Reason.TOO_MANY_CHANGED_FILES, "3000 files changed, 15 are allowed"),
    ],
)
def test_changed_files_are_counted_by_the_forge(count, code, words):
    found = finding(crawled_case(pull(changed_files=count)), "changed-files")
    assert (found.code, found.value, found.detail) == (code, count, words)


@pytest.mark.parametrize(
    ("paths", "code"),
    [
        (("pkg/core.py", "tests/test_core.py"), None),
        (("pkg/core.py", "core_checks.py"), None),
        (("pkg/core.py", "pkg/cases/empty.py"), None),
        (("pkg/core.pyx", "test_core.py"), None),
        (("pkg/prompts/ask.md", "tests/test_ask.py"), None),
        (("pkg/test_runner.py", "tests/test_test_runner.py"), None),
        (("django/test/client.py", "tests/test_client/tests.py"), None),
        (("docs/conf.py", "tests/test_docs.py"), None),
        (("setup.cfg", "tests/test_core.py"), None),
        (("pkg/core.c", "pkg/data.json"), Reason.NO_TEST_PATH),
        (("pkg/__init__.py", "conftest.py", "setup.py"), Reason.NO_TEST_PATH),
        (("pkg/core.py", "README.md"), Reason.NO_TEST_PATH),
        (("pkg/core.py", "CHANGES.txt", "docs/index.rst", "docs/logo.svg"), Reason.NO_TEST_PATH),
        (("pkg/core.py", "newsfragments/12.bugfix"), Reason.NO_TEST_PATH),
        (("test_core.py", "README.md"), Reason.NO_CODE_PATH),
        (("tests/test_core.py", "tests/data/a.json"), Reason.NO_CODE_PATH),
        (("pkg/tests/test_core.py", "CHANGELOG"), Reason.NO_CODE_PATH),
        (("test/core.py", "conftest.py"), Reason.NO_CODE_PATH),
        (("tests/test_a.py", "tests/test_b.py"), Reason.NO_CODE_PATH),
    ],
)
def test_could_be_tests(paths, code):
    found = finding(crawled_case(pull(*paths)), "could-be-tests")
    assert found.code == code
    assert code is None or paths[0] in found.detail


def test_deleted_test_is_none():
    changed = (*files("pkg/core.c"), *files("tests/test_core.py", change="DELETED"))
    one = crawled_case(pull(files=changed, changed_files=2))
    assert said(one, "could-be-tests") == ("fail", Reason.NO_TEST_PATH)


def test_files_that_the_forge_does_not_list_could_be_tests():
    found = finding(crawled_case(pull("a.c", "b.c", changed_files=3)), "could-be-tests")
    assert found.outcome == "pass"
    assert "lists 2 of 3" in found.detail


EVERY_GATE = {
    "linked-issue": {"links": judged(issues=(), reason=Reason.ISSUE_GONE)},
    "link-confidence": {"links": judged(link(confidence="weak"))},
    "default-branch": {"of": pull(base_branch="1.x")},
    "human-author": {"of": pull(author=Actor(login="x", kind="Bot"))},
    "no-revert": {"of": pull(title='Revert "x"')},
    "no-dependency-bump": {"of": pull(*LOCKS, title=BUMPS[0])},
    "changed-files": {"of": pull(*(f"pkg/m{number}.py" for number in range(20)))},
    "could-be-tests": {"of": pull("a.c", "b.c")},
}
ASKING = {"min_link_confidence": "strong"}


def test_every_gate_is_tried_here():
    assert set(EVERY_GATE) == {rule.name for rule in GATES}


@pytest.mark.parametrize("gate", EVERY_GATE)
def test_gate_rejects_at_discovery_before_anything_is_fetched(gate):
    one = crawled_case(**EVERY_GATE[gate])
    failed = [found.rule for found in evaluate(one, policy(**ASKING)) if found.outcome == "fail"]
    assert failed[0] == gate
    decision = decide(one.instance_id, evaluate(one, policy(**ASKING)))
    assert (decision.state, decision.stage) == (State.REJECTED, Stage.DISCOVER)
    assert decision.sentence


@pytest.mark.parametrize("gate", EVERY_GATE)
@pytest.mark.parametrize(
    "other", [{"source": "git"}, {"source": "pypi", "crawled": None}, {"source": None, "crawled": None}], ids=str
)
def test_gates_judge_only_what_was_crawled(gate, other):
    rules = {found.rule for found in evaluate(crawled_case(**{**EVERY_GATE[gate], **other}), policy(**ASKING))}
    assert not rules.intersection(EVERY_GATE)
    assert "gate-sample" not in rules


@pytest.mark.parametrize("source", ["github", "git"])
def test_pull_requests_are_asked_for_their_commits_and_not_for_an_archive(source):
    rules = [found.rule for found in evaluate(Case(instance_id="o__r-34", source=source), policy())]
    assert rules[:2] == ["commits-available", "patch-faithful"]
    assert not {"source-found", "archive-readable"}.intersection(rules)


@pytest.mark.parametrize(
    "code", [Reason.COMMIT_GONE, Reason.NO_MERGE_BASE, Reason.MIRROR_MISSING, Reason.PATCH_NOT_FAITHFUL]
)
def test_pull_request_that_cannot_be_extracted_has_passed_its_gates(code):
    one = crawled_case(negatives=(Negative(code=code, detail="what was seen"),))
    findings = evaluate(one, policy())
    assert all(found.outcome == "pass" for found in findings[: len(GATES)])
    decision = decide(one.instance_id, findings)
    assert (decision.state, decision.stage, decision.code) == (State.REJECTED, Stage.EXTRACT, code)


def test_steps_of_extraction_are_done_where_a_later_rule_rejects():
    one = crawled_case(negatives=(Negative(code=Reason.NO_TEST_FILES),))
    outcomes = {found.rule: found.outcome for found in evaluate(one, policy())}
    assert outcomes["commits-available"] == outcomes["patch-faithful"] == "pass"


def test_links_that_were_not_judged_leave_their_gates_unmeasured():
    outcomes = {found.rule: found.outcome for found in evaluate(crawled_case(links=None), policy())}
    assert (outcomes["linked-issue"], outcomes["link-confidence"]) == ("unmeasured", "unmeasured")


# The sample


@pytest.mark.parametrize("gate", EVERY_GATE)
def test_share_of_the_sample_is_what_the_policy_says(gate):
    taken = sum(in_sample(gate, f"o__r-{number}", 0.01) for number in range(10_000))
    assert 70 <= taken <= 130  # three standard deviations
    assert taken == sum(in_sample(gate, f"o__r-{number}", 0.01) for number in range(10_000))


def test_sample_at_its_ends():
    ids = [f"o__r-{number}" for number in range(200)]
    assert not any(in_sample("changed-files", one, 0.0) for one in ids)
    assert all(in_sample("changed-files", one, 1.0) for one in ids)


def test_gates_take_samples_of_their_own():
    taken = Counter(sum(in_sample(gate, f"o__r-{number}", 0.5) for gate in EVERY_GATE) for number in range(2_000))
    assert taken[0] < 50
    assert taken[len(EVERY_GATE)] < 50


def one_of_the_sample(gate, share=0.01):
    """An id that one gate lets pass, and no other."""
    return next(
        name
        for name in (f"o__r-{number}" for number in range(100_000))
        if [other for other in EVERY_GATE if in_sample(other, name, share)] == [gate]
    )


def validated(**changes):
    """What is known of a case when everything was measured, and is well."""
    before, after = run({"a.py::t": F}), run({"a.py::t": P})
    known = {
        "candidate": candidate(source="github", repo="o/r"),
        "recipe": Recipe(python="3.11", build_backend="flit_core.buildapi"),
        "environment": Environment(
            image="sha256:1", base_digest="sha256:0", layers=(), lock_sha256="0" * 64, mode=BuildMode.EDITABLE
        ),
        "suite": Suite(passed=10),
        "before": before,
        "after": after,
        "verdict": verdict(before, after),
    }
    return {**known, **changes}


@pytest.mark.parametrize("gate", ["link-confidence", "default-branch", "human-author", "no-revert", "changed-files"])
def test_one_of_the_sample_goes_the_whole_way_and_is_not_released(gate):
    by = policy(gate_sample=0.01, **ASKING)
    known = {**EVERY_GATE[gate], "instance_id": one_of_the_sample(gate)}
    waiting = crawled_case(**known)
    found = finding(waiting, gate, by)
    assert (found.outcome, found.code) == PASSES
    assert found.detail.startswith("passes as one of 1.00% only; without that: ")
    assert str(finding(waiting, gate, policy(**ASKING)).code) in found.detail
    assert sampled_gates(waiting, by) == (gate,)
    assert finding(waiting, "gate-sample", by).outcome == "unmeasured"
    assert decide(waiting.instance_id, evaluate(waiting, by)).stage == Stage.EXTRACT

    at_the_end = decide(waiting.instance_id, evaluate(crawled_case(**known, **validated()), by))
    assert (at_the_end.state, at_the_end.stage) == (State.REJECTED, Stage.EXPORT)
    assert at_the_end.code is Reason.GATE_SAMPLE
    assert gate in at_the_end.sentence


def test_one_of_the_sample_that_fails_later_is_rejected_for_that():
    known, still = EVERY_GATE["changed-files"], run({"a.py::t": F})
    failing = validated(after=still, verdict=verdict(still, still))
    everyone = policy(gate_sample=1.0)
    assert decide("x", evaluate(crawled_case(**known, **failing), everyone)).code is Reason.FAILS_AFTER
    unlocked = crawled_case(**known, negatives=(Negative(code=Reason.LOCK_FAILED),))
    assert decide("x", evaluate(unlocked, everyone)).code is Reason.LOCK_FAILED


def test_candidate_that_fails_two_gates_needs_both_samples():
    name = one_of_the_sample("changed-files")
    told = EVERY_GATE["changed-files"]["of"].model_copy(update={"author": Actor(login="x", kind="Bot")})
    assert decide(name, evaluate(crawled_case(told, name), policy(gate_sample=0.01))).code is Reason.BOT_AUTHOR


def test_accepted_pull_request_has_passed_every_gate_by_itself():
    one = crawled_case(**validated())
    assert decide(one.instance_id, evaluate(one, policy(gate_sample=1.0))).state is State.ACCEPTED
    assert finding(one, "gate-sample", policy(gate_sample=1.0)).value == 0


def test_negative_observation_passes_no_gate_as_a_sample():
    one = crawled_case(negatives=(Negative(code=Reason.NO_LINKED_ISSUE),))
    assert said(one, "linked-issue", policy(gate_sample=1.0)) == ("fail", Reason.NO_LINKED_ISSUE)


def test_funnel_counts_gates_and_their_sample_and_adds_up():
    many, by = EVERY_GATE["changed-files"]["of"], policy(gate_sample=0.05)
    cases = [crawled_case(many, f"o__r-{number}", **validated()) for number in range(400)]
    cases += [crawled_case(instance_id=f"o__s-{number}", **validated()) for number in range(30)]
    cases += [crawled_case(instance_id=f"o__t-{number}") for number in range(20)]
    stages = {stage.stage: stage for stage in funnel(decide(one.instance_id, evaluate(one, by)) for one in cases)}
    stopped = stages[Stage.DISCOVER].rejected[Reason.TOO_MANY_CHANGED_FILES]
    sampled = stages[Stage.EXPORT].rejected[Reason.GATE_SAMPLE]
    assert stopped + sampled == 400
    assert 5 <= sampled <= 40
    assert stages[Stage.EXTRACT].pending == 20
    assert stages[Stage.EXPORT].passed == 30


# Anything a forge may say

text = st.text(max_size=40) | st.sampled_from([*BUMPS, 'Revert "x"', "This reverts commit 0123abc", "Reverts o/r#1"])
paths = st.lists(
    st.sampled_from(["a.py", "tests/test_a.py", "README.md", "PKG-INFO", "", "/", "x/"]) | text, max_size=6
)
moments = st.just(WHEN)
numbers = st.integers(0, 40)
actors = st.none() | st.builds(Actor, login=text, kind=st.sampled_from(["User", "Bot", "Mannequin", "New"]))
closers = st.builds(Closer, at=moments, repository_id=st.none() | st.just(ID), pull=st.none() | numbers)
issues = st.builds(
    Issue,
    **dict.fromkeys(("node_id", "title", "body", "url", "state"), text),
    repository_id=st.sampled_from([ID, 8]),
    repository=st.sampled_from(["o/r", "O/R", "x/y"]),
    number=numbers,
    created_at=moments,
    updated_at=moments,
    closers=st.lists(closers, max_size=2),
)
changed = paths.map(
    lambda found: [ChangedFile(path=path, additions=0, deletions=0, change="DELETED") for path in found]
)
pulls = st.builds(
    Pull,
    **dict.fromkeys(("node_id", "title", "body", "url", "base_branch", "base_oid", "head_branch", "head_oid"), text),
    **dict.fromkeys(("created_at", "updated_at", "merged_at"), moments),
    repository_id=st.just(ID),
    repository=st.just("o/r"),
    number=numbers,
    author=actors,
    changed_files=numbers,
    files=changed | paths.map(lambda found: files(*found)),
    closing=st.lists(issues, max_size=2),
    references=st.dictionaries(numbers, issues | st.sampled_from(["pull", "gone", "moved"]), max_size=2),
)
branches = st.none() | st.sampled_from(["main", "master"]) | text
repositories = st.builds(
    Repository,
    forge_id=st.just(ID),
    node_id=text,
    full_name=st.just("o/r"),
    default_branch=branches,
    created_at=moments,
)
links = st.builds(
    link,
    numbers,
    confidence=st.sampled_from(["certain", "strong", "weak"]),
    where=text,
    repository=st.none() | st.sampled_from(["o/r", "x/y"]),
)
reasons = st.sampled_from([Reason.NO_LINKED_ISSUE, Reason.ISSUE_GONE, Reason.ISSUE_ELSEWHERE, Reason.ISSUE_IS_PULL])


@hypothesis_settings(max_examples=150, deadline=None)
@given(
    st.builds(Crawled, repository=repositories, pull=pulls),
    st.none() | st.builds(Judged, links=st.lists(links), issues=st.lists(issues, max_size=2), reason=reasons),
    st.sampled_from([0.0, 0.5, 1.0]),
)
def test_whatever_a_forge_says_each_gate_says_one_thing(told, found, share):
    one = crawled_case(crawled=told, links=found or judge_links(told))
    findings = evaluate(one, policy(gate_sample=share))
    gates = {rule.name: rule for rule in GATES}
    judged_by = [said for said in findings if said.rule in gates]
    assert [said.rule for said in judged_by] == list(gates)
    for said in judged_by:
        assert said.outcome in ("pass", "fail")
        assert (said.code is not None) == (said.outcome == "fail")
        assert said.code is None or (said.code in gates[said.rule].codes and said.detail)
    assert share < 1 or all(said.outcome == "pass" for said in judged_by)
    decision = decide(one.instance_id, findings)
    assert decision.state is (State.REJECTED if any(said.code for said in judged_by) else State.PENDING)

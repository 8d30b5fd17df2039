"""Rules about a pull request by what the forge says of it: the gates that it passes before anything is fetched.

They judge pull requests that were crawled; release pairs and pull requests that were given by hand are not judged. What
git says of a change later is the truth: a gate rejects what a later rule would take only where the policy wants it
(`policy.pulls`), and says nothing where the forge does not tell enough.

So that the cost of each gate in tasks is known, a share of what it would stop passes it all the same
(`policy.pulls.gate_sample`) and goes the whole way. Such a candidate is never released: `gate-sample` rejects it when
everything else is measured. Whether a candidate is one of the sample is computed from its id whenever it is judged.
Gates for the sake of the law judge repositories, before this (`miner.crawlers.github.filters`), and have no sample.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import partial

from miner.core.hashing import sha256_bytes
from miner.core.reasons import Reason, Stage
from miner.core.records import IssueLink
from miner.core.settings import Policy
from miner.core.text import some
from miner.crawlers.github.model import Issue, Pull
from validators.changed_paths import could_be_code, could_be_test, holds_dependencies, is_named_as_test
from validators.interface import Case, Judge, Judgement, Rule
from validators.titles import is_bump, revert

_UNMEASURED = Judgement("unmeasured")
_CONFIDENCE = ("weak", "strong", "certain")
_PROGRAMS = frozenset({"Bot", "Mannequin"})
_SPACE = 2**64
_TOLD = 3


def linked_issue(case: Case, _policy: Policy) -> Judgement:
    """Something says that the pull request closes an issue of its own repository, and the issue is there."""
    judged = case.links
    if judged is None:
        return _UNMEASURED
    if judged.issues:
        numbers = some([f"#{issue.number}" for issue in judged.issues])
        detail = "; ".join((f"closes {numbers}", *judged.disagreements[:_TOLD]))
        return Judgement("pass", value=len(judged.issues), detail=detail)
    code = judged.reason or Reason.NO_LINKED_ISSUE
    return Judgement("fail", code, 0, judged.detail or code.meaning)


def link_confidence(case: Case, policy: Policy) -> Judgement:
    """The surest link to an issue is as sure as the policy asks for."""
    judged, asked = case.links, policy.pulls.min_link_confidence
    if judged is None:
        return _UNMEASURED
    issues = {issue.number for issue in judged.issues}
    links = [link for link in judged.links if link.repository is None and link.number in issues]
    if not links:
        return Judgement("pass", detail="there is no link to judge")
    enough = [link for link in links if _rank(link) >= _CONFIDENCE.index(asked)]
    if enough:
        return Judgement("pass", value=len(enough))
    best = max(links, key=_rank)
    surest = f"{best.confidence} (#{best.number} in {best.where})"
    detail = f"the surest of {len(links)} links is {surest}, the policy asks for {asked} ones"
    return Judgement("fail", Reason.WEAK_LINK, 0, detail)


def default_branch(case: Case, policy: Policy) -> Judgement:
    """The pull request was merged into the default branch, as far as the forge tells.

    It names today's default branch. A pull request keeps the name of the branch that it was merged into when that is
    renamed or another one becomes the default. So another branch passes where the forge itself closed an issue by the
    merge, which it does for the default branch only
    (https://docs.github.com/en/issues/tracking-your-work-with-issues/using-issues/linking-a-pull-request-to-an-issue),
    and `master` passes where the default is `main` (https://github.com/github/renaming).
    """
    if case.crawled is None:
        return _UNMEASURED
    pull, default = case.crawled.pull, case.crawled.repository.default_branch
    if not policy.pulls.default_branch_only or pull.base_branch == default:
        return Judgement("pass")
    if default is None:
        return Judgement("pass", detail="the forge names no default branch: not judged")
    detail = f"merged into {pull.base_branch}, the default branch is {default}"
    closed = [f"#{issue.number}" for issue in _issues(pull) if _closed_by(issue, pull)]
    if closed:
        return Judgement(
            "pass", detail=f"{detail} now; the merge closed {some(closed)}, so that it was another one then"
        )
    if (pull.base_branch, default) == ("master", "main"):
        return Judgement("pass", detail=f"{detail} now, and was most likely named {pull.base_branch} then")
    return Judgement("fail", Reason.NOT_DEFAULT_BRANCH, detail=detail)


def human_author(case: Case, policy: Policy) -> Judgement:
    """The author is a person, as a deleted account ("ghost") is taken to be."""
    if case.crawled is None:
        return _UNMEASURED
    author = case.crawled.pull.author
    if author is None:
        return Judgement("pass", detail="the account of the author was deleted")
    if author.kind in _PROGRAMS:
        return Judgement("fail", Reason.BOT_AUTHOR, detail=f"the author {author.login} is a {author.kind} to the forge")
    pattern = next((p for p in policy.pulls.bots if fnmatchcase(author.login.lower(), p.lower())), None)
    if pattern is not None:
        detail = f"the author {author.login} is a program by the policy: {pattern}"
        return Judgement("fail", Reason.BOT_AUTHOR, detail=detail)
    return Judgement("pass")


def no_revert(case: Case, policy: Policy) -> Judgement:
    """Neither title nor body say that the pull request reverts something."""
    if case.crawled is None:
        return _UNMEASURED
    if policy.pulls.reverts:
        return Judgement("pass")
    said = revert(case.crawled.pull.title, case.crawled.pull.body)
    return Judgement("fail", Reason.REVERT, detail=f"it says: {said}") if said else Judgement("pass")


def no_dependency_bump(case: Case, policy: Policy) -> Judgement:
    """The pull request is no mere raise of versions: its title says so, and it changes nothing else.

    Nothing that could be a test is among the files that count, so that no later rule would take it.
    """
    if case.crawled is None:
        return _UNMEASURED
    pull = case.crawled.pull
    if policy.pulls.dependency_bumps or not _is_listed(pull) or not pull.files:
        return Judgement("pass")
    paths = [file.path for file in pull.files]
    if not is_bump(pull.title) or not all(map(holds_dependencies, paths)):
        return Judgement("pass")
    detail = f"its title is {pull.title}, and it changes nothing but {some(paths)}"
    return Judgement("fail", Reason.DEPENDENCY_BUMP, len(paths), detail)


def changed_files(case: Case, policy: Policy) -> Judgement:
    """The forge counts as many changed files as the policy allows."""
    if case.crawled is None:
        return _UNMEASURED
    count, low, high = case.crawled.pull.changed_files, policy.pulls.min_files, policy.pulls.max_files
    if count < low:
        detail = f"{count} files changed, the policy asks for {low}"
        return Judgement("fail", Reason.TOO_FEW_FILES, count, detail)
    if count > high:
        detail = f"{count} files changed, {high} are allowed"
        return Judgement("fail", Reason.TOO_MANY_CHANGED_FILES, count, detail)
    return Judgement("pass", value=count)


def could_be_tests(case: Case, _policy: Policy) -> Judgement:
    """By their paths, one changed file could be a test and another one what it tests.

    Which it is, is said later by the project's own configuration; here, a path that could be a test by any one passes.
    The value is how many could be.
    """
    if case.crawled is None:
        return _UNMEASURED
    pull = case.crawled.pull
    if not _is_listed(pull):
        detail = f"the forge lists {len(pull.files)} of {pull.changed_files} changed files: not judged"
        return Judgement("pass", detail=detail)
    paths = [file.path for file in pull.files]
    tests = [file.path for file in pull.files if could_be_test(file.path) and file.change != "DELETED"]
    code = [path for path in paths if could_be_code(path)]
    if not tests:
        detail = f"{Reason.NO_TEST_PATH.meaning}: {some(paths)}"
        return Judgement("fail", Reason.NO_TEST_PATH, 0, detail)
    if not code:
        detail = f"{Reason.NO_CODE_PATH.meaning}: {some(paths)}"
        return Judgement("fail", Reason.NO_CODE_PATH, len(tests), detail)
    if tests == code and len(tests) == 1:
        reason = Reason.NO_CODE_PATH if is_named_as_test(tests[0]) else Reason.NO_TEST_PATH
        detail = f"{tests[0]} cannot be both the test and what it tests, and nothing else could be one of them"
        return Judgement("fail", reason, 1, f"{detail}: {some(paths)}")
    return Judgement("pass", value=len(tests))


_LINKED = (Reason.NO_LINKED_ISSUE, Reason.ISSUE_IS_PULL, Reason.ISSUE_GONE, Reason.ISSUE_ELSEWHERE)
_COUNTED = (Reason.TOO_FEW_FILES, Reason.TOO_MANY_CHANGED_FILES)
_GATES: tuple[tuple[str, tuple[Reason, ...], Judge], ...] = (
    ("linked-issue", _LINKED, linked_issue),
    ("link-confidence", (Reason.WEAK_LINK,), link_confidence),
    ("default-branch", (Reason.NOT_DEFAULT_BRANCH,), default_branch),
    ("human-author", (Reason.BOT_AUTHOR,), human_author),
    ("no-revert", (Reason.REVERT,), no_revert),
    ("no-dependency-bump", (Reason.DEPENDENCY_BUMP,), no_dependency_bump),
    ("changed-files", _COUNTED, changed_files),
    ("could-be-tests", (Reason.NO_TEST_PATH, Reason.NO_CODE_PATH), could_be_tests),
)


def in_sample(gate: str, instance_id: str, share: float) -> bool:
    """Whether a candidate is one of the share that a gate lets pass: always the same answer, for each gate its own."""
    return int(sha256_bytes(f"{gate}\n{instance_id}".encode())[:16], 16) < share * _SPACE


def sampled_gates(case: Case, policy: Policy) -> tuple[str, ...]:
    """Return the gates that a candidate passes only as one of the sample."""
    return tuple(
        name
        for name, _, judge in _GATES
        if in_sample(name, case.instance_id, policy.pulls.gate_sample) and judge(case, policy).outcome == "fail"
    )


def is_crawled(case: Case) -> bool:
    """Whether the gates judge a case: a forge was asked about it. A pull request given by hand passes unasked."""
    return case.crawled is not None and case.source != "git"


def _or_sample(name: str, judge: Judge, case: Case, policy: Policy) -> Judgement:
    said = judge(case, policy)
    if said.outcome != "fail" or not in_sample(name, case.instance_id, policy.pulls.gate_sample):
        return said
    detail = f"passes as one of {policy.pulls.gate_sample:.2%} only; without that: {said.code} ({said.detail})"
    return Judgement("pass", value=said.value, detail=detail)


def _not_only_as_sample(case: Case, policy: Policy) -> Judgement:
    """No gate let the candidate pass as one of the sample only; it is judged when everything else is measured."""
    gates = sampled_gates(case, policy)
    if not gates:
        return Judgement("pass", value=0)
    if case.verdict is None:
        return _UNMEASURED
    return Judgement("fail", Reason.GATE_SAMPLE, len(gates), f"{Reason.GATE_SAMPLE.meaning} ({some(gates)})")


GATES: tuple[Rule, ...] = tuple(
    Rule(name, Stage.DISCOVER, codes, partial(_or_sample, name, judge), applies=is_crawled)
    for name, codes, judge in _GATES
)
GATE_SAMPLE = Rule("gate-sample", Stage.EXPORT, (Reason.GATE_SAMPLE,), _not_only_as_sample, applies=is_crawled)


def _rank(link: IssueLink) -> int:
    return _CONFIDENCE.index(link.confidence)


def _issues(pull: Pull) -> list[Issue]:
    return [*pull.closing, *(found for found in pull.references.values() if isinstance(found, Issue))]


def _closed_by(issue: Issue, pull: Pull) -> bool:
    """Whether the merge of a pull request closed an issue of its repository."""
    return issue.repository_id == pull.repository_id and any(
        closer.pull == pull.number and closer.repository_id == pull.repository_id for closer in issue.closers
    )


def _is_listed(pull: Pull) -> bool:
    """Whether the forge lists all files that it counts."""
    return len(pull.files) >= pull.changed_files

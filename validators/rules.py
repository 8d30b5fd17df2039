"""The rules of this pipeline, in stage order: each looks at what is known of a candidate and judges one thing.

Thresholds come from the policy; nothing here measures. A rule of kind `step` says whether a step of the pipeline was
done; the others compare a value with the policy or read the verdict of the tests. Rules may be about some sources only.
"""

from __future__ import annotations

from collections.abc import Callable

from miner.core.reasons import Reason, Stage
from miner.core.records import Finding
from miner.core.settings import Policy
from miner.core.text import some
from validators.crawl_rules import GATE_SAMPLE, GATES
from validators.interface import Case, Judgement, Rule
from validators.run_rules import broken, ended, flips, intact, ran, still_failing, unstable, vanished
from validators.suite_rules import collection, suite_share

_UNMEASURED = Judgement("unmeasured")
_PASS = Judgement("pass")


def _done(reached: Callable[[Case], object]) -> Callable[[Case, Policy], Judgement]:
    """Return the function of a step: it was done if what it makes is there."""
    return lambda case, _policy: Judgement("pass") if reached(case) is not None else _UNMEASURED


def _test_files_changed(case: Case, _policy: Policy) -> Judgement:
    if case.candidate is None:
        return _UNMEASURED
    files = case.candidate.test_files
    if files and case.candidate.test_patch.strip():
        return Judgement("pass", value=len(files), detail=f"test files changed: {some(files)}")
    return Judgement("fail", Reason.NO_TEST_CHANGE, 0, Reason.NO_TEST_CHANGE.meaning)


def _gold_present(case: Case, _policy: Policy) -> Judgement:
    if case.candidate is None:
        return _UNMEASURED
    if case.candidate.patch.strip():
        return Judgement("pass", value=len(case.candidate.gold_files))
    return Judgement("fail", Reason.NO_GOLD_CHANGE, 0, Reason.NO_GOLD_CHANGE.meaning)


def _gold_files(case: Case, policy: Policy) -> Judgement:
    if case.candidate is None:
        return _UNMEASURED
    count = len(case.candidate.gold_files)
    detail = f"the gold patch touches {count} files, {policy.max_gold_files} are allowed"
    return _at_most(count, policy.max_gold_files, Reason.TOO_MANY_FILES, detail)


def _patch_size(case: Case, policy: Policy) -> Judgement:
    if case.candidate is None:
        return _UNMEASURED
    count = len(case.candidate.patch.split("\n")) - 1
    detail = f"the gold patch has {count} lines, {policy.max_patch_lines} are allowed"
    return _at_most(count, policy.max_patch_lines, Reason.PATCH_TOO_LARGE, detail)


def _statement_present(case: Case, policy: Policy) -> Judgement:
    if case.candidate is None:
        return _UNMEASURED
    if case.candidate.statement.strip():
        return Judgement("pass")
    if policy.min_statement_chars == 0:
        return Judgement("pass", detail="there is no statement, and the policy asks for none")
    return Judgement("fail", Reason.NO_STATEMENT, detail=Reason.NO_STATEMENT.meaning)


def _statement_length(case: Case, policy: Policy) -> Judgement:
    if case.candidate is None:
        return _UNMEASURED
    count = len(case.candidate.statement.strip())
    detail = f"the statement has {count} characters, the policy asks for {policy.min_statement_chars}"
    if count >= policy.min_statement_chars:
        return Judgement("pass", value=count, detail=detail)
    return Judgement("fail", Reason.STATEMENT_TOO_SHORT, count, detail)


def _at_most(count: int, limit: int, code: Reason, detail: str) -> Judgement:
    return Judgement("fail", code, count, detail) if count > limit else Judgement("pass", value=count, detail=detail)


def _of_index(case: Case) -> bool:
    """Whether a case is a release pair, or may be one, since nothing is known of it."""
    return case.crawled is None and case.source in (None, "pypi")


def _of_pull(case: Case) -> bool:
    return not _of_index(case)


def _of_none(_case: Case) -> bool:
    """Whether a rule has something to say where nothing was observed that fails it: it has not."""
    return False


_candidate = _done(lambda case: case.candidate)
_recipe = _done(lambda case: case.recipe)
_environment = _done(lambda case: case.environment)
_after = _done(lambda case: case.after)

_ARCHIVE = (
    Reason.HASH_MISMATCH,
    Reason.ARCHIVE_CORRUPT,
    Reason.ARCHIVE_ESCAPES,
    Reason.ARCHIVE_TOO_LARGE,
    Reason.ARCHIVE_SPECIAL_FILE,
    Reason.ARCHIVE_NO_PROJECT,
)
_REPOSITORY = (Reason.REPOSITORY_GONE, Reason.REPOSITORY_UNAVAILABLE)
_COMMITS = (
    Reason.COMMIT_GONE,
    Reason.NO_MERGE_BASE,
    Reason.MIRROR_MISSING,
    Reason.MIRROR_INCOMPLETE,
    Reason.TREE_UNSAFE,
)
_FOUND = (Reason.UNKNOWN_PACKAGE, Reason.UNKNOWN_VERSION, Reason.NO_SDIST)
_PYTHON = (Reason.NO_PYTHON, Reason.PYTHON_TOO_NEW, Reason.PYTHON_2_ONLY)
_SOURCES = (Reason.SUBMODULE_MISSING, Reason.LFS_CONTENT_MISSING)
_KNOWN = (Reason.SYSTEM_PACKAGE_UNKNOWN, Reason.MODULE_UNKNOWN)
_NEEDS = (Reason.NEEDS_SERVICE, Reason.NEEDS_DEVICE)
_MODELS = (
    Reason.MODEL_CAP_REACHED,
    Reason.MODEL_LIMIT,
    Reason.MODEL_GAVE_UP,
    Reason.MODEL_REPLY_UNUSABLE,
    Reason.MODEL_EDITS_SOURCE,
    Reason.MODEL_WEAKENS_TESTS,
)
_BUILD = (Reason.BUILD_FAILED, Reason.BUILD_TIMEOUT, Reason.BUILD_LIMIT)
_RUN = (Reason.RUN_TIMEOUT, Reason.RUN_OUT_OF_MEMORY, Reason.RUN_LIMIT, Reason.RUN_CRASHED)
_FLIPS = (Reason.NOTHING_FAILS_BEFORE, Reason.TOO_FEW_FLIPS, Reason.FAILS_AFTER, Reason.ONLY_UNSTABLE_FLIPS)

RULES: tuple[Rule, ...] = (
    Rule("source-found", Stage.DISCOVER, _FOUND, _candidate, step=True, applies=_of_index),
    *GATES,
    Rule("repository-available", Stage.DISCOVER, _REPOSITORY, lambda _case, _policy: _PASS, applies=_of_none),
    Rule("archive-readable", Stage.EXTRACT, _ARCHIVE, _candidate, step=True, applies=_of_index),
    Rule("commits-available", Stage.EXTRACT, _COMMITS, _candidate, step=True, applies=_of_pull),
    Rule("patch-faithful", Stage.EXTRACT, (Reason.PATCH_NOT_FAITHFUL,), _candidate, step=True, applies=_of_pull),
    Rule("test-files-present", Stage.SCREEN, (Reason.NO_TEST_FILES,), _candidate, step=True),
    Rule("test-files-changed", Stage.SCREEN, (Reason.NO_TEST_CHANGE,), _test_files_changed),
    Rule("gold-present", Stage.SCREEN, (Reason.NO_GOLD_CHANGE,), _gold_present),
    Rule("gold-files", Stage.SCREEN, (Reason.TOO_MANY_FILES,), _gold_files),
    Rule("patch-size", Stage.SCREEN, (Reason.PATCH_TOO_LARGE,), _patch_size),
    Rule("statement-present", Stage.SCREEN, (Reason.NO_STATEMENT,), _statement_present),
    Rule("statement-length", Stage.SCREEN, (Reason.STATEMENT_TOO_SHORT,), _statement_length),
    Rule("setup-readable", Stage.INSTALL, (Reason.SETUP_UNREADABLE,), _recipe, step=True),
    Rule("python-available", Stage.INSTALL, _PYTHON, _recipe, step=True),
    Rule("recipe-found", Stage.INSTALL, _MODELS, lambda _case, _policy: _PASS, applies=_of_none),
    Rule("sources-complete", Stage.INSTALL, _SOURCES, _environment, step=True),
    Rule("packages-known", Stage.INSTALL, _KNOWN, _environment, step=True),
    Rule("lock-resolved", Stage.INSTALL, (Reason.LOCK_FAILED,), _environment, step=True),
    Rule("environment-built", Stage.INSTALL, _BUILD, _environment, step=True),
    Rule("project-installed", Stage.INSTALL, (Reason.PROJECT_INSTALL_FAILED,), _environment, step=True),
    Rule("rebuild-offline", Stage.INSTALL, (Reason.REBUILD_NEEDS_NETWORK,), _environment, step=True),
    Rule("project-imports", Stage.INSTALL, (Reason.IMPORT_FAILED,), _environment, step=True),
    Rule("pytest-usable", Stage.INSTALL, (Reason.PYTEST_UNUSABLE,), _environment, step=True),
    Rule("tests-collect", Stage.INSTALL, (Reason.NOTHING_COLLECTED,), _environment, step=True),
    Rule("edit-seen", Stage.INSTALL, (Reason.EDIT_NOT_SEEN,), _environment, step=True),
    Rule("collection", Stage.INSTALL, (Reason.COLLECTION_BROKEN,), collection),
    Rule("suite-share", Stage.INSTALL, (Reason.TOO_FEW_PASS_AT_BASE, *_NEEDS), suite_share),
    Rule("patches-apply", Stage.VALIDATE, (Reason.PATCH_DOES_NOT_APPLY,), _after, step=True),
    Rule("rebuild-done", Stage.VALIDATE, (Reason.REBUILD_FAILED,), _after, step=True),
    Rule("runs-ended", Stage.VALIDATE, _RUN, ended),
    Rule("reports-intact", Stage.VALIDATE, (Reason.REPORT_DAMAGED,), intact),
    Rule("something-ran", Stage.VALIDATE, (Reason.NOTHING_RAN,), ran),
    Rule("ids-stable", Stage.VALIDATE, (), unstable),
    Rule("fail-to-pass", Stage.VALIDATE, _FLIPS, flips),
    Rule("fail-to-fail", Stage.VALIDATE, (), still_failing),
    Rule("no-pass-to-fail", Stage.VALIDATE, (Reason.PASS_TO_FAIL,), broken),
    Rule("none-vanished", Stage.VALIDATE, (Reason.TESTS_VANISHED,), vanished),
    GATE_SAMPLE,
)


def evaluate(case: Case, policy: Policy) -> tuple[Finding, ...]:
    """Return what each rule about a case says, in stage order."""
    rules = [rule for rule in RULES if rule.is_about(case)]
    known = {negative.code for negative in case.negatives}
    furthest = max((index for index, rule in enumerate(rules) if known.intersection(rule.codes)), default=-1)
    findings = []
    for index, rule in enumerate(rules):
        finding = rule(case, policy)
        if rule.step and index < furthest and finding.outcome == "unmeasured":
            finding = rule.finding(Judgement("pass"))
        findings.append(finding)
    return tuple(findings)

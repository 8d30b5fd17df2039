"""The first rung: what the project itself declares, then only the part of it that its tests cannot do without."""

from __future__ import annotations

from installers.describe import describe
from installers.interface import Edit, Help, Proposal, Question, Refusal
from installers.memory import fingerprint
from installers.target import added_by_change, with_added
from miner.core.reasons import Reason

_NAME = "declared"
# What too many requirements can be the cause of: no lock, no installation, a plug-in that breaks the collection.
_WORTH_LESS = frozenset(
    {Reason.LOCK_FAILED, Reason.BUILD_FAILED, Reason.PYTEST_UNUSABLE, Reason.COLLECTION_BROKEN, Reason.BUILD_TIMEOUT}
)


def declared(question: Question, help_: Help) -> Proposal | None:
    """Return the declared recipe; after a failure that less could mend, the lean one; then nothing."""
    own = [attempt for attempt in question.past if attempt.rung == _NAME]
    if not own:
        return Proposal(recipe=question.declared)
    last = own[-1]
    if len(own) > 1 or not (last.outcome in _WORTH_LESS or last.broken):
        return None
    tree = question.tree
    lean = describe(
        tree.files,
        tree.paths,
        help_.pythons,
        question.created_at,
        question.test_files,
        version=question.declared.version_hint,
        lean=True,
    )
    if isinstance(lean, Refusal):
        return None
    recipe = with_added(lean, added_by_change(question.declared))
    if fingerprint(recipe) == fingerprint(question.declared):
        return None
    why = "everything that is declared led nowhere: only run-time dependencies and one group for the tests"
    return Proposal(recipe=recipe, edits=(Edit(rule="lean", why=why),))

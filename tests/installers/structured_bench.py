"""What tests of the structured rung stand on: known facts, a desk with a script, and attempts with logs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from repair_index import workshop_of

from installers.brief.proposals import draft_of
from installers.interface import Attempt, Help, Memory, Proposal, Question, Signature, Tree
from installers.memory import delta, fingerprint
from installers.models.desk import Desk
from installers.models.interface import Reply, Usage
from installers.models.scripted import ScriptedModel
from installers.pythons import load_pythons
from installers.rungs.structured import structured
from miner.core.ledger import fact_id
from miner.core.memo import Memo
from miner.core.records import BuildMode, Fact, FactKey, Recipe
from miner.core.settings import Price, load_settings

DAY = datetime(2022, 6, 1, tzinfo=UTC)
RECIPE = Recipe(
    python="3.9",
    requirements=("attrs>=20", "pytest"),
    build_requirements=("setuptools", "wheel"),
    build_backend="setuptools.build_meta",
    distribution="demo",
    top_level=("demo",),
    addopts=("--strict-markers",),
)
FILES = {
    "pyproject.toml": b'[project]\nname = "demo"\nrequires-python = ">=3.8"\ndependencies = ["attrs>=20"]\n'
    b"[tool.black]\nline-length = 100\n",
    "tox.ini": b"[testenv]\ndeps = pytest\n    pyyaml\ncommands = pytest\n",
    ".github/workflows/test.yml": b"jobs:\n  test:\n    steps:\n      - run: pip install tox\n      - run: tox\n",
}
PATHS = (*FILES, "demo/__init__.py", "tests/test_x.py")


def said(draft: Mapping[str, Any] | str, finish: str = "stop", **more: Any) -> Reply:
    """A reply of a model, at ten tokens each way."""
    text = draft if isinstance(draft, str) else json.dumps(draft)
    return Reply(text=text, finish=finish, usage=Usage(input_tokens=10, output_tokens=10), **more)


def drafted(recipe: Recipe = RECIPE, base: Recipe = RECIPE, **changes: Any) -> dict[str, Any]:
    """The draft of a recipe, with changes."""
    return {**draft_of(recipe, base), "reasons": [], "give_up": None, **changes}


def fact(kind: str, outcome: str = "ok", number: int = 0, **more: Any) -> Fact:
    """A fact of an attempt's step."""
    key = FactKey(kind=kind, subject="s", input_hash=f"{number}", producer="p", epoch=1)
    return Fact(key=key, observed_at=DAY, outcome=outcome, **more)


@dataclass
class Bench:
    """One candidate's climb on the rung, with what is known."""

    folder: Path
    script: Any
    overrides: Sequence[str] = ()
    models: Sequence[str] = ("small",)
    files: Mapping[str, bytes] = field(default_factory=lambda: dict(FILES))
    declared: Recipe = RECIPE
    purse: Any = None
    past: list[Attempt] = field(default_factory=list)

    def __post_init__(self) -> None:
        shop = workshop_of(load_settings(overrides=[f"paths.work={self.folder}", *self.overrides]), self.folder)
        known: list[Fact] = []
        self.memo = Memo(lambda key: [one for one in known if _same(one.key, key)], known.append)
        self.model = ScriptedModel(self.script)
        price = Price(input=1.0, output=2.0)
        desk = Desk(
            dict.fromkeys(self.models, self.model),
            dict.fromkeys(self.models, price),
            self.purse,
            shop.blobs,
            shop.settings.endpoint,
        )
        self.help = Help(shop, self.memo, Memory(), load_pythons(), models=desk)

    @property
    def question(self) -> Question:
        paths = (*self.files, "demo/__init__.py", "tests/test_x.py")
        tree = Tree(self.files, paths)
        return Question("octo/demo", tree, self.declared, DAY, ("tests/test_x.py",), tuple(self.past), "c")

    def ask(self) -> Proposal | None:
        return structured(self.question, self.help)

    def failed(
        self, log: str, *signatures: Signature, kind: str = "install.lock", outcome: str = "lock-failed"
    ) -> None:
        """Note that the declared recipe was tried and came to nothing."""
        self.note("declared", Proposal(recipe=self.declared), log, *signatures, kind=kind, outcome=outcome)

    def note(
        self,
        rung: str,
        proposal: Proposal,
        log: str = "",
        *signatures: Signature,
        kind: str = "install.lock",
        outcome: str = "lock-failed",
        change: Callable[[Attempt], Attempt] = lambda made: made,
    ) -> Attempt:
        """Note what came of a proposal, as `installers.attempt` does."""
        steps: tuple[str, ...] = ()
        if proposal.refused is None:
            logs = {"log": self.help.workshop.blobs.put_text(log)}
            made = fact(kind, outcome, len(self.past), logs=logs, payload={"detail": log[:100]})
            self.memo.used.note(made)
            steps = (fact_id(made.key),)
        refused = proposal.refused
        attempt = Attempt(
            repository="octo/demo",
            rung=rung,
            number=len(self.past),
            recipe=proposal.recipe,
            edits=proposal.edits,
            fingerprint=fingerprint(proposal.recipe),
            declared=fingerprint(self.declared),
            delta=delta(self.declared, proposal.recipe),
            cutoff=DAY,
            mode=BuildMode.EDITABLE,
            outcome=outcome if refused is None else refused.reason.value,
            detail=log[:100] if refused is None else refused.detail,
            signatures=signatures,
            steps=steps,
            asked=proposal.asked,
            tokens=proposal.tokens,
            money=proposal.money,
        )
        self.past.append(change(attempt))
        return self.past[-1]

    def turn(self, log: str = "error: broken", *signatures: Signature, **more: Any) -> Proposal:
        """Ask, and note what came of it."""
        proposal = self.ask()
        assert proposal is not None
        self.note("structured", proposal, log, *signatures, **more)
        return proposal

    def again(self) -> Bench:
        """The same climb from its beginning, with all that is known and a model that says nothing more."""
        other = replace(self, script=[], past=[])
        other.memo, other.help = self.memo, replace(self.help, models=self.help.models)
        return other


def _same(one: FactKey, other: FactKey) -> bool:
    same = (one.kind, one.subject, one.producer, one.epoch) == (other.kind, other.subject, other.producer, other.epoch)
    return same and other.input_hash in ("", one.input_hash)

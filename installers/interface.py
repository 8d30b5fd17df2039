"""The ladder's vocabulary: a rung proposes a recipe, an attempt says what came of it, an edit why it was changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from pydantic import Field

from miner.core.memo import Memo
from miner.core.reasons import Reason
from miner.core.records import BuildMode, Environment, Legible, Recipe, Record

if TYPE_CHECKING:
    from installers.models.desk import Desk
    from installers.project_install import Pack
    from installers.pythons import Python
    from installers.workshop import Workshop


class Refusal(Record):
    """Why a rung has no recipe for a tree: a property of the project, never a fault of the infrastructure."""

    reason: Reason
    detail: str


class TooLarge(Exception):
    """An installation left more behind than is kept."""


class Signature(Record):
    """What kind of failure a log shows, so that equal failures of different projects are equal.

    Attributes:
        kind: a name of `installers.repair.signatures` ("missing-module").
        subject: what it is about ("yaml", "libpq-fe.h", "--cov"), "" where there is nothing to name.
    """

    kind: str
    subject: Legible = ""

    def __str__(self) -> str:
        return f"{self.kind}: {self.subject}" if self.subject else self.kind


class Edit(Record):
    """One change of a recipe, and why.

    Attributes:
        rule: a name of `installers.repair.rules`, or of the rung that made it.
        signature: what it answers; None where it is no answer to a failure.
        why: one sentence for people.
    """

    rule: str
    signature: Signature | None = None
    why: Legible


class Proposal(Record):
    """A recipe to try, and the edits that made it, the oldest first.

    Attributes:
        memory: hash of the lessons that it rests on, "" where on none.
        asked: ids of the facts that say what language models were asked for it, and answered.
        written: a language model wrote the recipe that it rests on: it is trusted no more than one of its own.
        tokens: that they read and wrote.
        money: that they cost, in US dollars.
        seconds: that they took.
        refused: why it is not tried: an attempt all the same, with its cost.
    """

    recipe: Recipe
    edits: tuple[Edit, ...] = ()
    memory: str = ""
    asked: tuple[str, ...] = ()
    written: bool = False
    tokens: int = 0
    money: float = 0.0
    seconds: float = 0.0
    refused: Refusal | None = None


class Delta(Record):
    """How one recipe differs from another, so that the same change can be made to a third.

    Attributes:
        added: field -> items that came in.
        removed: field -> items that went away.
        changed: field -> value, for fields that hold one.
    """

    added: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    removed: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    changed: dict[str, Any] = Field(default_factory=dict)


class Attempt(Record):
    """What came of a proposal. A fact `install.attempt` holds it: what differs from run to run among its measurements.

    Attributes:
        number: counted over all rungs, from 0.
        fingerprint: of everything that the recipe's environment is made from, without dates (`installers.memory`).
        declared: fingerprint of the declared recipe.
        delta: from the declared recipe to this one.
        memory: hash of what of the memory the proposal rests on, "" where on nothing.
        cutoff: the package index was taken as of then.
        mode: in which the project was installed last.
        outcome: "ok" for a healthy environment, else the code of the reason.
        signatures: of the failures that its logs show, the most telling first; also those of a healthy one's tests.
        environment: the healthy environment.
        share: of the candidate's own tests, those that pass at the base commit; None where there are none.
        passed: number of those that pass, of `total`.
        good: no better environment is looked for (`installers.share.is_good`).
        broken: number of test files that cannot be collected at the base, which the patches do not explain.
        steps: ids of the facts that it rests on.
        seconds: that these took when they were measured.
        asked: ids of the facts that say what language models were asked for it.
        written: a language model wrote the recipe, or what it rests on.
        tokens: that these read and wrote.
        money: that they cost, in US dollars.
    """

    repository: str
    rung: str
    number: int
    recipe: Recipe
    edits: tuple[Edit, ...] = ()
    fingerprint: str = ""
    declared: str = ""
    delta: Delta = Delta()
    memory: str = ""
    cutoff: datetime
    mode: BuildMode | None = None
    outcome: str
    detail: Legible = ""
    signatures: tuple[Signature, ...] = ()
    environment: Environment | None = None
    share: float | None = None
    passed: int = 0
    total: int = 0
    skipped: int = 0
    good: bool = False
    broken: int = 0
    steps: tuple[str, ...] = ()
    seconds: float = 0.0
    asked: tuple[str, ...] = ()
    written: bool = False
    tokens: int = 0
    money: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether it came to a healthy environment."""
        return self.outcome == "ok"


class Lesson(Record):
    """What a healthy attempt of an earlier run says.

    Attributes:
        candidate: that it was made for: it teaches others only, so that a run that is repeated does nothing new.
        fingerprint: of the recipe that the project declared then.
        cutoff: of the attempt.
        delta: from the declared recipe to the one that worked.
        answers: the one signature that the delta answers, where it is one edit's.
        fact: id of the attempt.
        written: a language model wrote what it teaches.
    """

    repository: str
    candidate: str = ""
    fingerprint: str
    cutoff: datetime
    delta: Delta
    answers: Signature | None = None
    share: float | None = None
    fact: str
    written: bool = False


class Memory(Record):
    """What earlier runs learned, frozen at the start of a run."""

    lessons: tuple[Lesson, ...] = ()


@dataclass(frozen=True)
class Tree:
    """A repository at its base commit, as far as rungs read it; nothing of it is ever executed here.

    Attributes:
        files: path -> content of the declaration files (`miner.project.facts.is_declaration`).
        paths: every path.
    """

    files: Mapping[str, bytes]
    paths: Sequence[str]


@dataclass(frozen=True)
class Question:
    """What a rung is asked: a recipe for a candidate's tree, after what was tried before.

    Attributes:
        declared: the recipe of the tree's own declarations, which the case rests on.
        past: all attempts so far, of all rungs, in order.
    """

    repository: str
    tree: Tree
    declared: Recipe
    created_at: datetime
    test_files: Sequence[str]
    past: Sequence[Attempt]
    candidate: str = ""


@dataclass(frozen=True)
class Help:
    """What a rung may use to find an answer: what it asks the network for is a fact, by way of the memo.

    Attributes:
        pack: writes a tar of the base commit with its `.git`, paths relative to its root.
        models: language models; None where there are none, or none for this candidate.
    """

    workshop: Workshop
    memo: Memo
    memory: Memory
    pythons: Sequence[Python]
    pack: Pack | None = None
    models: Desk | None = None


class Rung(Protocol):
    """One way to come to a recipe; a registry of them is `installers.rungs.RUNGS`."""

    def __call__(self, question: Question, help_: Help) -> Proposal | None:
        """Return the next recipe to try, None where this rung knows no other one.

        Raises:
            InfrastructureFault: a service that it asks did not answer.
        """

"""What a session is about: what the model is told, and what is made of the recipe that it writes."""

from __future__ import annotations

import json
from dataclasses import dataclass

from installers.agent.endings import GaveUp
from installers.agent.protocol import Blocks, Native, Speech
from installers.agent.stand import Stand
from installers.brief.draft import definition, kept, read_draft, recipe_of
from installers.brief.evidence import outline
from installers.brief.failures import failure
from installers.brief.history import history
from installers.brief.prompts import render, title
from installers.brief.proposals import edits_of, offered, shown, tried_before
from installers.interface import Edit, Help, Question, Refusal
from installers.models.interface import Prompt
from installers.models.turns import Turn
from installers.project_install import Pack
from miner.core.hashing import hash_of
from miner.core.reasons import Reason
from miner.core.records import Recipe

RULE = "agent"
_FAILURE_CHARS = 6000
_HISTORY_CHARS = 4000


@dataclass(frozen=True)
class Plan:
    """Everything that a session is about.

    Attributes:
        whose: the model, and the number of the session.
        stand: what its container is made of.
        pack: writes the base commit's tar.
    """

    question: Question
    help: Help
    whose: Turn
    stand: Stand
    pack: Pack

    @property
    def answers(self) -> bool:
        """Whether somebody can be asked."""
        return self.help.models is not None and self.help.models.answers

    @property
    def pythons(self) -> tuple[str, ...]:
        """Versions that a recipe may name."""
        return offered(self.question, self.help.pythons, self.stand.recipe)

    @property
    def mark(self) -> str:
        """What calls in the text protocol are marked with: the same when a run is repeated, and nobody else knows it.

        All but the owner could be worked out by whoever wrote a file of the repository.
        """
        tried = [attempt.detail for attempt in self.question.past]
        owner = self.help.workshop.owner
        return hash_of([owner, self.question.candidate, self.whose, self.stand.identity, tried])[:8]

    def speech(self, *, native: bool) -> Speech:
        """Return how calls are written."""
        return Native(self.pythons) if native else Blocks(self.mark)

    def prompts(self, speech: Speech) -> tuple[Prompt, Prompt]:
        """Return what the model is told first: how it works, and what it is about."""
        question, stand, limits = self.question, self.stand, self.help.workshop.settings.measure.model.agent
        attempt = stand.attempt
        task = render(
            "agent_task",
            name=title(question.declared.distribution, question.repository),
            cutoff=f"{stand.cutoff:%Y-%m-%d}",
            pythons=self.pythons,
            history=history(question.past, _HISTORY_CHARS),
            attempt=attempt,
            recipe=shown(stand.recipe),
            kept=kept(stand.recipe),
            failure="" if attempt is None else failure(attempt, self.help, _FAILURE_CHARS),
            outline=outline(question.tree, question.test_files),
            python=stand.ground.python.version,
            environment=stand.environment is not None,
            project=bool(stand.project),
        )
        form = json.dumps(definition(self.pythons)) if speech.mark else ""
        return render("agent", limits=limits, mark=speech.mark, form=form), task

    def judged(self, text: str) -> Written | Refusal:
        """Return what is made of a recipe that the model wrote, or why it cannot be tried.

        Raises:
            GaveUp: it says in it that there is no way.
        """
        draft = read_draft(text)
        if isinstance(draft, Refusal):
            return draft
        start = self.stand.recipe
        recipe = recipe_of(draft, start, self.pythons)
        if isinstance(recipe, Refusal):
            if recipe.reason is Reason.MODEL_GAVE_UP:
                raise GaveUp(recipe.detail)
            return recipe
        attempt = self.stand.attempt
        earlier = () if attempt is None else attempt.edits
        signature = attempt.signatures[0] if attempt is not None and attempt.signatures else None
        edits = edits_of(draft, start, recipe, rule=RULE, signature=signature)
        return tried_before(recipe, self.question.past) or Written(recipe, (*earlier, *edits))


@dataclass(frozen=True)
class Written:
    """A recipe that can be tried, and why it is as it is."""

    recipe: Recipe
    edits: tuple[Edit, ...]

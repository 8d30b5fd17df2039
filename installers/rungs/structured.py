"""The rung that asks a language model for a recipe by schema, and refines it from what its attempt failed with.

Turn by turn: for each candidate one first try with a hint of its own, then rounds that refine the last attempt. What
was asked and said is told from the attempts so far and their facts; the rung itself remembers nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from installers.brief.draft import form, kept, read_draft, recipe_of, unusable
from installers.brief.evidence import outline, select, tokens_of
from installers.brief.failures import failure
from installers.brief.hints import hint
from installers.brief.history import came_to, history, left_with
from installers.brief.prompts import render, title
from installers.brief.proposals import edits_of, offered, shown, tried_before
from installers.cutoff import cutoffs
from installers.interface import Attempt, Edit, Help, Proposal, Question, Refusal, Signature
from installers.models.desk import Answer
from installers.models.interface import Message, OverCap, Prompt, Reply, Request, RequestRefused
from installers.models.turns import built, turn
from installers.rungs.repair import furthest, progress
from miner.core.hashing import hash_of
from miner.core.ledger import fact_id
from miner.core.reasons import Reason
from miner.core.records import Fact, Recipe

_NAME = "structured"
_OF_LOG = 0.25
_OF_HISTORY = 0.12
_OF_REFINEMENT = 0.3
_BYTES = 3
_LEAST_LOG = 600
_LONGEST_SAID = 12_000
_LONGEST_WORDS = 500
_PER_ENTRY = 300
_FEWEST, _MOST = 8, 48


def structured(question: Question, help_: Help) -> Proposal | None:
    """Return the next recipe of a language model, or why there is none; None where no model is to be asked."""
    use = help_.workshop.settings.measure.model.structured
    whose = turn(question, help_, _NAME, use.candidates * (1 + use.rounds))
    if whose is None:
        return None
    candidate, round_ = divmod(whose.number, 1 + use.rounds)
    return _Turn(question, help_, whose.model, whose.number, candidate, round_).proposal()


@dataclass(frozen=True)
class _Turn:
    """One turn: a candidate's first try, or a refinement of its last attempt.

    Attributes:
        number: of the model's turns so far; it tells equal requests apart.
        round_: 0 for the first try.
    """

    question: Question
    help_: Help
    model: str
    number: int
    candidate: int
    round_: int

    def proposal(self) -> Proposal:
        """Ask, and return what came of it."""
        request, prompt = self._request()
        desk = self.help_.models
        if desk is None:
            raise ValueError("no model is there to be asked")
        try:
            answer = desk.ask(
                self.help_.memo, request, repository=self.question.repository, prompt=prompt, ordinal=self.number
            )
        except OverCap as error:
            left = left_with(furthest(built(self.question.past)))
            return self._void(Refusal(reason=Reason.MODEL_CAP_REACHED, detail=f"{error.sentence}; {left}"))
        except RequestRefused as error:
            said = f"the endpoint does not take the request: {str(error)[:_LONGEST_WORDS]}"
            made = self._void(Refusal(reason=Reason.MODEL_REPLY_UNUSABLE, detail=said))
            return made.model_copy(update=self._cost_of(error))
        return self._answered(answer)

    def _answered(self, answer: Answer) -> Proposal:
        cost = {"asked": (answer.fact,), "tokens": answer.tokens, "money": answer.money, "seconds": answer.seconds}
        refused = _not_said(answer.reply)
        draft = refused or read_draft(answer.reply.text)
        if isinstance(draft, Refusal):
            return self._void(draft).model_copy(update=cost)
        recipe = recipe_of(draft, self._start, self._pythons)
        if isinstance(recipe, Refusal):
            return self._void(recipe).model_copy(update=cost)
        edits = edits_of(draft, self._shown, recipe, rule=_NAME, signature=self._signature)
        made = Proposal(recipe=recipe, edits=(*self._earlier_edits, *edits))
        return made.model_copy(update={**cost, "refused": tried_before(recipe, self.question.past)})

    def _cost_of(self, error: RequestRefused) -> dict[str, Any]:
        """Return what a request has cost that was not taken: it may have been charged all the same."""
        fact = self._facts.get(error.fact)
        if fact is None:
            return {}
        measures = fact.measures
        return {
            "asked": (error.fact,),
            "tokens": int(measures["tokens"]),
            "money": measures["money"],
            "seconds": measures["seconds"],
        }

    @property
    def _facts(self) -> dict[str, Fact]:
        return {fact_id(fact.key): fact for fact in self.help_.memo.used}

    def _void(self, refused: Refusal) -> Proposal:
        return Proposal(recipe=self.question.declared, refused=refused)

    @cached_property
    def _past(self) -> Sequence[Attempt]:
        """The attempts before this candidate."""
        return self.question.past[: len(self.question.past) - self.round_]

    @cached_property
    def _best(self) -> Attempt | None:
        return furthest(built(self._past))

    @property
    def _start(self) -> Recipe:
        """The recipe that the candidate starts from."""
        return self.question.declared if self._best is None else self._best.recipe

    @cached_property
    def _previous(self) -> Attempt | None:
        """The attempt that this turn refines."""
        return self.question.past[-1] if self.round_ and self._said else None

    @cached_property
    def _said(self) -> str:
        """The reply that led to the last attempt, "" where there was none."""
        asked = self.question.past[-1].asked if self.round_ else ()
        fact = self._facts.get(asked[-1]) if asked else None
        if fact is None or "reply" not in fact.blobs:
            return ""
        text = Reply.model_validate_json(self.help_.workshop.blobs.get_text(fact.blobs["reply"])).text
        return text[:_LONGEST_SAID].strip()

    @property
    def _refined(self) -> Attempt | None:
        """The attempt whose recipe was built, of which the log is shown."""
        return self._previous if self._previous is not None and built([self._previous]) else None

    @property
    def _shown(self) -> Recipe:
        return self._start if self._refined is None else self._refined.recipe

    @property
    def _earlier_edits(self) -> tuple[Edit, ...]:
        before = self._refined or self._best
        return () if before is None else before.edits

    @property
    def _signature(self) -> Signature | None:
        """The failure that is to be answered."""
        before = self._refined or self._best
        return before.signatures[0] if before is not None and before.signatures else None

    @cached_property
    def _pythons(self) -> tuple[str, ...]:
        """Versions that the project admits, and the one of the recipe that is shown."""
        return offered(self.question, self.help_.pythons, self._start)

    def _request(self) -> tuple[Request, Prompt]:
        """Return what is asked, and its prompt: its version is that of all templates that it is made from."""
        use = self.help_.workshop.settings.measure.model
        prompts = [render("system"), self._first(use.prompt_tokens >> self._refusals)]
        messages = [Message(role="system", content=prompts[0].text), Message(role="user", content=prompts[1].text)]
        if self._previous is not None:
            prompts.append(self._refinement(use.prompt_tokens, self._previous))
            messages.append(Message(role="assistant", content=self._said))
            messages.append(Message(role="user", content=prompts[-1].text))
        request = Request(
            model=self.model,
            messages=tuple(messages),
            form=None if self._refusals else form(self._pythons),
            max_tokens=use.max_tokens,
            temperature=use.temperature,
        )
        version = hash_of([prompt.version for prompt in prompts])
        return request, prompts[-1].model_copy(update={"version": version})

    @property
    def _refusals(self) -> int:
        """How often this candidate's request was not taken: the next one is half as long, and asks for no schema."""
        return sum(not self._was_taken(attempt) for attempt in self.question.past[len(self._past) :])

    def _was_taken(self, attempt: Attempt) -> bool:
        fact = self._facts.get(attempt.asked[-1]) if attempt.asked else None
        return fact is not None and fact.ok

    def _first(self, tokens: int) -> Prompt:
        """Return the question of the candidate's first try, which stays the same in all of its rounds."""
        tokens = int(tokens * (1 - _OF_REFINEMENT))
        declared, tree, use = self.question.declared, self.question.tree, self.help_.workshop.settings.measure.model
        log = max(_LEAST_LOG, int(tokens * _OF_LOG) * _BYTES)
        dates = cutoffs(self.question.created_at, self.help_.workshop.settings.measure.cutoff)
        before = self.question.past[: len(self.question.past) - self.number]
        values = {
            "name": title(declared.distribution, self.question.repository),
            "cutoff": f"{dates[min(self._start.fallback, len(dates) - 1)]:%Y-%m-%d}",
            "pythons": self._pythons,
            "hint": hint(self.question, furthest(built(before)), self.candidate),
            "history": history(self._past, int(tokens * _OF_HISTORY) * _BYTES),
            "attempt": self._best,
            "recipe": shown(self._start),
            "kept": kept(self._start),
            "failure": "" if self._best is None else failure(self._best, self.help_, log),
            "outline": outline(
                tree, self.question.test_files, min(_MOST, max(_FEWEST, use.prompt_tokens // _PER_ENTRY))
            ),
        }
        bare = render(_NAME, files=(), **values)
        left = tokens - tokens_of(bare.text) - tokens_of(render("system").text)
        return render(_NAME, files=select(tree, declared, max(0, left)), **values)

    def _refinement(self, tokens: int, previous: Attempt) -> Prompt:
        log = max(_LEAST_LOG, int(tokens * _OF_REFINEMENT) * _BYTES)
        return render(
            "refine",
            tried=self._refined is not None,
            outcome=came_to(previous),
            standing=_standing(previous, self._best),
            failure=failure(previous, self.help_, log),
        )


def _standing(attempt: Attempt, best: Attempt | None) -> str:
    """Say whether an attempt came further than the one that it started from."""
    if best is None or not built([attempt]):
        return ""
    if progress(attempt) > progress(best):
        return f", further than attempt {best.number}"
    return f", no further than attempt {best.number}"


def _not_said(reply: Reply) -> Refusal | None:
    """Return why a reply is none that could be read, None where it may be."""
    if reply.refusal:
        return unusable("the model declines", reply.refusal)
    if reply.finish == "content_filter":
        return unusable("a filter of the endpoint ended the reply", reply.text)
    if reply.finish == "length":
        return unusable("the reply was cut off at its limit of tokens", reply.text)
    if not reply.complete:
        return unusable(f"the reply was cut off: the endpoint says that it ended with {reply.finish!r}", reply.text)
    if reply.calls:
        return unusable(f"the reply calls a tool, {reply.calls[0].name!r}, where none is offered", reply.text)
    return None if reply.text.strip() else unusable("the reply is empty", "")

"""What is kept of a question to a language model: the fact of its reply, and one of each try. Pure but for blobs."""

from __future__ import annotations

from dataclasses import dataclass

from installers.models.interface import Prompt, Reply, Request, RequestRefused, ToolsUnsupported, Trouble, Usage
from miner.core.blobs import BlobStore
from miner.core.hashing import canonical_json, hash_of
from miner.core.ledger import fact_id
from miner.core.reasons import Reason
from miner.core.records import Fact, Observation, Producer, legible
from miner.core.spending import dollars

PRODUCER = Producer(name="installers.models")
REPLY = "model.reply"
TRY = "model.try"
SUBJECT = "model-"
_REFUSED = Reason.MODEL_REPLY_UNUSABLE.value
_LONGEST_WORD = 64
_LONGEST_DETAIL = 2000


@dataclass(frozen=True)
class Question:
    """One request as it is asked: on whose behalf, from which template, and the how-manieth time."""

    request: Request
    repository: str
    prompt: Prompt
    ordinal: int

    @property
    def subject(self) -> str:
        """Subject of its facts."""
        return f"{SUBJECT}{hash_of(self.request)}"

    @property
    def inputs(self) -> dict[str, object]:
        """Everything that the reply depends on, beside chance."""
        return {"request": self.request, "ordinal": self.ordinal}

    def payload(self) -> dict[str, object]:
        """What every fact of it says."""
        return {
            "model": self.request.model,
            "prompt": self.prompt.name,
            "version": self.prompt.version,
            "ordinal": self.ordinal,
        }


@dataclass(frozen=True)
class Tried:
    """One try: what was said, what it could have cost and what it did cost, in nano-dollars."""

    said: Reply | Trouble | RequestRefused
    bound: int
    charged: int
    seconds: float

    @property
    def usage(self) -> Usage | None:
        """Tokens, as far as the endpoint reports them."""
        return self.said.usage if isinstance(self.said, Reply) else None

    @property
    def tokens(self) -> int:
        """Tokens that were read and written."""
        return 0 if self.usage is None else self.usage.input_tokens + self.usage.output_tokens


def of_try(question: Question, tried: Tried, blobs: BlobStore) -> Observation:
    """Return one try as it is kept: what was said is a log, since it differs from try to try."""
    usage = {} if tried.usage is None else tried.usage.model_dump()
    return Observation(
        outcome=_outcome(tried.said),
        payload=question.payload(),
        blobs={"request": blobs.put_text(canonical_json(question.request))},
        logs=_said(tried.said, blobs),
        measures={
            **usage,
            "tokens": tried.tokens,
            "money": dollars(tried.charged),
            "bound": dollars(tried.bound),
            "wall_s": round(tried.seconds, 3),
        },
        network=True,
    )


def of_reply(question: Question, said: Reply | RequestRefused, tries: list[Tried], blobs: BlobStore) -> Observation:
    """Return what all tries have come to: a reply, or that the request is not taken.

    What no try was made for does not depend on any service: it is final.
    """
    kept = {"request": blobs.put_text(canonical_json(question.request))}
    if isinstance(said, Reply):
        kept["reply"] = blobs.put_text(canonical_json(said))
    return Observation(
        outcome=_outcome(said),
        payload=question.payload() | _summary(said),
        blobs=kept,
        measures={
            "tries": len(tries),
            "tokens": sum(one.tokens for one in tries),
            "money": dollars(sum(one.charged for one in tries)),
            "seconds": round(sum(one.seconds for one in tries), 3),
        },
        network=bool(tries),
    )


def refusal_of(fact: Fact) -> RequestRefused:
    """Return what a negative fact says."""
    kind = ToolsUnsupported if fact.payload.get("tools") else RequestRefused
    return kind(str(fact.payload.get("detail", "")), fact=fact_id(fact.key))


def _summary(said: Reply | RequestRefused) -> dict[str, object]:
    if isinstance(said, RequestRefused):
        return {"detail": legible(str(said))[:_LONGEST_DETAIL], "tools": isinstance(said, ToolsUnsupported)}
    return {
        "finish": legible(said.finish)[:_LONGEST_WORD],
        "calls": [legible(one.name)[:_LONGEST_WORD] for one in said.calls],
        "declined": bool(said.refusal),
    }


def _outcome(said: Reply | Trouble | RequestRefused) -> str:
    if isinstance(said, Reply):
        return "ok"
    return said.reason.value if isinstance(said, Trouble) else _REFUSED


def _said(said: Reply | Trouble | RequestRefused, blobs: BlobStore) -> dict[str, str]:
    if isinstance(said, Reply):
        return {"reply": blobs.put_text(canonical_json(said))}
    return {"error": blobs.put_text(f"{type(said).__name__}: {said}")}

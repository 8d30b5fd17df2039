"""Real packages that their declared files do not install, and what a person wrote in a model's place.

What the fields of a case's file mean is said in `model_cases/README.md`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from endpoint import Answer, Asked, Behaviour, replies
from pydantic import BaseModel, ConfigDict, Field

from miner.core.records import ReleasePair
from miner.crawlers.releases import instance_id

FOLDER = Path(__file__).with_name("model_cases")


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Declared(_Part):
    """How the declared files fail.

    Attributes:
        outcome: of the last attempt of the rung.
        signature: one that its log shows; "" where there is none that is known.
        telling: words of the log by which a person sees what is wrong.
    """

    outcome: str
    signature: str = ""
    telling: str


class Draft(_Part):
    """A reply of the structured rung, complete; lists that are not named are empty."""

    python: str = "3.11"
    requirements: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    overrides: tuple[str, ...] = ()
    build_requirements: tuple[str, ...] = ()
    build_constraints: tuple[str, ...] = ()
    system_packages: tuple[str, ...] = ()
    env: dict[str, str] = Field(default_factory=dict)
    build_env: dict[str, str] = Field(default_factory=dict)
    modes: tuple[str, ...]
    addopts: tuple[str, ...] = ()
    reasons: dict[str, str]

    @property
    def value(self) -> dict[str, Any]:
        """The JSON value that a model says."""
        variables = {
            name: [{"name": key, "value": value} for key, value in getattr(self, name).items()]
            for name in ("env", "build_env")
        }
        reasons = [{"field": field, "reason": reason} for field, reason in self.reasons.items()]
        return {**self.model_dump(mode="json"), **variables, "reasons": reasons, "give_up": None}


class Reply(_Part):
    """One reply of the structured rung.

    Attributes:
        sees: what the request must show, for a person to answer like this.
        outcome: what becomes of it.
    """

    sees: tuple[str, ...]
    outcome: str = "ok"
    draft: Draft


class Step(_Part):
    """One call in a session of the agent rung.

    Attributes:
        tool: it is called with `argument`; `write_recipe` with the last draft.
        shows: what the answer must hold.
    """

    tool: str
    argument: str = ""
    shows: str = ""


class Case(_Part):
    """A pair of releases, what is wrong with it, and who says what about it."""

    name: str
    cause: str
    why: str
    slow: bool = True
    pair: ReleasePair
    declared: Declared
    structured: tuple[Reply, ...]
    agent: tuple[Step, ...]

    @property
    def instance_id(self) -> str:
        """The candidate that the pair is mined as."""
        return instance_id(self.pair)

    @property
    def drafts(self) -> list[Behaviour]:
        """What the endpoint says to the structured rung, in order."""
        return [_when(reply.sees, replies.structured(reply.draft.value)) for reply in self.structured]

    @property
    def session(self) -> list[Behaviour]:
        """What it says to the agent rung, in order."""
        return list(self._session())

    def _session(self) -> Iterator[Behaviour]:
        shown: tuple[str, ...] = (self.declared.telling,)
        for step in self.agent:
            names = {"run": "command", "read": "path", "write_recipe": "recipe"}
            argument = self.structured[-1].draft.value if step.tool == "write_recipe" else step.argument
            yield _when(shown, replies.tool_calls((step.tool, {names[step.tool]: argument})))
            shown = (step.shows,) if step.shows else ()


def _when(shown: tuple[str, ...], said: Behaviour) -> Callable[[Asked], Answer]:
    """Say something to a request whose last message shows what it has to: a person could not say it otherwise."""

    def behave(asked: Asked) -> Answer:
        last = asked.messages[-1]["content"]
        missing = [text for text in shown if text not in last]
        if missing:
            raise AssertionError(f"the request does not show {missing}:\n{last}")
        return said(asked)

    return behave


def cases() -> list[Case]:
    """Read every case of the folder."""
    return [_read(file) for file in sorted(FOLDER.glob("*.toml"))]


def _read(file: Path) -> Case:
    return Case.model_validate({"name": file.stem, **tomllib.loads(file.read_text(encoding="utf-8"))})

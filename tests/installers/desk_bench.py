"""A desk with its ledger, for tests that ask models: what was asked, charged and kept can be looked at."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from installers.models.desk import Answer, Desk
from installers.models.interface import Message, Model, Prompt, Reply, Request, Trouble, Usage
from installers.models.purse import Purse
from miner.core import tables as t
from miner.core.blobs import BlobStore
from miner.core.ledger import Ledger
from miner.core.memo import KeyedLocks, Memo, utc_now
from miner.core.reasons import Reason
from miner.core.records import Fact
from miner.core.settings import Endpoint, Price, load_settings
from miner.core.spending import Caps, Spending

PROMPT = Prompt(name="test.j2", version="0" * 64, text="x")
PRICE = Price(input=1.0, output=10.0)
MODEL = "small"
NO_CAPS = Caps()


def asking(text: str = "What is missing?", *, max_tokens: int = 100, **changes: Any) -> Request:
    return Request(model=MODEL, messages=(Message(role="user", content=text),), max_tokens=max_tokens, **changes)


def saying(text: str = "libpq-dev", *, read: int = 50, written: int = 10, **changes: Any) -> Reply:
    return Reply(text=text, finish="stop", usage=Usage(input_tokens=read, output_tokens=written), **changes)


def trouble(reason: Reason = Reason.MODEL_ERROR, **changes: Any) -> Trouble:
    return Trouble("it is not well", reason=reason, **changes)


class Bench:
    """The ledger of a few runs, and desks over it; waits are noted, not waited for."""

    def __init__(self, folder: Path, *runs: str) -> None:
        self.ledger = Ledger(f"sqlite:///{folder}/ledger.sqlite3")
        for run in runs or ("r",):
            self.ledger.begin_run(run, "run", load_settings(environ={}), {})
        self.blobs = BlobStore(str(folder / "blobs"))
        self.spending = Spending(self.ledger)
        self.waits: list[float] = []
        self.stopped = threading.Event()
        self.now: Callable[[], datetime] = utc_now
        self._locks = KeyedLocks()

    def memo(self, run: str = "r") -> Memo:
        return Memo(
            self.ledger.find,
            lambda fact: self.ledger.add(fact, run),
            recheck_after=timedelta(hours=6),
            clock=lambda: self.now(),
            locks=self._locks,
        )

    def desk(
        self,
        model: Model,
        *,
        caps: Caps = NO_CAPS,
        run: str = "r",
        prices: Mapping[str, Price] | None = None,
        clock: Callable[[], float] | None = None,
        **endpoint: Any,
    ) -> Desk:
        more = {} if clock is None else {"clock": clock}
        return Desk(
            {MODEL: model},
            {MODEL: PRICE} if prices is None else prices,
            Purse(self.spending, run, caps),
            self.blobs,
            Endpoint(**endpoint),
            stopped=self.stopped,
            sleep=self.waits.append,
            **more,
        )

    def ask(self, desk: Desk, request: Request | None = None, *, run: str = "r", **named: Any) -> Answer:
        named = {"repository": "o/a", "prompt": PROMPT, **named}
        return desk.ask(self.memo(run), request or asking(), **named)

    def facts(self, kind: str) -> list[Fact]:
        rows = self.ledger.rows(t.facts.select().where(t.facts.c.kind == kind).order_by(t.facts.c.observed_at))
        return [fact for row in rows if (fact := self.ledger.get(row.fact_id)) is not None]

    def charged(self) -> list[int | None]:
        """What each reservation was settled with, in nano-dollars."""
        return [row.money for row in self.ledger.rows(t.spending.select().order_by(t.spending.c.id))]

    def bounds(self) -> list[int]:
        """What each reservation was made for, in nano-dollars."""
        return [row.bound for row in self.ledger.rows(t.spending.select().order_by(t.spending.c.id))]

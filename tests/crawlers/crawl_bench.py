"""What tests of the crawl work with: a forge, a ledger, and a source whose time the test sets."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from forge.limits import Limits
from forge.repository import Repo
from forge.server import Forge
from forge.world import World

from miner.core.blobs import BlobStore
from miner.core.ledger import Ledger
from miner.core.memo import Emit, KeyedLocks, Memo
from miner.core.records import Fact, FactKey, Observation
from miner.core.settings import Settings, load_settings
from miner.crawlers.github.client import ForgeClient
from miner.crawlers.github.items import PullItem
from miner.crawlers.github.month import Month
from miner.crawlers.github.repository_search import search_repositories
from miner.crawlers.github.source import GithubSource
from miner.crawlers.interface import Found

MONTH = "2025-05"
NOW = datetime(2025, 6, 8, 12, tzinfo=UTC)


class Killed(Exception):
    """What a test does to a crawl."""


class Bench:
    """One ledger and one forge; `crawl` is a whole run of discovery.

    Attributes:
        now: the present time, which a test may let pass.
        killed_after: facts that are stored before the crawl is killed; None: it is not.
    """

    def __init__(self, forge: Forge, folder: Path) -> None:
        self.forge = forge
        self.folder = folder
        self.blobs = BlobStore(str(folder / "blobs"))
        self.ledger = Ledger(f"sqlite:///{folder / 'ledger.sqlite3'}")
        self.ledger.begin_run("run", "run", self.settings(), {})
        self.now = NOW
        self._locks = KeyedLocks()
        self.killed_after: int | None = None
        self.facts: list[Fact] = []
        self.on_fact: Callable[[Fact], None] = lambda fact: None

    def settings(self, month: str = MONTH, **changed: Any) -> Settings:
        said = [f"{name.replace('__', '.')}={value}" for name, value in changed.items()]
        forge = self.forge
        return load_settings(
            overrides=[
                f"mine.month={month}",
                f"paths.work={self.folder}",
                f"github.url={forge.url}",
                f"github.api_url={forge.api_url}",
                f"github.graphql_url={forge.graphql_url}",
                "github.tries=2",
                *said,
            ],
            environ={},
        )

    def source(self, *names: str, month: str = MONTH, **changed: Any) -> GithubSource:
        if names:
            changed["mine__repositories"] = str(list(names)).replace("'", '"')
        settings = self.settings(month, **changed)
        return GithubSource(settings, self.client(), self.blobs, self.folder / "mirrors", clock=self.clock)

    def memo(self, emit: Emit | None = None) -> Memo:
        return Memo(self._find, emit or self.store, clock=self.clock, locks=self._locks)

    def _find(self, key: FactKey) -> list[Fact]:
        """A fact whose blobs are lost is not known, as in a run."""
        found = self.ledger.find(key)
        return [fact for fact in found if key.ordinal == -1 or all(map(self.blobs.has, fact.blobs.values()))]

    def lose(self, digest: str) -> None:
        (self.folder / "blobs" / digest[:2] / f"{digest}.zst").unlink()

    def clock(self) -> datetime:
        return self.now

    def store(self, fact: Fact) -> None:
        if self.killed_after is not None and len(self.facts) >= self.killed_after:
            raise Killed
        self.ledger.add(fact, "run")
        self.facts.append(fact)
        self.on_fact(fact)

    def crawl(self, *names: str, month: str = MONTH, **changed: Any) -> dict[str, Found[PullItem]]:
        """Crawl repositories from the beginning, as a new run does."""
        source = self.source(*names, month=month, **changed)
        return {unit: source.discover(unit, self.memo()) for unit in source.units(self.memo())}

    def search(self, query: str, month: str = MONTH) -> tuple[dict[int, str], tuple[str, ...]]:
        """Search for repositories."""
        return search_repositories(query, Month.of(month), self.client(), self.memo(), self.blobs)

    def client(self) -> ForgeClient:
        settings = self.settings().github
        return ForgeClient(settings, tokens=("a" * 40,), clock=self.clock, sleep=lambda seconds: None)

    def looked_up(self, item: PullItem) -> Fact:
        """Return the fact that the step `look_up` would measure."""
        source = self.source(item.full_name)

        def run() -> Observation:
            seen = source.look_up(item)
            return seen.model_copy(update={"payload": {**item.identity, **seen.payload}})

        return self.memo().measure(source.look_up_producer, "crawl.look_up", item.instance_id, item.inputs, run)

    def extracted(self, source: GithubSource, item: PullItem, looked_up: Fact) -> Fact:
        """Return the fact that the step `extract` would measure."""
        inputs = {"looked_up": looked_up.payload}
        producer = source.extract_producer
        run = partial(source.extract, item, looked_up)
        return self.memo().measure(producer, "crawl.extract", item.instance_id, inputs, run)

    def kept(self, kind: str) -> list[Fact]:
        """Return the standing facts of a kind."""
        return [fact for fact in self.facts if fact.key.kind == kind]

    def pass_time(self, **delta: float) -> None:
        self.now += timedelta(**delta)

    def asked(self, work: Callable[[], Any]) -> list[str]:
        """Return what was asked of the forge while something was done: names of documents, or paths."""
        before = len(self.forge.log)
        work()
        return [entry.document or entry.path for entry in list(self.forge.log)[before:]]


def forge_of(world: World) -> Forge:
    """Return a forge whose limits nothing reaches."""
    return Forge(world, limits=Limits.none())


def truth(repo: Repo, month: str = MONTH) -> set[int]:
    """Return the numbers of all pull requests that were merged in a month, by looking at each."""
    return {pull.number for pull in repo.pulls if (pull.merged_at or "").startswith(month)}


def crawled(found: Found[PullItem]) -> set[int]:
    return {item.number for item in found.items}

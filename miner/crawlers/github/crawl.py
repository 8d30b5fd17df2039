"""What a month needs of repositories, asked for: small ones many at once, and of each only what is not known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta

from miner.core.blobs import BlobStore
from miner.core.memo import Clock, KeyedLocks, Memo
from miner.core.records import Fact
from miner.core.settings import Crawl as CrawlSettings
from miner.crawlers.github.answers import parse_repository
from miner.crawlers.github.client import ForgeClient
from miner.crawlers.github.completion import complete_together, look_up_together
from miner.crawlers.github.coverage import Coverage, Sight, coverage
from miner.crawlers.github.groups import groups_of, neighbours
from miner.crawlers.github.harvest import Missing, linked, missing_on
from miner.crawlers.github.model import Repository
from miner.crawlers.github.month import Month
from miner.crawlers.github.plans import Plan, Wanted, first_plan, wanted
from miner.crawlers.github.reading import reading
from miner.crawlers.github.renewal import Versions, is_due, last_look, look, renew
from miner.crawlers.github.repositories import counts_of, repository_fact
from miner.crawlers.github.walk import Desk, Gone, begun_plan, check, pages_of, read, read_together, walks_of

_ROUNDS = 4
Planned = tuple[Repository, Plan, int]
"""What is to be read of a repository, and the number of the walk that it is."""


class Crawl:
    """One month's crawl; safe to share between threads.

    Args:
        month: of the merges.
        settings: how it is done.
        forge: asks the forge.
        blobs: where answers are kept.
        clock: the present time.
    """

    def __init__(
        self, month: Month, settings: CrawlSettings, forge: ForgeClient, blobs: BlobStore, clock: Clock
    ) -> None:
        self._month = month
        self._settings = settings
        self._forge = forge
        self._blobs = blobs
        self._clock = clock
        self._locks = KeyedLocks()
        self._small: set[str] = set()
        self._neighbours: dict[str, tuple[str, ...]] = {}
        self._looked: set[str] = set()
        self._read: set[str] = set()

    def first_page(self, fact: Fact) -> int:
        """Return about how many pull requests the first page of a repository has to hold; 0: none is asked for."""
        page = self._settings.page_size
        ask = reading(first_plan(Coverage(), self._month, counts_of(fact), page=page)).ask(page)
        return ask.size if ask is not None else 0

    def put_together(self, sizes: Iterable[tuple[str, int]]) -> None:
        """Say which repositories there are, and about how many pull requests the first page of each has to hold."""
        sizes = list(sizes)
        self._small = {name for name, size in sizes if 0 < size <= self._settings.page_size}
        self._neighbours = neighbours(name for name, size in sizes if size)

    def desk(self, memo: Memo) -> Desk:
        """Return what the parts of a crawl work with."""
        return Desk(self._forge, self._blobs, memo, self._settings.page_size)

    def bring(self, unit: str, fact: Fact, repository: Repository, memo: Memo) -> Coverage:
        """Ask for what the month needs, and return all that is known then.

        Raises:
            Gone: the repository is not there any more.
            InfrastructureFault: the forge does not answer; what it has answered is kept.
        """
        desk, since = self.desk(memo), self._clock() - timedelta(hours=self._settings.refresh_after_hours)
        known = self._pages(unit, fact, repository, desk, since)
        sights = known.merged_in(self._month)
        if is_due(last_look(desk, repository, self._month), (sight.seen_at for sight in sights), since):
            self._look(unit, desk, since)
        renew(desk, repository, self._month)
        return known

    def kept(self, repository: Repository, memo: Memo) -> Coverage | None:
        """Return what is known of a repository without asking; None where the month was never read whole."""
        desk = self.desk(memo)
        known = coverage(pages_of(desk, repository), walks_of(desk, repository))
        return known if known.of(self._month) is not None else None

    def doubts(self, known: Coverage, repository: Repository, memo: Memo) -> tuple[str, ...]:
        """Return what could not be seen, or may still change."""
        notes: list[str] = []
        held = known.of(self._month)
        closes = self._month.end + timedelta(days=self._settings.close_after_days)
        if held is not None and (seen := known.fresh_at(held)) < closes:
            notes.append(f"{self._month.name} is open until {closes:%Y-%m-%d}: seen on {seen:%Y-%m-%d %H:%M}")
        walks = [fact.payload for fact in walks_of(self.desk(memo), repository) if fact.payload.get("month")]
        last = next((walk for walk in reversed(walks) if walk["month"] == self._month.name), None)
        if last is None:
            return tuple(notes)
        if last["expected"] != last["found"]:
            notes.append(
                f"the forge's search counts {last['expected']} merged pull requests, found were {last['found']}"
            )
        if last["missing"]:
            notes.append(f"the forge counts {last['missing']} pull requests that it does not show")
        if last["bounded"]:
            notes.append("pull requests were touched all the time while they were read: some may be missed")
        return tuple(notes)

    def _pages(self, unit: str, fact: Fact, repository: Repository, desk: Desk, since: datetime) -> Coverage:
        known, want = self._wanted(desk, repository, fact, since)
        if want is not None and not _is_nothing(want) and unit in self._small:
            self._read_neighbours(unit, desk, since)
            known, want = self._wanted(desk, repository, fact, since)
        for _ in range(_ROUNDS):
            if want is None:
                break
            if isinstance(want, Plan):
                read(desk, repository, want, known, counts_of(fact).glimpse)
            else:
                check(desk, repository, known)
            known, want = self._wanted(desk, repository, fact, since)
        return known

    def _wanted(self, desk: Desk, repository: Repository, fact: Fact, since: datetime) -> tuple[Coverage, Wanted]:
        known = self._known(desk, repository)
        return known, wanted(known, self._month, counts_of(fact), since=since, page=desk.page)

    def _known(self, desk: Desk, repository: Repository) -> Coverage:
        return coverage(pages_of(desk, repository), walks_of(desk, repository))

    def _read_neighbours(self, unit: str, desk: Desk, since: datetime) -> None:
        """Read the first pages of a repository and of its neighbours, and what those leave out, by few documents.

        None of them fills a document alone. Once in a run; what one of them lacks then is left to itself.
        """
        group = self._neighbours[unit]
        with self._locks.of(f"read/{group[0]}"):
            if group[0] in self._read:
                return
            small = [name for name in group if name in self._small]
            plans = [
                plan
                for repository, fact in self._repositories(small, desk)
                if (plan := self._plan(desk, repository, fact, since)) is not None
            ]
            if len(plans) > 1:
                for together in self._packed(plans):
                    read_together(desk, together)
                missing = [(repository, self._missing(desk, repository)) for repository, *_ in plans]
                look_up_together(desk, ((repository, found.numbers) for repository, found in missing))
                complete_together(desk, ((repository, found.lists) for repository, found in missing))
            self._read.add(group[0])

    def _plan(self, desk: Desk, repository: Repository, fact: Fact, since: datetime) -> Planned | None:
        """Return what is to be read of a repository, and as which walk; None where that is left to itself."""
        known, want = self._wanted(desk, repository, fact, since)
        if want == "check":
            try:
                check(desk, repository, known)
            except Gone:
                return None
            known, want = self._wanted(desk, repository, fact, since)
        if not isinstance(want, Plan) or want.nothing or begun_plan(known) is not None:
            return None
        return repository, want, known.next_walk

    def _packed(self, plans: Sequence[Planned]) -> Iterator[list[Planned]]:
        """Yield those that one document takes."""
        page, by_name = self._settings.page_size, {repository.full_name: one for one in plans for repository in one[:1]}
        asks = {name: reading(plan).ask(page) for name, (_, plan, _) in by_name.items()}
        groups = groups_of([(name, ask.size) for name, ask in asks.items() if ask is not None], page)
        alone = [(name,) for name in by_name if name not in groups]
        for group in (*dict.fromkeys(groups.values()), *alone):
            yield [by_name[name] for name in group]

    def _missing(self, desk: Desk, repository: Repository) -> Missing:
        known = coverage(pages_of(desk, repository), ())
        return missing_on(desk, repository, known.merged_in(self._month))

    def _look(self, unit: str, desk: Desk, since: datetime) -> None:
        """Ask when the issues of a repository and of its neighbours were touched last: once in a run."""
        group = self._neighbours.get(unit, (unit,))
        with self._locks.of(f"look/{group[0]}"):
            if unit in self._looked:
                return
            due: list[tuple[Repository, Versions]] = []
            for repository, _ in self._repositories((name for name in group if name not in self._looked), desk):
                old = self._read_before(desk, repository, since)
                if is_due(last_look(desk, repository, self._month), (sight.seen_at for sight in old), since):
                    due.append((repository, linked(desk, repository, old)))
            look(desk, self._month, due)
            self._looked.update(group)

    def _read_before(self, desk: Desk, repository: Repository, since: datetime) -> list[Sight]:
        return [sight for sight in self._known(desk, repository).merged_in(self._month) if sight.seen_at < since]

    def _repositories(self, names: Iterable[str], desk: Desk) -> Iterable[tuple[Repository, Fact]]:
        for name in names:
            fact = repository_fact(name, self._month, self._forge, desk.memo, self._blobs)
            if fact.ok:
                yield parse_repository(fact.payload["repository"]), fact


def _is_nothing(want: Wanted) -> bool:
    return isinstance(want, Plan) and want.nothing

"""Source `github`: the merged pull requests of a month, of many repositories, that close issues.

units      which repositories; what the forge says of each          (network, many at once)
discover   pages -> completions and look-ups -> links -> items      (network: one repository, or none)
look_up    the answers about one pull request                       (no network: they are known)
extract    both trees from a mirror                                 (network: git)
candidate  statement, links, split: computed from those two         (pure)
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path

import structlog

from miner.core.blobs import BlobStore
from miner.core.errors import ConfigError
from miner.core.memo import Clock, KeyedLocks, Memo, utc_now
from miner.core.reasons import Reason
from miner.core.records import Candidate, Fact, Observation, Producer
from miner.core.settings import Settings, configs_dir
from miner.crawlers.git_repo import GitRepo
from miner.crawlers.github.answers import Crawled, assemble, parse_repository
from miner.crawlers.github.candidate import compute_pull_candidate
from miner.crawlers.github.client import ForgeClient
from miner.crawlers.github.completion import look_up_together
from miner.crawlers.github.coverage import Coverage, coverage
from miner.crawlers.github.filters import sampled
from miner.crawlers.github.groups import groups_of
from miner.crawlers.github.harvest import harvest, named_on, subject_from
from miner.crawlers.github.items import PullItem
from miner.crawlers.github.model import Repository
from miner.crawlers.github.month import Month
from miner.crawlers.github.optout import OptOut, full_name, read_list, read_optout, unique
from miner.crawlers.github.plans import Plan, Wanted, first_plan, wanted
from miner.crawlers.github.reading import reading
from miner.crawlers.github.repositories import (
    counts_of,
    ids_of_names,
    measure_repositories,
    name_at_first_sight,
    repository_fact,
)
from miner.crawlers.github.repository_search import search_repositories
from miner.crawlers.github.walk import Desk, Gone, begun_plan, check, pages_of, read, read_together, walks_of
from miner.crawlers.interface import Found, Rejection
from miner.crawlers.merged import Coordinates, extract_pull, whole_trees
from miner.crawlers.mirror import Mirror, Mirrors

LOOK_UP = Producer(name="github.look_up")
EXTRACT = Producer(name="github.extract")
OPTOUT = Producer(name="github.optout")
_ROUNDS = 4
_log = structlog.get_logger()


class GithubSource:
    """The source as `miner.crawlers.interface.Source` asks for it; safe to share between threads.

    Args:
        settings: of the run.
        forge: asks the forge.
        blobs: where answers are kept.
        mirrors: folder of git mirrors.
        clock: the present time.
        stopped: ends what git is doing.

    Raises:
        ConfigError: no month is named.
    """

    name = "github"
    look_up_producer = LOOK_UP
    extract_producer = EXTRACT

    def __init__(
        self,
        settings: Settings,
        forge: ForgeClient,
        blobs: BlobStore,
        mirrors: Path,
        *,
        clock: Clock = utc_now,
        stopped: threading.Event | None = None,
    ) -> None:
        if settings.mine.month is None:
            raise ConfigError("mine.month: the source `github` mines a month", next_step="-c mine.month=2025-05")
        self._settings = settings
        self._month = Month.of(settings.mine.month)
        self._forge = forge
        self._blobs = blobs
        self._mirrors = Mirrors(mirrors, settings.github, stopped=stopped)
        self._clock = clock
        self._locks = KeyedLocks()
        self._groups: dict[str, tuple[str, ...]] = {}
        self._optout: OptOut | None = None

    def units(self, memo: Memo, /) -> tuple[str, ...]:
        """Return the repositories to look into, each once, by the name under which it was asked for first.

        Raises:
            ConfigError: a list cannot be read, or the month has not begun.
        """
        if self._month.start > self._clock():
            raise ConfigError(f"mine.month: {self._month.name} has not begun")
        out = self._opted_out(memo)
        names = self._names(memo)
        seen: dict[int, str] = {}
        kept: list[str] = []
        sizes: list[tuple[str, int]] = []
        asked = (name for name in names if not out.has_name(name))
        found = {fact.key.subject: self._sketch(fact) for fact in self._facts(asked, memo)}
        for name in names:
            forge_id, size = found.get(name, (None, 0))
            if forge_id is not None and seen.setdefault(forge_id, name) != name:
                continue
            kept.append(name)
            sizes.append((name, size))
        self._groups = groups_of(sizes, self._settings.measure.crawl.page_size)
        return tuple(kept)

    def discover(self, unit: str, memo: Memo, /) -> Found[PullItem]:
        """Return the pull requests of the month that one repository holds."""
        out = self._opted_out(memo)
        if out.has_name(unit):
            return Found(refused=_opted_out(unit))
        fact = repository_fact(unit, self._month, self._forge, memo, self._blobs)
        if not fact.ok:
            return Found(refused=Rejection(reason=Reason(fact.outcome), detail=fact.payload["detail"]))
        repository = parse_repository(fact.payload["repository"])
        unit_id = str(repository.forge_id)
        repo = name_at_first_sight(repository.forge_id, repository.full_name, memo)
        if repository.forge_id in out.ids or out.has_name(repository.full_name) or out.has_name(repo):
            return Found(unit_id=unit_id, refused=_opted_out(repository.full_name))
        refused, notes = self._refused(repository)
        if refused is not None:
            return Found(unit_id=unit_id, refused=refused, notes=notes)
        try:
            known = self._crawl(unit, fact, repository, memo)
        except Gone as gone:
            return Found(unit_id=unit_id, refused=Rejection(reason=gone.reason, detail=gone.detail), notes=notes)
        sights = known.merged_in(self._month)
        made = harvest(self._desk(memo), subject_from(fact, repository, repo, self._month), sights)
        if unit != repository.full_name.lower():
            notes += (f"asked for as {unit}, it is {repository.full_name} now",)
        return Found(
            items=tuple(made.items),
            unit_id=unit_id,
            merged=len(sights),
            unlinked=made.unlinked,
            notes=(*notes, *self._doubts(known, memo, repository), *made.notes),
        )

    def subject(self, item: PullItem, /) -> str:
        """Return the instance id of a pull request."""
        return item.instance_id

    def look_up(self, item: PullItem, /) -> Observation:
        """Return what was crawled of a pull request; nothing is asked."""
        return Observation(payload={"coordinates": item.coordinates.model_dump(mode="json")}, blobs=item.answers)

    def extract(self, _item: PullItem, looked_up: Fact, /) -> Observation:
        """Bring base and target of a pull request into its mirror."""
        mirror, at = self._mirror(looked_up)
        return extract_pull(mirror, at, self._blobs)

    def repository(self, _item: PullItem, looked_up: Fact, extracted: Fact, /) -> GitRepo:
        """Return the mirror of a pull request, with both trees."""
        mirror, at = self._mirror(looked_up)
        return whole_trees(mirror, at, extracted.payload)

    @staticmethod
    def candidate(looked_up: Fact, extracted: Fact, blobs: BlobStore, /) -> Candidate | Rejection:
        """Compute the candidate."""
        return compute_pull_candidate(looked_up, extracted, blobs)

    @staticmethod
    def crawled(looked_up: Fact, blobs: BlobStore, /) -> Crawled | None:
        """Return what the forge says about a pull request."""
        return assemble(looked_up, blobs)

    def _names(self, memo: Memo) -> tuple[str, ...]:
        mine = self._settings.mine
        names = [full_name(name, where="mine.repositories") for name in mine.repositories]
        if mine.repository_list is not None:
            names.extend(read_list(mine.repository_list))
        for query in mine.repository_search:
            found, notes = search_repositories(query, self._month, self._forge, memo, self._blobs)
            for note in notes:
                _log.warning("repositories may be missing", seen=note)
            names.extend(name.lower() for name in found.values())
        return unique(names)

    def _facts(self, names: Iterable[str], memo: Memo) -> Iterable[Fact]:
        return measure_repositories(names, self._month, self._forge, memo, self._blobs)

    def _sketch(self, fact: Fact) -> tuple[int | None, int]:
        """Return a repository's id, and about how many pull requests its first page has to hold (0: none is asked)."""
        if not fact.ok:
            return None, 0
        repository = parse_repository(fact.payload["repository"])
        page = self._settings.measure.crawl.page_size
        if self._refused(repository)[0] is not None:
            return repository.forge_id, 0
        ask = reading(first_plan(Coverage(), self._month, counts_of(fact), page=page)).ask(page)
        return repository.forge_id, ask.size if ask is not None else 0

    def _refused(self, repository: Repository) -> tuple[Rejection | None, tuple[str, ...]]:
        policy = self._settings.policy
        return sampled(
            repository,
            policy.repositories,
            as_of=self._month.end,
            share=policy.pulls.gate_sample,
            seed=self._settings.mine.seed,
        )

    def _opted_out(self, memo: Memo) -> OptOut:
        """Return who is never mined; names are followed to the repositories that they lead to now."""
        with self._locks.of("optout"):
            if self._optout is None:
                said = read_optout(configs_dir() / "optout.toml")
                if self._settings.mine.optout is not None:
                    said = said.joined(read_optout(self._settings.mine.optout))
                names = sorted(said.names)
                ids = self._ids_of(names, memo) if names else []
                self._optout = said.joined(OptOut(ids=frozenset(ids)))
            return self._optout

    def _ids_of(self, names: list[str], memo: Memo) -> list[int]:
        def run() -> Observation:
            return Observation(payload={"ids": sorted(ids_of_names(names, self._forge).values())}, network=True)

        inputs = {"names": names, "month": self._month.name}
        fact = memo.measure(OPTOUT, "crawl.optout", "optout", inputs, run)
        return [int(number) for number in fact.payload["ids"]]

    def _desk(self, memo: Memo) -> Desk:
        return Desk(self._forge, self._blobs, memo, self._settings.measure.crawl.page_size)

    def _mirror(self, looked_up: Fact) -> tuple[Mirror, Coordinates]:
        at = Coordinates.model_validate(looked_up.payload["coordinates"])
        return self._mirrors.of(at.full_name, at.repository_id, at.network_id), at

    def _crawl(self, unit: str, fact: Fact, repository: Repository, memo: Memo) -> Coverage:
        """Ask for what the month needs, and return all that is known then."""
        desk, counts = self._desk(memo), counts_of(fact)
        since = self._clock() - timedelta(hours=self._settings.measure.crawl.refresh_after_hours)
        known, want = self._wanted(desk, repository, fact, since)
        if isinstance(want, Plan) and not want.nothing and unit in self._groups:
            self._read_group(unit, desk, since)
            known, want = self._wanted(desk, repository, fact, since)
        for _ in range(_ROUNDS):
            if want is None:
                break
            if isinstance(want, Plan):
                read(desk, repository, want, known, counts.glimpse)
            else:
                check(desk, repository, known)
            known, want = self._wanted(desk, repository, fact, since)
        return known

    def _wanted(self, desk: Desk, repository: Repository, fact: Fact, since: datetime) -> tuple[Coverage, Wanted]:
        known = coverage(pages_of(desk, repository), walks_of(desk, repository))
        return known, wanted(known, self._month, counts_of(fact), since=since, page=desk.page)

    def _read_group(self, unit: str, desk: Desk, since: datetime) -> None:
        """Read the first pages of a repository and of its neighbours at once: none of them fills a page alone."""
        group = self._groups[unit]
        with self._locks.of(f"group/{group[0]}"):
            together: list[tuple[Repository, Plan, int]] = []
            for name in group:
                fact = repository_fact(name, self._month, self._forge, desk.memo, self._blobs)
                if fact.ok:
                    repository = parse_repository(fact.payload["repository"])
                    known, want = self._wanted(desk, repository, fact, since)
                    if isinstance(want, Plan) and not want.nothing and begun_plan(known) is None:
                        together.append((repository, want, known.next_walk))
            if len(together) > 1:
                read_together(desk, together)
                look_up_together(desk, [(repository, self._named(desk, repository)) for repository, *_ in together])

    def _named(self, desk: Desk, repository: Repository) -> set[int]:
        known = coverage(pages_of(desk, repository), ())
        return named_on(desk, repository, known.merged_in(self._month))

    def _doubts(self, known: Coverage, memo: Memo, repository: Repository) -> tuple[str, ...]:
        """Return what could not be seen, or may still change."""
        notes: list[str] = []
        held = known.of(self._month)
        closes = self._month.end + timedelta(days=self._settings.measure.crawl.close_after_days)
        if held is not None and (seen := known.fresh_at(held)) < closes:
            notes.append(f"{self._month.name} is open until {closes:%Y-%m-%d}: seen on {seen:%Y-%m-%d %H:%M}")
        walks = [fact.payload for fact in walks_of(self._desk(memo), repository) if fact.payload.get("month")]
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


def _opted_out(name: str) -> Rejection:
    return Rejection(reason=Reason.REPOSITORY_OPTED_OUT, detail=f"{name} or its owner asked not to be mined")

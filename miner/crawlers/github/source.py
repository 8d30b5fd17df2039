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
from pathlib import Path

from miner.core.blobs import BlobStore
from miner.core.errors import ConfigError
from miner.core.memo import Clock, KeyedLocks, Memo, utc_now
from miner.core.reasons import Reason
from miner.core.records import Candidate, Fact, Observation, Producer
from miner.core.settings import Settings, configs_dir
from miner.core.text import some
from miner.crawlers.gharchive import HourArchive, repositories_with_hints
from miner.crawlers.git_repo import GitRepo
from miner.crawlers.github.answers import GATHERED, Crawled, assemble, parse_repository
from miner.crawlers.github.candidate import compute_pull_candidate
from miner.crawlers.github.client import ForgeClient
from miner.crawlers.github.crawl import Crawl
from miner.crawlers.github.filters import sampled
from miner.crawlers.github.harvest import harvest, subject_from
from miner.crawlers.github.hints import doubts_of, hints_of, measure_hours, others, reports_of
from miner.crawlers.github.items import PullItem
from miner.crawlers.github.model import Repository
from miner.crawlers.github.month import Month
from miner.crawlers.github.optout import OptOut, full_name, read_list, read_optout, unique
from miner.crawlers.github.repositories import (
    ids_of_names,
    measure_repositories,
    name_at_first_sight,
    repository_fact,
)
from miner.crawlers.github.repository_search import search_repositories
from miner.crawlers.github.walk import Gone
from miner.crawlers.interface import Found, Rejection
from miner.crawlers.merged import Coordinates, extract_pull, whole_trees
from miner.crawlers.mirror import Mirror, Mirrors

LOOK_UP = Producer(name="github.look_up")
EXTRACT = Producer(name="github.extract", epoch=2)
OPTOUT = Producer(name="github.optout")


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
        self._stopped = stopped
        self._crawl = Crawl(self._month, settings.measure.crawl, forge, blobs, clock)
        self._optout: OptOut | None = None
        self._notes: tuple[str, ...] = ()
        self._sizes: dict[str, int] = {}

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be said of the repositories that `units` returned, and of those that it may have missed."""
        return self._notes

    def units(self, memo: Memo, /) -> tuple[str, ...]:
        """Return the repositories to look into, each once, by the name under which it was asked for first.

        Raises:
            ConfigError: a list cannot be read, or the month has not begun.
        """
        if self._month.start > self._clock():
            raise ConfigError(f"mine.month: {self._month.name} has not begun")
        out = self._opted_out(memo)
        notes: list[str] = []
        listed = self._listed(memo, notes)
        hinted = self._hinted(memo, notes)
        names = unique((*listed, *hinted))
        asked = (name for name in names if not out.has_name(name))
        found = {fact.key.subject: self._sketch(fact) for fact in self._facts(asked, memo)}
        ids = {name: forge_id for name, (forge_id, _) in found.items() if forge_id is not None}
        strangers = others({name: hinted[name] for name in hinted.keys() - set(listed)}, ids)
        first: dict[int, str] = {}
        kept = [
            name
            for name in names
            if name not in strangers and (name not in ids or first.setdefault(ids[name], name) == name)
        ]
        if strangers:
            said = some([f"{name} ({ids[name]} now)" for name in names if name in strangers])
            notes.append(f"GH Archive means other repositories by names that were taken since: {said}")
        self._sizes = {name: found.get(name, (None, 0))[1] for name in kept}
        self._notes = tuple(notes)
        self.focus(kept)
        return tuple(kept)

    def focus(self, units: Iterable[str], /) -> None:
        """Crawl these and no others with them: what shares documents is put together anew."""
        self._crawl.put_together((name, self._sizes.get(name, 0)) for name in units)

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
            known = self._crawl.bring(unit, fact, repository, memo)
        except Gone as gone:
            kept = self._crawl.kept(repository, memo) if gone.reason is Reason.REPOSITORY_GONE else None
            if kept is None:
                return Found(unit_id=unit_id, refused=Rejection(reason=gone.reason, detail=gone.detail), notes=notes)
            known, notes = kept, (*notes, f"{gone.detail}; what was known before stands")
        sights = known.merged_in(self._month)
        made = harvest(self._crawl.desk(memo), subject_from(fact, repository, repo, self._month), sights)
        if unit != repository.full_name.lower():
            notes += (f"asked for as {unit}, it is {repository.full_name} now",)
        return Found(
            items=tuple(made.items),
            unit_id=unit_id,
            merged=len(sights),
            unlinked=made.unlinked,
            notes=(*notes, *self._crawl.doubts(known, repository, memo), *made.notes),
        )

    def subject(self, item: PullItem, /) -> str:
        """Return the instance id of a pull request."""
        return item.instance_id

    def look_up(self, item: PullItem, /) -> Observation:
        """Return what was crawled of a pull request; nothing is asked."""
        payload = {"coordinates": item.coordinates.model_dump(mode="json")}
        return Observation(payload=payload, blobs={GATHERED: item.answers}, logs=item.raw)

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

    def _listed(self, memo: Memo, notes: list[str]) -> tuple[str, ...]:
        """Return the repositories of lists and searches."""
        mine = self._settings.mine
        names = [full_name(name, where="mine.repositories") for name in mine.repositories]
        if mine.repository_list is not None:
            names.extend(read_list(mine.repository_list))
        for query in mine.repository_search:
            found, doubts = search_repositories(query, self._month, self._forge, memo, self._blobs)
            notes.extend(doubts)
            names.extend(name.lower() for name in found.values())
        return unique(names)

    def _hinted(self, memo: Memo, notes: list[str]) -> dict[str, set[int]]:
        """Return the repositories in which the archive saw merges, by their names then: Python, or nobody knows."""
        if self._settings.mine.archive is None:
            return {}
        archive, month = HourArchive(self._settings.mine.archive, stopped=self._stopped), self._month.name
        facts = measure_hours(archive, self._month, memo, self._blobs)
        notes.extend(doubts_of(month, reports_of(month, facts)))
        named: dict[str, set[int]] = {}
        for hint in repositories_with_hints(hints_of(month, facts, self._blobs), language="Python"):
            named.setdefault(hint.repository.lower(), set()).add(hint.repository_id)
        return named

    def _facts(self, names: Iterable[str], memo: Memo) -> Iterable[Fact]:
        return measure_repositories(names, self._month, self._forge, memo, self._blobs)

    def _sketch(self, fact: Fact) -> tuple[int | None, int]:
        """Return a repository's id, and about how many pull requests its first page has to hold (0: none is asked)."""
        if not fact.ok:
            return None, 0
        repository = parse_repository(fact.payload["repository"])
        is_refused = self._refused(repository)[0] is not None
        return repository.forge_id, 0 if is_refused else self._crawl.first_page(fact)

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

    def _mirror(self, looked_up: Fact) -> tuple[Mirror, Coordinates]:
        at = Coordinates.model_validate(looked_up.payload["coordinates"])
        return self._mirrors.of(at.full_name, at.repository_id, at.network_id), at


def _opted_out(name: str) -> Rejection:
    return Rejection(reason=Reason.REPOSITORY_OPTED_OUT, detail=f"{name} or its owner asked not to be mined")

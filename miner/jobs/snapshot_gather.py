"""What belongs into a snapshot: all that discovery and extraction of a month read of what is known."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from miner.core.blobs import BlobStore
from miner.core.errors import InfrastructureFault
from miner.core.ledger import Ledger, fact_id
from miner.core.memo import Memo
from miner.core.reasons import Reason
from miner.core.records import Fact, FactKey, Intake, Seen, Visibility
from miner.core.settings import Settings
from miner.crawlers.github.items import PullItem
from miner.crawlers.github.month import Month
from miner.crawlers.github.repository_search import search_repositories
from miner.crawlers.github.source import OPTOUT
from miner.crawlers.interface import Found, Refused
from miner.crawlers.merged import Coordinates
from miner.crawlers.snapshot import ClosedForge, OfflineSource
from miner.crawlers.snapshot_facts import file_of
from miner.crawlers.snapshot_git import Extracted, NotInSnapshot, contents_of, names_of, write_bundle
from miner.crawlers.snapshot_manifest import GIT, SnapshotFile
from validators.case import EXTRACT, LOOK_UP

_OF_A_REPOSITORY = "repo-"


class Known:
    """What was read of a ledger: facts by their place in the file.

    Attributes:
        digests: of their blobs.
        repositories: ids of those that they are about.
        until: time of the last observation.
    """

    def __init__(self) -> None:
        self._facts: dict[str, tuple[str | int, ...]] = {}
        self.digests: set[str] = set()
        self.repositories: set[str] = set()
        self.until: datetime | None = None

    def note(self, fact: Fact) -> None:
        """Take note of a fact."""
        key = fact.key
        place = (key.kind, key.subject, key.input_hash, key.producer, key.epoch, key.ordinal)
        self._facts[fact_id(key)] = place
        self.digests.update(fact.blobs.values(), fact.logs.values())
        if key.subject.startswith(_OF_A_REPOSITORY):
            self.repositories.add(key.subject.removeprefix(_OF_A_REPOSITORY))
        self.until = fact.observed_at if self.until is None else max(self.until, fact.observed_at)

    def add(self, other: Known) -> None:
        """Take over what another one holds."""
        self._facts |= other._facts
        self.digests |= other.digests
        self.repositories |= other.repositories
        self.until = max((at for at in (self.until, other.until) if at is not None), default=None)

    def ordered(self) -> list[str]:
        """Return the ids of all facts, in the order of the file."""
        return sorted(self._facts, key=lambda name: self._facts[name])


@dataclass
class Gathered:
    """What a snapshot is made of.

    Attributes:
        units: repositories, by the names under which they were asked for.
        missing: those of which the crawl did not come to its end.
        pulls: by the number of the fork network.
        hidden: candidates that are left out, by visibility.
        hidden_units: repositories that are left out.
        closed: candidates that are not public, and not left out.
    """

    known: Known = field(default_factory=Known)
    units: list[str] = field(default_factory=list)
    opted_out: list[str] = field(default_factory=list)
    missing: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    merged: int = 0
    linked: int = 0
    unlinked: int = 0
    extracted: int = 0
    incomplete: int = 0
    pulls: defaultdict[int, list[Extracted]] = field(default_factory=lambda: defaultdict(list))
    hidden: Counter[Visibility] = field(default_factory=Counter)
    hidden_units: set[str] = field(default_factory=set)
    closed: list[Seen] = field(default_factory=list)

    def take(self, unit: str, found: Found[PullItem] | None) -> None:
        """Count what a repository came to; None: its crawl did not come to its end."""
        self.units.append(unit)
        if found is None:
            self.missing += 1
            return
        if found.refused is not None:
            self.refused[found.refused.reason.value] += 1
        self.merged += found.merged
        self.linked += len(found.items)
        self.unlinked += found.unlinked


def gather(
    ledger: Ledger,
    blobs: BlobStore,
    settings: Settings,
    source: OfflineSource,
    intake: Iterable[Intake],
    *,
    not_public: bool,
) -> Gathered:
    """Return what a snapshot of a run is made of; what trees lack is fetched.

    Args:
        ledger: is held.
        blobs: of the ledger.
        settings: of the run.
        source: over what the ledger knows.
        intake: of the run.
        not_public: leave nothing out.

    Raises:
        InfrastructureFault: the forge does not give what is needed now, or a mirror or blob is damaged.
    """
    made = Gathered()
    closed = _closed(ledger)
    _memo(ledger, blobs, made.known).known(OPTOUT, "crawl.optout", "optout")
    for unit in sorted(one.unit for one in intake):
        known = Known()
        memo = _memo(ledger, blobs, known)
        try:
            found = source.discover(unit, memo)
        except NotInSnapshot:
            found = None
        if not not_public and (hidden := [seen for seen in closed if _is_of(seen, unit, known)]):
            made.hidden_units.add(unit)
            made.hidden.update(seen.visibility for seen in hidden if seen.month == settings.mine.month)
            continue
        if found is not None and found.refused and found.refused.reason is Reason.REPOSITORY_OPTED_OUT:
            made.opted_out.append(unit)
            made.take(unit, found)
            continue
        made.take(unit, found)
        for item in found.items if found is not None else ():
            _gather_item(made, source, item, memo, settings)
        made.known.add(known)
    if not made.hidden_units:
        _search_again(settings, blobs, _memo(ledger, blobs, made.known))
    if not_public:
        here = made.known.repositories
        made.closed = [seen for seen in closed if seen.unit_id in here and seen.month == settings.mine.month]
    return made


def _is_of(seen: Seen, unit: str, known: Known) -> bool:
    """Whether a candidate is of a repository: by its id, or by a name, where nothing is known of it any more."""
    names = {str(seen.origin.get(name)).lower() for name in ("repo", "full_name")}
    return seen.unit_id in known.repositories or unit in names


def _search_again(settings: Settings, blobs: BlobStore, memo: Memo) -> None:
    """Read the facts of the searches that found the repositories."""
    month, forge = Month.of(settings.mine.month or ""), ClosedForge(settings.github)
    for query in settings.mine.repository_search:
        with suppress(NotInSnapshot):
            search_repositories(query, month, forge, memo, blobs)


def _gather_item(made: Gathered, source: OfflineSource, item: PullItem, memo: Memo, settings: Settings) -> None:
    looked_up = memo.peek(source.look_up_producer, LOOK_UP, item.instance_id, item.inputs)
    if looked_up is None:
        return
    inputs = {"looked_up": looked_up.payload, "limits": settings.measure.archive}
    extracted = memo.peek(source.extract_producer, EXTRACT, item.instance_id, inputs)
    if extracted is None or not extracted.ok:
        return
    made.extracted += 1
    at, payload = item.coordinates, extracted.payload
    pull = Extracted(at, payload["base_commit"], payload["target_commit"])
    try:
        source.repository(item, looked_up, extracted)
    except InfrastructureFault as fault:
        if not isinstance(fault.__cause__, Refused):
            raise
        made.incomplete += 1
        mirror = source.mirror_at(at)
        if not (mirror.has(pull.base) and mirror.has(pull.target)):
            return
    made.pulls[at.network_id or at.repository_id].append(pull)


def write_bundles(part: Path, found: Gathered, source: OfflineSource) -> list[SnapshotFile]:
    """Write the bundle of each fork network, and return what a manifest says of them.

    Raises:
        GitFault: a mirror is damaged.
    """
    files = []
    for network in sorted(found.pulls):
        names: dict[str, str] = {}
        contents: dict[str, str] = {}
        for at, pulls in _by_repository(found.pulls[network]):
            mirror = source.mirror_at(at)
            names |= names_of(mirror, pulls)
            contents = {**contents_of(mirror.repo, pulls), **contents}
        path = f"{GIT}/{network}.bundle"
        write_bundle(mirror.repo, names, dict(sorted(contents.items())), part / path)
        files.append(file_of(part, path))
    return files


def _by_repository(pulls: Iterable[Extracted]) -> Iterator[tuple[Coordinates, list[Extracted]]]:
    grouped: defaultdict[int, list[Extracted]] = defaultdict(list)
    for pull in sorted(pulls, key=lambda pull: (pull.at.repository_id, pull.at.number)):
        grouped[pull.at.repository_id].append(pull)
    for found in grouped.values():
        yield found[0].at, found


def _closed(ledger: Ledger) -> list[Seen]:
    """Return the candidates that are not public."""
    rows = (row for row in ledger.candidates() if row.visibility != Visibility.PUBLIC.value and row.unit_id)
    return [
        Seen(
            instance_id=row.instance_id,
            source=row.source,
            origin=json.loads(row.origin),
            visibility=Visibility(row.visibility),
            month=row.month,
            unit_id=row.unit_id,
        )
        for row in rows
    ]


def _memo(ledger: Ledger, blobs: BlobStore, known: Known) -> Memo:
    """Return a memo that knows what a ledger knows, notes what it answers with, and measures nothing."""

    def find(key: FactKey) -> list[Fact]:
        found = [fact for fact in ledger.find(key) if all(map(blobs.has, (*fact.blobs.values(), *fact.logs.values())))]
        for fact in found:
            known.note(fact)
        return found

    def refuse(fact: Fact) -> None:
        raise NotInSnapshot(f"{fact.key.kind} of {fact.key.subject} is not known")

    return Memo(find, refuse, recheck_after=timedelta.max)

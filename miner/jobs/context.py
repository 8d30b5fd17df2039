"""What a run works with; what needs the engine or the network is opened when it is first needed, and once."""

from __future__ import annotations

import os
import shutil
import signal
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from datetime import timedelta
from functools import cached_property
from itertools import takewhile
from types import FrameType
from typing import Any

import docker

from installers.attempt import ATTEMPT, PRODUCER
from installers.eviction import AGAIN
from installers.interface import Lesson, Memory
from installers.memory import lesson_of, memory_of
from installers.models.desk import Desk, desk_of, recorded_desk
from installers.pythons import chosen_among
from installers.repair.learned import learned_rules
from installers.workshop import Room, Workshop
from miner.core.blobs import BlobStore
from miner.core.errors import InfrastructureFault, Interrupted
from miner.core.ledger import Ledger, fact_id
from miner.core.memo import Emit, KeyedLocks, Memo
from miner.core.reasons import Reason
from miner.core.records import Fact, FactKey, Seen, Visibility
from miner.core.settings import Settings
from miner.core.spending import Spending as Money
from miner.crawlers.github.tokens_pool import Spending
from miner.crawlers.index import IndexClient, index_hosts
from miner.crawlers.interface import Item, Source
from miner.jobs.disk import Disk, sweep
from miner.jobs.machine import versions
from miner.jobs.sources import means_of, open_source, settled, with_models, with_noted_models
from miner.sandbox import janitor
from miner.sandbox.base_image import BaseImage, ensure_base_image, known_base_image
from miner.sandbox.engine import connect
from miner.sandbox.network import egress
from validators.case import Reader


class Context:
    """The objects of one run; made by `open_context`, which closes them.

    Args:
        settings: of the run.
        closing: closes what is opened.
        source: where candidates come from; what the settings say by default.

    Attributes:
        stop: set when the run is to end early.
        new_facts: ids of the facts that this run has measured.
        owner: on whose behalf it makes things in the engine.
        spent: returns what was asked of the forge so far.
        spending: what language models have cost.
        disk: evicts what can be had again.
        ended: how a run is noted that came to its end.
    """

    def __init__(self, settings: Settings, closing: ExitStack, source: Source[Any] | None = None) -> None:
        self.ledger = Ledger(settings.paths.ledger)
        self.settings = settings = with_noted_models(settings, self.ledger)
        self.run_id = uuid.uuid4().hex
        self.stop = threading.Event()
        self.new_facts: set[str] = set()
        self.ended = "done"
        self.blobs = BlobStore(settings.paths.blobs)
        self.reader = Reader(self.blobs, chosen_among(settings))
        self.owner = janitor.owner_of(self.ledger.id, settings.paths.work)
        self._scratch = settings.paths.work / "scratch" / self.ledger.id
        self._index = IndexClient(settings.index, settings.paths.work / "downloads", stopped=self.stop)
        means = means_of(settings, self._index, self.blobs, self.stop, self.ledger)
        self.source = source or open_source(means)
        self.spent: Callable[[], Spending] = lambda: means.forge.spent
        learned_rules(settings.measure.ladder.learned)  # what is wrong with them is said before anything begins
        self.spending = Money(self.ledger)
        self._closing = closing
        self._locks = KeyedLocks()
        self._client: docker.DockerClient | None = None
        self.disk = Disk(settings.run.max_disk_gb, self.ledger, self.blobs, lambda: self._client)
        self._memories: dict[frozenset[str], Memory] = {}
        self._desk: tuple[Desk | None, ...] = ()
        self._opened: tuple[BaseImage, Room] | None = None

    def memo(self, emit: Emit) -> Memo:
        """Return the memo of one unit of work; after a stop it stores nothing more, since boxes are killed then."""

        def emit_unless_stopped(fact: Fact) -> None:
            if self.stop.is_set():
                raise Interrupted("stopped before this was measured")
            emit(fact)

        hours = timedelta(hours=self.settings.measure.recheck_after_hours)
        return Memo(self._find, emit_unless_stopped, recheck_after=hours, locks=self._locks, whole=self._is_whole)

    def _find(self, key: FactKey) -> list[Fact]:
        """Return a key's standing facts. One whose blobs are lost is not known, so that it is measured again.

        What is evicted from the disk does not count: few answers need it, and a strict memo asks for it.
        """
        found = self.ledger.find(key)
        return found if key.ordinal == -1 else [fact for fact in found if self._stands(fact)]

    def _stands(self, fact: Fact) -> bool:
        for name in AGAIN & fact.blobs.keys():
            self.blobs.touch(fact.blobs[name])
        needed = (digest for name, digest in fact.blobs.items() if name not in AGAIN)
        return all(map(self.blobs.has, (*needed, *fact.logs.values())))

    def _is_whole(self, fact: Fact) -> bool:
        return all(map(self.blobs.has, (*fact.blobs.values(), *fact.logs.values())))

    def store(self, fact: Fact) -> None:
        """Store a fact of this run."""
        self.ledger.add(fact, self.run_id)
        self.new_facts.add(fact_id(fact.key))

    def register(self, items: Iterable[Item], *, month: str | None = None, unit_id: str = "") -> None:
        """Note in the ledger that these were seen; an item's own visibility wins over that of the settings."""
        seen = [
            Seen(
                instance_id=self.source.subject(item),
                source=self.source.name,
                origin=item.origin,
                visibility=item.visibility or self.settings.release.visibility,
                explicit=item.visibility is not None,
                month=month,
                unit_id=unit_id,
            )
            for item in items
        ]
        self.ledger.add_candidates(seen, self.run_id)

    def workshop(self) -> Workshop:
        """Return the tools of the installers; the engine is asked when something is measured, or for the base image."""
        work = self.settings.paths.work
        base = known_base_image(self.settings.docker, work / "base") or self._open()[0]

        def room() -> Room:
            found, opened = self._open()
            if found.digest != base.digest:
                raise InfrastructureFault(
                    f"the base image is {found.digest} now, and was {base.digest} when this candidate was taken up",
                    reason=Reason.BASE_IMAGE_UNAVAILABLE,
                )
            return opened

        return Workshop(
            settings=self.settings,
            base=base,
            blobs=self.blobs,
            owner=self.owner,
            scratch=self._scratch,
            base_cache=work / "base",
            room=room,
        )

    def _open(self) -> tuple[BaseImage, Room]:
        """Return what is in the engine; the first call starts it, and after a stop nothing begins there."""
        with self._locks.of("engine"):
            if self.stop.is_set():
                raise Interrupted("stopped before this was measured")
            if self._opened is None:
                self._opened = self._start()
            return self._opened

    def _start(self) -> tuple[BaseImage, Room]:
        settings, work = self.settings, self.settings.paths.work
        client = self._client = connect(settings.docker)
        self._closing.callback(client.close)
        janitor.clean(client, self.owner)
        base = ensure_base_image(client, settings.docker, work / "base")
        hosts = index_hosts(self._index, settings.index)
        way = self._closing.enter_context(egress(client, base.image, hosts, settings, owner=self.owner))
        return base, Room(client, way)

    @property
    def memory(self) -> Memory:
        """What earlier runs learned, frozen: nothing of this run, nor of runs that it goes on with, is in it."""
        return self._memory_before(None)

    def memory_for(self, instance_id: str) -> Memory:
        """Return what a candidate may remember: where language models were asked about it, what there was then.

        What is remembered is tried before they are asked, and what was tried is part of the question: with another
        memory they would be asked anew, and paid again, whenever a month is repeated.
        """
        if self.models is None:
            return self.memory
        attempts = [fact for fact in self.ledger.facts_of(instance_id) if fact.key.kind == ATTEMPT]
        first = next((fact_id(fact.key) for fact in attempts if fact.payload.get("asked")), None)
        return self.memory if first is None else self._memory_before(self.ledger.runs_of([first])[first])

    def _memory_before(self, run_id: str | None) -> Memory:
        """Return what had been learned when a run began; None: this one."""
        with self._locks.of("memory"):
            ended = self._ended_runs(run_id)
            if ended not in self._memories:
                self._memories[ended] = memory_of(lesson for lesson, run in self._lessons if run in ended)
            return self._memories[ended]

    @cached_property
    def _lessons(self) -> list[tuple[Lesson, str]]:
        """All lessons, and the run in which each was learned."""
        attempts = (fact for fact in self.ledger.standing(ATTEMPT) if fact.key.epoch == PRODUCER.epoch)
        lessons = [lesson for fact in attempts if (lesson := lesson_of(fact)) is not None]
        measured = self.ledger.runs_of(lesson.fact for lesson in lessons)
        return [(lesson, measured[lesson.fact]) for lesson in lessons]

    @property
    def models(self) -> Desk | None:
        """Where language models are asked on behalf of this run; None where there are none."""
        with self._locks.of("models"):
            if not self._desk:
                about = (self.settings, self.spending, self.run_id)
                desk = desk_of(*about, blobs=self.blobs, stopped=self.stop, parts=self._parts)
                self._desk = (desk or self._recorded_desk(),)
            return self._desk[0]

    def _recorded_desk(self) -> Desk | None:
        """Return a desk with the replies of earlier runs, None where these asked no model."""
        names = self.settings.measure.model.order
        return recorded_desk(names, self.blobs, self.settings.endpoint) if names else None

    def models_for(self, instance_id: str) -> Desk | None:
        """Return the models that may be shown a candidate: those of others see public ones only (law 5)."""
        seen = self.ledger.candidate(instance_id)
        public = seen is not None and seen.visibility == Visibility.PUBLIC
        mine = self.models is not None and not self.models.answers  # what is known is shown to nobody
        return self.models if public or mine or self.settings.endpoint.private else None

    def _ended_runs(self, before: str | None) -> frozenset[str]:
        """Return the ids of the runs up to the last one that came to its end: what follows is one run in parts.

        Args:
            before: only runs before this one are looked at.
        """
        runs = list(takewhile(lambda run: run.run_id != before, self.ledger.runs()))
        last = max((index for index, run in enumerate(runs) if run.status == "done"), default=-1)
        return frozenset(run.run_id for run in runs[: last + 1])

    def money(self) -> float:
        """Return what language models have cost in this run and in those that it goes on with, in US dollars."""
        return sum(self.spending.spent(run_id) for run_id in self._parts)

    @cached_property
    def _parts(self) -> tuple[str, ...]:
        """Ids of the runs that this one goes on with, and its own: they share its cap on money."""
        ended = self._ended_runs(None)
        return tuple(run.run_id for run in self.ledger.runs() if run.run_id not in ended) or (self.run_id,)

    def clean_up(self) -> None:
        """Remove what earlier runs have left on this machine and in the engine; call it while holding the ledger."""
        shutil.rmtree(self._scratch, ignore_errors=True)
        self._scratch.mkdir(parents=True)
        sweep(self.settings.paths.work)
        if any(run.status != "done" for run in self.ledger.runs()[-1:]):
            with suppress(InfrastructureFault), closing(connect(self.settings.docker)) as client:
                janitor.clean(client, self.owner)  # where no engine answers, this run may need none

    def abort(self) -> None:
        """End what runs in the engine on behalf of this run, so that no worker waits for it."""
        self.stop.set()
        if self._client is not None:
            with suppress(InfrastructureFault):  # an engine that is gone runs nothing
                janitor.stop_boxes(self._client, self.owner)


@contextmanager
def open_context(settings: Settings, command: str, source: Source[Any] | None = None) -> Iterator[Context]:
    """Hold the ledger for one run: note its start and its end, and stop cleanly on Ctrl-C and SIGTERM.

    Raises:
        LedgerBusy: another run holds the ledger.
        Interrupted: a signal came; everything that was completed is kept.
    """
    settings = with_models(settled(settings), os.environ)
    with ExitStack() as closing:
        context = Context(settings, closing, source)
        closing.callback(context.ledger.close)
        closing.enter_context(context.ledger.exclusive())
        closing.enter_context(_stopped_by_signals(context))
        context.clean_up()
        context.ledger.begin_run(context.run_id, command, context.settings, versions())
        status = "failed"
        try:
            yield context
            status = context.ended
        except Interrupted:
            status = "interrupted"
            raise
        except InfrastructureFault:
            status = "faulted"
            raise
        finally:
            context.ledger.end_run(context.run_id, status)


@contextmanager
def _stopped_by_signals(context: Context) -> Iterator[None]:
    def stop(number: int, _frame: FrameType | None) -> None:
        if not context.stop.is_set():
            context.stop.set()
            raise Interrupted(f"stopped by {signal.Signals(number).name}")

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

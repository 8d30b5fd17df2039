"""The local engine: threads, since work waits on containers and the network."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from typing import Generic

from miner.core.errors import Interrupted
from miner.core.memo import Emit
from miner.core.records import Fact
from miner.engines.interface import Result, Unit, Work

_ABORT_EVERY_S = 1.0
_Stored = tuple[Fact, "Future[None]"]


class LocalEngine(Generic[Unit, Result]):
    """Maps work over units with a few threads. The caller's thread stores facts, so that the ledger has one writer.

    Args:
        workers: how many units are worked on at once.
        stop: set from outside to end early; units that have not started are dropped, running ones see it at their
            next fact.
        abort: called when the mapping ends early, so that no running unit waits for what will not come.
        grace_s: how long running units are waited for when the mapping ends early; then they are left alone.
    """

    def __init__(
        self,
        workers: int,
        stop: threading.Event,
        abort: Callable[[], None] = lambda: None,
        *,
        grace_s: float = 10.0,
    ) -> None:
        self._workers = workers
        self._stop = stop
        self._abort = abort
        self._grace_s = grace_s

    def map(self, work: Work[Unit, Result], units: Sequence[Unit], on_fact: Emit) -> Generator[Result]:
        """Yield results as they come; an exception of a unit or of `on_fact` ends the mapping."""
        inbox: queue.SimpleQueue[_Stored | Future[Result]] = queue.SimpleQueue()

        def emit(fact: Fact) -> None:
            if self._stop.is_set():
                raise Interrupted("stopped before this fact was stored")
            stored: Future[None] = Future()
            inbox.put((fact, stored))
            stored.result()

        pool = ThreadPoolExecutor(self._workers, thread_name_prefix="unit")
        try:
            for unit in units:
                pool.submit(work, unit, emit).add_done_callback(inbox.put)
            left = len(units)
            while left:
                message = inbox.get()
                if isinstance(message, Future):
                    left -= 1
                    try:
                        yield message.result()
                    except CancelledError:
                        continue
                else:
                    _store(on_fact, *message)
        except BaseException:
            self._abort()
            raise
        finally:
            self._stop_all(pool, inbox)

    def _stop_all(self, pool: ThreadPoolExecutor, inbox: queue.SimpleQueue[_Stored | Future[Result]]) -> None:
        """Drop what has not started, let running units end for a while, and refuse facts that come too late."""
        pool.shutdown(wait=False, cancel_futures=True)
        ending = threading.Thread(target=pool.shutdown, daemon=True)
        ending.start()
        began = time.monotonic()
        end, again = began + self._grace_s, began + _ABORT_EVERY_S
        while ending.is_alive() and time.monotonic() < end:
            if self._stop.is_set() and time.monotonic() > again:  # a unit may have begun something since
                self._abort()
                again = time.monotonic() + _ABORT_EVERY_S
            try:
                message = inbox.get(timeout=0.05)
            except queue.Empty:
                continue
            if not isinstance(message, Future):
                message[1].set_exception(Interrupted("stopped before this fact was stored"))


def _store(on_fact: Emit, fact: Fact, stored: Future[None]) -> None:
    """Store one fact and tell the worker that waits for it; a failure is the worker's and the caller's."""
    try:
        on_fact(fact)
    except BaseException as error:
        stored.set_exception(error)
        raise
    stored.set_result(None)

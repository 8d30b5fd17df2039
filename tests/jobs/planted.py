"""A ledger with the facts of installed and tested candidates, without an engine.

Keys, inputs and everything up to the split come from the pipeline's own code; only what would be seen in a container is
made up here. A later run of the real job over the same settings finds all of it known.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from miner.core.blobs import BlobStore
from miner.core.hashing import hash_of
from miner.core.memo import Emit, Memo
from miner.core.records import Fact, Layer, Observation, Producer
from miner.core.settings import Settings, base_packages
from miner.jobs.context import Context
from miner.jobs.mining import mine
from miner.sandbox.base_image import BaseImage
from miner.sandbox.base_tree import BUILDER
from miner.sandbox.image_archive import ImageConfig

LOCK = "pytest==8.0.0 \\\n    --hash=sha256:" + "ab" * 32 + "\n"
FAILURE = "E       assert 2 == -2\n"
TERMINAL = b"\x1b[31mE       assert 2 == -2\x1b[0m caf\xe9\ntests/test_double.py:9: AssertionError\n"
"""What a run before the fix printed: colours, and a byte that is not UTF-8."""
TWO, BELOW = "tests/test_double.py::test_two", "tests/test_double.py::test_below_zero"

Change = Callable[[str, str, Observation], Observation]
"""Spoils what was seen, by the subject and the kind of fact."""


def plant(settings: Settings, change: Change = lambda _subject, _kind, seen: seen) -> None:
    """Measure all candidates of these settings."""
    know_base_image(settings)
    with ExitStack() as closing:
        context = _Planter(settings, closing, change)
        closing.callback(context.ledger.close)
        context.ledger.begin_run(context.run_id, "run", settings, {})
        for pair in context.source.discover("pairs", context.memo(context.store)).items:
            context.register([pair])
            mined = mine(context, pair, context.store)
            assert mined.fault is None, mined.fault
            context.ledger.decide(context.run_id, settings.policy_hash, mined.decision, mined.findings)
        context.ledger.end_run(context.run_id, "done")


def know_base_image(settings: Settings, seed: int = 1, architecture: str = "amd64") -> BaseImage:
    """Leave a record of a base image where the one that builds it would."""
    layer = Layer(diff_id="sha256:" + hash_of(seed), size=1000)
    config = ImageConfig(architecture=architecture, created=0, diff_ids=(layer.diff_id,), notes=("debian",))
    base = BaseImage(image="swe-miner/base:x", digest=config.image_id, config=config, layers=(layer,), packages="")
    folder = settings.paths.work / "base"
    folder.mkdir(parents=True, exist_ok=True)
    inputs = [BUILDER, settings.docker.suite, settings.docker.snapshot_epoch, base_packages(), architecture]
    (folder / f"{hash_of(inputs)}.json").write_text(base.model_dump_json())
    return base


class _Planter(Context):
    def __init__(self, settings: Settings, closing: ExitStack, change: Change) -> None:
        super().__init__(settings, closing)
        self._change = change

    def memo(self, emit: Emit) -> Memo:
        return _Canned(self.ledger.find, emit, self.blobs, self._change)


class _Canned(Memo):
    """Measures what the index answers, and makes up what a container would show."""

    def __init__(self, find: Any, emit: Emit, blobs: BlobStore, change: Change) -> None:
        super().__init__(find, emit)
        self._blobs = blobs
        self._change = change

    def patient(self) -> Memo:
        other = _Canned(self._find, self._emit, self._blobs, self._change)
        other.used = self.used
        return other

    def measure(
        self, producer: Producer, kind: str, subject: str, inputs: Mapping[str, Any], run: Callable[[], Observation]
    ) -> Fact:
        made = _MADE.get(kind)
        seen = run if made is None else lambda: made(inputs, self._blobs)
        return super().measure(producer, kind, subject, inputs, lambda: self._change(subject, kind, seen()))


def _lock(inputs: Mapping[str, Any], blobs: BlobStore) -> Observation:
    request = inputs["request"]
    text = LOCK if request.purpose == "run" else ""
    names = {"pytest": "8.0.0"} if request.purpose == "run" else {}
    payload = {"packages": names, "sources": [], "cutoff": request.cutoff.isoformat(), "exempt": {}}
    return Observation(payload=payload, blobs={"lock": blobs.put_text(text)}, network=True)


def _layer(name: str, inputs: Mapping[str, Any], blobs: BlobStore) -> dict[str, Any]:
    digest = blobs.put(hash_of([name, inputs]).encode())
    return {"payload": {"layer": {"diff_id": f"sha256:{digest}", "size": 10}}, "blobs": {"layer": digest}}


def _environment(inputs: Mapping[str, Any], blobs: BlobStore) -> Observation:
    return Observation(**_layer("env", inputs, blobs), network=True)


def _interpreter(_inputs: Mapping[str, Any], _blobs: BlobStore) -> Observation:
    return Observation(payload={"source": "base", "release": "3.11.2", "layer": None, "left_out": []})


def _ground(inputs: Mapping[str, Any], blobs: BlobStore) -> Observation:
    made = _layer("ground", inputs, blobs)
    return Observation(payload={"packages": ["gcc"], "lock": [], **made["payload"]}, blobs=made["blobs"], network=True)


def _tree(inputs: Mapping[str, Any], blobs: BlobStore) -> Observation:
    return Observation(**_layer("tree", inputs, blobs))


def _project(inputs: Mapping[str, Any], blobs: BlobStore) -> Observation:
    request, made = inputs["request"], _layer("project", inputs, blobs)
    layers = [request.tree_layer.model_dump(), made["payload"]["layer"]]
    payload = {"layers": layers, "mode": request.mode.value, "rebuild_cmd": None}
    return Observation(payload=payload, blobs=made["blobs"])


def _health(inputs: Mapping[str, Any], blobs: BlobStore) -> Observation:
    seen = test_run(blobs, {}, b"2 tests collected\n", collected=(TWO, BELOW))
    environment = inputs["request"].environment.model_dump(mode="json")
    return seen.model_copy(update={"payload": {"environment": environment, "collected": 2, **seen.payload}})


def _suite(inputs: Mapping[str, Any], blobs: BlobStore) -> Observation:
    files = list(inputs["request"].test_files)
    seen = test_run(blobs, {TWO: "passed"}, b"1 passed\n")
    return seen.model_copy(update={"payload": {"test_files": files, **seen.payload, "gold": None}})


def _image(inputs: Mapping[str, Any], blobs: BlobStore) -> Observation:
    return Observation(payload=inputs["environment"].model_dump(mode="json"))


def _before(inputs: Mapping[str, Any], blobs: BlobStore) -> Observation:
    return test_run(blobs, {TWO: "passed", BELOW: "failed"}, TERMINAL)


def _after(inputs: Mapping[str, Any], blobs: BlobStore) -> Observation:
    return test_run(blobs, {TWO: "passed", BELOW: "passed"}, b"2 passed\n")


_MADE: dict[str, Callable[[Mapping[str, Any], BlobStore], Observation]] = {
    "install.interpreter": _interpreter,
    "install.ground": _ground,
    "install.tree": _tree,
    "install.suite": _suite,
    "install.lock": _lock,
    "install.env": _environment,
    "install.project": _project,
    "install.health": _health,
    "install.image": _image,
    "validate.before": _before,
    "validate.after": _after,
}


def test_run(
    blobs: BlobStore,
    outcomes: Mapping[str, str],
    terminal: bytes,
    collected: Sequence[str] | None = None,  # noqa: PT028 - no test
) -> Observation:
    """What the runner gives for a run in which each test ended like this; `collected` of a mere collection."""
    ids = list(collected or outcomes)
    head = [_SESSION, {"event": "collected", "ids": ids, "part": 0, "parts": 1, "total": len(ids)}]
    tests = [event for nodeid, outcome in outcomes.items() for event in _events(nodeid, outcome)]
    status = int("failed" in outcomes.values())
    steps = [{"name": "events", "exit_code": status, "limit": None, "truncated": False}]
    reports = {
        "events.jsonl": [*head, *tests, {"event": "finish", "exitstatus": status}],
        "collect-0.jsonl": [*head, {"event": "finish", "exitstatus": 0}],
        "collect-1.jsonl": [*head, {"event": "finish", "exitstatus": 0}],
    }
    logs = {name: blobs.put(_lines(events)) for name, events in reports.items()}
    return Observation(
        payload={"missing": [], "steps": steps, "ended": None, "reports_cut": []},
        logs={"events": blobs.put(terminal), **logs},
        measures={"events_s": 0.5, "memory_peak": 1e7},
    )


test_run.__test__ = False  # type: ignore[attr-defined]

_SESSION = {"event": "session", "schema": 1, "pytest": "8.0.0", "python": "3.11.2", "rootdir": "/testbed"}


def _events(nodeid: str, outcome: str) -> Iterable[dict[str, Any]]:
    yield {"event": "start", "nodeid": nodeid}
    for when in ("setup", "call", "teardown"):
        said = outcome if when == "call" else "passed"
        event = {"event": "report", "nodeid": nodeid, "when": when, "outcome": said, "duration": 0.01}
        if said == "failed":
            event |= {"exc": ["AssertionError", "Exception"], "message": "assert 2 == -2", "longrepr": FAILURE}
        yield event


def _lines(events: Iterable[Mapping[str, Any]]) -> bytes:
    return b"".join(json.dumps({**event, "n": n}).encode() + b"\n" for n, event in enumerate(events))

"""A run of the demo with its known outcomes, and ways to look at what it left behind that are not the program's own."""

from __future__ import annotations

import re
import threading
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import docker
from whole_run import CHECKOUT, Place

from miner.core.blobs import BlobStore
from miner.sandbox.interface import LABEL

CONFIG = CHECKOUT / "configs" / "demo.toml"
OUTCOMES: dict[str, dict[str, Any]] = tomllib.loads((Path(__file__).with_name("demo_outcomes.toml")).read_text())
REJECTED = sorted(name for name, known in OUTCOMES.items() if known["state"] != "accepted")
ACCEPTED = sorted(name for name, known in OUTCOMES.items() if known["state"] == "accepted")
_COUNT = re.compile(r"(\d+) (failed|passed|error)s?\b")


@dataclass(frozen=True)
class Demo:
    """What the fixture made.

    Attributes:
        owner: label of everything that its runs make in the engine.
        created: names of the containers that the run has created.
        text: what it printed.
        marks: texts that say where and how the run was made, and must be nowhere in what it released.
    """

    place: Place
    owner: str
    created: tuple[str, ...]
    text: str
    marks: dict[str, bytes]

    def log(self, instance_id: str, kind: str, step: str = "events") -> str:
        """What pytest printed in a step of a run of the tests."""
        ledger = self.place.ledger()
        found = [fact for fact in ledger.facts_of(instance_id) if fact.key.kind == kind]
        ledger.close()
        return BlobStore(str(self.place.work / "blobs")).get_text(found[-1].logs[step])


def counted(log: str) -> dict[str, int]:
    """The counts in the last line of pytest's own report."""
    last = [line for line in log.splitlines() if re.search(r" in [\d.:]+s", line)][-1]
    found = {f"{name}s" if name == "error" else name: int(count) for count, name in _COUNT.findall(last)}
    return {"failed": 0, "passed": 0, "errors": 0, **found}


def collected(log: str) -> set[str]:
    """The tests that `pytest --collect-only` shows, each with the collectors above it."""
    above: list[tuple[int, str]] = []
    found = set()
    for indent, node in re.findall(r"^( *)<(\w+ .*)>$", log, re.MULTILINE):
        above = [(depth, name) for depth, name in above if depth < len(indent)]
        above.append((len(indent), node))
        if not node.startswith(("Dir ", "Package ", "Module ", "Class ", "UnitTestCase ")):
            found.add(" ".join(name for _, name in above))
    return found


@contextmanager
def created_containers(client: docker.DockerClient, owner: str) -> Iterator[list[str]]:
    """Collect the names of a ledger's containers as the engine tells of their creation, from its own events."""
    names: list[str] = []
    stream = client.events(decode=True, filters={"type": "container", "event": "create", "label": f"{LABEL}={owner}"})

    def read() -> None:
        names.extend(event["Actor"]["Attributes"]["name"] for event in stream)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        yield names
        reader.join(1.0)  # the last events may be on their way
    finally:
        stream.close()
        reader.join(10.0)

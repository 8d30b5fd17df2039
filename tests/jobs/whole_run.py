"""The command line as a person starts it: its own process, its own folder, the real engine and index."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import docker
from docker.models.containers import Container
from typer.testing import CliRunner

from miner.cli import app
from miner.core.ledger import Ledger
from miner.sandbox.interface import LABEL
from miner.sandbox.janitor import owner_of

SWE_MINER = Path(sys.executable).with_name("swe-miner")
CHECKOUT = Path(__file__).resolve().parents[2]
_FACT = re.compile(r"^  (\S+) (\w+\.\w+) (\S+) [\d.]+s$", re.MULTILINE)


@dataclass(frozen=True)
class Place:
    """A folder with everything that a run leaves behind. The base image is the one that all tests share.

    Attributes:
        folder: holds `var` (ledger, blobs, downloads, repositories) and `out` (the release).
        options: given to every command.
    """

    folder: Path
    options: tuple[str, ...] = ()

    @property
    def work(self) -> Path:
        return self.folder / "var"

    @property
    def out(self) -> Path:
        return self.folder / "out"

    def ledger(self) -> Ledger:
        return Ledger(f"sqlite:///{self.work / 'ledger.sqlite3'}")

    @property
    def owner(self) -> str:
        """On whose behalf its runs make things in the engine."""
        ledger = self.ledger()
        ledger.close()
        return owner_of(ledger.id, self.work)

    def command(self, *arguments: str) -> list[str]:
        own = (f"paths.work={self.work}", f"paths.release={self.out}", 'measure.pythons=["3.11"]')
        chosen = [part for option in own for part in ("-c", option)]
        return [str(SWE_MINER), *arguments, *self.options, *chosen]

    def start(self, *arguments: str, **changes: Any) -> subprocess.Popen[str]:
        """Start a command in a process group of its own; everything that it prints goes to one pipe."""
        return subprocess.Popen(
            self.command(*arguments),
            cwd=self.folder,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            **changes,
        )

    def run(self, *arguments: str, code: int | None = 0, timeout: float = 600) -> subprocess.CompletedProcess[str]:
        """Run a command to its end; `code` is the exit code that it must have, None for any."""
        done = subprocess.run(
            self.command(*arguments), cwd=self.folder, text=True, capture_output=True, timeout=timeout, check=False
        )
        assert code in (None, done.returncode), f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def ask(self, *arguments: str) -> str:
        """Return what a command prints that only reads; it runs in this process, which is quicker."""
        done = CliRunner().invoke(app, self.command(*arguments)[1:], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.output

    def facts(self) -> dict[str, Stored]:
        """Every fact in the ledger by its id, read as anybody with an SQL client would."""
        with closing(sqlite3.connect(self.work / "ledger.sqlite3")) as connection:
            rows = connection.execute("select fact_id, subject, kind, outcome, content_hash, observed_at from facts")
            return {row[0]: Stored(*row[1:]) for row in rows}

    def copy_ledger(self, to: Place) -> None:
        """Copy the ledger whole, with what is still in its write-ahead log."""
        with (
            closing(sqlite3.connect(self.work / "ledger.sqlite3")) as known,
            closing(sqlite3.connect(to.work / "ledger.sqlite3")) as copy,
        ):
            known.backup(copy)

    def layers(self) -> set[str]:
        """Diff ids of the layers that runs have made here."""
        if not (self.work / "ledger.sqlite3").exists():
            return set()
        with closing(sqlite3.connect(self.work / "ledger.sqlite3")) as connection:
            rows = connection.execute("select payload from facts where kind in ('install.env', 'install.project')")
            payloads = [json.loads(row[0]) for row in rows]
        made = [layer for payload in payloads for layer in (payload.get("layer"), *payload.get("layers", ()))]
        return {layer["diff_id"] for layer in made if layer is not None}


class Stored(NamedTuple):
    """What the tests compare of a fact."""

    subject: str
    kind: str
    outcome: str
    content_hash: str
    observed_at: str


def place(folder: Path, base: Path, *options: str) -> Place:
    """Make a place; `base` is the folder in which the base image is kept."""
    made = Place(folder, options)
    made.work.mkdir(parents=True)
    (made.work / "base").symlink_to(base.resolve())
    return made


def pairs_option(pairs: Sequence[Mapping[str, str]]) -> tuple[str, str]:
    """The option that makes a run take these pairs and no others."""
    tables = ", ".join(f'{{name = "{p["name"]}", old = "{p["old"]}", new = "{p["new"]}"}}' for p in pairs)
    return "-c", f"pairs=[{tables}]"


SMALL = (
    {"name": "idna", "old": "3.3", "new": "3.4"},
    {"name": "itsdangerous", "old": "2.1.1", "new": "2.1.2"},
)
"""One pair that is accepted, not one of the demo, and one that is rejected before anything is installed: 20 seconds."""

SMALL_OPTIONS = (*pairs_option(SMALL), "-c", 'release.sources=["pypi"]', "-c", "policy.min_statement_chars=0")


def content(folder: Path) -> dict[str, bytes]:
    """The content part of a release: every file of which another run over the same inputs makes the same bytes."""
    return {name: data for name, data in everything(folder).items() if not name.startswith("measurements/")}


def everything(folder: Path) -> dict[str, bytes]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def stored_lines(text: str) -> set[tuple[str, str]]:
    """Subject and kind of the facts that a run said it has stored."""
    return {(subject, kind) for subject, kind, _ in _FACT.findall(text)}


def boxes(client: docker.DockerClient, owner: str) -> list[Container]:
    """Containers of a ledger, running or not."""
    found: list[Container] = client.containers.list(
        all=True, filters={"label": f"{LABEL}={owner}"}, ignore_removed=True
    )
    return found


def left_in_the_engine(client: docker.DockerClient, owner: str) -> list[str]:
    """What a ledger has in the engine beside images: nothing, when no run is on."""
    volumes = client.volumes.list(filters={"label": f"{LABEL}={owner}"})
    return [str(box.name) for box in boxes(client, owner)] + [str(volume.name) for volume in volumes]


def summary_of(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """What a run with `--json` says at its end."""
    summary: dict[str, Any] = json.loads(done.stdout)
    return summary


def environment(**changes: str) -> dict[str, str]:
    return {**os.environ, **changes}

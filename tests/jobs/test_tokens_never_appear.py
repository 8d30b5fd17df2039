"""Tokens are nowhere but in memory: not in what a run prints, keeps or releases, nor in the command lines of git."""

from __future__ import annotations

import base64
import json
import logging
import os
import shutil
import sqlite3
import string
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import zstandard
from forge import Forge, Reply, World
from forge_month import library, mend, options, run, settings

from miner.cli import main
from miner.core.settings import load_settings
from miner.crawlers.github.doctor import checks
from miner.crawlers.github.source import GithubSource
from miner.jobs.render import checks_text
from miner.sandbox.doctor import Check

pytestmark = pytest.mark.loopback

# Put together at run time: no text in this file has the shape of a token.
CLASSIC = "gh" + "p_" + (string.ascii_letters + string.digits)[-36:]
FINE = "github" + "_pat_" + (string.digits + string.ascii_letters)[:22] + "_" + (string.ascii_letters * 2)[20:79]
NAMES = ("octo/alpha", "octo/beta")


def disguises(token: str) -> Iterator[bytes]:
    """Every form in which it could stand somewhere: as it is, in hex, and in base64 wherever it begins in a text."""
    plain = token.encode()
    yield plain
    yield plain.hex().encode()
    for before in range(3):
        coded = base64.b64encode(b"\0" * before + plain)
        yield coded[4 if before else 0 : -4]


FORBIDDEN = {form: token[:10] for token in (CLASSIC, FINE) for form in disguises(token)}


def found_in(data: bytes) -> set[str]:
    return {name for form, name in FORBIDDEN.items() if form in data}


def test_search_finds_a_token_in_every_disguise() -> None:
    for token in (CLASSIC, FINE):
        for text in (token, f"Authorization: Bearer {token}", f"x{token}", f"x-access-token:{token}"):
            assert found_in(text.encode())
            assert found_in(base64.b64encode(text.encode()))
            assert found_in(text.encode().hex().encode())


class Mirroring(Forge):
    """A forge that says in every answer what it was sent, as a proxy that is being debugged may; `status` of those."""

    status = 0

    def handle(self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> Reply:
        reply = super().handle(method, path, query, headers, body)
        if not self.status or "authorization" not in headers:
            return reply
        sent = headers["authorization"]
        reply.headers["x-sent"] = sent
        if self.status == 200:
            reply.body = json.dumps({**json.loads(reply.body), "sent": sent}).encode()
            return reply
        page = f"<html>{sent}</html>"
        return Reply(self.status, page.encode(), {"content-type": "text/html", "x-sent": sent})


@dataclass
class Bench:
    """Calls the program in one folder, and keeps what it printed, logged, and gave git as arguments."""

    folder: Path
    forge: Mirroring
    arguments: Path
    call: Callable[[list[str]], int]
    said: list[bytes] = field(default_factory=list)

    def run(self, *more: str, **changes: Any) -> int:
        changes = {"github__tries": 1, **changes}
        return self.call(["run", *options(self.folder, self.forge, *NAMES, **changes), *more])

    def ask(self, *arguments: str) -> int:
        return self.call([*arguments, "-c", f"paths.work={self.folder / 'var'}"])

    def everything(self) -> Iterator[tuple[str, bytes]]:
        """All bytes that were left behind or said, with what they are."""
        yield from (("printed or logged", data) for data in self.said)
        yield "command lines of git", self.arguments.read_bytes()
        for path in sorted(self.folder.rglob("*")):
            if not path.is_file():
                continue
            name, data = path.relative_to(self.folder).as_posix(), path.read_bytes()
            yield f"name of {name}", name.encode()
            yield name, data
            yield from ((f"inside {name}", inside) for inside in contents(path, data))


def contents(path: Path, data: bytes) -> Iterator[bytes]:
    """What a compressed or split file holds."""
    if path.suffix == ".zst":
        yield zstandard.ZstdDecompressor().decompressobj().decompress(data)
    elif path.suffix == ".parquet":
        yield json.dumps(pq.read_table(path).to_pylist(), default=str).encode()
    elif path.suffix == ".sqlite3":
        with closing(sqlite3.connect(path)) as connection:
            yield "\n".join(connection.iterdump()).encode()


SHIM = """#!/bin/sh
printf '%s\\n' "$@" >> {log}
exec {git} "$@"
"""


@pytest.fixture
def bench(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> Iterator[Bench]:
    world = World(tmp_path / "forge")
    for name in NAMES:
        mend(library(world, name), "one")
    bin_, log, git = tmp_path / "bin", tmp_path / "arguments", shutil.which("git")
    bin_.mkdir()
    log.write_text("")
    (bin_ / "git").write_text(SHIM.format(log=log, git=git))
    (bin_ / "git").chmod(0o755)
    monkeypatch.setenv("GITHUB_TOKEN", f"{CLASSIC},{FINE}")
    monkeypatch.setenv("GH_TOKEN", FINE)
    caplog.set_level(logging.DEBUG)

    def call(arguments: list[str]) -> int:
        monkeypatch.setattr("sys.argv", ["swe-miner", *arguments])
        with pytest.raises(SystemExit) as left:
            main()
        made.said += [*(text.encode() for text in capfd.readouterr()), caplog.text.encode()]
        code = left.value.code
        return code if isinstance(code, int) else int(code is not None)

    with Mirroring(world) as forge:
        monkeypatch.setenv("PATH", f"{bin_}{os.pathsep}{os.environ['PATH']}")
        (tmp_path / "place").mkdir()
        made = Bench(tmp_path / "place", forge, log, call)
        yield made
    assert made.said, "something was looked at"
    for where, data in made.everything():
        assert found_in(data) == set(), where


class TestJob:
    """The fixture looks for tokens at the end of each of these; here is only what makes sure that it was worth it."""

    def test_good_run_and_all_that_is_asked_of_it(self, bench: Bench) -> None:
        assert bench.run() == 0
        assert bench.run("--json", measure__crawl__refresh_after_hours=0) == 0
        for verb in (["status"], ["status", "--json"], ["funnel", "--ids"], ["why", "octo__alpha-2", "--json"]):
            assert bench.ask(*verb) == 0
        assert {entry.token for entry in bench.forge.log.of("graphql")} <= {1, 2}
        lines = bench.arguments.read_text().splitlines()
        assert "fetch" in lines, "git was watched"
        assert f"{bench.forge.url}/octo/alpha.git" in bench.arguments.read_text()

    @pytest.mark.parametrize(
        ("fault", "how", "code"),
        [
            ("bad-credentials", {}, 15),
            ("under-scoped", {}, 15),
            ("server-error", {"status": 500}, 13),
            ("server-error", {"status": 502}, 13),
            ("html", {}, 13),
            ("half", {}, 13),
            ("reset", {}, 13),
            ("primary", {"reset_s": 3000}, 14),
        ],
    )
    def test_run_that_fails(self, fault: str, how: dict[str, Any], code: int, bench: Bench) -> None:
        bench.forge.fail("graphql", fault, **how)
        assert bench.run() == code
        assert bench.run("--json") == code
        assert bench.ask("status") == 0

    def test_run_in_which_single_repositories_fail(self, bench: Bench) -> None:
        bench.forge.fail("pages", "server-error")
        bench.forge.fail("pulls", "server-error", about="octo/alpha")
        assert bench.run() == 12
        assert bench.ask("funnel", "--json") == 0

    def test_forge_that_is_not_there(self, bench: Bench) -> None:
        bench.forge.stop()
        assert bench.run() == 13

    def test_address_of_the_forge_that_holds_a_token_is_refused(self, bench: Bench) -> None:
        url = bench.forge.url.replace("://", f"://x-access-token:{CLASSIC}@")
        assert bench.run("-c", f"github.api_url={url}/api/v3") == 3

    def test_git_that_fails(self, bench: Bench) -> None:
        bench.forge.fail("git", "server-error", about="octo/alpha")
        assert bench.run() == 12
        assert bench.ask("why", "octo__alpha-2") == 0

    @pytest.mark.parametrize("status", [200, 403, 500])
    def test_forge_that_repeats_what_it_was_sent(self, status: int, bench: Bench) -> None:
        bench.forge.status = status
        assert bench.run() in (13, 14, 15)
        assert bench.run("--json") in (13, 14, 15)

    def test_bug_in_one_repository(self, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
        def broken(source: GithubSource, unit: str, *_: Any) -> Any:
            raise RuntimeError(f"{unit}: {everything_of(source)}")

        monkeypatch.setattr(GithubSource, "discover", broken)
        assert bench.run() == 12
        assert bench.ask("funnel", "--json") == 0

    def test_bug_that_ends_the_program(self, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
        def broken(source: GithubSource, *_: Any) -> Any:
            tokens = os.environ["GITHUB_TOKEN"]  # a local variable, as a traceback may show it
            raise RuntimeError(f"{everything_of(source)} {len(tokens)}")

        monkeypatch.setattr(GithubSource, "units", broken)
        assert bench.run() == 1
        assert any(b"Traceback" in data for data in bench.said)

    def test_doctor(self, bench: Bench) -> None:
        for fault in ("", "bad-credentials", "server-error", "html"):
            if fault:
                bench.forge.fail("", fault)
            chosen = settings(bench.folder, bench.forge).github
            seen: tuple[Check, ...] = checks(chosen, os.environ, sleep=lambda _seconds: None)
            bench.said.append(checks_text(seen).encode())
            bench.said.append(json.dumps([one.model_dump(mode="json") for one in seen]).encode())


def everything_of(source: GithubSource) -> str:
    """What a careless message would say: the inside of all that holds tokens."""
    forge = source._forge
    return " ".join(repr(vars(part)) for part in (source, forge, forge._wire, forge._pool))


def test_settings_of_a_run_hold_none_whatever_the_environment_says(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SWE_MINER_GITHUB__TOKEN_ENV", '["GITHUB_TOKEN"]')
    chosen = load_settings(overrides=options(bench.folder, bench.forge, *NAMES)[1::2])
    bench.said.append(repr(chosen).encode())
    bench.said.append(json.dumps(chosen.portable()).encode())
    run(chosen)

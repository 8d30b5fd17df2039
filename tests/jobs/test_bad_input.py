"""Packages that are wrong in every way, in one run: each is rejected with its own reason, and none disturbs another."""

from __future__ import annotations

import json
import re
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from crawlers.index_server import IndexServer
from planted import plant
from typer.testing import CliRunner, Result
from world import Files, Pair, options, pair, project, publish, settings, special, tar_gz

from miner.cli import app
from miner.core.ledger import Ledger
from miner.core.reasons import Reason
from miner.jobs import monthly

MARKER = "executed-on-the-host"
CAFE = b"tests/test_caf\xe9.py".decode("utf-8", "surrogateescape")

Publish = Callable[[IndexServer, str], Pair]


@dataclass(frozen=True)
class Case:
    """A pair, and what is said about it; `name` in the sentence stands for the package's name."""

    publish: Publish
    reason: Reason
    sentence: str


def archive(*members: tuple[str, bytes] | tarfile.TarInfo, data: bytes | None = None) -> Publish:
    """A new version that is an archive of these members, `name-1.1/setup.py` first; or these bytes."""

    def make(server: IndexServer, name: str) -> Pair:
        packed = data if data is not None else tar_gz((f"{name}-1.1/setup.py", b"setup()"), *members)
        server.release(name, "1.0", project(name, "1.0", fixed=False))
        server.release(name, "1.1", archive=packed)
        return pair(name)

    return make


def changed(old: Files | None = None, new: Files | None = None) -> Publish:
    """A pair that is good but for these files."""
    return lambda server, name: publish(server, name, old=old, new=new)


def both(path: str, data: bytes | None) -> Publish:
    """A pair that is good but for one file, in both versions."""
    return changed({path: data}, {path: data})


def unchanged(*paths: str) -> Publish:
    """A pair in which these files stay as they were."""

    def make(server: IndexServer, name: str) -> Pair:
        old = project(name, "1.0", fixed=False)
        return publish(server, name, new={path: old[path] for path in (one.replace("name", name) for one in paths)})

    return make


def not_there(server: IndexServer, name: str) -> Pair:
    return pair(name)


def another_version(server: IndexServer, name: str) -> Pair:
    return {**publish(server, name), "new": "1.5"}


def wheel_only(server: IndexServer, name: str) -> Pair:
    server.release(name, "1.0", project(name, "1.0", fixed=False))
    server.release(name, "1.1", archive=b"PK", filename=f"{name}-1.1-py3-none-any.whl")
    return pair(name)


def other_bytes(server: IndexServer, name: str) -> Pair:
    server.fail(f"/files/{name}-1.1", "wrong")
    return publish(server, name)


def other_alphabet(server: IndexServer, name: str) -> Pair:
    tests = project(name, "1.0", fixed=False)["tests/test_double.py"]
    return publish(server, name, old={CAFE: b"x = 1\n"}, new={CAFE: b"x = 1\n", "tests/test_double.py": tests})


HALF = tar_gz(("halfarchive-1.1/setup.py", bytes(range(256)) * 40))[:150]
TWO_TOPS = "expected one top-level folder, found 'other', 'name-1.1'"
NO_TOML = r"pyproject\.toml: is not valid TOML"
ACTS = f'import pathlib\npathlib.Path("{MARKER}").write_text("")\nfrom setuptools import setup\n'.encode()

CASES = {
    "unknownpackage": Case(not_there, Reason.UNKNOWN_PACKAGE, "knows no package 'name'"),
    "unknownversion": Case(another_version, Reason.UNKNOWN_VERSION, r"name has no version 1\.5; near .* 1\.0, 1\.1"),
    "nosdist": Case(
        wheel_only, Reason.NO_SDIST, r"name 1\.1 has no source distribution .* name-1\.1-py3-none-any\.whl"
    ),
    "anotherfile": Case(other_bytes, Reason.HASH_MISMATCH, r"name-1\.1\.tar\.gz: announced as sha256 \w+, arrived as"),
    "noarchive": Case(archive(data=b"<html>"), Reason.ARCHIVE_CORRUPT, r"name-1\.1\.tar\.gz: "),
    "halfarchive": Case(archive(data=HALF), Reason.ARCHIVE_CORRUPT, r"name-1\.1\.tar\.gz: "),
    "traversal": Case(archive(("x/../../etc/y", b"")), Reason.ARCHIVE_ESCAPES, r"'x/\.\./\.\./etc/y' leads out"),
    "linkout": Case(
        archive(special("linkout-1.1/x", tarfile.SYMTYPE, "../../etc/passwd")),
        Reason.ARCHIVE_ESCAPES,
        "'x' is a link to .*/etc/passwd",
    ),
    "pipe": Case(
        archive(special("pipe-1.1/x", tarfile.FIFOTYPE)), Reason.ARCHIVE_SPECIAL_FILE, "'name-1.1/x' is neither file"
    ),
    "bomb": Case(archive(("bomb-1.1/x", bytes(12 << 20))), Reason.ARCHIVE_TOO_LARGE, r"name-1\.1\.tar\.gz: "),
    "twotops": Case(archive(("other/x", b"x")), Reason.ARCHIVE_NO_PROJECT, TWO_TOPS),
    "noproject": Case(
        archive(data=tar_gz(("noproject-1.1/README", b"x"))),
        Reason.ARCHIVE_NO_PROJECT,
        r"'name-1\.1' holds none of pyproject\.toml, setup\.py, setup\.cfg",
    ),
    "notests": Case(
        both("tests/test_double.py", None), Reason.NO_TEST_FILES, r"looked for test_\*\.py, .*found 2 Python modules"
    ),
    "notestchange": Case(
        unchanged("tests/test_double.py"), Reason.NO_TEST_CHANGE, "tests/test_double.py.*none of them"
    ),
    "onlytests": Case(
        unchanged("name.py", "CHANGES.md", "setup.py"), Reason.NO_GOLD_CHANGE, "changed: tests/test_double"
    ),
    "otheralphabet": Case(other_alphabet, Reason.NO_TEST_CHANGE, r"tests/test_caf\\udce9\.py"),
    "nochangelog": Case(both("CHANGES.md", None), Reason.NO_STATEMENT, "no text says what the change is about"),
    "threeletters": Case(
        both("CHANGES.md", b"# Changes\n\n## 1.1\n\nfix\n"), Reason.STATEMENT_TOO_SHORT, "has 3 characters, .* 20"
    ),
    "zeros": Case(both("CHANGES.md", bytes(500)), Reason.NO_STATEMENT, "no text says"),
    "setupsyntax": Case(
        both("setup.py", b"def setup(:\n"), Reason.SETUP_UNREADABLE, r"setup\.py: is not readable as Python 3 \(invalid"
    ),
    "setupzeros": Case(both("setup.py", bytes(20)), Reason.SETUP_UNREADABLE, r"setup\.py: holds NUL bytes"),
    "setupacts": Case(
        both("setup.py", ACTS + b'setup(name="x", python_requires=">=3.99")\n'),
        Reason.PYTHON_TOO_NEW,
        r"Python >=3\.99",
    ),
    "notoml": Case(both("pyproject.toml", b'[build-system\nrequires = "'), Reason.SETUP_UNREADABLE, NO_TOML),
    "latintoml": Case(both("pyproject.toml", b'[project]\nname = "caf\xe9\n'), Reason.SETUP_UNREADABLE, NO_TOML),
}
NETWORK = {Reason.UNKNOWN_PACKAGE, Reason.UNKNOWN_VERSION, Reason.NO_SDIST, Reason.HASH_MISMATCH}


@dataclass(frozen=True)
class Done:
    """A run over all cases."""

    folder: Path
    options: list[str]
    result: Result

    @property
    def decisions(self) -> dict[str, dict[str, Any]]:
        said = json.loads(self.result.stdout)
        return {one["instance_id"]: one for one in said["decisions"]}

    def call(self, *arguments: str) -> Result:
        return CliRunner().invoke(app, [*arguments, *self.options])


def instance_id(name: str) -> str:
    return f"pypi__{name}-{'1.5' if name == 'unknownversion' else '1.1'}"


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Done]:
    folder = tmp_path_factory.mktemp("bad-input")
    with IndexServer() as server, pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        pairs = [case.publish(server, name) for name, case in CASES.items()]
        chosen = options(folder, server, *pairs)
        yield Done(folder, chosen, CliRunner().invoke(app, ["run", "--json", *chosen]))


def test_rejections_are_no_failure_of_the_run(done: Done) -> None:
    assert done.result.exit_code == 0, done.result.exception
    assert set(done.decisions) == {instance_id(name) for name in CASES}
    assert {one["state"] for one in done.decisions.values()} == {"rejected"}
    assert json.loads(done.result.stdout)["funnel"][0]["entered"] == len(CASES)


@pytest.mark.parametrize("name", CASES)
def test_candidate_is_rejected_with_its_reason_and_a_sentence_that_names_what_was_found(done: Done, name: str) -> None:
    case, said = CASES[name], done.decisions[instance_id(name)]
    assert (said["code"], said["stage"]) == (case.reason, case.reason.stage)
    assert re.search(case.sentence.replace("name", name), said["sentence"])


@pytest.mark.parametrize("name", CASES)
def test_why_says_the_same_and_what_a_network_service_said_once_is_provisional(done: Done, name: str) -> None:
    said = done.call("why", instance_id(name))
    assert said.exit_code == 0, said.exception
    code = CASES[name].reason
    assert said.stdout.startswith(f"{instance_id(name)}: rejected at {code.stage} ({code})\n")
    assert f"[{code}]" in said.stdout
    assert ("provisional" in said.stdout) == (code in NETWORK)


def test_nothing_of_a_package_was_executed_or_written_outside(done: Done) -> None:
    assert {path.name for path in done.folder.iterdir()} == {"var", "out", "pairs.toml"}
    assert not list(done.folder.rglob(MARKER))


def test_every_rejection_is_in_the_release(done: Done) -> None:
    rows = pq.read_table(done.folder / "out" / "rejected.parquet").to_pylist()
    assert {row["instance_id"]: row["code"] for row in rows} == {
        instance_id(name): str(case.reason) for name, case in CASES.items()
    }


def test_a_second_run_measures_nothing_and_says_the_same(done: Done) -> None:
    again = done.call("run", "--json")
    assert again.exit_code == 0
    said = json.loads(again.stdout)
    assert said["measured"] == 0
    assert {one["instance_id"]: one for one in said["decisions"]} == done.decisions


def test_change_log_that_is_no_utf_8_is_still_read(tmp_path: Path) -> None:
    with IndexServer() as server:
        log = b"# Changes\n\n## 1.1\n\n- numbers from caf\xe9s are doubled, those below zero too\n"
        chosen = settings(tmp_path, server, publish(server, "latin", new={"CHANGES.md": log}))
        plant(chosen)
        assert monthly.run(chosen, quiet=True).tasks == 1
    [row] = pq.read_table(tmp_path / "out" / "data" / "test-00000-of-00001.parquet").to_pylist()
    assert "numbers from caf\u00e9s are doubled" in row["problem_statement"]
    [fact] = [
        fact for fact in Ledger(chosen.paths.ledger).facts_of("pypi__latin-1.1") if fact.key.kind.endswith("extract")
    ]
    assert any("CHANGES.md" in note for note in fact.payload["notes"])

"""Packages that are wrong in every way, in one run: each is rejected with its own reason, and none disturbs another."""

from __future__ import annotations

import json
import re
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from crawlers.index_server import IndexServer
from planted import plant
from typer.testing import CliRunner
from world import Pair, both, options, pair, project, publish, settings, special, tar_gz

from miner.cli import app
from miner.core.ledger import Ledger
from miner.core.reasons import Reason
from miner.jobs import monthly

SETUP = ("bad-1.1/setup.py", b"setup()")
MARKER = "executed-on-the-host"
LATIN = b"tests/test_caf\xe9.py".decode("utf-8", "surrogateescape")


def archive(server: IndexServer, data: bytes) -> Pair:
    """A pair whose new version is this archive."""
    server.release("bad", "1.0", project("bad", "1.0", fixed=False))
    server.release("bad", "1.1", archive=data)
    return pair("bad")


def wheel_only(server: IndexServer) -> Pair:
    server.release("bad", "1.0", project("bad", "1.0", fixed=False))
    server.release("bad", "1.1", archive=b"PK", filename="bad-1.1-py3-none-any.whl")
    return pair("bad")


def other_bytes(server: IndexServer) -> Pair:
    publish(server, "bad")
    server.fail("/files/bad-1.1", "wrong")
    return pair("bad")


def same_tests(server: IndexServer, **more: bytes) -> Pair:
    tests = project("bad", "1.0", fixed=False)["tests/test_double.py"]
    return publish(server, "bad", new={"tests/test_double.py": tests, **more})


def same_module(server: IndexServer) -> Pair:
    old = project("bad", "1.0", fixed=False)
    same = {path: old[path] for path in ("bad.py", "CHANGES.md", "setup.py")}
    return publish(server, "bad", new=same)


def writes_when_executed(server: IndexServer) -> Pair:
    code = f'import pathlib\npathlib.Path("{MARKER}").write_text("")\nfrom setuptools import setup\n'
    return both(server, "bad", setup__py=f'{code}setup(name="bad", python_requires=">=3.99")\n'.encode())


def tests_of_another_alphabet(server: IndexServer) -> Pair:
    tests = project("bad", "1.0", fixed=False)["tests/test_double.py"]
    return publish(server, "bad", old={LATIN: b"x = 1\n"}, new={LATIN: b"x = 1\n", "tests/test_double.py": tests})


Make = Callable[[IndexServer], Pair]
CASES: dict[str, tuple[Make, Reason, str]] = {
    "unknown-package": (lambda _: pair("bad"), Reason.UNKNOWN_PACKAGE, "knows no package 'bad'"),
    "unknown-version": (
        lambda server: {**publish(server, "bad"), "new": "1.5"},
        Reason.UNKNOWN_VERSION,
        r"bad has no version 1\.5; near it are 1\.0, 1\.1",
    ),
    "no-sdist": (wheel_only, Reason.NO_SDIST, r"bad 1\.1 has no source distribution .* bad-1\.1-py3-none-any\.whl"),
    "another-file": (other_bytes, Reason.HASH_MISMATCH, r"bad-1\.1\.tar\.gz: announced as sha256"),
    "no-archive": (lambda s: archive(s, b"<html>"), Reason.ARCHIVE_CORRUPT, r"bad-1\.1\.tar\.gz: "),
    "half-an-archive": (
        lambda s: archive(s, tar_gz(SETUP, ("bad-1.1/x", bytes(range(256)) * 40))[:150]),
        Reason.ARCHIVE_CORRUPT,
        r"bad-1\.1\.tar\.gz: ",
    ),
    "traversal": (
        lambda s: archive(s, tar_gz(SETUP, ("bad-1.1/../../etc/cron.d/x", b"x"))),
        Reason.ARCHIVE_ESCAPES,
        r"'bad-1\.1/\.\./\.\./etc/cron\.d/x' leads out",
    ),
    "link-out": (
        lambda s: archive(s, tar_gz(SETUP, special("bad-1.1/x", tarfile.SYMTYPE, "../../etc/passwd"))),
        Reason.ARCHIVE_ESCAPES,
        "'x' is a link to .*/etc/passwd",
    ),
    "pipe": (
        lambda s: archive(s, tar_gz(SETUP, special("bad-1.1/x", tarfile.FIFOTYPE))),
        Reason.ARCHIVE_SPECIAL_FILE,
        "'bad-1.1/x' is neither file, folder nor link",
    ),
    "bomb": (lambda s: archive(s, tar_gz(SETUP, ("bad-1.1/x", bytes(15 << 20)))), Reason.ARCHIVE_TOO_LARGE, "bad-1.1"),
    "two-top-folders": (
        lambda s: archive(s, tar_gz(SETUP, ("other/x", b"x"))),
        Reason.ARCHIVE_NO_PROJECT,
        "expected one top-level folder, found 'bad-1.1', 'other'",
    ),
    "no-project": (
        lambda s: archive(s, tar_gz(("bad-1.1/README", b"x"))),
        Reason.ARCHIVE_NO_PROJECT,
        "holds none of pyproject.toml, setup.py, setup.cfg",
    ),
    "no-tests": (
        lambda s: publish(s, "bad", old={"tests/test_double.py": None}, new={"tests/test_double.py": None}),
        Reason.NO_TEST_FILES,
        r"looked for test_\*\.py, \*_test\.py .*; found 2 Python modules",
    ),
    "no-test-changed": (same_tests, Reason.NO_TEST_CHANGE, "tests/test_double.py"),
    "only-tests-changed": (same_module, Reason.NO_GOLD_CHANGE, "tests/test_double.py"),
    "name-that-is-no-utf-8": (tests_of_another_alphabet, Reason.NO_TEST_CHANGE, r"tests/test_caf\\udce9\.py"),
    "no-change-log": (
        lambda s: both(s, "bad", CHANGES__md=None),
        Reason.NO_STATEMENT,
        "no text says what the change is about",
    ),
    "change-log-of-three-letters": (
        lambda s: publish(s, "bad", new={"CHANGES.md": b"# Changes\n\n## 1.1\n\nfix\n"}),
        Reason.STATEMENT_TOO_SHORT,
        "the statement has 3 characters, the policy asks for 20",
    ),
    "change-log-of-zeros": (lambda s: both(s, "bad", CHANGES__md=bytes(500)), Reason.NO_STATEMENT, "no text"),
    "setup-that-is-no-python": (
        lambda s: both(s, "bad", setup__py=b"def setup(:\n    print 'two'\n"),
        Reason.SETUP_UNREADABLE,
        r"setup\.py: is not readable as Python 3 \(invalid syntax",
    ),
    "setup-of-zeros": (lambda s: both(s, "bad", setup__py=bytes(20)), Reason.SETUP_UNREADABLE, "setup.py: holds NUL"),
    "setup-that-acts": (writes_when_executed, Reason.NO_PYTHON, r"asks for Python >=3\.99; configured: "),
    "pyproject-that-is-no-toml": (
        lambda s: both(s, "bad", pyproject__toml=b'[build-system\nrequires = "'),
        Reason.SETUP_UNREADABLE,
        r"pyproject\.toml: is not valid TOML",
    ),
    "pyproject-that-is-no-utf-8": (
        lambda s: both(s, "bad", pyproject__toml=b'[project]\nname = "caf\xe9\n'),
        Reason.SETUP_UNREADABLE,
        r"pyproject\.toml: is not valid TOML",
    ),
}  # fmt: skip


class Renamed(IndexServer):
    """Publishes what a case publishes as `bad` under the name of the case, so that all cases stand in one index."""

    name = "bad"

    def release(self, name: str, version: str, *args: Any, **options: Any) -> str:
        filename = options.pop("filename", f"{name}-{version}.tar.gz")
        own = filename.replace("bad-", f"{self.name}-", 1)
        archive = options.pop("archive", None)
        if archive is None:
            from crawlers.index_server import make_sdist

            archive = make_sdist(f"bad-{version}", args[0])
        return super().release(self.name, version, filename=own, archive=archive, **options)

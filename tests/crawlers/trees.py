"""Random trees and the repositories that tests make of them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from hypothesis import strategies as st

from miner.crawlers.archive import Entry
from miner.crawlers.git_repo import GitRepo, make_repo

OLD, NEW = datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 2, 1, 12, 30, tzinfo=UTC)

_NAMES = st.sampled_from(
    [
        "tests",
        "pkg",
        "test_a.py",
        "b_test.py",
        "core.py",
        "conftest.py",
        "data.json",
        "PKG-INFO",
        "x.egg-info",
        "a b",
        'quo"te',
        "tab\there",
        "back\\slash",
        "caf\u00e9",
        b"latin-\xe9".decode("utf-8", "surrogateescape"),
        "line\nbreak",
        "-dash",
        ":(glob)x",
        "\u2028",
    ]
)
_CONTENTS = st.one_of(
    st.binary(max_size=60),
    st.sampled_from(
        [
            b"",
            b"no newline",
            b"one\ntwo\nthree\n",
            b"one\r\ntwo\r\n",
            b"one\ntwo\nthree\nfour\n",
            b"\xff\xfe latin\n",
            b"nul\0byte\n",
            "line separator \u2028 inside\n".encode(),
            b"diff --git a/x b/x\n--- a/x\n+++ b/x\n",
            b"\ndiff --git a/x b/x\n",
        ]
    ),
)
_ENTRIES = st.one_of(
    st.builds(Entry, st.sampled_from(["100644", "100755"]), _CONTENTS),
    st.builds(Entry, st.just("120000"), st.sampled_from([b"core.py", b"tests", b"no/such"])),
)


def consistent(files: dict[str, Entry]) -> dict[str, Entry]:
    """Leave out files that stand where another path needs a folder, and links to links, which may go in circles."""

    def is_fine(path: str, entry: Entry) -> bool:
        target = files.get(path.rpartition("/")[0] + "/" * ("/" in path) + entry.data.decode("latin-1"))
        to_link = entry.mode == "120000" and target is not None and target.mode == "120000"
        return not to_link and not any(other.startswith(path + "/") for other in files)

    return {path: entry for path, entry in files.items() if is_fine(path, entry)}


TREES = st.dictionaries(st.lists(_NAMES, min_size=1, max_size=3).map("/".join), _ENTRIES, max_size=8).map(consistent)


def two_commits(path: Path, old: Mapping[str, Entry], new: Mapping[str, Entry]) -> tuple[GitRepo, str, str]:
    """Return a repository with both trees, and the ids of its two commits."""
    repo = make_repo(path, [("base", old, OLD, "pkg 1"), ("target", new, NEW, "pkg 2")])
    return repo, repo.commit_of("refs/heads/base"), repo.commit_of("refs/heads/target")


def git(folder: Path, *args: str, stdin: bytes = b"", fails: bool = False) -> str:
    """Run git in a work tree, apart from this user's settings."""
    env = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(["git", *args], cwd=folder, input=stdin, capture_output=True, env=env, check=False)
    assert fails or not done.returncode, done.stderr
    return done.stdout.decode("utf-8", "surrogateescape")


def files(**contents: str) -> dict[str, Entry]:
    """Plain files by name; `__` stands for a slash and `_DOT_` for a dot."""
    return {
        name.replace("__", "/").replace("_DOT_", "."): Entry("100644", text.encode()) for name, text in contents.items()
    }

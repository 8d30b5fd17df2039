"""A producer whose output changes has its epoch raised (law 1). The corpus: small packages, and what was seen in them.

Where a change is meant: raise the epoch, say in docs/producers.md which facts it can alter, and run
`UPDATE_GOLDEN=1 pytest tests/jobs/test_producers_doc.py`. Producers that measure in containers are in it by name only.
"""

from __future__ import annotations

import ast
import io
import json
import os
import tarfile
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from crawlers.index_server import IndexServer
from world import pair, special

from miner.core.blobs import BlobStore
from miner.core.hashing import canonical_json
from miner.core.memo import Memo
from miner.core.records import Observation, Producer, ReleasePair
from miner.core.settings import load_settings
from miner.crawlers.index import IndexClient
from miner.crawlers.pypi import PypiSource

ROOT = Path(__file__).parents[2]
GOLDEN = Path(__file__).with_name("corpus.json")
PACKAGES = ("miner", "installers", "validators", "exporters")
LATIN = b"tests/caf\xe9.txt".decode("utf-8", "surrogateescape")

PLAIN = {
    "setup.py": b"from setuptools import setup\nsetup(name='plain', install_requires=['six'])\n",
    "setup.cfg": b"[tool:pytest]\naddopts = -q\n",
    "CHANGES.rst": b"1.1\n---\n\n* fix #3\n\n1.0\n---\n\n* first\n",
    "plain.py": b"one = 1\n",
    "test_plain.py": b"def test(): pass\n",
    "requirements-test.txt": b"pytest\n",
}
ODD = {
    "pyproject.toml": b'[build-system]\nrequires = ["flit_core"]\nbuild-backend = "flit_core.buildapi"\n',
    "docs/NEWS.txt": b"caf\xe9 1.0\r\n",
    "odd/__init__.py": b"\r\n",
    "odd/data.bin": bytes(range(256)),
    "odd/no-newline.py": b"x = 1",
    "odd/.git/config": b"[core]\n",
    "odd.egg-info/PKG-INFO": b"Name: odd\n",
    "tests/test_a b.py": b"def test(): pass\n",
    LATIN: b"\xff\xfe",
}


def tar(top: str, files: Mapping[str, bytes], *more: tarfile.TarInfo) -> bytes:
    """An archive whose bytes do not depend on a compressor."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", errors="surrogateescape") as archive:
        for path, data in files.items():
            info = tarfile.TarInfo(f"{top}/{path}")
            info.size, info.mode = len(data), 0o755 if path.endswith(".sh") else 0o644
            archive.addfile(info, io.BytesIO(data))
        for info in more:
            archive.addfile(info)
    return out.getvalue()


def stored_zip(top: str, files: Mapping[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for path, data in files.items():
            archive.writestr(zipfile.ZipInfo(f"{top}/{path}"), data)
    return out.getvalue()


def fill(server: IndexServer) -> None:
    """Publish the corpus. Add to it freely; what is there stays as it is."""
    for name, files in (("plain", PLAIN), ("odd", ODD)):
        link = special(f"{name}-1.1/link.py", tarfile.SYMTYPE, "pyproject.toml")
        server.release(name, "1.0", archive=tar(f"{name}-1.0", files), filename=f"{name}-1.0.tar")
        changed = {**files, "new.sh": b"#!/bin/sh\n", "tests/test_new.py": b"def test_new(): pass\n"}
        changed.pop("setup.cfg", None)
        server.release(name, "1.1", archive=tar(f"{name}-1.1", changed, link), filename=f"{name}-1.1.tar")
    server.release("zipped", "1.0", archive=stored_zip("zipped-1.0", PLAIN), filename="zipped-1.0.zip", yanked="old")
    server.release("zipped", "1.1", archive=tar("zipped-1.1", ODD), filename="zipped-1.1.tar")
    escape = tar("escape-1.1", PLAIN, special("escape-1.1/x", tarfile.SYMTYPE, "../y"))
    server.release("escape", "1.0", archive=tar("escape-1.0", PLAIN), filename="escape-1.0.tar")
    server.release("escape", "1.1", archive=escape, filename="escape-1.1.tar")
    server.release("wheel", "1.0", archive=tar("wheel-1.0", PLAIN), filename="wheel-1.0.tar")
    server.release("wheel", "1.1", archive=b"PK", filename="wheel-1.1-py3-none-any.whl")


PAIRS = ("plain", "odd", "zipped", "escape", "wheel", "nothing")


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Producer -> what it sees in each case."""
    folder = tmp_path_factory.mktemp("corpus")
    settings = load_settings(environ={})
    found: dict[str, dict[str, Any]] = {}
    with IndexServer() as server:
        fill(server)
        index = IndexClient(settings.index.model_copy(update={"url": server.url, "tries": 1}), folder / "downloads")
        source = PypiSource((), index, BlobStore(str(folder / "blobs")), folder / "repos", settings.measure.archive)

        def note(producer: Producer, case: str, observation: Observation) -> None:
            text = canonical_json(observation).replace(server.root, "http://index.invalid")
            kept = {name: value for name, value in json.loads(text).items() if name not in ("measures", "logs")}
            found.setdefault(producer.name, {"epoch": producer.epoch, "cases": {}})["cases"][case] = kept

        memo = Memo(lambda _key: [], lambda _fact: None)
        for name in PAIRS:
            item = ReleasePair(**pair(name))
            seen = source.look_up(item)
            note(source.look_up_producer, name, seen)
            looked_up = memo.measure(
                source.look_up_producer, "source.look_up", name, item.inputs, lambda seen=seen: seen
            )
            if looked_up.ok:
                note(source.extract_producer, name, source.extract(item, looked_up))
    return found


def test_output_of_a_producer_changes_with_its_epoch_only(seen: dict[str, dict[str, Any]]) -> None:
    golden = json.loads(GOLDEN.read_text()) if GOLDEN.exists() else {}
    for name, now in seen.items():
        before = golden.get(name, {"epoch": 0, "cases": {}})
        same_epoch = now["epoch"] == before["epoch"]
        for case, was in before["cases"].items() if same_epoch else ():
            assert now["cases"].get(case) == was, f"{name} sees another thing in {case!r}: raise its epoch"
    if "UPDATE_GOLDEN" in os.environ:
        GOLDEN.write_text(json.dumps(seen, indent=1, sort_keys=True) + "\n")
    assert json.loads(GOLDEN.read_text()) == seen, "run with UPDATE_GOLDEN=1"


def test_corpus_holds_good_and_refused_packages(seen: dict[str, dict[str, Any]]) -> None:
    outcomes = {name: {one["outcome"] for one in said["cases"].values()} for name, said in seen.items()}
    assert outcomes == {
        "pypi.look_up": {"ok", "no-sdist", "unknown-package"},
        "pypi.extract": {"ok", "archive-escapes"},
    }


def declared() -> Iterator[Producer]:
    """Every `Producer(name=..., epoch=...)` in our code, read from its text."""
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Producer":
                    values = {word.arg: ast.literal_eval(word.value) for word in node.keywords if word.arg}
                    yield Producer(**values)


def test_every_producer_has_a_name_of_its_own_that_says_where_it_is() -> None:
    names = Counter(producer.name for producer in declared())
    assert {"pypi.look_up", "pypi.extract", "installers.lock", "sandbox.run_tests"} <= names.keys()
    assert set(names.values()) == {1}
    assert all(producer.epoch >= 1 for producer in declared())


def undocumented(page: str, producers: Iterator[Producer]) -> set[tuple[str, int]]:
    """Epochs after the first without a row that names the facts that changed, and why."""
    rows = [[cell.strip(" `") for cell in line.strip().strip("|").split("|")] for line in page.splitlines()]
    known = {(row[0], int(row[1])) for row in rows if len(row) == 4 and row[1].isdigit() and row[2] and row[3]}
    return {(one.name, epoch) for one in producers for epoch in range(2, one.epoch + 1)} - known


def test_every_raised_epoch_is_documented_with_its_query() -> None:
    assert undocumented((ROOT / "docs" / "producers.md").read_text(encoding="utf-8"), declared()) == set()


def test_epoch_without_a_query_would_be_found() -> None:
    page = (
        "| producer | epoch | facts | why |\n|---|---|---|---|\n| `a.b` | 2 | kind = 'x' | a bug |\n| c.d | 2 | | |\n"
    )
    producers = [Producer(name="a.b", epoch=3), Producer(name="c.d", epoch=2), Producer(name="e.f")]
    assert undocumented(page, iter(producers)) == {("a.b", 3), ("c.d", 2)}

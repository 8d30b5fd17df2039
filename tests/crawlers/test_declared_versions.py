"""The version of a project that has no tags: what its own files declare, before and after the change."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from miner.core.blobs import BlobStore
from miner.core.hashing import canonical_json
from miner.crawlers.candidate import versions_of

PYPROJECT = {"pyproject.toml": '[project]\nname = "x"\nversion = "2.1"\n'}


@pytest.fixture
def blobs(tmp_path: Path) -> BlobStore:
    return BlobStore(str(tmp_path))


def versions(
    blobs: BlobStore, target: Mapping[str, str], base: Mapping[str, str], tags: tuple[str, str] = ("0.0.0", "0.0.0")
) -> tuple[str, str]:
    sides = {"target": target, "base": base}
    payload = {
        "version": tags[0],
        "base_version": tags[1],
        **{f"{side}_paths": sorted(files) for side, files in sides.items()},
    }
    digests = {f"{side}_files": blobs.put_text(canonical_json(files)) for side, files in sides.items()}
    return versions_of(payload, digests, blobs)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (PYPROJECT, "2.1"),
        ({"pyproject.toml": '[tool.poetry]\nname = "x"\nversion = "v2.1.0-rc1"\n'}, "2.1.0rc1"),
        ({"setup.cfg": "[metadata]\nname = x\nversion = 3.0.dev1\n", "setup.py": "import setuptools\n"}, "3.0.dev1"),
        ({"setup.py": "from setuptools import setup\nsetup(name='x', version='1.4')\n"}, "1.4"),
        ({"setup.py": "from setuptools import setup\n__version__ = '1.5'\nsetup(version=__version__)\n"}, "1.5"),
        ({"python/pyproject.toml": PYPROJECT["pyproject.toml"], "README": ""}, "2.1"),
        ({"setup.cfg": "[metadata]\nversion = attr: x.__version__\n", "setup.py": ""}, "0.0.0"),
        ({"pyproject.toml": '[project]\nname = "x"\ndynamic = ["version"]\n'}, "0.0.0"),
        ({"pyproject.toml": '[project]\nname = "x"\nversion = "next"\n'}, "0.0.0"),
        ({"pyproject.toml": "[project\n"}, "0.0.0"),
        ({"setup.py": "def (:\n"}, "0.0.0"),
        ({}, "0.0.0"),
    ],
    ids=[
        "pyproject",
        "poetry",
        "setup.cfg",
        "setup.py",
        "a name in setup.py",
        "in a folder",
        "read from code",
        "dynamic",
        "no version",
        "no TOML",
        "no Python",
        "nothing",
    ],
)
def test_without_tags_the_declared_version_counts(blobs: BlobStore, files: dict[str, str], expected: str) -> None:
    assert versions(blobs, files, {}) == (expected, "0.0.0")
    assert versions(blobs, {}, files) == ("0.0.0", expected)


def test_a_change_of_the_declared_version_is_seen(blobs: BlobStore) -> None:
    before = {"pyproject.toml": PYPROJECT["pyproject.toml"].replace("2.1", "2.0")}
    assert versions(blobs, PYPROJECT, before) == ("2.1", "2.0")


def test_tags_come_first(blobs: BlobStore) -> None:
    assert versions(blobs, PYPROJECT, PYPROJECT, ("1.9", "1.8")) == ("1.9", "1.8")
    assert versions(blobs, PYPROJECT, PYPROJECT, ("1.9", "0.0.0")) == ("1.9", "2.1")

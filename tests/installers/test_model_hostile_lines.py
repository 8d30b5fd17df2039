"""What is read of a repository, a log or a reply takes time in proportion to its length, whatever stands in it."""

from __future__ import annotations

import tarfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from structured_bench import RECIPE

from installers.brief.cutting import cut
from installers.brief.draft import read_draft
from installers.brief.evidence import select
from installers.brief.excerpt import relevant
from installers.brief.failures import Deciding, failure_of
from installers.brief.grammar import Unfit, packages, requirements
from installers.distrust.tree import edits
from installers.interface import Refusal, Signature, Tree

MIB = 1 << 20
LINES = {
    "a bracket and blanks": "[" + " " * 397 + "(\n",
    "brackets": "[" * 399 + "\n",
    "blanks": " " * 398 + "x\n",
    "an entry and blanks": "author_email" + " " * 380 + "x\n",
    "blanks and a comment": " " * 380 + "#   x\n",
    "errors": "E   " + "Error" * 700 + "\n",
    "tests": "a::" * 90 + "\n",
    "one line": "[ ",
}
SIGNATURE = Signature(kind="missing-module", subject="yaml")


def filled(unit: str) -> str:
    return (unit * (MIB // len(unit) + 1))[:MIB]


def seconds(run: Callable[[], object]) -> float:
    """Return the time of this processor alone: others may be at work on the machine."""
    began = time.process_time()
    run()
    return time.process_time() - began


@pytest.mark.parametrize("name", LINES)
@pytest.mark.parametrize("path", ["pyproject.toml", "requirements.txt", "ci.yml"])
def test_file(path: str, name: str) -> None:
    assert seconds(lambda: cut(path, filled(LINES[name]), 9000)) < 1


@pytest.mark.parametrize("name", LINES)
def test_log(name: str) -> None:
    text = filled(LINES[name])
    assert seconds(lambda: relevant(text, [SIGNATURE], 6000)) < 1.5
    assert seconds(lambda: failure_of([Deciding("tests", text)], [SIGNATURE], 6000)) < 1.5


def test_tree() -> None:
    text = filled(LINES["a bracket and blanks"]).encode()
    assert seconds(lambda: select(Tree({"setup.cfg": text}, ("setup.cfg",)), RECIPE, 3000)) < 1


def test_path_longer_than_its_frame_is_not_shown() -> None:
    path = f"requirements/{'x' * 4000}.txt"
    assert select(Tree({path: b"pytest\n"}, (path,)), RECIPE, 3000) == ()


@pytest.mark.parametrize("unit", ["{ ", '{"a":', "[", '{"a": 1}', '{"a":[{', "\\", '"'])
def test_reply(unit: str) -> None:
    text = filled(unit)
    assert seconds(lambda: read_draft(text)) < 1
    assert seconds(lambda: read_draft(text[:200_000])) < 1
    assert isinstance(read_draft(text[:200_000]), Refusal)


@pytest.mark.parametrize("unit", ["x ; ((((", "a>=1,", "(", " ", "a-"])
def test_entry_of_a_draft(unit: str) -> None:
    def read(part: str, declared: tuple[str, ...]) -> None:
        with suppress(Unfit):
            requirements("requirements", [part, "attrs"], declared, own="demo")
        with pytest.raises(Unfit):
            packages([part], ())

    for part in (filled(unit), filled(unit)[:400]):
        assert seconds(lambda part=part: read(part, ())) < 1
        assert seconds(lambda part=part: read(part, (part,))) < 1


@pytest.mark.parametrize(
    "path",
    [
        "tests/" + "output" * 170_000 + "/x.json",
        "tests/" + "output" * 170_000 + "/\n",
        "build/" * 170_000 + "\n",
        "test_a/" * 140_000 + "\n",
        "a.egg-info" * 100_000,
        "a.so.1" * 170_000 + ".x",
        "x/" * 500_000 + "x.q",
    ],
    ids=lambda path: f"{path[:14]}...{path[-4:]!r}",
)
def test_name_in_an_archive(path: str, tmp_path: Path) -> None:
    for name in ("base", "left"):
        with tarfile.open(tmp_path / name, "w") as tar:
            if name == "left":
                tar.addfile(tarfile.TarInfo(f"testbed/{path}"))
    assert seconds(lambda: edits(tmp_path / "base", tmp_path / "left")) < 1


def test_header_of_an_archive_with_very_many_entries(tmp_path: Path) -> None:
    header = tarfile.TarInfo("x")
    header.type, header.size = tarfile.XHDTYPE, MIB
    data = (b"6 a=b\n" * (MIB // 6)).ljust(MIB, b"\0")
    with tarfile.open(tmp_path / "base", "w"):
        pass
    (tmp_path / "left").write_bytes((header.tobuf(tarfile.USTAR_FORMAT) + data) * 2)
    assert seconds(lambda: edits(tmp_path / "base", tmp_path / "left")) < 1

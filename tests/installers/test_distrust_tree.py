"""What a session did to a repository is told from two archives, whatever the second one holds."""

from __future__ import annotations

import io
import resource
import tarfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from installers.distrust.tar_members import TarUnreadable, members_of
from installers.distrust.tree import EDITS, edits
from installers.distrust.weakening import weakenings
from miner.core.records import Recipe

Member = tuple[str, bytes | None, dict[str, object]]
"""Name, content, and fields of its header."""

BASE: dict[str, bytes] = {
    "src/example/__init__.py": b"one = 1\n",
    "src/example/data.bin": bytes(range(256)) * 20,
    "tests/test_one.py": b"def test(): pass\n",
    "tests/conftest.py": b"",
    "setup.py": b"from setuptools import setup\n",
    "run.sh": b"#!/bin/sh\n",
    "build/kept.txt": b"tracked\n",
    ".git/HEAD": b"ref: refs/heads/main\n",
}
LINK: Member = ("README", None, {"type": tarfile.SYMTYPE, "linkname": "docs/README"})


def file(path: str, data: bytes = b"", **fields: object) -> Member:
    return path, data, fields


def base_members() -> list[Member]:
    return [*(file(path, data, mode=0o755 if path.endswith(".sh") else 0o644) for path, data in BASE.items()), LINK]


def left_members() -> list[Member]:
    return [(f"testbed/{name}", data, fields) for name, data, fields in base_members()]


def write(path: Path, members: list[Member], form: int = tarfile.PAX_FORMAT) -> Path:
    with tarfile.open(path, "w", format=form, errors="surrogateescape") as tar:
        for name, data, fields in members:
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(data or b""), 0o644
            for key, value in fields.items():
                setattr(info, key, value)
            tar.addfile(info, io.BytesIO(data) if data is not None else None)
    return path


@pytest.fixture
def compare(tmp_path: Path) -> Compare:
    base = write(tmp_path / "base.tar", base_members())

    def run(change: Callable[[list[Member]], object]) -> set[tuple[str, str]]:
        members = left_members()
        change(members)
        left = write(tmp_path / "left.tar", [("testbed/", None, {"type": tarfile.DIRTYPE}), *members])
        return {(edit.path, edit.kind) for edit in edits(base, left)}

    return run


Compare = Callable[[Callable[[list[Member]], object]], set[tuple[str, str]]]


def put(*members: Member) -> Callable[[list[Member]], object]:
    """Add members, in the place of those of the same name."""

    def change(known: list[Member]) -> None:
        names = {f"testbed/{name}" for name, _, _ in members}
        known[:] = [one for one in known if one[0] not in names]
        known += [(f"testbed/{name}", data, fields) for name, data, fields in members]

    return change


def without(*names: str) -> Callable[[list[Member]], object]:
    def change(known: list[Member]) -> None:
        known[:] = [one for one in known if one[0].removeprefix("testbed/") not in names]

    return change


def linked(name: str, to: str, **fields: object) -> Member:
    return name, None, {"type": tarfile.SYMTYPE, "linkname": to, **fields}


def test_untouched_repository_has_no_edits(compare: Compare) -> None:
    assert compare(lambda members: None) == set()


CHANGES: dict[str, tuple[Callable[[list[Member]], object], tuple[str, str]]] = {
    "content": (put(file("tests/test_one.py", b"def test(): return\n")), ("tests/test_one.py", "changed")),
    "same size": (put(file("src/example/__init__.py", b"one = 2\n")), ("src/example/__init__.py", "changed")),
    "emptied": (put(file("tests/test_one.py")), ("tests/test_one.py", "changed")),
    "target of a link": (put(linked("README", "docs/OTHER")), ("README", "changed")),
    "tracked below build": (put(file("build/kept.txt", b"other\n")), ("build/kept.txt", "changed")),
    "deleted": (without("tests/test_one.py"), ("tests/test_one.py", "deleted")),
    "executable": (put(file("setup.py", BASE["setup.py"], mode=0o755)), ("setup.py", "mode-changed")),
    "not executable": (put(file("run.sh", BASE["run.sh"], mode=0o644)), ("run.sh", "mode-changed")),
    "link in place of a file": (put(linked("setup.py", "/tmp/evil.py")), ("setup.py", "type-changed")),
    "file in place of a link": (put(file("README", b"docs/README")), ("README", "type-changed")),
    "pipe in place of a file": (put(("setup.py", None, {"type": tarfile.FIFOTYPE})), ("setup.py", "type-changed")),
    "folder in place of a file": (put(("setup.py", None, {"type": tarfile.DIRTYPE})), ("setup.py", "type-changed")),
    "link in place of a folder": (
        lambda members: (
            without("tests/test_one.py", "tests/conftest.py")(members),
            put(linked("tests", "/tmp/t"))(members),
        ),
        ("tests", "type-changed"),
    ),
    "hard link to another file": (
        put(("setup.py", None, {"type": tarfile.LNKTYPE, "linkname": "testbed/run.sh"})),
        ("setup.py", "changed"),
    ),
    "hard link out of the repository": (
        put(("setup.py", None, {"type": tarfile.LNKTYPE, "linkname": "etc/passwd"})),
        ("setup.py", "type-changed"),
    ),
    "hard link to itself": (
        put(("setup.py", None, {"type": tarfile.LNKTYPE, "linkname": "testbed/setup.py"})),
        ("setup.py", "type-changed"),
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_change_of_a_tracked_file(name: str, compare: Compare) -> None:
    change, expected = CHANGES[name]
    assert expected in compare(change)


@pytest.mark.parametrize(
    "path",
    [
        *("conftest.py", "tests/conftest.py.py", "tests/test_two.py", "src/example/new.py", "sitecustomize.py"),
        *("pytest.ini", ".pytest.ini", "pytest.toml", "tox.ini", "setup.cfg", "pyproject.toml", "evil.pth", ".env"),
        *(".pytestrc", ".coveragerc", "tests/data.json", "tests/fixtures/x.yaml", "docs/conf.py", "src/example/x.pyx"),
        *("Makefile", ".env.test", "tests/snapshots/one.ambr", "nested/pytest.ini", "tests/test_words.txt"),
    ],
)
def test_new_file_that_could_steer_tests(path: str, compare: Compare) -> None:
    assert compare(put(file(path, b"x"))) == {(path, "added")}


def test_new_link_could_stand_for_anything(compare: Compare) -> None:
    assert compare(put(linked("src/other", "/tmp/evil"))) == {("src/other", "added")}


@pytest.mark.parametrize(
    "path",
    [
        *("src/example.egg-info/PKG-INFO", "src/example/__pycache__/x.cpython-311.pyc", "src/example/_fast.so"),
        *(
            "build/lib/example/__init__.py",
            ".eggs/x/setup.py",
            ".pytest_cache/v/cache/lastfailed",
            "venv/lib/x/conftest.py",
        ),
        *("example-1.0.dist-info/RECORD", "src/example/fast.o", "src/example/_fast.c", ".venv/pyvenv.cfg", ".coverage"),
        *("dist/x.whl", ".tox/py/log.txt", "src/example/_version.py", "htmlcov/index.html", "tests/output.json"),
        *(".hypothesis/examples/x", "notes.txt", "tests/__pycache__/conftest.pyc", "build/temp/setup.cfg"),
    ],
)
def test_what_builds_and_runs_leave_is_no_edit(path: str, compare: Compare) -> None:
    assert compare(put(file(path, b"x"))) == set()


@pytest.mark.parametrize(
    "path", ["src/example/parsetab.py", "src/example/lextab.py", "src/example/wire_pb2.py", "src/example/__config__.py"]
)
def test_module_that_a_build_writes_is_no_edit(path: str, compare: Compare) -> None:
    assert compare(put(file(path, b"x"))) == set()
    assert compare(put(linked(path, "/tmp/evil.py"))) == {(path, "added")}


def test_tracked_file_that_a_build_writes_may_have_other_content_and_nothing_else(tmp_path: Path) -> None:
    path = "src/example/_version.py"
    base = write(tmp_path / "base.tar", [*base_members(), file(path, b"one")])

    def found(number: int, *members: Member) -> list[tuple[str, str]]:
        left = write(tmp_path / f"{number}.tar", [*left_members(), *members])
        return [(edit.path, edit.kind) for edit in edits(base, left)]

    assert found(1, file(f"testbed/{path}", b"two")) == []
    assert found(2) == [(path, "deleted")]
    assert found(3, file(f"testbed/{path}", b"one", mode=0o755)) == [(path, "mode-changed")]
    assert found(4, linked(f"testbed/{path}", "/tmp/evil.py")) == [(path, "type-changed")]


def test_tracked_link_by_the_name_of_what_a_build_writes_may_not_lead_elsewhere(tmp_path: Path) -> None:
    base = write(tmp_path / "base.tar", [linked("_version.py", "a.py")])
    left = write(tmp_path / "left.tar", [linked("testbed/_version.py", "/tmp/evil.py")])
    assert [(edit.path, edit.kind) for edit in edits(base, left)] == [("_version.py", "changed")]


def test_git_of_the_box_is_not_asked(compare: Compare) -> None:
    """An index that hides a change, an exclude that hides a file, a hook: all of it is the agent's."""
    change = put(
        file(".git/index", b"assume-unchanged"),
        file(".git/info/exclude", b"conftest.py\n"),
        file(".git/hooks/fsmonitor", b"#!/bin/sh\n", mode=0o755),
        file(".gitattributes", b"* filter=evil\n"),
        file("conftest.py", b"evil\n"),
        file("tests/test_one.py", b"def test(): return\n"),
    )
    assert compare(change) == {("conftest.py", "added"), ("tests/test_one.py", "changed")}


@pytest.mark.parametrize(
    "fields",
    [
        {"addopts": ("-c", "/home/miner/pytest.ini")},
        {"addopts": ("--rootdir=/home/miner",)},
        {"addopts": ("@/home/miner/options",)},
        {"addopts": ("-p", "evil")},
        {"env": {"PYTHONPATH": "/home/miner"}},
        {"env": {"HOME": "/tmp/home"}},
        {"requirements": ("pytest", "evil @ file:///home/miner/evil.whl")},
        {"requirements": ("-r /home/miner/more.txt",)},
        {"overrides": ("pytest @ file:///home/miner/pytest",)},
        {"backend_path": ("/home/miner",)},
    ],
    ids=str,
)
def test_what_lies_outside_of_the_repository_does_not_matter(fields: dict[str, Any]) -> None:
    """Only a recipe comes out of a session, and each way in which one could name such a file is void by itself."""
    declared = Recipe(python="3.11", build_backend="", requirements=("pytest",))
    assert weakenings(declared.model_copy(update=fields), declared)


def test_hard_link_between_equal_files_is_no_edit(tmp_path: Path) -> None:
    base = write(tmp_path / "base.tar", [file("a.py", b"x"), file("b.py", b"x")])
    same = ("testbed/b.py", None, {"type": tarfile.LNKTYPE, "linkname": "testbed/a.py"})
    assert edits(base, write(tmp_path / "left.tar", [file("testbed/a.py", b"x"), same])) == ()


def test_base_may_be_the_box_before_the_session(tmp_path: Path) -> None:
    made = file("testbed/src/example/made.py", b"made = 1\n")
    base = write(tmp_path / "base.tar", [*left_members(), made])
    left = write(tmp_path / "left.tar", [*left_members(), made])
    assert edits(base, left, base_root="testbed") == ()


@pytest.mark.parametrize(
    "name",
    [
        "/etc/passwd",
        "../evil",
        "testbed/../evil",
        "testbed/a/../../evil",
        "other/file",
        "testbed/./x",
        "testbed//x",
        "testbedx",
    ],
)
def test_path_outside_of_the_repository_is_unsafe(name: str, compare: Compare) -> None:
    assert (name, "unsafe") in compare(lambda members: members.append(file(name, b"x")))


def test_path_that_stands_twice_is_unsafe_even_if_the_first_is_honest(compare: Compare) -> None:
    found = compare(lambda members: members.append(file("testbed/setup.py", b"evil\n")))
    assert ("testbed/setup.py", "unsafe") in found


def test_devices_and_sockets_hurt_nobody(compare: Compare) -> None:
    device = ("dev", None, {"type": tarfile.CHRTYPE, "devmajor": 1, "devminor": 5})
    assert compare(put(device)) == {("dev", "added")}


def test_archive_cut_short_is_unreadable(tmp_path: Path) -> None:
    base = write(tmp_path / "base.tar", base_members())
    whole = write(tmp_path / "left.tar", left_members()).read_bytes()
    (tmp_path / "cut.tar").write_bytes(whole[:5000])
    assert [one.kind for one in edits(base, tmp_path / "cut.tar")] == ["unreadable"]
    with pytest.raises(ValueError, match="base commit"):
        edits(tmp_path / "cut.tar", base)


def header(size: bytes, kind: bytes = b"0") -> bytes:
    block = bytearray(tarfile.TarInfo("testbed/x").tobuf(tarfile.USTAR_FORMAT))
    block[124:136], block[156:157] = size.ljust(12, b"\0"), kind
    block[148:156] = b"%06o\0 " % sum(bytes(block[:148]) + b" " * 8 + bytes(block[156:]))
    return bytes(block)


@pytest.mark.parametrize(
    "data",
    [
        header(b"77777777777"),
        header(b"\x80" + b"\xff" * 11),
        header(b"\xff" * 12),
        header(b"77777777777", b"x"),
        header(b"00000000020", b"x") + b"99999999999999999999 path=x\n".ljust(512, b"\0"),
        header(b"00000000020", b"x") + b"1 path=x\n".ljust(512, b"\0"),
        header(b"00000000020", b"x") + b"0 path=x\n".ljust(512, b"\0"),
        header(b"00000010000", b"S") + b"\0" * 100,
        b"not a tar at all".ljust(1024, b"x"),
        header(b"zzz"),
    ],
)
def test_header_that_no_honest_program_writes(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "left.tar").write_bytes(data)
    base = write(tmp_path / "base.tar", base_members())
    assert [one.kind for one in edits(base, tmp_path / "left.tar")] == ["unreadable"]


def test_names_beyond_all_measure_are_unreadable(tmp_path: Path) -> None:
    base = write(tmp_path / "base.tar", base_members())
    long = "/".join(["d" * 250] * 4000)
    few = write(tmp_path / "few.tar", [*left_members(), *(file(f"testbed/build/{long}/{n}.o") for n in range(8))])
    many = write(tmp_path / "many.tar", [*left_members(), *(file(f"testbed/build/{long}/{n}.o") for n in range(70))])
    assert edits(base, few) == ()
    assert [one.kind for one in edits(base, many)] == ["unreadable"]


def test_name_with_the_end_of_a_line_in_it_is_a_name_like_others(compare: Compare) -> None:
    assert compare(put(file("a\nb/conftest.py", b"x"))) == {("a\nb/conftest.py", "added")}
    assert compare(put(file("tests/a\nb.json", b"x"))) == {("tests/a\nb.json", "added")}
    assert compare(put(file("build/a\nb.py", b"x"))) == set()


def test_huge_sparse_file_is_neither_read_nor_kept(tmp_path: Path) -> None:
    """Ten gigabytes that take no room on the disk: of a new file nothing is read, a tracked one's size says it."""
    base = write(tmp_path / "base.tar", base_members())
    size = 5 * 2**30
    with (tmp_path / "left.tar").open("wb") as out:
        for name in ("testbed/setup.py", "testbed/core"):
            info = tarfile.TarInfo(name)
            info.size = size
            out.write(info.tobuf(tarfile.PAX_FORMAT))
            out.seek(size, io.SEEK_CUR)
        out.write(b"\0" * 1024)
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.monotonic()
    found = {(one.path, one.kind) for one in edits(base, tmp_path / "left.tar")}
    assert {("setup.py", "changed"), ("run.sh", "deleted")} <= found
    assert time.monotonic() - began < 2
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 * 1024


def test_sparse_file_of_gnu_tar_is_special(tmp_path: Path) -> None:
    base = write(tmp_path / "base.tar", [file("data", b"x" * 10)])
    sparse = {"pax_headers": {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": "9999999999999"}}
    left = write(tmp_path / "left.tar", [file("testbed/data", b"x" * 10, **sparse)])
    assert [(one.path, one.kind) for one in edits(base, left)] == [("data", "type-changed")]


def test_names_of_any_bytes_are_told_legibly(compare: Compare) -> None:
    assert compare(put(file("src/\x1b[2J\udcff.py", b"x"))) == {("src/\\x1b[2J\\udcff.py", "added")}


_NAME = st.text(st.characters(exclude_characters="\0/", exclude_categories=()), min_size=1, max_size=40)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    names=st.lists(st.lists(_NAME, min_size=1, max_size=6).map("/".join), min_size=1, max_size=6, unique=True),
    data=st.binary(max_size=2000),
    form=st.sampled_from([tarfile.PAX_FORMAT, tarfile.GNU_FORMAT]),
)
def test_members_are_those_that_tarfile_wrote(tmp_path: Path, names: list[str], data: bytes, form: int) -> None:
    assume(_writable(names))
    path = write(tmp_path / "some.tar", [file(name, data, mode=0o755) for name in names], form)
    found = list(members_of(path))
    assert [(one.path, one.kind, one.mode, one.size) for one in found] == [
        (name, "file", 0o755, len(data)) for name in names
    ]
    content = path.read_bytes()
    assert all(content[one.offset : one.offset + one.size] == data for one in found)


def _writable(names: list[str]) -> bool:
    try:
        return all(name.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape") == name for name in names)
    except UnicodeEncodeError:
        return False


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.data())
def test_damaged_archive_ends_cleanly(tmp_path: Path, data: st.DataObject) -> None:
    whole = bytearray(write(tmp_path / "some.tar", left_members()).read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    (tmp_path / "bad.tar").write_bytes(bytes(whole))
    with suppress(TarUnreadable):
        assert len(list(members_of(tmp_path / "bad.tar"))) < 100


def test_every_kind_of_edit_is_found_by_a_test_here() -> None:
    told = Path(__file__).read_text(encoding="utf-8")
    assert all(f'"{kind}"' in told for kind in EDITS)

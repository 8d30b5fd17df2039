"""Normalised layers: equal installations have equal bytes, and a difference restores what it came from."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from typing import BinaryIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from installers.layer import difference, load, normalise, read, store, unpacked
from miner.core.blobs import BlobStore
from miner.core.errors import InfrastructureFault
from miner.core.records import Layer
from miner.sandbox.image_archive import TarEntry, read_tar

SITE = "opt/env/lib/python3.11/site-packages"


def entry(path: str, content: bytes = b"", **changes: object) -> TarEntry:
    return TarEntry(path, "file", content=content, **changes)  # type: ignore[arg-type]


def export(path: Path, *, mtime: int, uid: int, order: int) -> Path:
    """Write an exported environment as an engine would, with everything that may differ from run to run."""
    record = b"demo/a.py,sha256=x,1\ndemo-1.dist-info/RECORD,,\ndemo/__pycache__/a.cpython-311.pyc,,\n"
    files = {
        "env": None,
        "env/lib": None,
        "env/lib/demo": None,
        "env/lib/demo/a.py": b"a = 1\n",
        "env/lib/demo/__pycache__/a.cpython-311.pyc": bytes([mtime % 256]),
        "env/lib/demo-1.dist-info": None,
        "env/lib/demo-1.dist-info/RECORD": b"\n".join(sorted(record.splitlines(), reverse=order < 0)) + b"\n",
        "env/lib/demo-1.dist-info/uv_cache.json": b"%d" % mtime,
        "env/.lock": b"",
    }
    with tarfile.open(path, "w") as tar:
        for name, data in list(files.items())[::order]:
            info = tarfile.TarInfo(name)
            info.mtime, info.uid, info.gid, info.uname = mtime, uid, uid, f"user{uid}"
            info.type = tarfile.DIRTYPE if data is None else tarfile.REGTYPE
            info.size = len(data or b"")
            tar.addfile(info, io.BytesIO(data or b""))
    return path


def test_two_exports_that_differ_in_times_owners_order_and_caches_have_one_digest(tmp_path: Path) -> None:
    blobs = BlobStore(str(tmp_path / "blobs"))
    one = store(
        normalise(read_tar(export(tmp_path / "1.tar", mtime=1, uid=0, order=1)), "opt").values(), blobs, tmp_path
    )
    two = store(
        normalise(read_tar(export(tmp_path / "2.tar", mtime=99, uid=1000, order=-1)), "opt").values(), blobs, tmp_path
    )
    assert one == two
    assert blobs.has(one.diff_id.removeprefix("sha256:"))


def test_record_loses_rows_of_dropped_files_and_keeps_scripts_outside_site_packages(tmp_path: Path) -> None:
    rows = (
        b"../../../bin/tool,sha256=s,2\r\nd/__init__.py,sha256=q,1\r\n"
        b"d/__pycache__/x.pyc,,\r\nd-1.dist-info/RECORD,,\r\n"
    )
    tree = normalise(
        [
            entry("opt/env/bin/tool", b"#!", mode=0o775),
            entry(f"{SITE}/d/__init__.py", b"\n"),
            entry(f"{SITE}/d/__pycache__/x.pyc", b"x"),
            entry(f"{SITE}/d-1.dist-info/RECORD", rows),
        ]
    )
    assert read(tree[f"{SITE}/d-1.dist-info/RECORD"]) == (
        b"../../../bin/tool,sha256=s,2\nd-1.dist-info/RECORD,,\nd/__init__.py,sha256=q,1\n"
    )
    assert tree["opt/env/bin/tool"].mode == 0o755


def test_record_that_is_no_csv_in_utf8_is_left_alone() -> None:
    tree = normalise([entry("a.dist-info/RECORD", b"\xff\xfe")])
    assert read(tree["a.dist-info/RECORD"]) == b"\xff\xfe"


def test_setuid_and_group_bits_are_lost() -> None:
    tree = normalise([entry("opt/env/bin/su", b"x", mode=0o6777), TarEntry("opt/env/tmp", "dir", mode=0o1777)])
    assert (tree["opt/env/bin/su"].mode, tree["opt/env/tmp"].mode) == (0o755, 0o755)


def test_direct_url_of_a_wheel_is_dropped_and_of_a_folder_is_kept() -> None:
    tree = normalise(
        [
            entry("a.dist-info/direct_url.json", b'{"archive_info": {}, "url": "file:///tmp/x/a.whl"}'),
            entry("b.dist-info/direct_url.json", b'{"dir_info": {"editable": true}, "url": "file:///testbed"}'),
        ]
    )
    assert set(tree) == {"b.dist-info/direct_url.json"}


def test_notes_of_an_installer_that_are_too_large_to_read_are_left_alone() -> None:
    def huge() -> BinaryIO:
        raise AssertionError("it was read")

    names = ("a.dist-info/RECORD", "a.dist-info/direct_url.json")
    tree = normalise([TarEntry(name, "file", 0o644, content=huge, size=1 << 30) for name in names])
    assert set(tree) == set(names)


def test_hard_links_become_files_of_their_own() -> None:
    tree = normalise([entry("env/a", b"same"), TarEntry("env/b", "hardlink", link="env/a")], "opt")
    assert (tree["opt/env/b"].kind, read(tree["opt/env/b"])) == ("file", b"same")


def test_planted_whiteout_deletes_nothing() -> None:
    assert normalise([entry("opt/env/bin/.wh.python")]) == {}


def test_difference_is_what_changed_what_came_and_what_went() -> None:
    below = normalise([TarEntry("e", "dir"), entry("e/same", b"1"), entry("e/old", b"1"), entry("e/gone", b"1")])
    above = normalise([TarEntry("e", "dir"), entry("e/same", b"1"), entry("e/old", b"2"), entry("e/new", b"1")])
    changes = {(change.path, change.kind) for change in difference(below, above)}
    assert changes == {("e", "dir"), ("e/old", "file"), ("e/new", "file"), ("e/gone", "whiteout")}


def test_equal_trees_make_no_layer() -> None:
    tree = normalise([TarEntry("e", "dir"), entry("e/a", b"1"), TarEntry("e/l", "symlink", link="a")])
    assert difference(tree, tree) == []


def test_folders_above_a_change_keep_their_owner_and_those_of_the_base_are_roots(tmp_path: Path) -> None:
    blobs = BlobStore(str(tmp_path / "blobs"))
    below = normalise([TarEntry("opt/env", "dir"), TarEntry("opt/env/lib", "dir")])
    changes = difference(below, normalise([*below.values(), entry("opt/env/lib/new", b"1")]))
    layer = store(changes, blobs, tmp_path)
    owners = {item.path: item.uid for item in read_tar(unpacked(layer, blobs, tmp_path))}
    assert owners == {"opt": 0, "opt/env": 1000, "opt/env/lib": 1000, "opt/env/lib/new": 1000}


def test_folder_that_is_gone_is_one_whiteout() -> None:
    below = normalise([TarEntry("e", "dir"), TarEntry("e/d", "dir"), entry("e/d/a"), entry("e/d/b")])
    changes = difference(below, normalise([TarEntry("e", "dir")]))
    assert {(change.path, change.kind) for change in changes} == {("e", "dir"), ("e/d", "whiteout")}


def test_folder_that_becomes_a_link_needs_no_whiteout_inside_the_link() -> None:
    below = normalise([TarEntry("e", "dir"), TarEntry("e/d", "dir"), entry("e/d/a")])
    changes = difference(below, normalise([TarEntry("e", "dir"), TarEntry("e/d", "symlink", link="/etc")]))
    assert {(change.path, change.kind) for change in changes} == {("e", "dir"), ("e/d", "symlink")}


names = st.sampled_from(["a", "b", "c", "a/x", "a/y", "b/x", "b/x/z"])
trees = st.dictionaries(names, st.binary(max_size=3), max_size=7)


def tree_of(files: dict[str, bytes]) -> dict[str, TarEntry]:
    """Files whose name is a folder of another one become that folder."""
    made: dict[str, TarEntry] = {}
    for name, data in files.items():
        parts = name.split("/")
        for depth in range(1, len(parts)):
            made["/".join(parts[:depth])] = TarEntry("/".join(parts[:depth]), "dir")
        made.setdefault(name, entry(name, data))
    return normalise(made.values())


def apply(below: dict[str, TarEntry], changes: list[TarEntry]) -> dict[str, bytes | None]:
    """What an engine shows when it lays one layer over another: whiteouts first, a file replaces a folder."""
    shown = {path: None if item.kind == "dir" else read(item) for path, item in below.items()}
    for change in changes:
        replaces = change.kind == "whiteout" or (change.kind != "dir")
        for path in [path for path in shown if path == change.path or path.startswith(f"{change.path}/")]:
            if replaces:
                del shown[path]
    for change in changes:
        if change.kind != "whiteout":
            shown[change.path] = None if change.kind == "dir" else read(change)
    return shown


@given(trees, trees)
def test_layer_over_layer_is_the_tree_that_was_exported(one: dict[str, bytes], two: dict[str, bytes]) -> None:
    below, above = tree_of(one), tree_of(two)
    expected = {path: None if item.kind == "dir" else read(item) for path, item in above.items()}
    assert apply(below, difference(below, above)) == expected


def test_stored_layer_is_read_back_and_a_damaged_one_is_a_fault(tmp_path: Path) -> None:
    blobs = BlobStore(str(tmp_path / "blobs"))
    tree = normalise([TarEntry("opt/e", "dir"), entry("opt/e/a", b"1"), TarEntry("opt/e/l", "symlink", link="a")])
    layer = store(tree.values(), blobs, tmp_path)
    again = load(layer, blobs, tmp_path)
    assert difference(again, tree) == []
    assert {path: (item.kind, read(item)) for path, item in again.items()} == {
        path: (item.kind, read(item)) for path, item in tree.items()
    }
    with pytest.raises(InfrastructureFault, match="missing or damaged"):
        load(Layer(diff_id="sha256:" + "0" * 64, size=1), blobs, tmp_path)


def test_whiteout_is_written_as_the_image_specification_says(tmp_path: Path) -> None:
    blobs = BlobStore(str(tmp_path / "blobs"))
    layer = store([TarEntry("opt/env/gone", "whiteout")], blobs, tmp_path)
    with tarfile.open(fileobj=io.BytesIO(blobs.get(layer.diff_id.removeprefix("sha256:")))) as tar:
        assert tar.getnames() == ["opt", "opt/env", "opt/env/.wh.gone"]

from __future__ import annotations

import hashlib
import io
import json
import random
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from miner.core.records import Layer
from miner.sandbox.image_archive import (
    ImageConfig,
    LayerSource,
    TarEntry,
    deterministic_tar,
    read_tar,
    write_docker_archive,
)

NAMES = st.text(st.characters(exclude_characters="/\0", exclude_categories=("Cs",)), min_size=1, max_size=120).filter(
    lambda name: name not in (".", "..") and not name.startswith(".wh.")
)
FILES = st.dictionaries(NAMES, st.tuples(st.binary(max_size=50), st.integers(0, 0o777)), max_size=8)


def tar_of(*entries: TarEntry, mtime: int = 0) -> tuple[Layer, bytes]:
    out = io.BytesIO()
    return deterministic_tar(entries, out, mtime=mtime), out.getvalue()


@given(FILES, st.randoms(use_true_random=False))
def test_order_of_entries_does_not_change_a_byte(files: dict[str, tuple[bytes, int]], shuffled: random.Random) -> None:
    entries = [TarEntry("d", "dir", mode=0o755)]
    entries += [TarEntry(f"d/{name}", "file", mode=mode, content=data) for name, (data, mode) in files.items()]
    permuted = entries.copy()
    shuffled.shuffle(permuted)
    assert tar_of(*entries) == tar_of(*permuted)


@given(FILES)
def test_what_is_written_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, files: dict[str, tuple[bytes, int]]
) -> None:
    layer, data = tar_of(*(TarEntry(name, "file", mode, content=data) for name, (data, mode) in files.items()))
    path = tmp_path_factory.mktemp("tar") / "layer.tar"
    path.write_bytes(data)
    back = list(read_tar(path))
    assert {entry.path: (entry.open().read(), entry.mode) for entry in back} == files
    assert tar_of(*back) == (layer, data)


def test_diff_id_and_size_are_those_of_the_bytes() -> None:
    layer, data = tar_of(TarEntry("a", "file", content=b"x"))
    assert layer == Layer(diff_id=f"sha256:{hashlib.sha256(data).hexdigest()}", size=len(data))


def test_headers_hold_one_time_numeric_owners_and_no_names() -> None:
    _, data = tar_of(
        TarEntry("bin/tool", "file", 0o755, 1000, 1001, content=b"#!"), TarEntry("bin", "dir", 0o750), mtime=1735689600
    )
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        folder, tool = tar.getmembers()
    assert (folder.name, folder.mode, folder.mtime) == ("bin", 0o750, 1735689600)
    assert (tool.mode, tool.uid, tool.gid, tool.uname, tool.gname) == (0o755, 1000, 1001, "", "")
    assert folder.pax_headers == tool.pax_headers == {}


def test_name_that_is_not_utf8_survives() -> None:
    name = b"caf\xe9.txt".decode("utf-8", "surrogateescape")
    _, data = tar_of(TarEntry(name, "file"))
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        assert tar.getnames() == [name]


@pytest.mark.parametrize("path", ["", ".", "/etc/passwd", "../x", "a/../b", "a//b", "./a", "a/"])
def test_path_that_is_not_clean_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="clean relative path"):
        tar_of(TarEntry(path, "file"))


@pytest.mark.parametrize("path", [".wh.passwd", "etc/.wh..wh..opq"])
def test_file_named_like_a_whiteout_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="delete files of lower layers"):
        tar_of(TarEntry(path, "file"))


def test_path_that_stands_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="twice"):
        tar_of(TarEntry("a", "file"), TarEntry("a", "dir"))


def test_hard_link_to_what_is_not_there_is_refused() -> None:
    with pytest.raises(ValueError, match="hard link"):
        tar_of(TarEntry("a", "hardlink", link="b"))


@pytest.mark.parametrize(("size", "what"), [(1, "longer"), (5, "shorter")])
def test_stream_of_another_length_than_announced_is_an_error(size: int, what: str) -> None:
    with pytest.raises(ValueError, match=what):
        tar_of(TarEntry("a", "file", content=lambda: io.BytesIO(b"abc"), size=size))


def member(
    name: str, kind: bytes = tarfile.REGTYPE, link: str = "", data: bytes = b""
) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size = kind, link, len(data)
    return info, data


def exported(path: Path, *members: tuple[tarfile.TarInfo, bytes]) -> Path:
    with tarfile.open(path, "w") as tar:
        for info, data in members:
            tar.addfile(info, io.BytesIO(data))
    return path


def test_hard_linked_files_do_not_depend_on_which_came_first(tmp_path: Path) -> None:
    one = exported(tmp_path / "1", member("./b", data=b"x"), member("./a", tarfile.LNKTYPE, "./b"))
    two = exported(tmp_path / "2", member("a", data=b"x"), member("b", tarfile.LNKTYPE, "a"))
    assert tar_of(*read_tar(one)) == tar_of(*read_tar(two))


def test_hard_link_stays_when_the_file_it_named_is_dropped(tmp_path: Path) -> None:
    archive = exported(tmp_path / "t", member("a", data=b"x"), member("b", tarfile.LNKTYPE, "a"))
    (entry,) = read_tar(archive, keep=lambda path: path != "a")
    assert (entry.path, entry.kind, entry.open().read()) == ("b", "file", b"x")


def test_hard_links_in_a_circle_are_an_error_not_a_loop(tmp_path: Path) -> None:
    archive = exported(tmp_path / "t", member("a", tarfile.LNKTYPE, "b"), member("b", tarfile.LNKTYPE, "a"))
    with pytest.raises(ValueError, match="circle"):
        list(read_tar(archive))


def test_devices_and_pipes_of_an_export_are_left_out(tmp_path: Path) -> None:
    archive = exported(
        tmp_path / "t",
        member("null", tarfile.CHRTYPE),
        member("pipe", tarfile.FIFOTYPE),
        member("l", tarfile.SYMTYPE, "/x"),
    )
    assert [(entry.path, entry.kind, entry.link) for entry in read_tar(archive)] == [("l", "symlink", "/x")]


def config(*diff_ids: str) -> ImageConfig:
    return ImageConfig(architecture="amd64", created=0, diff_ids=diff_ids, notes=tuple("base" for _ in diff_ids))


def test_configuration_is_what_engines_read() -> None:
    document = json.loads(config("sha256:00").with_layer("sha256:11", "env", labels={"lock": "1"}).json_bytes())
    assert document == {
        "architecture": "amd64",
        "config": {
            "Cmd": ["/bin/bash"],
            "Env": ["PATH=/opt/env/bin:/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8"],
            "Labels": {"lock": "1"},
            "StopSignal": "SIGKILL",
            "User": "1000:1000",
            "WorkingDir": "/testbed",
        },
        "created": "1970-01-01T00:00:00Z",
        "history": [
            {"created": "1970-01-01T00:00:00Z", "created_by": "base"},
            {"created": "1970-01-01T00:00:00Z", "created_by": "env"},
        ],
        "os": "linux",
        "rootfs": {"diff_ids": ["sha256:00", "sha256:11"], "type": "layers"},
    }


def test_image_id_changes_with_the_configuration_only() -> None:
    assert config("sha256:00").image_id == config("sha256:00").image_id
    assert config("sha256:00").image_id != config("sha256:11").image_id


def test_archive_names_all_layers_and_leaves_out_the_bytes_of_held_ones() -> None:
    lower, _ = tar_of(TarEntry("a", "file"))
    upper, data = tar_of(TarEntry("b", "file"))
    out = io.BytesIO()
    image = config(lower.diff_id, upper.diff_id)
    write_docker_archive(image, [LayerSource(lower, None), LayerSource(upper, lambda: io.BytesIO(data))], "x:y", out)
    with tarfile.open(fileobj=io.BytesIO(out.getvalue())) as tar:
        names = tar.getnames()
        manifest = json.load(tar.extractfile("manifest.json"))
        (entry,) = manifest
        assert tar.extractfile(entry["Config"]).read() == image.json_bytes()
        assert tar.extractfile(entry["Layers"][1]).read() == data
    assert entry["RepoTags"] == ["x:y"]
    assert entry["Layers"][0] not in names


def test_layers_of_another_image_are_refused() -> None:
    layer, _ = tar_of(TarEntry("a", "file"))
    with pytest.raises(ValueError, match="not those of the configuration"):
        write_docker_archive(config("sha256:00"), [LayerSource(layer, None)], "x:y", io.BytesIO())

"""Debian packages as a layer: what is in it, what is not, and what counts as a fault. mmdebstrap is a script here."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from bench import Known

from installers.layer import read
from installers.system_packages import package_layer, packages_of, system_packages
from installers.workshop import Room, Workshop
from miner.core.blobs import BlobStore
from miner.core.errors import DiskFull, InfrastructureFault, MachineError
from miner.core.reasons import Reason
from miner.core.records import Fact
from miner.core.settings import load_settings
from miner.sandbox.base_image import BaseImage, layer_path
from miner.sandbox.image_archive import ImageConfig, TarEntry, deterministic_tar, read_tar

STATUS = "var/lib/dpkg/status"
LIST = "var/lib/apt/lists/archive_dists_bookworm_main_binary-amd64_Packages"
GIT = "Package: git\nVersion: 1\nArchitecture: amd64\n"
MAGIC = "Package: libmagic1\nVersion: 5.44-3\nArchitecture: amd64\n"


def file(path: str, text: str, mode: int = 0o644) -> TarEntry:
    return TarEntry(path, "file", mode, content=text.encode())


BASE = {
    STATUS: file(STATUS, f"{GIT}\n"),
    "etc/passwd": file("etc/passwd", "root:x:0:0\nminer:x:1000:1000\n"),
    "etc/machine-id": file("etc/machine-id", ""),
    "dev": TarEntry("dev", "dir", 0o755),
}
GROWN = {
    **BASE,
    STATUS: file(STATUS, f"{GIT}\n{MAGIC}\n"),
    "etc/machine-id": file("etc/machine-id", "uninitialized\n"),
    "etc/passwd": file("etc/passwd", "root:x:0:0\nminer:x:1000:1000\npostgres:x:100:100\n"),
    "usr/lib/libmagic.so.1": file("usr/lib/libmagic.so.1", "library"),
    "usr/bin/file": file("usr/bin/file", "program", 0o4755),
    "usr/bin/file2": TarEntry("usr/bin/file2", "hardlink", link="usr/bin/file"),
    "usr/share/man/man1/file.1": file("usr/share/man/man1/file.1", "manual"),
    "var/cache/fontconfig/x": file("var/cache/fontconfig/x", "cache"),
    "usr/lib/x/libpython3.11.a": file("usr/lib/x/libpython3.11.a", "static"),
    LIST: file(LIST, f"Package: other\nVersion: 1\nArchitecture: all\nSHA256: 00\n\n{MAGIC}SHA256: c0ffee\n"),
}


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    """A workshop without an engine; its base image is one small layer, and the PATH holds mmdebstrap alone."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "scratch").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return workshop_on(tmp_path, BASE)


def workshop_on(folder: Path, tree: Mapping[str, TarEntry]) -> Workshop:
    cache = folder / "base"
    cache.mkdir(exist_ok=True)
    with (cache / "part").open("wb") as out:
        layer = deterministic_tar(tree.values(), out)
    (cache / "part").rename(layer_path(cache, layer.diff_id))
    config = ImageConfig(architecture="amd64", created=1735689600, diff_ids=(layer.diff_id,), notes=("debian",))

    def no_engine() -> Room:
        raise AssertionError("the engine was asked")

    return Workshop(
        settings=load_settings(overrides=[f"paths.work={folder}"]),
        base=BaseImage(image="base", digest=config.image_id, config=config, layers=(layer,), packages="git 1 amd64\n"),
        blobs=BlobStore(str(folder / "blobs")),
        owner="test",
        scratch=folder / "scratch",
        base_cache=cache,
        room=no_engine,
    )


@pytest.fixture
def mmdebstrap(tmp_path: Path) -> Callable[[str], Path]:
    """Put a script in the place of mmdebstrap; it notes its arguments."""

    def put(script: str) -> Path:
        tool, said = tmp_path / "bin" / "mmdebstrap", tmp_path / "arguments"
        tool.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >> {said}\n{script}\n')
        tool.chmod(0o755)
        return said

    return put


@pytest.fixture
def grown(tmp_path: Path, mmdebstrap: Callable[[str], Path]) -> Path:
    """Make mmdebstrap write the grown system; returns where it notes its arguments."""
    with (tmp_path / "grown.tar").open("wb") as out:
        deterministic_tar(GROWN.values(), out)
    return mmdebstrap(f"{shutil.which('cat', path='/usr/bin:/bin')} {tmp_path / 'grown.tar'}")


def tree_of(bench: Workshop, fact: Fact, folder: Path) -> dict[str, TarEntry]:
    layer = package_layer(fact)
    assert layer is not None
    path = folder / "layer.tar"
    with path.open("wb") as out:
        bench.blobs.copy_to(layer.diff_id.removeprefix("sha256:"), out)
    return {entry.path: entry for entry in read_tar(path)}


class TestLayer:
    def test_holds_what_the_packages_add_and_nothing_else(self, bench: Workshop, grown: Path, tmp_path: Path) -> None:
        tree = tree_of(bench, system_packages(bench, Known().memo(), ["libmagic1"]), tmp_path)
        files = {path for path, entry in tree.items() if entry.kind != "dir"}
        assert files == {STATUS, "etc/passwd", "usr/lib/libmagic.so.1", "usr/bin/file", "usr/bin/file2"}
        assert b"postgres" in read(tree["etc/passwd"])

    def test_keeps_no_set_user_id_bit(self, bench: Workshop, grown: Path, tmp_path: Path) -> None:
        tree = tree_of(bench, system_packages(bench, Known().memo(), ["libmagic1"]), tmp_path)
        assert tree["usr/bin/file"].mode == 0o755

    def test_lock_names_version_architecture_and_hash(self, bench: Workshop, grown: Path) -> None:
        fact = system_packages(bench, Known().memo(), ["libmagic1"])
        locked = {"name": "libmagic1", "version": "5.44-3", "architecture": "amd64", "sha256": "c0ffee"}
        assert fact.payload["lock"] == [locked]
        assert packages_of(fact) == "libmagic1 5.44-3 amd64\n"

    def test_equal_sets_are_one_fact(self, bench: Workshop, grown: Path) -> None:
        known = Known()
        one = system_packages(bench, known.memo(), ["libmagic1", "file"])
        other = system_packages(bench, known.memo(), ["file", "libmagic1", "git"])
        assert one == other
        assert grown.read_text().count("--include=file,libmagic1\n") == 1

    def test_what_the_base_image_has_needs_no_layer(self, bench: Workshop, grown: Path) -> None:
        fact = system_packages(bench, Known().memo(), ["git"])
        assert fact.ok
        assert package_layer(fact) is None
        assert not grown.exists()


UNKNOWN = "echo 'E: Unable to locate package nosuch' >&2; echo 'E: Unable to locate package zz' >&2; exit 25"
BROKEN = "echo 'E: Sub-process /usr/bin/dpkg returned an error code (1)' >&2; exit 25"
UNREACHED = (
    "echo \"W: Failed to fetch http://x/InRelease  Temporary failure resolving 'x'\" >&2;"
    "echo 'E: Unable to locate package libmagic1' >&2; exit 100"
)


class TestFailure:
    def test_unknown_names_are_said(self, bench: Workshop, mmdebstrap: Callable[[str], Path]) -> None:
        mmdebstrap(UNKNOWN)
        fact = system_packages(bench, Known().memo(), ["nosuch", "zz", "libmagic1"])
        assert fact.outcome == Reason.SYSTEM_PACKAGE_UNKNOWN
        assert fact.payload["unknown"] == ["nosuch", "zz"]
        assert fact.payload["detail"] == "Debian bookworm has no nosuch, zz"
        assert fact.network
        assert "nosuch" in bench.blobs.get_text(fact.logs["log"])

    def test_package_that_cannot_be_installed_is_refused_too(
        self, bench: Workshop, mmdebstrap: Callable[[str], Path]
    ) -> None:
        mmdebstrap(BROKEN)
        fact = system_packages(bench, Known().memo(), ["libmagic1"])
        assert (fact.outcome, fact.payload["unknown"]) == (Reason.SYSTEM_PACKAGE_UNKNOWN, [])

    @pytest.mark.parametrize("name", ["./evil.deb", "?essential", "a,b", "-o"])
    def test_what_is_no_name_never_reaches_apt(self, name: str, bench: Workshop, grown: Path) -> None:
        fact = system_packages(bench, Known().memo(), [name])
        assert (fact.outcome, fact.payload["unknown"]) == (Reason.SYSTEM_PACKAGE_UNKNOWN, [name])
        assert not grown.exists()

    def test_archive_that_is_not_reached_is_a_fault_whatever_else_is_said(
        self, bench: Workshop, mmdebstrap: Callable[[str], Path]
    ) -> None:
        mmdebstrap(UNREACHED)
        known = Known()
        with pytest.raises(InfrastructureFault, match="Temporary failure resolving") as caught:
            system_packages(bench, known.memo(), ["libmagic1"])
        assert caught.value.reason is Reason.SYSTEM_ARCHIVE_UNREACHABLE
        assert known.facts == []

    def test_full_disk_is_told_as_such(self, bench: Workshop, mmdebstrap: Callable[[str], Path]) -> None:
        mmdebstrap("echo 'E: Sub-process /usr/bin/dpkg returned: No space left on device' >&2; exit 1")
        with pytest.raises(DiskFull):
            system_packages(bench, Known().memo(), ["libmagic1"])

    def test_machine_without_mmdebstrap_is_told_what_to_do(self, bench: Workshop) -> None:
        with pytest.raises(MachineError, match="mmdebstrap"):
            system_packages(bench, Known().memo(), ["libmagic1"])

    def test_nothing_is_left_in_scratch(self, bench: Workshop, mmdebstrap: Callable[[str], Path]) -> None:
        mmdebstrap(UNKNOWN)
        system_packages(bench, Known().memo(), ["nosuch"])
        assert list(bench.scratch.iterdir()) == []

"""Archives that try to harm, each refused with its own reason, and those that only look so."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import stat
import struct
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from miner.core.errors import InfrastructureFault
from miner.core.reasons import Reason
from miner.core.settings import ArchiveLimits
from miner.crawlers.archive import ArchiveRefused, Entry, Tree, read_archive

LIMITS = ArchiveLimits(max_bytes=1 << 20, max_files=200, max_file_bytes=1 << 18, max_ratio=200)


def header(
    name: str, data: bytes = b"", kind: bytes = tarfile.REGTYPE, target: str = "", mode: int = 0o644
) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size, info.type, info.linkname, info.mode = len(data), kind, target, mode
    return info, data


SETUP = header("pkg-1/setup.py", b"setup()")


def tar(*members: tuple[tarfile.TarInfo, bytes], format: int = tarfile.PAX_FORMAT) -> bytes:  # noqa: A002
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=format, errors="surrogateescape") as archive:
        for info, data in members:
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def read(data: bytes, suffix: str = ".tar.gz", limits: ArchiveLimits = LIMITS) -> Tree:
    pack: dict[str, Callable[[bytes], bytes]] = {
        ".tar.gz": gzip.compress,
        ".tar.bz2": bz2.compress,
        ".tar.xz": lzma.compress,
    }
    return read_raw(pack.get(suffix, bytes)(data), suffix, limits)


def read_raw(data: bytes, suffix: str = ".tar.gz", limits: ArchiveLimits = LIMITS) -> Tree:
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        return read_archive(Path(file.name), f"pkg-1{suffix}", limits)


def zipped(*members: tuple[str, bytes, int]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data, mode in members:
            info = zipfile.ZipInfo(name)
            info.external_attr = mode << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, data)
    return out.getvalue()


def link(name: str, target: str) -> tuple[tarfile.TarInfo, bytes]:
    return header(name, kind=tarfile.SYMTYPE, target=target)


def hard(name: str, target: str) -> tuple[tarfile.TarInfo, bytes]:
    return header(name, kind=tarfile.LNKTYPE, target=target)


REFUSED = {
    "absolute": (Reason.ARCHIVE_ESCAPES, [header("/etc/passwd", b"x")]),
    "dot-dot": (Reason.ARCHIVE_ESCAPES, [header("pkg-1/../../x", b"x")]),
    "dot-dot-that-stays-inside": (Reason.ARCHIVE_ESCAPES, [header("pkg-1/a/../x", b"x")]),
    "dot-dot-in-windows-clothes": (Reason.ARCHIVE_ESCAPES, [header("pkg-1/a\\..\\..\\x", b"x")]),
    "folder-outside": (Reason.ARCHIVE_ESCAPES, [header("../x", kind=tarfile.DIRTYPE)]),
    "absolute-link": (Reason.ARCHIVE_ESCAPES, [link("pkg-1/x", "/etc/passwd")]),
    "link-above": (Reason.ARCHIVE_ESCAPES, [link("pkg-1/a/x", "../../y")]),
    "link-above-by-a-detour": (Reason.ARCHIVE_ESCAPES, [link("pkg-1/x", "a/b/../../../y")]),
    "link-above-through-a-link": (Reason.ARCHIVE_ESCAPES, [link("pkg-1/here", "."), link("pkg-1/x", "here/../y")]),
    "link-above-through-a-chain": (
        Reason.ARCHIVE_ESCAPES,
        [link("pkg-1/a/up", ".."), link("pkg-1/b/x", "../a/up/../y"), header("pkg-1/a/f", b"")],
    ),
    "file-through-a-link": (Reason.ARCHIVE_ESCAPES, [link("pkg-1/a", "b"), header("pkg-1/a/x", b"x")]),
    "link-through-a-link": (Reason.ARCHIVE_ESCAPES, [link("pkg-1/a", "b"), link("pkg-1/a/x", "y")]),
    "hard-link-outside": (Reason.ARCHIVE_ESCAPES, [hard("pkg-1/x", "../../etc/passwd")]),
    "hard-link-to-nothing": (Reason.ARCHIVE_CORRUPT, [hard("pkg-1/x", "pkg-1/later"), header("pkg-1/later", b"")]),
    "link-to-itself": (Reason.ARCHIVE_CORRUPT, [link("pkg-1/x", "x")]),
    "links-in-a-circle": (Reason.ARCHIVE_CORRUPT, [link("pkg-1/x", "a/y"), link("pkg-1/a/y", "../x")]),
    "link-that-grows": (Reason.ARCHIVE_CORRUPT, [link("pkg-1/x", "x/x/x")]),
    "link-to-the-empty-name": (Reason.ARCHIVE_CORRUPT, [link("pkg-1/x", "")]),
    "character-device": (Reason.ARCHIVE_SPECIAL_FILE, [header("pkg-1/x", kind=tarfile.CHRTYPE)]),
    "block-device": (Reason.ARCHIVE_SPECIAL_FILE, [header("pkg-1/x", kind=tarfile.BLKTYPE)]),
    "pipe": (Reason.ARCHIVE_SPECIAL_FILE, [header("pkg-1/x", kind=tarfile.FIFOTYPE)]),
    "file-and-folder": (Reason.ARCHIVE_CORRUPT, [header("pkg-1/a", b"x"), header("pkg-1/a/b", b"x")]),
    "folder-and-file": (Reason.ARCHIVE_CORRUPT, [header("pkg-1/a/b", b"x"), header("pkg-1/a", b"x")]),
    "two-tops": (Reason.ARCHIVE_NO_PROJECT, [header("other/x", b"x")]),
    "file-at-the-top": (Reason.ARCHIVE_NO_PROJECT, [header("README", b"x")]),
    "too-many": (Reason.ARCHIVE_TOO_LARGE, [header(f"pkg-1/{n}", b"") for n in range(300)]),
    "too-large-a-file": (Reason.ARCHIVE_TOO_LARGE, [header("pkg-1/x", bytes(1 << 19))]),
    "too-large-in-all": (Reason.ARCHIVE_TOO_LARGE, [header(f"pkg-1/{n}", bytes(1 << 18)) for n in range(8)]),
    "too-deep": (Reason.ARCHIVE_TOO_LARGE, [header("pkg-1/" + "a/" * 100 + "x", b"x")]),
    "too-long-a-name": (Reason.ARCHIVE_TOO_LARGE, [header("pkg-1/" + "a" * 300, b"x")]),
}


@pytest.mark.parametrize("suffix", [".tar.gz", ".tar.bz2", ".tar.xz", ".tar"])
@pytest.mark.parametrize("case", REFUSED)
def test_hostile_tar_is_refused(case: str, suffix: str) -> None:
    reason, members = REFUSED[case]
    with pytest.raises(ArchiveRefused) as caught:
        read(tar(SETUP, *members), suffix)
    assert caught.value.reason is reason, caught.value


ZIP_REFUSED = {
    "absolute": (Reason.ARCHIVE_ESCAPES, ("/etc/passwd", b"x", 0)),
    "dot-dot": (Reason.ARCHIVE_ESCAPES, ("pkg-1/../../x", b"x", 0)),
    "link-above": (Reason.ARCHIVE_ESCAPES, ("pkg-1/x", b"../../y", stat.S_IFLNK | 0o777)),
    "absolute-link": (Reason.ARCHIVE_ESCAPES, ("pkg-1/x", b"/etc/passwd", stat.S_IFLNK | 0o777)),
    "device": (Reason.ARCHIVE_SPECIAL_FILE, ("pkg-1/x", b"", stat.S_IFCHR | 0o666)),
    "too-large-a-file": (Reason.ARCHIVE_TOO_LARGE, ("pkg-1/x", bytes(1 << 19), 0)),
    "endless-link": (Reason.ARCHIVE_TOO_LARGE, ("pkg-1/x", b"a" * 5000, stat.S_IFLNK | 0o777)),
}


@pytest.mark.parametrize("case", ZIP_REFUSED)
def test_hostile_zip_is_refused(case: str) -> None:
    reason, member = ZIP_REFUSED[case]
    with pytest.raises(ArchiveRefused) as caught:
        read(zipped(("pkg-1/setup.py", b"", 0), member), ".zip")
    assert caught.value.reason is reason, caught.value


def test_a_link_that_stays_inside_is_kept_even_where_nothing_is() -> None:
    members = [link("pkg-1/docs/x", "../setup.py"), link("pkg-1/gone", "no/such")]
    tree = read(tar(SETUP, *members))
    assert tree.entries["docs/x"] == Entry("120000", b"../setup.py")
    assert tree.entries["gone"] == Entry("120000", b"no/such")


def test_a_hard_link_becomes_a_copy() -> None:
    assert read(tar(SETUP, hard("pkg-1/copy.py", "pkg-1/setup.py"))).entries["copy.py"].data == b"setup()"


def test_only_the_executable_bit_of_a_mode_survives() -> None:
    members = [header("pkg-1/run", b"", mode=0o6755), header("pkg-1/secret", b"", mode=0o600)]
    entries = read(tar(SETUP, *members)).entries
    assert (entries["run"].mode, entries["secret"].mode) == ("100755", "100644")


def test_of_a_name_given_twice_the_last_one_counts() -> None:
    tree = read(tar(SETUP, header("pkg-1/x", b"first"), header("pkg-1/./x", b"last")))
    assert tree.entries["x"].data == b"last"
    assert any("more than once" in note for note in tree.notes)


@pytest.mark.parametrize(
    "name", [".git/hooks/pre-commit", "sub/.git", ".GIT/config", "git~1/x", ".git /x", ".git\u200c/x", "a\\.git\\x"]
)
def test_git_folders_in_any_disguise_are_dropped(name: str) -> None:
    tree = read(tar(SETUP, header(f"pkg-1/{name}", b"x"), header("pkg-1/.gitignore", b"x")))
    assert sorted(tree.entries) == [".gitignore", "setup.py"]
    assert len(tree.notes) == 1


def test_resource_forks_of_macos_are_no_second_top_folder() -> None:
    assert read(tar(header("._pkg-1", b"x"), SETUP)).top == "pkg-1"


def test_names_that_are_not_utf8_keep_their_bytes() -> None:
    name = "pkg-1/" + b"caf\xe9.txt".decode("utf-8", "surrogateescape")
    for kind in (tarfile.PAX_FORMAT, tarfile.GNU_FORMAT):
        entries = read(tar(SETUP, header(name, b"x"), format=kind)).entries
        assert b"caf\xe9.txt" in [path.encode("utf-8", "surrogateescape") for path in entries]


def test_without_a_build_file_there_is_no_project() -> None:
    with pytest.raises(ArchiveRefused, match=r"pyproject\.toml") as caught:
        read(tar(header("pkg-1/README", b"x")))
    assert caught.value.reason is Reason.ARCHIVE_NO_PROJECT


@pytest.mark.parametrize("suffix", [".tar.gz", ".tar.bz2", ".tar.xz", ".tar", ".zip"])
def test_every_cut_of_an_archive_is_corrupt(suffix: str) -> None:
    plain = tar(SETUP, header("pkg-1/x", bytes(range(256)) * 8))
    packers: dict[str, Callable[[bytes], bytes]] = {".tar.bz2": bz2.compress, ".tar.xz": lzma.compress, ".tar": bytes}
    whole = zipped(("pkg-1/setup.py", b"setup()", 0)) if suffix == ".zip" else packers.get(suffix, gzip.compress)(plain)
    end = plain.rstrip(b"\0")
    last = len(end) if suffix == ".tar" else len(whole)  # what follows the last file of a plain tar is padding
    for cut in range(0, last, max(last // 40, 1)):
        with pytest.raises(ArchiveRefused) as caught:
            read_raw(whole[:cut], suffix)
        assert caught.value.reason is Reason.ARCHIVE_CORRUPT


def test_a_damaged_header_is_not_taken_for_the_end() -> None:
    plain = bytearray(tar(SETUP, header("pkg-1/x", b"x"), format=tarfile.USTAR_FORMAT))
    plain[1024 + 150] ^= 0xFF  # the checksum of the second header
    with pytest.raises(ArchiveRefused, match="damaged header"):
        read(bytes(plain))


def test_a_damaged_checksum_at_the_very_end_is_seen() -> None:
    packed = bytearray(gzip.compress(tar(SETUP)))
    packed[-6] ^= 0xFF
    with pytest.raises(ArchiveRefused) as caught:
        read_raw(bytes(packed))
    assert caught.value.reason is Reason.ARCHIVE_CORRUPT


def test_text_instead_of_an_archive_is_corrupt() -> None:
    for suffix in (".tar.gz", ".tar.bz2", ".tar.xz", ".tar", ".zip"):
        with pytest.raises(ArchiveRefused) as caught:
            read_raw(b"<html>please log in</html>" * 50, suffix)
        assert caught.value.reason is Reason.ARCHIVE_CORRUPT


def test_a_bomb_is_refused_by_its_ratio_before_it_is_unpacked() -> None:
    limits = ArchiveLimits(max_bytes=1 << 40, max_files=200, max_file_bytes=1 << 40, max_ratio=100)
    bomb = gzip.compress(bytes(64 << 20))
    for suffix, data in ((".tar.gz", bomb), (".zip", zipped(("pkg-1/x", bytes(64 << 20), 0)))):
        with pytest.raises(ArchiveRefused, match="times its") as caught:
            read_raw(data, suffix, limits)
        assert caught.value.reason is Reason.ARCHIVE_TOO_LARGE


def test_a_small_archive_of_zeros_is_no_bomb() -> None:
    assert len(read(tar(SETUP, header("pkg-1/zeros", bytes(200_000)))).entries["zeros"].data) == 200_000


def pax(records: bytes, kind: bytes = tarfile.XHDTYPE) -> bytes:
    info = tarfile.TarInfo("pax")
    info.type, info.size = kind, len(records)
    return info.tobuf(tarfile.USTAR_FORMAT) + records + bytes(-len(records) % 512)


def test_an_endless_extended_header_is_refused_unread() -> None:
    with pytest.raises(ArchiveRefused, match="extended header") as caught:
        read_raw(pax(b"1" * 100_000) + tar(SETUP), ".tar")
    assert caught.value.reason is Reason.ARCHIVE_TOO_LARGE


def test_a_chain_of_extended_headers_does_not_exhaust_the_stack() -> None:
    with pytest.raises(ArchiveRefused) as caught:
        read_raw(pax(b"13 comment=x\n") * 1000 + tar(SETUP), ".tar")
    assert caught.value.reason is Reason.ARCHIVE_CORRUPT


@pytest.mark.parametrize("size", [b"-1", b"-1536", b"nonsense", b"99999999999999999999"])
def test_a_size_that_cannot_be_ends_the_reading(size: bytes) -> None:
    record = b" size=" + size + b"\n"
    record = str(len(record) + 2).encode() + record
    member = tar(header("pkg-1/x", b"x" * 600), format=tarfile.USTAR_FORMAT)
    with pytest.raises(ArchiveRefused):
        read_raw(tar(SETUP)[:1024] + pax(record) + member, ".tar", LIMITS)


def test_a_sparse_file_of_many_terabytes_is_special() -> None:
    records = b"22 GNU.sparse.major=1\n22 GNU.sparse.minor=0\n"
    name, size = b" GNU.sparse.name=pkg-1/x\n", b" GNU.sparse.realsize=99999999999999\n"
    records += b"".join(str(len(record) + 2).encode() + record for record in (name, size))
    with pytest.raises(ArchiveRefused):
        read_raw(tar(SETUP)[:1024] + pax(records) + tar(header("pkg-1/x", b"0\n" + bytes(510))), ".tar")


def test_an_encrypted_zip_is_corrupt() -> None:
    data = bytearray(zipped(("pkg-1/setup.py", b"setup()", 0)))
    for signature, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        place = data.index(signature) + at
        data[place : place + 2] = struct.pack("<H", 1)
    with pytest.raises(ArchiveRefused) as caught:
        read_raw(bytes(data), ".zip")
    assert caught.value.reason is Reason.ARCHIVE_CORRUPT


def test_a_file_that_cannot_be_opened_is_a_fault_of_the_machine(tmp_path: Path) -> None:
    with pytest.raises(InfrastructureFault) as caught:
        read_archive(tmp_path / "gone.tar.gz", "pkg-1.tar.gz", LIMITS)
    assert not isinstance(caught.value, ArchiveRefused)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_zip_of_a_rare_method_is_refused_before_it_unpacks(method: int) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        archive.writestr("pkg-1/setup.py", bytes(1 << 20))
    with pytest.raises(ArchiveRefused, match=f"packed by method {method}"):
        read_raw(out.getvalue(), ".zip")


def test_a_zip_whose_files_share_bytes_is_refused() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("pkg-1/setup.py", b"setup()")
        archive.writestr("pkg-1/x", b"x")
        archive.filelist.append(archive.filelist[0])
    with pytest.raises(ArchiveRefused, match=r"'pkg-1/setup\.py' shares bytes"):
        read_raw(out.getvalue(), ".zip")


NAMES = st.text(st.characters(exclude_characters="/\0\\", exclude_categories=["Cs", "Cf"]), min_size=1, max_size=12)
PATHS = st.lists(
    NAMES.filter(lambda name: name not in (".", "..") and "git" not in name.lower()), min_size=1, max_size=4
)
FILES = st.dictionaries(PATHS.map("/".join), st.tuples(st.binary(max_size=200), st.booleans()), max_size=12)


def without_conflicts(files: dict[str, tuple[bytes, bool]]) -> dict[str, tuple[bytes, bool]]:
    return {path: file for path, file in files.items() if not any(other.startswith(path + "/") for other in files)}


@given(files=FILES.map(without_conflicts), suffix=st.sampled_from([".tar.gz", ".tar", ".zip"]))
def test_what_was_packed_is_what_is_read(files: dict[str, tuple[bytes, bool]], suffix: str) -> None:
    files = {path: file for path, file in files.items() if path != "setup.py" and not path.startswith("setup.py/")}
    if suffix == ".zip":
        modes = [
            (f"pkg-1/{path}", data, stat.S_IFREG | (0o755 if run else 0o644)) for path, (data, run) in files.items()
        ]
        data = zipped(("pkg-1/setup.py", b"", 0), *modes)
    else:
        members = [header(f"pkg-1/{path}", data, mode=0o755 if run else 0o644) for path, (data, run) in files.items()]
        data = tar(header("pkg-1/setup.py"), *members)
    entries = dict(read(data, suffix).entries)
    del entries["setup.py"]
    assert entries == {path: Entry("100755" if run else "100644", data) for path, (data, run) in files.items()}


@given(st.binary(max_size=3000), st.sampled_from([".tar.gz", ".tar.bz2", ".tar", ".zip"]))
def test_no_bytes_whatever_do_more_than_be_refused(noise: bytes, suffix: str) -> None:
    for data in (noise, tar(SETUP)[:1024] + noise, zipped(("pkg-1/setup.py", b"", 0)) + noise):
        try:
            read_raw(data, suffix)
        except ArchiveRefused:
            continue


@given(st.data())
def test_one_flipped_byte_is_refused_or_harmless(data: st.DataObject) -> None:
    plain = bytearray(tar(SETUP, header("pkg-1/x", b"x" * 700), link("pkg-1/l", "x")))
    place = data.draw(st.integers(0, len(plain) - 1))
    plain[place] ^= data.draw(st.integers(1, 255))
    try:
        tree = read_raw(bytes(plain), ".tar")
    except ArchiveRefused:
        return
    assert all(not path.startswith("/") and ".." not in path.split("/") for path in tree.entries)

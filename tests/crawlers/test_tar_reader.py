"""Headers of tar files: the same for every Python, and what the standard library reads where it reads it right."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from miner.core.reasons import Reason
from miner.crawlers.interface import ArchiveRefused
from miner.crawlers.tar_reader import FILES, FOLDER, read_content, read_headers

END = bytes(1024)


def member(
    name: str = "a",
    data: bytes = b"",
    kind: bytes = tarfile.REGTYPE,
    form: int = tarfile.USTAR_FORMAT,
    target: str = "",
) -> bytes:
    info = tarfile.TarInfo(name)
    info.size, info.type, info.linkname = len(data), kind, target
    return info.tobuf(form, "utf-8", "surrogateescape") + padded(data)


def padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 512)


def changed(header: bytes, place: int, field: bytes, total: Callable[[bytes], int] = sum) -> bytes:
    """Overwrite a field of a header and put its checksum right."""
    header = header[:place] + field + header[place + len(field) :]
    blank = header[:148] + b" " * 8 + header[156:512]
    return header[:148] + b"%06o\0 " % total(blank) + header[156:]


def pax(*records: tuple[str, bytes], kind: bytes = tarfile.XHDTYPE) -> bytes:
    lines = b""
    for key, value in records:
        rest = b" " + key.encode() + b"=" + value + b"\n"
        length = next(n for n in range(10_000) if n == len(str(n)) + len(rest))
        lines += str(length).encode() + rest
    return member("pax", lines, kind)


def read(plain: bytes) -> list[tuple[str, bytes]]:
    """Name and content of each file; the name alone of the others."""
    file = io.BytesIO(plain)
    return [
        (header.name, b"".join(read_content(file, header, 100)) if header.kind in FILES else b"")
        for header in read_headers(file)
    ]


def refusal(plain: bytes) -> str:
    with pytest.raises(ArchiveRefused) as caught:
        read(plain)
    assert caught.value.reason is Reason.ARCHIVE_CORRUPT
    return caught.value.detail


NAMES = st.text(st.characters(exclude_characters="\0/", exclude_categories=["Cs"]), min_size=1, max_size=60)
PATHS = st.lists(NAMES, min_size=1, max_size=6).map("/".join)
MEMBERS = st.tuples(PATHS, st.sampled_from("fdlh"), st.binary(max_size=1200), PATHS, st.sampled_from([0o644, 0o755]))
FORMS = st.sampled_from([tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])


@given(members=st.lists(MEMBERS, max_size=6), form=FORMS)
def test_what_the_standard_library_wrote_is_read_as_it_reads_it(
    members: list[tuple[str, str, bytes, str, int]], form: int
) -> None:
    kinds = {"f": tarfile.REGTYPE, "d": tarfile.DIRTYPE, "l": tarfile.SYMTYPE, "h": tarfile.LNKTYPE}
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form, encoding="utf-8") as tar:
        for path, kind, data, target, mode in members:
            info = tarfile.TarInfo(path)
            info.type, info.mode, info.mtime = kinds[kind], mode, 1700000000.5
            info.size, info.linkname = (len(data), "") if kind == "f" else (0, target if kind in "lh" else "")
            tar.addfile(info, io.BytesIO(data))
    with tarfile.open(fileobj=io.BytesIO(out.getvalue()), encoding="utf-8") as tar:
        expected = [(m.name, m.type, m.size, m.mode, m.linkname, m.offset_data) for m in tar]
    found = [
        (h.name.rstrip("/") if h.kind == FOLDER else h.name, h.kind, h.size, h.mode, h.target, h.start)
        for h in read_headers(out)
    ]
    assert found == expected
    assert [content for name, content in read(out.getvalue()) if content] == [
        m[2] for m in members if m[1] == "f" and m[2]
    ]


def test_a_long_name_is_joined_from_prefix_and_name() -> None:
    name = "p" * 120 + "/" + "n" * 90
    assert read(member(name, b"x") + END) == [(name, b"x")]


def test_a_prefix_counts_in_ustar_only() -> None:
    stale = changed(member("n", form=tarfile.GNU_FORMAT), 345, b"12345670")  # there GNU tar keeps times
    assert read(stale + END) == [("n", b"")]


def test_a_folder_of_version_7_is_known_by_its_slash() -> None:
    old = changed(member("docs/", kind=tarfile.AREGTYPE), 257, bytes(8))
    assert [header.kind for header in read_headers(io.BytesIO(old + END))] == [FOLDER]


def test_whether_a_slash_makes_a_folder_is_asked_of_the_whole_name() -> None:
    name = "d" * 99 + "/" + "file"
    cut = changed(member("d" * 99 + "/", b"x", tarfile.AREGTYPE), 0, b"d")
    assert read(member("long", name.encode() + b"\0", tarfile.GNUTYPE_LONGNAME) + cut + END) == [(name, b"x")]


def test_a_checksum_of_signed_bytes_is_right_too() -> None:
    def signed(block: bytes) -> int:
        return sum(byte - 256 if byte > 127 else byte for byte in block)

    assert read(changed(member("caf\u00e9", b"x"), 0, b"c", signed) + END) == [("caf\u00e9", b"x")]


def test_a_size_in_base_256_is_read() -> None:
    assert read(changed(member(data=b"xyz"), 124, b"\x80" + bytes(10) + b"\3") + END) == [("a", b"xyz")]


def test_extended_fields_win_and_end_with_their_member() -> None:
    mine = pax(("path", b"mine"), ("size", b"2"), ("comment", b"a=b\n"))
    plain = mine + changed(member(data=b"xy"), 124, b"00000000000\0") + member("next", b"z")
    assert read(plain + END) == [("mine", b"xy"), ("next", b"z")]


def test_shared_fields_hold_for_all_that_follow_and_an_empty_field_undoes_them() -> None:
    shared = pax(("path", b"shared"), kind=tarfile.XGLTYPE)
    plain = shared + member("a") + pax(("path", b"own")) + member("b") + pax(("path", b"")) + member("c")
    assert [name for name, _ in read(plain + END)] == ["shared", "own", "c"]


def test_what_follows_the_end_is_not_read_and_the_end_may_be_missing() -> None:
    assert read(member() + bytes(512) + b"anything" * 200) == [("a", b"")]
    assert read(member(data=b"x")) == [("a", b"x")]


DAMAGED = {
    "nothing": (b"", "unexpected end, at byte 0"),
    "half-a-header": (member() + member()[:300], "unexpected end, at byte 512"),
    "content-cut": (member(data=b"x" * 600)[:900], "unexpected end, at byte 900"),
    "padding-cut": (member(data=b"x")[:700], "unexpected end, at byte 700"),
    "checksum": (member() + b"\1" + member()[1:] + END, "damaged header, at byte 512"),
    "octal": (changed(member(), 124, b"0000000009\0") + END, "as a number"),
    "octal-with-sign": (changed(member(), 124, b"-0000000001\0") + END, "as a number"),
    "octal-with-underscore": (changed(member(), 124, b"0000000_1\0") + END, "as a number"),
    "negative": (changed(member(), 124, b"\xff" * 12) + END, "negative number"),
    "negative-of-an-extended-header": (changed(pax(), 124, b"\xff" * 12) + member() + END, "negative number"),
    "enormous": (changed(member(), 124, b"\x80" + b"\xff" * 11) + END, "unexpected end"),
    "size-with-sign": (pax(("size", b"-1536")) + member("b", b"x") + END, "whose size is b'-1536'"),
    "size-of-no-digits": (pax(("size", "\u0661".encode())) + member("b", b"x") + END, "whose size is"),
    "size-enormous": (pax(("size", b"9" * 19)) + member("b", b"x") + END, "unexpected end"),
    "record-too-long": (member("pax", b"99 path=x\n", tarfile.XHDTYPE) + member() + END, "damaged extended header"),
    "record-too-short": (member("pax", b"4 path=x\n", tarfile.XHDTYPE) + member() + END, "damaged extended header"),
    "record-without-end": (member("pax", b"9 path=xx", tarfile.XHDTYPE) + member() + END, "damaged extended header"),
    "record-without-value": (member("pax", b"7 path\n", tarfile.XHDTYPE) + member() + END, "damaged extended header"),
    "twice-extended": (pax(("comment", b"x")) * 2 + member() + END, "a second extended header"),
    "named-twice": (
        member("long", b"name\0", tarfile.GNUTYPE_LONGNAME) + pax(("path", b"x")) + member() + END,
        "a second extended header",
    ),
    "extended-at-the-end": (member() + pax(("path", b"x")) + END, "of no member"),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_damage_is_refused_and_never_taken_for_the_end(case: str) -> None:
    plain, said = DAMAGED[case]
    assert said in refusal(plain)


def test_very_many_shared_headers_are_refused() -> None:
    records = pax(*[(f"k{n}", b"x" * 70) for n in range(90)], kind=tarfile.XGLTYPE)
    with pytest.raises(ArchiveRefused, match="in all") as caught:
        read(records * 2400 + member() + END)
    assert caught.value.reason is Reason.ARCHIVE_TOO_LARGE

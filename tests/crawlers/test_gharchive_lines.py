"""Hours as files: gzip members, cuts, damage, emptiness, pages of HTML, lines of any length; all in bounded memory."""

from __future__ import annotations

import gzip
import random
import tracemalloc
from itertools import pairwise
from pathlib import Path

import pytest
from gharchive_maker import HOUR, event, fat, line, plain, slim, write
from hypothesis import given
from hypothesis import strategies as st

from miner.crawlers.gharchive import HourArchive, HourReport, read_hour
from miner.crawlers.gharchive_lines import Tally, inflate, whole_lines

EVENTS = [made for number in range(1, 40) for made in (slim(number), event("PushEvent", {"size": number}))]
DATA = plain(EVENTS)
PACKED = gzip.compress(DATA, mtime=0)


def read(folder: Path, data: bytes) -> tuple[list[int], HourReport]:
    write(folder, data)
    reading = read_hour(HourArchive(str(folder)), HOUR)
    return [hint.number for hint in reading], reading.report


def lines_of(data: bytes, chunk: int = 1 << 16) -> tuple[list[bytes], Tally]:
    tally = Tally()
    chunks = (data[start : start + chunk] for start in range(0, len(data), chunk))
    spans = whole_lines(inflate(chunks, tally), tally)
    return [part + b"\n" for span in spans for part in span.block[span.start : span.end].split(b"\n")[:-1]], tally


def test_the_last_line_may_lack_its_end(tmp_path: Path) -> None:
    assert read(tmp_path, gzip.compress(line(slim(1)) + line(slim(2))[:-1]))[0] == [1, 2]


@pytest.mark.parametrize("cut", [1, 100, len(DATA) // 2, len(DATA) - 1], ids=str)
def test_concatenated_members_are_one_hour(tmp_path: Path, cut: int) -> None:
    numbers, report = read(tmp_path, gzip.compress(DATA[:cut]) + gzip.compress(DATA[cut:]))
    assert (numbers, report.state, report.size) == (list(range(1, 40)), "read", len(DATA))


def test_hundreds_of_members_and_an_empty_one(tmp_path: Path) -> None:
    members = [gzip.compress(line(slim(number))) for number in range(1, 300)]
    numbers, report = read(tmp_path, b"".join([*members[:9], gzip.compress(b""), *members[9:]]))
    assert (numbers, report.state) == (list(range(1, 300)), "read")


def test_zeros_behind_the_last_member_are_padding(tmp_path: Path) -> None:
    numbers, report = read(tmp_path, PACKED + b"\0" * 100_000)
    assert (len(numbers), report.state, report.detail) == (39, "read", "")


@pytest.mark.parametrize(
    "rest", [pytest.param(b"<html>", id="html"), pytest.param(b"\x1f", id="a byte of a member"), b"\0\0x"]
)
def test_anything_else_behind_it_is_said(tmp_path: Path, rest: bytes) -> None:
    numbers, report = read(tmp_path, PACKED + rest)
    assert (len(numbers), report.state) == (39, "truncated")
    assert f"after {len(DATA)} bytes" in report.detail


def test_what_came_before_a_cut_is_used(tmp_path: Path) -> None:
    for kept in range(1, len(PACKED), 97):
        numbers, report = read(tmp_path, PACKED[:kept])
        assert numbers == list(range(1, len(numbers) + 1)), "a prefix of the whole"
        assert (report.state, report.bad) == ("truncated", 0)
        assert report.detail == f"cut after {report.size} bytes"
        # all but the line in which it ends
        assert len(numbers) == DATA[: report.size].rpartition(b"\n")[0].count(b"PullRequestEvent")
    assert len(numbers) > 30


def test_a_cut_in_the_check_sum_loses_nothing(tmp_path: Path) -> None:
    numbers, report = read(tmp_path, PACKED[:-3])
    assert (len(numbers), report.state) == (39, "truncated")


def test_a_cut_right_behind_a_member_cannot_be_seen(tmp_path: Path) -> None:
    numbers, report = read(tmp_path, gzip.compress(line(slim(1))))
    assert (numbers, report.state) == ([1], "read")


def test_damage_ends_an_hour_and_is_said(tmp_path: Path) -> None:
    chance = random.Random(5)
    texts = [event("PushEvent", {"text": chance.randbytes(2000).hex()}) for _ in range(400)]
    packed = bytearray(gzip.compress(plain([slim(1), *texts, slim(2)])))
    packed[len(packed) // 2] ^= 0xFF
    numbers, report = read(tmp_path, bytes(packed))
    assert numbers[0] == 1, "what came long before the damage is there"
    assert report.state == "truncated"
    assert report.detail.startswith("damaged after ")


@pytest.mark.parametrize(
    ("data", "state"),
    [
        pytest.param(b"", "empty", id="no bytes"),
        pytest.param(gzip.compress(b""), "empty", id="an empty member, 20 bytes"),
        pytest.param(b"<html><body>rate limit</body></html>", "unreadable", id="html"),
        pytest.param(b"<?xml version='1.0'?><Error><Code>NoSuchKey</Code></Error>", "unreadable", id="xml"),
        pytest.param(line(slim(1)), "unreadable", id="not compressed"),
        pytest.param(b"\x1f", "truncated", id="one byte"),
    ],
)
def test_hours_without_events(tmp_path: Path, data: bytes, state: str) -> None:
    numbers, report = read(tmp_path, data)
    assert (numbers, report.state, report.size, report.bad) == ([], state, 0, 0)


def test_a_missing_hour(tmp_path: Path) -> None:
    reading = read_hour(HourArchive(str(tmp_path)), HOUR)
    assert list(reading) == []
    assert reading.report == HourReport(hour=HOUR, state="missing")


def test_a_line_of_ten_megabytes(tmp_path: Path) -> None:
    long = fat(2, pull={"body": "\\n\u00e9" * (10 << 18)})
    numbers, report = read(tmp_path, gzip.compress(plain([slim(1), long, slim(3)]), compresslevel=1))
    assert (numbers, report.bad) == ([1, 2, 3], 0)
    assert report.size > 10 << 20


def test_a_line_without_end_is_one_bad_line_in_bounded_memory(tmp_path: Path) -> None:
    packed = gzip.compress(b"x" * (1 << 20), 1)
    write(tmp_path, gzip.compress(line(slim(1))) + packed * 150 + gzip.compress(b"\n" + line(slim(2))))
    tracemalloc.start()
    reading = read_hour(HourArchive(str(tmp_path)), HOUR)
    numbers = [hint.number for hint in reading]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (numbers, reading.report.bad, reading.report.size > 150 << 20) == ([1, 2], 1, True)
    assert peak < 40 << 20


def test_memory_does_not_grow_with_the_hour(tmp_path: Path) -> None:
    member = gzip.compress(plain([slim(1), *[event("PushEvent", {"x": "y" * 500})] * 2000]), 1)
    peaks = []
    for times in (2, 40):
        write(tmp_path, member * times)
        tracemalloc.start()
        assert sum(1 for _ in read_hour(HourArchive(str(tmp_path)), HOUR)) == times
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + (1 << 20)


LINES = st.lists(st.binary(max_size=30).map(lambda text: text.replace(b"\n", b"") + b"\n"), max_size=20)


@given(lines=LINES, cuts=st.lists(st.integers(0, 600), max_size=4), chunk=st.integers(1, 80), ended=st.booleans())
def test_every_line_once_however_it_is_cut(lines: list[bytes], cuts: list[int], chunk: int, ended: bool) -> None:
    data = b"".join(lines)
    data = data if ended else data[:-1]
    edges = [0, *sorted(cuts), len(data)]
    packed = b"".join(gzip.compress(data[start:end]) for start, end in pairwise(edges))
    found, tally = lines_of(packed, chunk)
    assert b"".join(found) == (data if ended or data.endswith(b"\n") or not data else data + b"\n")
    assert (tally.size, tally.damage) == (len(data), "")


@given(data=st.binary(max_size=300), kept=st.floats(0, 1), flips=st.lists(st.integers(0, 400), max_size=3))
def test_no_bytes_make_it_fail(data: bytes, kept: float, flips: list[int]) -> None:
    packed = bytearray(gzip.compress(data))
    for flip in flips:
        packed[flip % len(packed)] ^= 0x55
    lines_of(bytes(packed[: round(kept * len(packed))]))
    lines_of(data)

"""Reading hours of both shapes: what is a merge, what is a bad line, and that the quick way is the plain way."""

from __future__ import annotations

import gzip
import json
import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from gharchive_maker import AT, HOUR, event, fat, line, plain, slim, write
from hypothesis import given
from hypothesis import strategies as st

from miner.crawlers.gharchive import HourArchive, HourReport, MergeHint, read_hour
from miner.crawlers.gharchive_events import merges
from miner.crawlers.gharchive_lines import Tally, inflate, whole_lines


def read(folder: Path, events: Any) -> tuple[list[MergeHint], HourReport]:
    write(folder, events)
    reading = read_hour(HourArchive(str(folder)), HOUR)
    return list(reading), reading.report


def numbers(hints: list[MergeHint]) -> list[int]:
    return [hint.number for hint in hints]


def test_a_merge_in_the_fat_shape(tmp_path: Path) -> None:
    hints, report = read(tmp_path, [fat(5)])
    assert hints == [MergeHint(10, "owner/name", 5, datetime(2025, 5, 1, 0, 9, 58, tzinfo=UTC), "Python")]
    assert report == HourReport(hour=HOUR, state="read", size=report.size, pulls=1, merges=1)


def test_a_merge_in_the_slim_shape_has_the_time_of_its_event(tmp_path: Path) -> None:
    hints, report = read(tmp_path, [slim(5)])
    assert hints == [MergeHint(10, "owner/name", 5, datetime(2025, 5, 1, 0, 10, tzinfo=UTC), None)]
    assert (report.state, report.pulls, report.merges, report.undecided) == ("read", 1, 1, 0)


@pytest.mark.parametrize(
    ("made", "merged", "undecided"),
    [
        pytest.param(fat(pull={"merged": False, "merged_at": None}), False, 0, id="fat, closed without a merge"),
        pytest.param(fat(action="opened", pull={"merged": False, "merged_at": None}), False, 0, id="fat, opened"),
        pytest.param(fat(action="reopened"), False, 0, id="fat, reopened, whatever else it says"),
        pytest.param(fat(pull={"merged": None}), True, 0, id="fat, a time and no flag"),
        pytest.param(fat(pull={"merged": None, "merged_at": None}), False, 1, id="fat, neither time nor flag"),
        pytest.param(fat(pull={"merged_at": None}), True, 0, id="fat, a flag and no time"),
        pytest.param(fat(pull={"base": None}), True, 0, id="fat, no base"),
        pytest.param(fat(pull={"base": {"repo": None}}), True, 0, id="fat, base repository deleted"),
        pytest.param(fat(pull={"base": {"repo": {"language": None}}}), True, 0, id="fat, no language"),
        pytest.param(slim(action="closed"), False, 1, id="slim, closed"),
        pytest.param(slim(action="opened"), False, 0, id="slim, opened"),
        pytest.param(slim(action="labeled"), False, 0, id="slim, labeled"),
        pytest.param(event(payload={"action": "merged", "number": 1}), True, 0, id="no pull request at all"),
        pytest.param(
            event(payload={"action": "merged", "pull_request": {"number": 1}}), True, 0, id="number inside only"
        ),
        pytest.param(fat(org=None, actor=None, public=None, id=None), True, 0, id="as few keys as may be"),
        pytest.param(event("PullRequestReviewEvent", fat()["payload"]), False, 0, id="a review"),
        pytest.param(event("IssuesEvent", {"action": "closed"}), False, 0, id="an issue"),
    ],
)
def test_what_is_a_merge(tmp_path: Path, made: dict[str, Any], merged: bool, undecided: int) -> None:
    hints, report = read(tmp_path, [slim(8), made, slim(9)])
    assert numbers(hints) == ([8, 1, 9] if merged else [8, 9])
    assert (report.undecided, report.bad) == (undecided, 0)


def reordered(made: Any) -> Any:
    return {key: reordered(made[key]) for key in reversed(made)} if isinstance(made, dict) else made


@pytest.mark.parametrize("made", [fat(5), slim(5)], ids=["fat", "slim"])
@pytest.mark.parametrize(
    "write_line",
    [
        pytest.param(lambda made: json.dumps(made).encode(), id="spaces"),
        pytest.param(lambda made: json.dumps(made, indent=1).replace("\n", "\t").encode(), id="tabs"),
        pytest.param(lambda made: json.dumps(made, separators=("  ,  ", "  :  ")).encode(), id="spaces before colons"),
        pytest.param(lambda made: json.dumps(reordered(made)).encode(), id="reordered, spaces"),
        pytest.param(lambda made: line(reordered(made))[:-1], id="reordered"),
        pytest.param(lambda made: line({"type": made.pop("type"), **made})[:-1], id="type first"),
        pytest.param(lambda made: b"  " + line(made)[:-1] + b"\r", id="blanks around it"),
        pytest.param(lambda made: line({**made, "id": 48000000001})[:-1], id="id as a number"),
    ],
)
def test_order_of_keys_and_spaces_do_not_matter(tmp_path: Path, made: dict[str, Any], write_line: Any) -> None:
    other = write_line(event("PushEvent", {"size": 1}))
    one = write_line(dict(made))
    hints, report = read(tmp_path, [other + b"\n", one + b"\n", other + b"\n", one + b"\n"])
    assert numbers(hints) == [5, 5]
    assert (report.pulls, report.bad) == (2, 0)


BAD = {
    "cut": line(slim())[:-40] + b"\n",
    "no object": b'["PullRequestEvent"]\n',
    "a bare string": b'"PullRequestEvent"\n',
    "an empty repository": line(slim(repo={})),
    "no repository": line(slim(repo=None)),
    "id as text": line(slim(repo={"id": "10", "name": "owner/name"})),
    "id 0": line(slim(repo={"id": 0, "name": "owner/name"})),
    "id far too large": line(slim(repo={"id": 1 << 70, "name": "owner/name"})),
    "no name": line(slim(repo={"id": 10})),
    "name not in UTF-8": line(slim()).replace(b"owner/name", b"owner/n\xffme", 1),
    "a name that cannot be": line(slim(repo={"id": 10, "name": "/"})),
    "a name with a control character": line(slim(repo={"id": 10, "name": "owner/\x1b[31m"})),
    "no number": line(event(payload={"action": "merged", "pull_request": {}})),
    "number 0": line(event(payload={"action": "merged", "number": 0})),
    "no payload": line(event()).replace(b'"payload":{},', b""),
    "payload without action": line(event(payload={"number": 1})),
    "no time": line(slim(created_at=None)),
    "a time without a zone": line(slim(created_at="2025-05-01T00:10:00")),
    "no time at all": line(slim(created_at="yesterday")),
    "merged is text": line(fat(pull={"merged": "yes"})),
    "the shape before 2015": line(
        {"type": "PullRequestEvent", "repository": {"id": 10, "name": "name"}, "payload": {"action": "closed"}}
    ),
    "nested without end": b'{"type":"PullRequestEvent","x":' + b"[" * 100_000 + b"\n",
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
def test_a_bad_line_is_counted_and_costs_no_other(tmp_path: Path, bad: bytes) -> None:
    hints, report = read(tmp_path, [slim(8), bad, fat(9)])
    assert numbers(hints) == [8, 9]
    assert (report.state, report.bad, report.merges) == ("read", 1, 2)


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(line(event("PushEvent", {"ref": "PullRequestEvent"})), id="the word in a push"),
        pytest.param(line(event("PushEvent", {"action": {"of": "PullRequestEvent"}})), id="a shape of its own"),
        pytest.param(line({"type": "PushEvent", "says": "PullRequestEvent"}), id="nothing else"),
        pytest.param(b"\n\r\n  \n", id="blank lines"),
        pytest.param(b"<html>\n", id="nonsense"),
    ],
)
def test_other_lines_are_none_of_our_business(tmp_path: Path, made: bytes) -> None:
    hints, report = read(tmp_path, [slim(8), made, slim(9)])
    assert numbers(hints) == [8, 9]
    assert (report.pulls, report.bad) == (2, 0)


@pytest.mark.parametrize("body", [b"\\ud800", b"\xff\xfe", b"\xe2\x80\xa8", b"\x7f"], ids=repr)
def test_odd_bytes_in_a_body_do_not_hide_a_merge(tmp_path: Path, body: bytes) -> None:
    made = line(fat(5, pull={"body": "BODY"})).replace(b"BODY", body)
    hints, report = read(tmp_path, [made])
    assert numbers(hints) == [5]
    assert report.bad == 0


def test_an_event_that_stands_there_twice_comes_twice(tmp_path: Path) -> None:
    assert numbers(read(tmp_path, [slim(5), slim(5)])[0]) == [5, 5]


def test_a_reading_can_be_repeated(tmp_path: Path) -> None:
    write(tmp_path, [slim(5), slim(6)])
    reading = read_hour(HourArchive(str(tmp_path)), HOUR)
    assert list(reading) == list(reading)
    assert reading.report.merges == 2


KEYS = st.sampled_from(["type", "payload", "action", "merged", "name", "x", 'a"b', "é"])
LEAVES = (
    st.none() | st.booleans() | st.integers(0, 99) | st.sampled_from(["merged", "closed", "PullRequestEvent", '\\"'])
)
NESTED = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner, max_size=2))
MADE = st.one_of(
    st.builds(
        fat,
        st.integers(1, 99),
        action=st.sampled_from(["opened", "closed", "merged", "edited"]),
        pull=st.fixed_dictionaries(
            {},
            optional={
                "merged": st.sampled_from([True, False, None]),
                "merged_at": st.sampled_from([AT, None]),
                "body": st.text(max_size=20),
                "extra": NESTED,
            },
        ),
        type=st.sampled_from(["PullRequestEvent", "PullRequestReviewEvent", "PushEvent"]),
    ),
    st.builds(slim, st.integers(1, 99), action=st.sampled_from(["opened", "closed", "merged"]), extra=NESTED),
    st.builds(event, st.sampled_from(["PushEvent", "WatchEvent"]), st.dictionaries(KEYS, NESTED, max_size=3)),
)


def by_json(data: bytes) -> list[tuple[int, str, int, str]]:
    """Read lines the plain way."""
    found = []
    for text in data.decode().split("\n")[:-1]:
        made = json.loads(text)
        if made["type"] != "PullRequestEvent":
            continue
        action, pull = made["payload"]["action"], made["payload"]["pull_request"]
        flag = pull.get("merged")
        merged = flag if flag is not None else pull.get("merged_at") is not None
        if action == "merged" or (action == "closed" and merged):
            at = pull.get("merged_at") or made["created_at"]
            found.append((made["repo"]["id"], made["repo"]["name"], made["payload"]["number"], at))
    return found


@given(events=st.lists(MADE, max_size=6), seed=st.integers(0, 1 << 30), wide=st.booleans())
def test_the_quick_reader_sees_what_json_sees(events: list[dict[str, Any]], seed: int, wide: bool) -> None:
    chance = random.Random(seed)

    def shuffled(made: Any) -> Any:
        if not isinstance(made, dict):
            return made
        keys = chance.sample(list(made), len(made)) if chance.random() < 0.5 else list(made)
        return {key: shuffled(made[key]) for key in keys}

    def written(made: Any) -> bytes:
        separators = chance.choice([(",", ":"), (", ", ": "), (" ,", " :")])
        return json.dumps(shuffled(made), separators=separators, ensure_ascii=chance.random() < 0.5).encode() + b"\n"

    # long lines are searched another way than short ones
    first = [event("PushEvent", {"text": "x" * 5000})] if wide else []
    data = b"".join(written(made) for made in [*first, *events])
    packed, size, tally = gzip.compress(data), chance.randint(1, 200), Tally()
    chunks = (packed[start : start + size] for start in range(0, len(packed), size))
    hints = list(merges(whole_lines(inflate(chunks, tally), tally), tally))
    said = [
        (hint.repository_id, hint.repository, hint.number, f"{hint.merged_at:%Y-%m-%dT%H:%M:%SZ}") for hint in hints
    ]
    assert said == by_json(data)
    assert (tally.bad, tally.damage, tally.size) == (0, "", len(data))


def test_many_events_in_many_blocks(tmp_path: Path) -> None:
    chance = random.Random(3)
    pushes = [event("PushEvent", {"x": "y" * chance.randrange(300)}) for _ in range(100)]
    mixed = [made for number in range(1, 3000) for made in (slim(number), pushes[number % 100])]
    hints, report = read(tmp_path, mixed)
    assert numbers(hints) == list(range(1, 3000))
    assert report.size == len(plain(mixed))

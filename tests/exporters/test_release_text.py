"""JSON that is written piece by piece is the JSON that is written whole."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from exporters.text import json_bytes, record_hash
from miner.core.hashing import canonical_json, hash_of
from miner.core.records import Record

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


class Part(Record):
    words: str
    more: dict[str, Any]


class Whole(Record):
    zeta: tuple[Part, ...]
    alpha: tuple[Part, ...]
    names: tuple[str, ...]
    free: Any


PARTS = st.lists(
    st.builds(Part, words=st.text(max_size=5), more=st.dictionaries(st.text(max_size=3), JSON)), max_size=3
)
WHOLES = st.builds(
    Whole, zeta=PARTS.map(tuple), alpha=PARTS.map(tuple), names=st.lists(st.text(max_size=3)).map(tuple), free=JSON
)


@given(WHOLES)
def test_a_record_is_written_with_each_listed_record_on_a_line(whole: Whole) -> None:
    value, text = whole.model_dump(mode="json"), json_bytes(whole).decode()
    assert json.loads(text) == value
    lines = {line.strip().removesuffix(",") for line in text.splitlines()}
    assert lines.issuperset(canonical_json(part) for part in (*whole.alpha, *whole.zeta))
    assert record_hash(whole) == hash_of(value) == hash_of(whole)


@given(WHOLES)
def test_what_is_no_list_of_records_stands_as_the_standard_library_writes_it(whole: Whole) -> None:
    plain = whole.model_copy(update={"zeta": (), "alpha": ()})
    assert json_bytes(plain).decode() == json.dumps(plain.model_dump(mode="json"), sort_keys=True, indent=2) + "\n"


@given(JSON)
def test_so_is_any_other_value(value: Any) -> None:
    assert json_bytes(value).decode() == json.dumps(value, sort_keys=True, indent=2) + "\n"

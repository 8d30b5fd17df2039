"""Text that quotes a project can be stored, printed and sent anywhere."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from miner.core.records import Evidence, legible

anything = st.text(st.characters())


@given(anything)
def test_any_text_becomes_utf_8_without_control_characters(text: str) -> None:
    made = legible(text)
    made.encode("utf-8")
    assert not [char for char in made if char not in "\n\t" and (ord(char) < 32 or 127 <= ord(char) < 160)]
    assert legible(made) == made


@given(st.text(st.characters(categories=["L", "N", "P", "S", "Zs"])))
def test_what_people_write_stays_as_it_is(text: str) -> None:
    assert legible(text) == text


def test_what_a_log_aims_at_a_terminal_becomes_visible() -> None:
    hostile = "\x1b]0;title\x07 caf\udce9\r\n\ttab"
    assert legible(hostile) == "\\x1b]0;title\\x07 caf\\udce9\\r\n\ttab"
    assert json.loads(Evidence(excerpt=hostile).model_dump_json())["excerpt"] == legible(hostile)

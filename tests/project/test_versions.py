"""What people write where a version or a requirement belongs: nothing of it raises what is not expected."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.requirements import InvalidRequirement

from miner.project.versions import requirement_of, specifiers_of, version_of

ENDLESS = "1" * 5000


def test_a_number_that_python_does_not_read_is_no_version() -> None:
    assert version_of(ENDLESS) is None
    assert version_of(f"1.{ENDLESS}") is None
    assert specifiers_of(f">={ENDLESS}") is None
    with pytest.raises(InvalidRequirement):
        requirement_of(f"x=={ENDLESS}")
    with pytest.raises(InvalidRequirement):
        requirement_of(f"x; python_version > '{ENDLESS}'")


def test_a_marker_that_compares_in_vain_makes_no_requirement() -> None:
    with pytest.raises(InvalidRequirement, match="cannot be evaluated"):
        requirement_of("x; os_name ~= 'posix'")
    with pytest.raises(InvalidRequirement, match="cannot be evaluated"):
        requirement_of("x; 'a' in extras")


def test_ordinary_ones_are_read() -> None:
    assert str(version_of("1.0.post2")) == "1.0.post2"
    assert version_of(None) is version_of("") is version_of("one") is None
    assert str(specifiers_of(">=3.7,<4")) == "<4,>=3.7"
    assert str(requirement_of("x[a]>=1; extra == 'test'")) == 'x[a]>=1; extra == "test"'


@given(st.one_of(st.text(), st.from_regex(r"\A[0-9.]{0,40}[1-9]{90,200}[a-z0-9.+!-]*\Z")))
def test_any_text_is_a_version_that_can_be_written_or_none(text: str) -> None:
    found = version_of(text)
    assert found is None or version_of(str(found)) == found

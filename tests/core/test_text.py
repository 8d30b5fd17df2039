"""Names in sentences, and the bytes of patches."""

import pytest

from miner.core.text import patch_bytes, some


@pytest.mark.parametrize(
    ("names", "said"),
    [((), ""), (("a",), "a"), (("a", "b", "c"), "a, b, c"), (tuple("abcdefg"), "a, b, c, d, e and 2 more")],
)
def test_the_first_names_are_named_and_the_others_counted(names: tuple[str, ...], said: str) -> None:
    assert some(names) == said


def test_a_patch_is_the_bytes_that_it_was() -> None:
    data = b"+caf\xe9 \xe2\x82\xac\n"
    assert patch_bytes(data.decode("utf-8", "surrogateescape")) == data

"""Texts that nobody thought of: keywords in code and in running text, any characters, and long texts in linear time."""

from __future__ import annotations

import time

import pytest
from forge_records import commit, crawled, found
from hypothesis import given, settings
from hypothesis import strategies as st

from miner.crawlers.github.linking import closing_links

KEYWORDS = ("close", "closes", "closed", "fix", "fixes", "fixed", "resolve", "resolves", "resolved")


@given(
    keyword=st.sampled_from(KEYWORDS),
    number=st.integers(1, 20),
    fence=st.sampled_from(["```", "~~~~", "    "]),
    around=st.text(st.characters(codec="utf-8", exclude_characters="`~\r\n"), max_size=20),
)
def test_links_in_code_never_count(keyword: str, number: int, fence: str, around: str) -> None:
    line = f"{around} {keyword} #{number} {around}".strip()
    body = f"text\n\n    {line}\n\ntext" if fence.isspace() else f"text\n{fence}\n{line}\n{fence}\ntext"

    assert closing_links(crawled(body=f"{body}\n\n`` {line} ``")) == ()


@given(
    keyword=st.sampled_from(KEYWORDS),
    number=st.integers(1, 20),
    before=st.text("abc .,;\n", max_size=30),
    after=st.text(".,;) \n", max_size=10),
)
def test_a_keyword_in_running_text_is_found_wherever_it_stands(
    keyword: str, number: int, before: str, after: str
) -> None:
    body = f"{before}\n{keyword} #{number}{after}"

    links = closing_links(crawled(body=body))

    assert found(links) == [(number, f"body:{before.count(chr(10)) + 2}", "strong")]


@given(st.text(st.sampled_from("fixes #12[]()`*_~<>!-\\&;:/\n\t\"'| ogh")))
@settings(max_examples=300)
def test_no_text_breaks_the_reader_and_all_it_finds_stands_there(text: str) -> None:
    for link in closing_links(crawled(body=text, title=text, commits=(commit(text),))):
        assert 0 < link.number <= 20
        assert str(link.number) in text


BITS = [
    *(
        "[",
        "![",
        "]",
        "*",
        "_",
        "**a ",
        "`",
        "`a``",
        "<",
        "<!--",
        "-->",
        "> ",
        "- ",
        "1. ",
        "~~",
        "\\",
        "&",
        "\t",
        "\n",
    ),
    *(
        "fixes ",
        "fixes:",
        "fixes #12 ",
        "not fix #12 ",
        '"fixes #12 ',
        "fixes a/",
        "fixes GH-",
        "fixes https://github.com/a/",
    ),
    *(
        "fixes [#12](https://github.com/o/r/issues/12) ",
        "fixes <b>",
        "<del>",
        "<code>",
        '<a href="',
        "<a '<a \"",
        "<pre>\n",
    ),
    *(
        "[a](",
        "[a]: b\n",
        "| a ",
        "|a\n|-\n",
        "- fixes #12\n  - a\n",
        "> fixes #12\n\n",
        "<!-- fixes #12 ",
        "text <!-- ",
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize("bit", BITS)
def test_the_time_for_a_long_text_is_linear(bit: str) -> None:
    def seconds(length: int) -> float:
        of = crawled(body=f"fixes #12\n\n{bit * (length // len(bit))}", commits=(commit(bit * (length // len(bit))),))
        started = time.perf_counter()
        closing_links(of)
        return time.perf_counter() - started

    assert seconds(100_000) < max(0.5, 25 * seconds(10_000))


def test_a_long_text_of_many_links_is_read_quickly() -> None:
    body = "- fixes [#12](https://github.com/o/r/issues/12) and does `not` fix **#13**\n" * 1400
    started = time.perf_counter()

    links = closing_links(crawled(body=body))

    assert len(links) == 2800
    assert time.perf_counter() - started < 5

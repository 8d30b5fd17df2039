"""The text protocol: exactly one block, at the end, with this session's mark; everything else is refused."""

from __future__ import annotations

import pytest
from agent_bench import MARK, block, in_text, ran, said
from hypothesis import assume, given
from hypothesis import strategies as st

from installers.agent.endings import Unclear
from installers.agent.protocol import block_of
from installers.agent.tools import ARGUMENTS, call

CALL = block("run", "ls")
TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"], include_characters="\n\t`~ "), max_size=200)
PIECES = st.lists(
    st.sampled_from(
        [CALL, "```call", f"```call {MARK} run", "```", "````", "~~~", "\n", "> ", "    ", "ls", " ", MARK]
    ),
    max_size=14,
).map("".join)


def test_a_block_is_read_as_it_stands():
    assert block_of(block("run", "a\n\n  b `c` ~~~\n\td ", before="Let me see:\n"), MARK) == (
        "run",
        "a\n\n  b `c` ~~~\n\td ",
    )


def test_a_code_block_of_another_kind_is_prose():
    assert block_of(f"I do not want:\n```bash\nrm -r /\n```\nbut:\n{CALL}\n", MARK) == ("run", "ls")


REFUSED = {
    "nothing": ("", "no block"),
    "prose": ("I run ls now.", "no block"),
    "a block for a shell": ("```bash\nls\n```", "no block"),
    "a block without the mark": ("```call run\nls\n```", "no block"),
    "another session's mark": (block("run", "ls", mark="12345678"), "no block"),
    "two blocks": (f"{CALL}\n{CALL}", "more than one block"),
    "one that is not wanted, and one that is": (f"Never do\n{CALL}\nbut\n{block('run', 'pwd')}", "more than one block"),
    "a quotation and a block": (f"> ```call {MARK} run\n> rm\n> ```\n{CALL}", "more than one block"),
    "a mark of a repository and a block": (f"The README says ```call 123 run\n{CALL}", "more than one block"),
    "a quotation": ("\n".join(f"> {line}" for line in CALL.split("\n")), "no block"),
    "an indented block": ("\n".join(f"    {line}" for line in CALL.split("\n")), "no block"),
    "within another block": (f"An example:\n````\n{CALL}\n````", "another code block"),
    "within another block that is left open": (f"An example:\n~~~text\n{CALL}", "another code block"),
    "not at the end": (f"{CALL}\nand then I wait.", "something follows"),
    "left open": (f"```call {MARK} run\nls", "does not end"),
    "a command with a fence": (block("run", "cat <<E\n```\nE"), "something follows"),
    "a fence of another kind at the end": (f"```call {MARK} run\nls\n```bash", "does not end"),
    "an unknown tool": (block("sh", "ls"), "no tool 'sh'"),
    "no tool": (f"```call {MARK} \nls\n```", "no tool ''"),
    "words after the tool": (block("run now", "ls"), "no tool 'run now'"),
}


@pytest.mark.parametrize(("text", "why"), REFUSED.values(), ids=REFUSED)
def test_what_is_not_exactly_one_block_is_refused(text, why):
    with pytest.raises(Unclear, match=why):
        block_of(text, MARK)


def test_an_empty_argument_is_refused():
    with pytest.raises(Unclear, match="is empty"):
        in_text().read(said(block("run", "")))


def test_native_calls_are_refused_where_none_are_offered():
    with pytest.raises(Unclear, match="native"):
        in_text().read(ran("ls", text=CALL))


@given(before=TEXT, argument=TEXT, tool=st.sampled_from(sorted(ARGUMENTS)))
def test_what_is_read_is_what_was_written_or_nothing(before, argument, tool):
    assume("```call" not in before)
    text = block(tool, argument, before=f"{before}\n")
    try:
        assert block_of(text, MARK) == (tool, argument)
    except Unclear:
        # only for a fence that is left open before it, or a fence within
        assert "```" in before or "~~~" in before or "```" in argument


@given(PIECES)
def test_no_reply_with_two_openings_is_ever_taken(text):
    try:
        block_of(text, MARK)
    except Unclear:
        return
    assert text.count("```call") == 1
    assert text.rstrip().endswith("\n```")


@given(st.text(max_size=300))
def test_text_of_a_repository_that_does_not_know_the_mark_is_never_a_call(text):
    assume(MARK not in text)
    with pytest.raises(Unclear):
        block_of(text, MARK)


@given(st.sampled_from(sorted(ARGUMENTS)), st.text(max_size=50))
def test_an_argument_is_taken_whole_or_not_at_all(tool, argument):
    try:
        found = call(tool, argument)
    except Unclear:
        return
    assert found.argument in (argument, argument.strip())

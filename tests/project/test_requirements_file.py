"""Requirements files, as pip reads them."""

from hypothesis import given
from hypothesis import strategies as st

from miner.project.requirements import read_requirements


def read(files, path="requirements.txt"):
    notes = []
    found = read_requirements({name: text.encode() for name, text in files.items()}, path, notes)
    return [item.text for item in found], notes


def test_comments_hashes_continuations_and_markers():
    text = (
        "a==1 \\\n    --hash=sha256:00 \\\n    --hash=sha256:11  # why\n# all\n\nb>=2 ; python_version < '3.8'\nc#d\n"
    )
    assert read({"requirements.txt": text}) == (["a==1", "b>=2 ; python_version < '3.8'", "c#d"], [])


def test_includes_are_relative_to_the_including_file_and_name_their_source():
    files = {"req/test.txt": "-r base.txt\n--requirement=../more.txt\nt", "req/base.txt": "b", "more.txt": "m"}
    notes = []
    found = read_requirements({name: text.encode() for name, text in files.items()}, "req/test.txt", notes)
    assert [(item.text, item.source) for item in found] == [
        ("b", "req/base.txt"),
        ("m", "more.txt"),
        ("t", "req/test.txt"),
    ]


def test_a_cycle_of_includes_ends_with_a_note():
    found, notes = read({"requirements.txt": "-r other.txt\na", "other.txt": "-r requirements.txt\nb"})
    assert found == ["b", "a"]
    assert notes == ["requirements.txt: includes itself by way of other.txt"]


def test_missing_include_and_constraints_and_options_are_notes():
    found, notes = read({"requirements.txt": "-r no.txt\n-c pins.txt\n--index-url https://example.org\n--pre\na"})
    assert found == ["a"]
    assert notes == [
        "requirements.txt: no.txt is not in the tree",
        "requirements.txt: pins.txt is not in the tree",
        "requirements.txt: option --index-url is skipped",
        "requirements.txt: option --pre is skipped",
    ]


def test_editable_requirements_stand_as_what_they_name():
    assert read({"requirements.txt": "-e .[test]\n--editable=git+https://example.org/x#egg=x\n"})[0] == [
        ".[test]",
        "git+https://example.org/x#egg=x",
    ]


def test_binary_file_is_a_note():
    notes = []
    assert read_requirements({"requirements.txt": b"a\0b"}, "requirements.txt", notes) == ()
    assert "NUL" in notes[0]


@given(st.text(max_size=200))
def test_any_text_is_read_without_an_error(text):
    found, _ = read({"requirements.txt": text})
    assert all(item == item.strip() and item for item in found)


@given(st.lists(st.from_regex(r"[a-z]{1,8}(==[0-9]\.[0-9])?", fullmatch=True), max_size=8))
def test_plain_lines_come_back_in_order(lines):
    assert read({"requirements.txt": "\n".join(lines)})[0] == lines

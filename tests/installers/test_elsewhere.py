"""Requirements on what is not on the package index."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from installers.elsewhere import from_index
from miner.project.model import Declared


def index(text, **options):
    notes = []
    found = list(from_index([Declared(text=text, source="s")], notes, **options))
    return [item.text for item in found], notes


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("git+https://example.org/x.git@main#egg=demo", "demo"),
        ("git+https://example.org/x.git#egg=demo[a,b]&subdirectory=y", "demo[a,b]"),
        ("-e git+https://example.org/x.git#egg=demo-1.0", "demo"),
        ("demo @ git+https://example.org/x", "demo"),
        ("demo[a] @ git+https://example.org/x@abc; python_version < '3'", "demo[a]; python_version < '3'"),
        ("git+ssh://git@example.org/x.git#egg=demo", "demo"),
        ("git+git@example.org:x/y.git#egg=demo", "demo"),
        ("https://example.org/packages/demo-1.2-py3-none-any.whl", "demo==1.2"),
        ("https://example.org/demo-1.2.tar.gz#sha256=00", "demo==1.2"),
        ("demo @ https://example.org/demo-1.2.zip", "demo==1.2"),
    ],
)
def test_what_the_index_has_instead(text, expected):
    found, notes = index(text)
    assert found == [expected]
    assert len(notes) == 1
    assert index(text, drop=True)[0] == []


@pytest.mark.parametrize("text", ["https://example.org/x/archive/master.zip", "git+https://example.org/x.git"])
def test_what_names_nothing_is_left_out(text):
    assert index(text)[0] == []


@pytest.mark.parametrize("text", ["demo>=1", "./local", "file:./x", "demo @ file:///x", ".[test]", ""])
def test_everything_else_stays(text):
    assert index(text) == ([text], [])


@given(st.text(alphabet="git+https://a.b@c#eg=x[];& \n", max_size=60))
def test_any_text_is_read_without_an_error(text):
    index(text)

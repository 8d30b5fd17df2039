"""The interpreters and the choice among them."""

from datetime import date

import pytest

from installers.pythons import Python, admits, choose_python, load_pythons
from miner.core.errors import ConfigError

PYTHONS = tuple(
    Python(version=version, executable=f"/opt/{version}", released=released, end_of_life=date(2030, 1, 1))
    for version, released in (("3.11", date(2022, 10, 24)), ("3.9", date(2020, 10, 5)), ("3.10", date(2021, 10, 4)))
)


@pytest.mark.parametrize(
    ("requires", "version", "expected"),
    [
        (None, "3.11", True),
        (">=3.8", "3.11", True),
        (">=3.11.2", "3.11", True),
        ("<3.11", "3.11", False),
        (">=2.7,!=3.0.*,!=3.1.*", "3.11", True),
        (">=2.7,<2.8 || >=3.5,<4.0", "3.11", True),
        (">=2.7,<2.8 || >=3.5,<3.6", "3.11", False),
        ("==3.11.*", "3.11", True),
        ("nonsense", "3.11", True),
        (">=" + "1" * 5000, "3.11", True),
    ],
)
def test_admits(requires, version, expected):
    assert admits(requires, version) is expected


def test_the_newest_that_was_alive_is_chosen():
    chosen, note = choose_python(PYTHONS, ">=3.8", date(2022, 1, 1))
    assert (chosen.version, note) == ("3.10", "")
    assert choose_python(PYTHONS, ">=3.8", date(2022, 10, 24))[0].version == "3.11"
    assert choose_python(PYTHONS, "<3.10", date(2024, 1, 1))[0].version == "3.9"


def test_where_all_are_younger_the_oldest_is_taken_with_a_note():
    chosen, note = choose_python(PYTHONS, ">=3.10", date(2019, 1, 1))
    assert chosen.version == "3.10"
    assert note == "Python 3.10 was released after the change; no admitted one is older"


def test_where_none_is_admitted_there_is_none():
    assert choose_python(PYTHONS, "<3", date(2024, 1, 1)) == (None, "")


def test_shipped_file_is_read():
    assert load_pythons()


@pytest.mark.parametrize("text", ["", "[[python]]\nversion = 3\n", "python = [\n", "[[python]]\nversion='3.11'\nx=1\n"])
def test_wrong_files_are_configuration_errors(tmp_path, text):
    file = tmp_path / "pythons.toml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=r"pythons\.toml"):
        load_pythons(file)


def test_missing_file_is_a_configuration_error(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read"):
        load_pythons(tmp_path / "none.toml")

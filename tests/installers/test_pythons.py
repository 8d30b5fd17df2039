"""The interpreters and the choice among them."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from installers.pythons import DEAD_AFTER, SETTLED_AFTER, Hints, Python, admits, choose_python, load_pythons
from miner.core.errors import ConfigError
from miner.core.reasons import Reason

PYTHONS = load_pythons()
VERSIONS = [python.version for python in PYTHONS]


def chosen(day: str, **hints: tuple[str, ...]) -> str | None:
    choice = choose_python(PYTHONS, Hints(**hints), date.fromisoformat(day))
    return None if choice.python is None else choice.python.version


def reason(day: str = "2024-01-01", **hints: tuple[str, ...]) -> Reason | None:
    return choose_python(PYTHONS, Hints(**hints), date.fromisoformat(day)).reason


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
def test_admits(requires: str | None, version: str, expected: bool) -> None:
    assert admits(requires, version) is expected


@pytest.mark.parametrize(
    ("day", "expected"),
    [
        ("2018-01-01", "3.6"),
        ("2018-12-01", "3.6"),
        ("2019-01-01", "3.7"),
        ("2020-10-06", "3.8"),
        ("2023-10-03", "3.11"),
        ("2024-04-01", "3.12"),
        ("2026-08-01", "3.14"),
    ],
)
def test_where_the_project_names_none_it_is_the_newest_that_had_been_out_for_some_months(
    day: str, expected: str
) -> None:
    assert chosen(day) == expected


@pytest.mark.parametrize(
    ("hints", "day", "expected"),
    [
        ({"classifiers": ("3.6", "3.7", "3.8")}, "2020-06-01", "3.8"),
        ({"classifiers": ("3.6", "3.7"), "ci": ("3.8",)}, "2020-06-01", "3.8"),
        ({"tox": ("2.7", "3.6", "3.9")}, "2020-06-01", "3.6"),
        ({"ci": ("3.12",)}, "2023-10-02", "3.12"),
        ({"ci": ("3.12-dev", "3.9")}, "2023-06-01", "3.9"),
        ({"pinned": ("3.10.4",)}, "2023-06-01", "3.10"),
        ({"ci": ("pypy3.9", "3.8")}, "2023-01-01", "3.8"),
        ({"requires_python": (">=3.8",), "classifiers": ("3.7", "3.10")}, "2022-06-01", "3.10"),
        ({"requires_python": ("<3.9",), "ci": ("3.10",)}, "2022-06-01", "3.8"),
        ({"pinned": (">=3.7,<3.9",)}, "2022-06-01", "3.8"),
        ({"requires_python": (">=3.8", "<3.11")}, "2024-06-01", "3.10"),
    ],
)
def test_the_newest_that_the_project_knows_and_that_was_alive_wins(
    hints: dict[str, tuple[str, ...]], day: str, expected: str
) -> None:
    assert chosen(day, **hints) == expected


@pytest.mark.parametrize(
    ("named", "day", "expected"),
    [
        (("3.4", "3.5"), "2018-06-01", "3.6"),
        (("2.7", "3.6"), "2022-06-01", "3.6"),
        (("2.7", "3.6"), "2023-06-01", "3.7"),
        (("3.5", "3.6"), "2026-01-01", "3.9"),
    ],
)
def test_where_all_that_are_named_are_long_dead_it_is_the_oldest_living_one(
    named: tuple[str, ...], day: str, expected: str
) -> None:
    assert chosen(day, classifiers=named) == expected


@pytest.mark.parametrize(
    ("hints", "day", "expected", "why"),
    [
        ({"requires_python": (">=3.12",)}, "2023-10-03", "3.12", "was new"),
        ({"requires_python": (">=3.13",)}, "2023-01-01", "3.13", "released after the change"),
        ({"requires_python": ("<3.8",)}, "2026-01-01", "3.7", "past its end of life"),
        ({}, "2015-01-01", "3.6", "released after the change"),
    ],
)
def test_where_nothing_else_fits_the_closest_is_taken_with_a_note(
    hints: dict[str, tuple[str, ...]], day: str, expected: str, why: str
) -> None:
    choice = choose_python(PYTHONS, Hints(**hints), date.fromisoformat(day))
    assert choice.python is not None
    assert choice.python.version == expected
    assert why in choice.note


@pytest.mark.parametrize(
    ("hints", "expected"),
    [
        ({"requires_python": (">=3.15",)}, Reason.PYTHON_TOO_NEW),
        ({"requires_python": (">=4",)}, Reason.PYTHON_TOO_NEW),
        ({"ci": ("3.15",)}, Reason.PYTHON_TOO_NEW),
        ({"requires_python": ("<3",)}, Reason.PYTHON_2_ONLY),
        ({"requires_python": (">=2.6,<2.8",)}, Reason.PYTHON_2_ONLY),
        ({"classifiers": ("2.6", "2.7")}, Reason.PYTHON_2_ONLY),
        ({"requires_python": (">=2.7,<3.6",)}, Reason.NO_PYTHON),
        ({"requires_python": ("==3.5.*",)}, Reason.NO_PYTHON),
        ({"requires_python": (">=3.9", "<3.8")}, Reason.NO_PYTHON),
        ({"requires_python": (">=3.9",)}, None),
    ],
)
def test_where_none_fits_the_reason_says_what_kind_of_none(
    hints: dict[str, tuple[str, ...]], expected: Reason | None
) -> None:
    assert reason(**hints) is expected


def test_reason_of_a_newer_python_goes_away_with_a_row() -> None:
    newer = Python(
        version="3.15",
        executable="/opt/python/3.15/bin/python3.15",
        released=date(2026, 10, 1),
        end_of_life=date(2031, 10, 31),
    )
    hints, day = Hints(requires_python=(">=3.15",)), date(2026, 11, 1)
    assert choose_python(PYTHONS, hints, day).reason is Reason.PYTHON_TOO_NEW
    found = choose_python((*PYTHONS, newer), hints, day)
    assert found.python == newer


def test_note_names_what_the_project_asks_for_and_what_there_is() -> None:
    note = choose_python(PYTHONS, Hints(requires_python=("<3",)), date(2024, 1, 1)).note
    assert "<3" in note
    assert VERSIONS[0] in note
    assert VERSIONS[-1] in note


bounds = st.sampled_from([">=3.7", "<3.10", ">=3.6,<4", "!=3.8.*", "~=3.9", ">=3.12", "<3.8", "nonsense"])
names = st.lists(st.sampled_from(["2.7", *VERSIONS, "3.15", "pypy3", "3.x", ""]), max_size=4).map(tuple)


@given(
    requires=st.lists(bounds, max_size=2).map(tuple),
    ci=names,
    tox=names,
    days=st.integers(0, 4000),
)
def test_choice_is_admitted_and_alive_where_any_that_is_admitted_is(
    requires: tuple[str, ...], ci: tuple[str, ...], tox: tuple[str, ...], days: int
) -> None:
    day = date(2016, 6, 1) + timedelta(days=days)
    choice = choose_python(PYTHONS, Hints(requires_python=requires, ci=ci, tox=tox), day)
    fitting = [one for one in PYTHONS if all(admits(text, one.version) for text in requires)]
    if choice.python is None:
        assert choice.reason is not None
        return
    assert choice.reason is None
    assert choice.python in fitting
    if any(_is_alive(one, day) for one in fitting):
        assert _is_alive(choice.python, day)
    assert choice == choose_python(PYTHONS[::-1], Hints(requires_python=requires, ci=ci[::-1], tox=tox[::-1]), day)


def _is_alive(python: Python, day: date) -> bool:
    return python.released <= day <= python.end_of_life + DEAD_AFTER


def test_shipped_file_has_every_version_once_and_in_order() -> None:
    assert [f"3.{minor}" for minor in range(6, 15)] == VERSIONS
    for python in PYTHONS:
        assert python.executable.endswith(f"python{python.version}")
        assert python.released + SETTLED_AFTER < python.end_of_life
        if python.managed is not None:
            assert python.managed.release.startswith(f"{python.version}.")
            assert sorted(python.managed.sha256) == ["amd64", "arm64"]
            assert all(len(digest) == 64 for digest in python.managed.sha256.values())


@pytest.mark.parametrize("text", ["", "[[python]]\nversion = 3\n", "python = [\n", "[[python]]\nversion='3.11'\nx=1\n"])
def test_wrong_files_are_configuration_errors(tmp_path, text):
    file = tmp_path / "pythons.toml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=r"pythons\.toml"):
        load_pythons(file)


def test_missing_file_is_a_configuration_error(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read"):
        load_pythons(tmp_path / "none.toml")

"""Names of Debian packages as projects write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from installers.debian_names import RENAMED, is_package_name, needless, settled_names


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("libpq-dev", ("libpq-dev",)),
        ("libssl1.0-dev", ("libssl-dev",)),
        ("libtiff5-dev", ("libtiff-dev",)),
        ("libmysqlclient-dev", ("default-libmysqlclient-dev",)),
        ("redis-server=5:6.0.16-1", ("redis-server",)),
        ("libpq-dev:amd64", ("libpq-dev",)),
        ("LibPQ-dev ", ("libpq-dev",)),
        ("python3-tk", ("python3-tk",)),
        ("python-tk", ("python3-tk",)),
        ("python-dev", ()),
        ("python3.8-dev", ()),
        ("python3-pip", ()),
        ("python3-numpy", ()),
        ("sudo", ()),
        ("docker.io", ()),
        ("docker-ce-cli", ()),
        ("build-essential", ()),
        ("linux-headers-generic", ()),
        ("texlive-latex-extra", ()),
        ("", ()),
    ],
)
def test_name_that_is_installed_for_one_that_is_written(written: str, expected: tuple[str, ...]) -> None:
    assert settled_names([written]) == expected


def test_set_does_not_depend_on_order_or_repetition() -> None:
    assert settled_names(["xvfb", "libpq-dev", "xvfb"]) == settled_names(["libpq-dev", "xvfb"])


def test_every_new_name_is_a_name_and_is_final() -> None:
    for name, (new, why) in RENAMED.items():
        assert is_package_name(name), name
        assert is_package_name(new), new
        assert new not in RENAMED
        assert new != name
        assert why
        assert needless(name) is None or needless(new) is not None


@pytest.mark.parametrize(
    "text", ["a", "-x", "./file.deb", "?essential", "a b", "x,y", "a/b", "a\n", "Ab", "libx*", "libc6-", ""]
)
def test_what_apt_could_take_for_something_else_is_no_name(text: str) -> None:
    assert not is_package_name(text)


@given(st.lists(st.text(max_size=30), max_size=5))
def test_nothing_that_a_project_writes_raises_and_the_result_is_stable(names: list[str]) -> None:
    settled = settled_names(names)
    assert settled_names(settled) == settled

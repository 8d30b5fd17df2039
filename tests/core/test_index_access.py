"""Where the index is, and what must not be told of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from pypi_simple import PYPI_SIMPLE_ENDPOINT

from miner.core.errors import ConfigError
from miner.core.index_access import (
    CA_VARIABLES,
    URL_VARIABLES,
    ca_bundle,
    chosen_index,
    index_url,
    pair_of_url,
    require_no_login,
    without_login,
)
from miner.core.settings import Index


def test_index_is_that_of_the_settings_then_of_uv_then_of_pip_then_the_default() -> None:
    environ = {name: f"https://{name.lower()}.test/simple/" for name in URL_VARIABLES}
    assert index_url(Index(url="https://mine.test/"), environ) == "https://mine.test/"
    for name in URL_VARIABLES:
        assert index_url(Index(), environ) == f"https://{name.lower()}.test/simple/"
        del environ[name]
    assert chosen_index(Index(), {"PIP_INDEX_URL": ""}) is None
    assert index_url(Index(), environ) == PYPI_SIMPLE_ENDPOINT


def test_name_that_uv_gives_an_index_is_no_part_of_its_address() -> None:
    assert index_url(Index(), {"UV_DEFAULT_INDEX": "corp=https://i.test/simple/"}) == "https://i.test/simple/"
    assert index_url(Index(url="https://i.test/?a=https://b"), {}) == "https://i.test/?a=https://b"


def test_ca_bundle_is_that_of_the_settings_then_of_the_first_variable(tmp_path: Path) -> None:
    environ = {name: f"/{name}.pem" for name in CA_VARIABLES}
    assert ca_bundle(Index(ca_bundle=tmp_path), environ) == tmp_path
    for name in CA_VARIABLES:
        assert ca_bundle(Index(), environ) == Path(f"/{name}.pem")
        del environ[name]
    assert ca_bundle(Index(), environ) is None


@pytest.mark.parametrize(
    ("url", "pair"),
    [
        ("https://i.test/simple/", "i.test:443"),
        ("http://I.test/simple/", "i.test:80"),
        ("http://user:pass@i.test:3141/simple/", "i.test:3141"),
        ("https://i.test:8443", "i.test:8443"),
        ("https://i.test:x/", None),
        ("file:///srv/index", None),
        ("i.test/simple", None),
    ],
)
def test_host_and_port_of_an_address(url: str, pair: str | None) -> None:
    assert pair_of_url(url) == pair


def test_login_is_told_apart_from_the_address() -> None:
    assert without_login("https://me:s%40cret@i.test:1/x") == ("https://i.test:1/x", ("me", "s@cret"))
    assert without_login("https://token@i.test/") == ("https://i.test/", ("token", ""))
    assert without_login("https://i.test/@x") == ("https://i.test/@x", None)


def test_index_with_a_login_is_refused_without_naming_the_login() -> None:
    require_no_login(Index(url="https://i.test/simple/"))
    with pytest.raises(ConfigError, match=r"https://i\.test/simple/ needs a login") as caught:
        require_no_login(Index(url="https://me:s3cret@i.test/simple/"))
    assert "s3cret" not in f"{caught.value} {caught.value.next_step}"
    assert "mirror" in caught.value.next_step

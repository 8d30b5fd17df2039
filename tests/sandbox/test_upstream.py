"""Which places are reached through a proxy of the operator's network."""

from __future__ import annotations

import base64

import pytest

from miner.core.errors import ConfigError
from miner.sandbox.upstream import routes_of


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


def test_without_proxies_everything_is_reached_directly() -> None:
    assert routes_of(["index.test:443"]) == {"https": {}, "http": {}}


def test_login_is_taken_from_the_address_and_unquoted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://me:s%40cret@proxy.test:3128")
    login = base64.b64encode(b"me:s@cret").decode()
    assert routes_of(["index.test:443"])["https"] == {"index.test:443": ["proxy.test", "3128", f"Basic {login}"]}


def test_places_of_no_proxy_are_reached_directly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "proxy.test:3128")
    monkeypatch.setenv("http_proxy", "http://plain.test")
    monkeypatch.setenv("no_proxy", "corp.test,10.0.0.0/8")
    routes = routes_of(["index.corp.test:443", "10.1.2.3:3141", "index.test:443"])
    assert routes == {
        "https": {"index.test:443": ["proxy.test", "3128", ""]},
        "http": {"index.test:443": ["plain.test", "80", ""]},
    }


@pytest.mark.parametrize(
    "proxy", ["socks5://me:s3cret@proxy.test:1080", "https://me:s3cret@proxy.test", "http://me:s3cret@proxy.test:x"]
)
def test_proxy_of_another_kind_is_an_error_without_its_login(monkeypatch: pytest.MonkeyPatch, proxy: str) -> None:
    monkeypatch.setenv("HTTPS_PROXY", proxy)
    with pytest.raises(ConfigError, match=r"proxy\.test") as caught:
        routes_of(["index.test:443"])
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("proxy", ["http://127.0.0.1:3128", "http://localhost:3128", "http://[::1]:3128"])
def test_proxy_on_loopback_is_out_of_reach_of_containers(monkeypatch: pytest.MonkeyPatch, proxy: str) -> None:
    monkeypatch.setenv("HTTPS_PROXY", proxy)
    with pytest.raises(ConfigError, match="loopback") as caught:
        routes_of(["index.test:443"])
    assert "NO_PROXY" in caught.value.next_step

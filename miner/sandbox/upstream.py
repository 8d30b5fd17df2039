"""The proxy that leads out of the operator's network, where there is one: which allowed places are reached through it.

Read as this program's own index client reads it: `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`, upper or
lower case. Its login is known to our proxy alone, never to a box.
"""

from __future__ import annotations

import base64
import ipaddress
from collections.abc import Iterable
from urllib.parse import urlsplit

from requests.utils import get_environ_proxies, select_proxy

from miner.core.errors import ConfigError
from miner.core.index_access import without_login

Routes = dict[str, dict[str, list[str]]]
"""Kind of request ("https" for tunnels, "http" for plain ones) -> host:port -> [host, port, authorization or ""]."""


def routes_of(pairs: Iterable[str]) -> Routes:
    """Return for each place that is reached through an upstream proxy which one that is.

    Args:
        pairs: `host:port` of each allowed place.

    Raises:
        ConfigError: the environment names a proxy that our proxy's container cannot use.
    """
    places = sorted(pairs)
    return {scheme: _through_proxies(scheme, places) for scheme in ("https", "http")}


def _through_proxies(scheme: str, pairs: list[str]) -> dict[str, list[str]]:
    found = {}
    for pair in pairs:
        url = f"{scheme}://{pair}/"
        proxy = select_proxy(url, get_environ_proxies(url))
        if proxy:
            found[pair] = _parsed(proxy)
    return found


def _parsed(proxy: str) -> list[str]:
    bare, login = without_login(proxy if "://" in proxy else f"http://{proxy}")
    try:
        parts = urlsplit(bare)
        host, port = parts.hostname or "", parts.port or 80
    except ValueError as error:
        raise ConfigError(f"the proxy {bare} of the environment: {error}") from error
    if parts.scheme != "http" or not host:
        raise _unusable(bare, "only HTTP proxies (http://host:port) can be used")
    if _is_loopback(host):
        raise _unusable(bare, "it listens on this machine's loopback interface, which no container reaches")
    if login is None:
        return [host, str(port), ""]
    return [host, str(port), f"Basic {base64.b64encode(':'.join(login).encode()).decode()}"]


def _unusable(proxy: str, why: str) -> ConfigError:
    return ConfigError(
        f"containers cannot use the proxy {proxy} of the environment: {why}",
        next_step="set HTTPS_PROXY to a proxy that containers can reach, or put the index's hosts into NO_PROXY",
    )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")

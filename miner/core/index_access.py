"""Where the package index is, who may log in to it, and which certificates are trusted: for this program and its boxes.

What the settings leave open, the environment variables of uv and pip say, in this order. Their configuration files are
not read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

from pypi_simple import PYPI_SIMPLE_ENDPOINT

from miner.core.errors import ConfigError
from miner.core.settings import Index

URL_VARIABLES = ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL")
CA_VARIABLES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "PIP_CERT")

_PORTS = {"http": 80, "https": 443}
_NAMED = re.compile(r"^[A-Za-z0-9._-]+=(?=https?://)")  # uv: an index may have a name, `name=url`


def chosen_index(settings: Index, environ: Mapping[str, str] | None = None) -> str | None:
    """Return the index's simple API as the settings or the environment name it, login and all; None if nothing does."""
    environ = os.environ if environ is None else environ
    found = settings.url or next((value for name in URL_VARIABLES if (value := environ.get(name))), None)
    return found and _NAMED.sub("", found, count=1)


def index_url(settings: Index, environ: Mapping[str, str] | None = None) -> str:
    """Return the index's simple API: the chosen one, or the default of `pypi_simple`."""
    return chosen_index(settings, environ) or PYPI_SIMPLE_ENDPOINT


def without_login(url: str) -> tuple[str, tuple[str, str] | None]:
    """Return a URL without user and password, and these: facts, messages and boxes must not hold them."""
    parts = urlsplit(url)
    if "@" not in parts.netloc:
        return url, None
    bare = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
    return bare, (unquote(parts.username or ""), unquote(parts.password or ""))


def pair_of_url(url: str) -> str | None:
    """Return `host:port` of a URL, the port of its scheme where it names none; None if it is no http(s) URL."""
    try:
        parts = urlsplit(url)
        port = parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return None
    return f"{parts.hostname}:{port}" if parts.hostname and port else None


def require_no_login(settings: Index) -> None:
    """Refuse an index with a login: builds run code of packages, and would see whatever uv needs to log in.

    Raises:
        ConfigError: the index's URL holds a user or a password.
    """
    bare, login = without_login(index_url(settings))
    if login is not None:
        raise ConfigError(
            f"the package index {bare} needs a login, which must not get into containers that run code of packages",
            next_step="set index.url to an index that asks for no login: a mirror, or a caching proxy that logs in",
        )


def ca_bundle(settings: Index, environ: Mapping[str, str] | None = None) -> Path | None:
    """Return the file of the certificates that this machine trusts, where the settings or the environment name one."""
    environ = os.environ if environ is None else environ
    named = next((value for name in CA_VARIABLES if (value := environ.get(name))), None)
    return settings.ca_bundle or (Path(named) if named else None)

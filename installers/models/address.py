"""Where the endpoint of language models is, what of that may be shown, and whose certificates are trusted there."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from urllib.parse import urlsplit

from miner.core.errors import ConfigError
from miner.core.index_access import ca_bundle
from miner.core.settings import Endpoint, Index


def address_of(endpoint: Endpoint, environ: Mapping[str, str]) -> tuple[str, str]:
    """Return base URL and key, "" where it asks for none.

    Raises:
        ConfigError: one of them cannot be used; neither is shown.
    """
    url, key = (environ.get(name, "").strip() for name in (endpoint.url_env, endpoint.key_env))
    if not shown(url) or "@" in urlsplit(url).netloc or "?" in url or "#" in url:
        raise ConfigError(
            f"{endpoint.url_env} is no plain http(s) URL, or holds a login, a query or a fragment",
            next_step="set it to the base of the endpoint, as in https://host/v1; the key has a variable of its own",
        )
    if not (key.isascii() and key.isprintable()):
        raise ConfigError(f"{endpoint.key_env} holds characters that no key has", next_step="set it again")
    return url, key


def shown(url: str) -> str:
    """Return scheme and host of a URL, since what else it holds may be secret; "" where it is no http(s) URL."""
    try:
        parts = urlsplit(url)
        fine = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        fine = False
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}" if fine else ""


def trusted(endpoint: Endpoint, environ: Mapping[str, str]) -> ssl.SSLContext:
    """Return the certificates that are trusted: those of the settings, of the environment, or of the machine.

    Raises:
        ConfigError: their file cannot be read.
    """
    bundle = ca_bundle(Index(ca_bundle=endpoint.ca_bundle), environ)
    try:
        return ssl.create_default_context(cafile=None if bundle is None else str(bundle))
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"the certificates in {bundle} cannot be read: {error}") from error

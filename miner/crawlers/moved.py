"""Where a repository went that was renamed: a forge redirects, and git is not let follow on its own."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urljoin, urlsplit

import requests

_SERVICE = "/info/refs"
_TIMEOUT_S = 30.0


def moved_to(url: str, ca_bundle: Path | None) -> str | None:
    """Return the new address of a repository, or None where it is redirected to another host or to no repository.

    The first request of a fetch is `GET <url>/info/refs?service=git-upload-pack`
    (https://git-scm.com/docs/http-protocol#_discovering_references).
    """
    try:
        with requests.Session() as session:
            session.auth = _nobody
            answer = session.get(
                f"{url}{_SERVICE}",
                params={"service": "git-upload-pack"},
                allow_redirects=False,
                timeout=_TIMEOUT_S,
                verify=str(ca_bundle) if ca_bundle is not None else True,
            )
    except requests.RequestException:
        return None
    if not answer.is_redirect:
        return None
    there = urlsplit(urljoin(url, answer.headers["Location"]))
    here = urlsplit(url)
    is_same_host = (there.scheme, there.netloc) == (here.scheme, here.netloc)
    if not is_same_host or not there.path.endswith(_SERVICE):
        return None
    return f"{there.scheme}://{there.netloc}{there.path.removesuffix(_SERVICE)}"


def _nobody(request: requests.PreparedRequest) -> requests.PreparedRequest:
    """Log in as nobody: without this, a password of `.netrc` would be sent."""
    return request

"""Whether uv failed because of the package index: pure, from what it printed.

uv begins the lines of its own report with "error: ", "  cause: " and "hint: ", and indents deeper what build scripts
print, so that a package cannot speak in its name.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from miner.core.index_access import pair_of_url

_TROUBLE = re.compile(
    r"HTTP status server error|429 Too Many Requests|Request failed after|error sending request|operation timed out"
    r"|error decoding response body|connection (?:reset|closed)|request or response body error"
)
_REFUSAL = re.compile(r"HTTP status client error \((?:401|403|407) ")
_HINT = re.compile(r"hint: An index (?:URL )?\((\S+)\) .*(?:401 Unauthorized|403 Forbidden)")
_DIRECT = re.compile(r"`[^`]+ @ (?:git\+)?https?://")  # PEP 440: a requirement that names a URL itself
_URL = re.compile(r"https?://[^\s`)]+")
_FILE = re.compile(r"\.(?:whl|whl\.metadata|zip|tar\.gz|tar\.bz2|tgz)$")


def index_trouble(text: str, index: str = "", denied: Collection[str] = ()) -> str:
    """Return the line in which uv says that the index failed, "" where it says no such thing.

    Args:
        text: what uv printed.
        index: `host:port` of the index.
        denied: what our proxy has refused in the same box. It explains a failure, unless the index itself named that
            place: a file of the index on a host that is not allowed is no property of the package that wants it.
    """
    lines = text.split("\n")
    chain = [line.strip() for line in lines if line.startswith(("error: ", "  cause: "))]
    said = next((line for line in chain if _TROUBLE.search(line)), "")
    if any(_DIRECT.search(line) for line in chain):
        return "" if denied else said
    hinted = (line for line in lines if (hint := _HINT.match(line)) and pair_of_url(hint[1]) == index)
    said = said or next((line for line in chain if _REFUSAL.search(line)), "") or next(hinted, "")
    urls = {url for line in chain for url in _URL.findall(line)}
    elsewhere = any(pair_of_url(url) in denied and pair_of_url(url) != index and not _FILE.search(url) for url in urls)
    return "" if elsewhere else said


def is_refusal(said: str) -> bool:
    """Whether the line says that the index answers, but not to us."""
    return not _TROUBLE.search(said)

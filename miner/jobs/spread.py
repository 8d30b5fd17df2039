"""What errors of several repositories have in common, and whether it spreads over them: pure."""

from __future__ import annotations

import re
from collections.abc import Collection

RECENT = 20
SPREAD_OVER = 5
SPREAD_FROM_THE_START = 3

_VARYING = re.compile(
    r"""https?://\S+ | '[^']*' | "[^"]*" | `[^`]*`        # addresses, and what is quoted
    | \S*[/\\_]\S* | \S*\d\S* | \w+(?:[-.]\w+)+           # paths, numbers, hashes, names of files and packages
    | \S+(?=\ was\ not\ found) | (?<=\brequire\ )\S+ | (?<=\bdepends\ on\ )\S+   # names in a resolver's sentences""",
    re.VERBOSE,
)


def signature(code: str, message: str, group: str) -> str:
    """Return what an error has in common with the same one of another repository: numbers, hashes, paths, names out."""
    line = message.partition("\n")[0]
    names = {part for part in re.split(r"__|/", group) if part}
    for name in sorted(names, key=len, reverse=True):
        line = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", "*", line, flags=re.IGNORECASE)
    return f"{code}: {re.sub(r'[*](?: [*])+', '*', ' '.join(_VARYING.sub('*', line).split()))}"


def spreads(recent: Collection[tuple[str, str | None]], found: str, *, fault: bool) -> bool:
    """Whether a signature spread over repositories among the last outcomes, which are (repository, signature).

    It has spread where more than half of them have it, of many repositories; where nothing but one fault was ever seen,
    of a few.
    """
    having = [group for group, one in recent if one == found]
    if fault and len(having) == len(recent) and len(set(having)) >= SPREAD_FROM_THE_START:
        return True
    return len(set(having)) >= SPREAD_OVER and 2 * len(having) > len(recent)

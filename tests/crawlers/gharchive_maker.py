"""Events of both shapes, and hours of them, as small as a test needs them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

HOUR = "2025-05-01-0"
AT = "2025-05-01T00:10:00Z"


def event(kind: str = "PullRequestEvent", payload: Mapping[str, Any] | None = None, **keys: Any) -> dict[str, Any]:
    """Make an event in the archive's own order of keys; `keys` replaces some or (with None) removes them."""
    made: dict[str, Any] = {
        "id": "48000000001",
        "type": kind,
        "actor": {"id": 7, "login": "octocat", "gravatar_id": "", "url": "https://api.github.com/users/octocat"},
        "repo": {"id": 10, "name": "owner/name", "url": "https://api.github.com/repos/owner/name"},
        "payload": payload or {},
        "public": True,
        "created_at": AT,
        "org": {"id": 3, "login": "owner"},
        **keys,
    }
    return {key: value for key, value in made.items() if value is not None}


def fat(
    number: int = 1, *, action: str = "closed", pull: Mapping[str, Any] | None = None, **keys: Any
) -> dict[str, Any]:
    """Make an event with the whole pull request; merged, unless `pull` says otherwise."""
    repository = {"id": 10, "full_name": "owner/name", "private": False, "language": "Python"}
    whole = {
        "url": f"https://api.github.com/repos/owner/name/pulls/{number}",
        "number": number,
        "state": "closed",
        "title": 'say "PullRequestEvent"',
        "user": {"login": "octocat", "type": "User"},
        "body": 'It said {"type":"PullRequestEvent","payload":{"action":"closed"}}\r\n\u2028\u0000 and "merged": true.',
        "closed_at": "2025-05-01T00:09:58Z",
        "merged_at": "2025-05-01T00:09:58Z",
        "labels": [{"name": "merged"}],
        "head": {"ref": "fix", "repo": None},
        "base": {"ref": "main", "repo": repository},
        "merged": True,
        "merged_by": {"login": "octocat"},
        **(pull or {}),
    }
    return event(payload={"action": action, "number": number, "pull_request": whole}, **keys)


def slim(number: int = 1, *, action: str = "merged", **keys: Any) -> dict[str, Any]:
    """Make an event with the few fields that are left since October 2025."""
    repository = {"id": 10, "url": "https://api.github.com/repos/owner/name", "name": "name"}
    sides = {side: {"ref": side, "sha": "ab" * 20, "repo": repository} for side in ("head", "base")}
    url = f"https://api.github.com/repos/owner/name/pulls/{number}"
    pull = {"url": url, "id": number + 1000, "number": number, **sides}
    return event(payload={"action": action, "number": number, "pull_request": pull}, **keys)


def line(made: Any) -> bytes:
    """Write an event as the archive does."""
    return json.dumps(made, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"


def plain(events: Iterable[Any]) -> bytes:
    """Join events (or lines, as bytes) to what an hour holds."""
    return b"".join(made if isinstance(made, bytes) else line(made) for made in events)


def write(folder: Path, events: Iterable[Any] | bytes, hour: str = HOUR) -> Path:
    """Write an hour's file: of events, or of the very bytes."""
    path = folder / f"{hour}.json.gz"
    path.write_bytes(events if isinstance(events, bytes) else gzip.compress(plain(events)))
    return path

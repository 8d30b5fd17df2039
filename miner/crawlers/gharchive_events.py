"""What the events of an archive hour say of merged pull requests, in both shapes of their payload.

Common to all events since 2015 are `type`, `repo.id`, `repo.name` (as it was then), `created_at` and `payload`
(documented: https://docs.github.com/en/rest/using-the-rest-api/github-event-types). Before 2015 events had another
shape; they count as bad lines.

- Fat, to 2025-10-07: `payload.pull_request` is the whole pull request. A merge is `action` "closed" with `merged` true,
  at `merged_at`; `base.repo.language` is the repository's main language at that time (documented, as the pull request
  of the REST API).
- Slim, since then: GitHub removed fields that "are slow to generate" (documented, without a list of them, with a test
  of one day on 2025-09-08, so that either shape is taken on any day:
  https://github.blog/changelog/2025-08-08-upcoming-changes-to-github-events-api-payloads/). Left are `url`, `id`,
  `number`, and `head` and `base` with `ref`, `sha` and a `repo` of `id`, `url`, `name` (recorded: a fixture of
  octocrab, hours of September 2026). A merge is an event with the `action` "merged" of its own (recorded: hours of July
  and September 2026). The time of that event stands for that of the merge (assumed to be some seconds off).
- "closed" without `merged` and `merged_at` is no merge (recorded for 2026, as "merged" stood beside it; assumed for the
  first weeks of the slim shape). It is counted as undecided.
- Some events have an empty `repo` (recorded, July 2026), or one without a name: bad lines.

Lines are searched for the name of the event, which nobody writes with escapes; most of them are never decoded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Annotated

import msgspec

from miner.crawlers.gharchive_lines import Span, Tally

_KIND = "PullRequestEvent"
_QUOTED = b'"PullRequestEvent"'
_ACTION = b'"payload":{"action":"'  # as the archive writes it; where a line has it otherwise, it is decoded
_OF_AN_END = frozenset({b'closed"', b'merged"'})
_LENGTH = 7  # of each of them
_OTHER_KIND = re.compile(rb'\{"id":"\d+","type":"(?!PullRequestEvent")\w+"').match  # no object has a key twice
_LONG_LINE = 1400
_is_name = re.compile(r"[A-Za-z0-9._-]+/[A-Za-z0-9._-]+").fullmatch

_Time = Annotated[datetime, msgspec.Meta(tz=True)]
_Id = Annotated[int, msgspec.Meta(gt=0, lt=1 << 48)]
_Number = Annotated[int, msgspec.Meta(gt=0, lt=1 << 32)]


class MergeHint(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A pull request that an event says was merged; never truth.

    Attributes:
        repository: its name at that time.
        merged_at: the time of the event where the event does not give that of the merge.
        language: the repository's main language at that time; None where it is not said.
    """

    repository_id: int
    repository: str
    number: int
    merged_at: datetime
    language: str | None = None


class _Repository(msgspec.Struct, gc=False):
    id: _Id
    name: str


class _BaseRepository(msgspec.Struct, gc=False):
    language: str | None = None


class _Base(msgspec.Struct, gc=False):
    repo: _BaseRepository | None = None


class _Pull(msgspec.Struct, gc=False):
    number: _Number | None = None
    merged: bool | None = None
    merged_at: _Time | None = None
    base: _Base | None = None


class _Payload(msgspec.Struct, gc=False):
    action: str
    number: _Number | None = None
    pull_request: _Pull | None = None


class _Event(msgspec.Struct, gc=False):
    type: str
    repo: _Repository
    created_at: _Time
    payload: _Payload


_NO_PULL = _Pull()
_decode = msgspec.json.Decoder(_Event).decode


def merges(spans: Iterable[Span], tally: Tally) -> Iterator[MergeHint]:
    """Yield the merges that lines say, in their order."""
    lines_of_pulls: Callable[[Span], list[tuple[int, int]]] | None = None
    for span in spans:
        lines_of_pulls = lines_of_pulls or _quickest(span)
        block = span.block
        for start, end in lines_of_pulls(span):
            tally.pulls += 1
            action = block.find(_ACTION, start, end) + len(_ACTION)
            if action < len(_ACTION) or block[action : action + _LENGTH] in _OF_AN_END:
                hint = _read(block[start:end], tally)
                if hint is not None:
                    yield hint


def _quickest(span: Span) -> Callable[[Span], list[tuple[int, int]]]:
    block, start, end = span
    return _by_heads if end - start > _LONG_LINE * block.count(b"\n", start, end) else _by_search


def _by_heads(span: Span) -> list[tuple[int, int]]:
    """Go from line to line: what is quickest where they are long, in the fat shape."""
    (block, start, stop), found = span, []
    find = block.find
    while start < stop:
        end = find(b"\n", start, stop)
        if _OTHER_KIND(block, start) is None and find(_QUOTED, start, end) >= 0:
            found.append((start, end))
        start = end + 1
    return found


def _by_search(span: Span) -> list[tuple[int, int]]:
    """Search for the name of the event: what is quickest where lines are short, in the slim shape."""
    (block, start, stop), found = span, []
    find = block.find
    at = find(_QUOTED, start, stop)
    while at >= 0:
        end = find(b"\n", at, stop)
        found.append((block.rfind(b"\n", start, at) + 1 or start, end))
        at = find(_QUOTED, end, stop)
    return found


def _read(line: bytes, tally: Tally) -> MergeHint | None:
    try:
        event: _Event | None = _decode(line)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        event = _read_leniently(line, tally)
    if event is None:
        return None
    if event.type != _KIND:
        tally.pulls -= 1
        return None
    payload, repository = event.payload, event.repo
    pull = payload.pull_request or _NO_PULL
    if not _is_merge(payload.action, pull, tally):
        return None
    number = payload.number or pull.number
    if number is None or _is_name(repository.name) is None:
        tally.bad += 1
        return None
    tally.merges += 1
    language = pull.base.repo.language if pull.base and pull.base.repo else None
    return MergeHint(repository.id, repository.name, number, pull.merged_at or event.created_at, language)


def _read_leniently(line: bytes, tally: Tally) -> _Event | None:
    """Read an event whose texts hold half of a surrogate pair or what is not UTF-8; None, and counted, if it is bad."""
    try:
        made = json.loads(line.decode("utf-8", "replace"))
        if isinstance(made, dict) and made.get("type", _KIND) != _KIND:  # whose shape is none of our business
            tally.pulls -= 1
            return None
        return msgspec.convert(made, _Event)
    except (ValueError, RecursionError):
        tally.bad += 1
        return None


def _is_merge(action: str, pull: _Pull, tally: Tally) -> bool:
    if action != "closed":
        return action == "merged"
    if pull.merged is not None:
        return pull.merged
    if pull.merged_at is None:
        tally.undecided += 1
    return pull.merged_at is not None

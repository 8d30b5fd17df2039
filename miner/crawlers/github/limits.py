"""The forge's limits as answers state them, and what a query costs before it is asked.

Sources: https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api,
https://docs.github.com/en/rest/using-the-rest-api/best-practices-for-using-the-rest-api,
https://docs.github.com/en/graphql/overview/rate-limits-and-query-limits-for-the-graphql-api.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Any

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    InlineFragmentNode,
    IntValueNode,
    OperationDefinitionNode,
    SelectionSetNode,
    VariableNode,
    parse,
)

from miner.core.records import Record

GRAPHQL = "graphql"
_REQUESTS_PER_POINT = 100
_LARGEST_PAGE = 100
_LONGEST_S = 366 * 86400.0


class Rate(Record):
    """What is left of a token's points for one resource ("core", "search", "graphql"), as an answer states it."""

    resource: str
    remaining: int
    reset_in_s: float


def rate_of(headers: Mapping[str, str], resource: str, now: datetime) -> Rate | None:
    """Read an answer's limit headers; the forge's own clock says how far the reset is, ours where it gives no date."""
    remaining, reset = _number(headers, "x-ratelimit-remaining"), _number(headers, "x-ratelimit-reset")
    if remaining is None or reset is None:
        return None
    there = server_time(headers) or now
    return Rate(
        resource=headers.get("x-ratelimit-resource", resource),
        remaining=int(remaining),
        reset_in_s=min(reset - there.timestamp(), _LONGEST_S),
    )


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of a `Retry-After` header, which may give a date instead (RFC 9110, section 10.2.3)."""
    seconds = _number(headers, "retry-after")
    if seconds is not None:
        return min(max(0.0, seconds), _LONGEST_S)
    until, there = _date(headers.get("retry-after", "")), server_time(headers)
    return None if until is None or there is None else min(max(0.0, (until - there).total_seconds()), _LONGEST_S)


def server_time(headers: Mapping[str, str]) -> datetime | None:
    """Return the forge's time of an answer."""
    return _date(headers.get("date", ""))


def resource_of(path: str) -> str:
    """Return which limit a REST path counts against, for answers that do not say it themselves."""
    if path.startswith("/search/"):
        return "code_search" if path.startswith("/search/code") else "search"
    return "core"


def cost_of(document: str, variables: Mapping[str, Any]) -> int:
    """Return what a query costs, by the documented formula: the connections to resolve, a hundred to a point."""
    operation, fragments = _parsed(document)
    requests = sum(_requests(operation.selection_set, 1, fragments, variables))
    return max(1, math.ceil(requests / _REQUESTS_PER_POINT))


@lru_cache(maxsize=64)
def _parsed(document: str) -> tuple[OperationDefinitionNode, dict[str, FragmentDefinitionNode]]:
    tree: DocumentNode = parse(document, no_location=True)
    operations = [node for node in tree.definitions if isinstance(node, OperationDefinitionNode)]
    fragments = {node.name.value: node for node in tree.definitions if isinstance(node, FragmentDefinitionNode)}
    return operations[0], fragments


def _requests(
    selected: SelectionSetNode | None,
    times: int,
    fragments: Mapping[str, FragmentDefinitionNode],
    variables: Mapping[str, Any],
) -> Iterator[int]:
    """Yield how often each connection below a selection is resolved, if every list is as long as it may be."""
    for node in selected.selections if selected else ():
        if isinstance(node, FieldNode):
            first = _page(node, variables)
            if first is not None:
                yield times
            yield from _requests(node.selection_set, times * (1 if first is None else first), fragments, variables)
        elif isinstance(node, InlineFragmentNode):
            yield from _requests(node.selection_set, times, fragments, variables)
        elif isinstance(node, FragmentSpreadNode):
            yield from _requests(fragments[node.name.value].selection_set, times, fragments, variables)


def _page(node: FieldNode, variables: Mapping[str, Any]) -> int | None:
    """Return the length of a connection's page, None for a field that is none."""
    for argument in node.arguments or ():
        if argument.name.value in ("first", "last"):
            if isinstance(argument.value, IntValueNode):
                return int(argument.value.value)
            if isinstance(argument.value, VariableNode):
                return int(variables.get(argument.value.name.value) or _LARGEST_PAGE)
    return None


def _number(headers: Mapping[str, str], name: str) -> float | None:
    try:
        number = float(headers[name])
    except (KeyError, ValueError):
        return None
    return number if math.isfinite(number) else None


def _date(text: str) -> datetime | None:
    try:
        date = parsedate_to_datetime(text)
    except ValueError:
        return None
    return date if date.tzinfo else None

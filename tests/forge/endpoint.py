"""The GraphQL endpoint: documents are checked, counted, executed, and answered as GitHub does.

https://docs.github.com/en/graphql/guides/forming-calls-with-graphql
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from graphql import (
    DocumentNode,
    GraphQLError,
    OperationDefinitionNode,
    execute_sync,
    parse,
    validate,
)

from forge.cost import Cost, cost_of
from forge.exchange import Call, Reply, encode, reply_json
from forge.graph import Context, load_schema
from forge.limits import Budgets
from forge.nodes import Missing
from forge.pages import BadCursor
from forge.records import stamp
from forge.world import World

_KEPT = 500
_OWNER = re.compile(r"(owner|o)(\d*)")
_QUALIFIER = re.compile(r"\brepo:([\w.-]+/[\w.-]+)")


@dataclass(frozen=True)
class Query:
    """A document that was sent, with what is known of it before it is executed."""

    text: str
    document: DocumentNode | None
    errors: tuple[dict[str, Any], ...]
    name: str
    variables: Mapping[str, Any]

    @property
    def about(self) -> frozenset[str]:
        """Repositories that the variables name: `owner` with `name`, `o1` with `n1`, or `repo:` in a search."""
        named: set[str] = set()
        for name, value in self.variables.items():
            if match := _OWNER.fullmatch(name):
                other = self.variables.get(("name" if match[1] == "owner" else "n") + match[2])
                named.add(f"{value}/{other}")
            elif isinstance(value, str):
                named |= set(_QUALIFIER.findall(value))
        return frozenset(name.lower() for name in named)


class Endpoint:
    """Executes documents over a world."""

    def __init__(self, world: World) -> None:
        self.schema = load_schema()
        self._world = world
        self._parse = lru_cache(_KEPT)(self._read)

    def read(self, body: bytes) -> Query | None:
        """Read the body of a request; None where it is none."""
        try:
            sent = json.loads(body)
            text, variables = sent["query"], sent.get("variables") or {}
        except (ValueError, KeyError, TypeError, AttributeError):
            return None
        if not isinstance(text, str) or not isinstance(variables, dict):
            return None
        document, errors = self._parse(text)
        return Query(text, document, errors, _name(document), variables)

    def cost(self, query: Query) -> Cost:
        """Return what a query costs; one point where it is not executed."""
        if query.document is None or query.errors:
            return Cost()
        return cost_of(self.schema, query.document, query.variables)

    def answer(self, query: Query, cost: Cost, call: Call, budgets: Budgets) -> Reply:
        """Execute a query."""
        if query.document is None or query.errors:
            return reply_json(200, {"errors": list(query.errors)})
        if cost.errors:
            return reply_json(200, {"errors": cost.errors})
        window = budgets.window(call.token, "graphql")
        context = Context(
            self._world,
            {
                "cost": cost.points,
                "limit": window.limit,
                "node_count": cost.nodes,
                "remaining": window.remaining,
                "used": window.used,
                "reset_at": stamp(datetime.fromtimestamp(window.reset, UTC)),
            },
        )
        with self._world.lock:
            done = execute_sync(
                self.schema, query.document, context_value=context, variable_values=dict(query.variables)
            )
        value: dict[str, Any] = {"data": done.data}
        if done.errors:
            value["errors"] = [_shown(error) for error in done.errors]
        return Reply(200, encode(value), {"content-type": "application/json; charset=utf-8"})

    def _read(self, text: str) -> tuple[DocumentNode | None, tuple[dict[str, Any], ...]]:
        try:
            document = parse(text)
        except GraphQLError as error:
            return None, (_shown(error),)
        return document, tuple(_shown(error) for error in validate(self.schema, document))


def _name(document: DocumentNode | None) -> str:
    for part in document.definitions if document is not None else ():
        if isinstance(part, OperationDefinitionNode):
            return part.name.value if part.name is not None else "anonymous"
    return ""


def _shown(error: GraphQLError) -> dict[str, Any]:
    """Return an error as GitHub shows it: its `type` beside its message."""
    cause = error if isinstance(error, Missing) else error.original_error
    shown: dict[str, Any] = {"message": error.message}
    if isinstance(cause, Missing):
        shown["type"] = cause.kind
    elif isinstance(cause, BadCursor):
        shown["type"], shown["message"] = "INVALID_CURSOR_ARGUMENTS", f"`{cause}` does not appear to be a valid cursor."
    elif cause is not None:
        raise cause  # a mistake of the forge itself
    if error.path:
        shown["path"] = list(error.path)
    if error.locations:
        shown["locations"] = [{"line": place.line, "column": place.column} for place in error.locations]
    return shown

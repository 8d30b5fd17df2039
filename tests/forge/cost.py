"""What a GraphQL document costs, before it is executed: points and nodes, and what GitHub refuses.

https://docs.github.com/en/graphql/overview/rate-limits-and-query-limits-for-the-graphql-api
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLSchema,
    InlineFragmentNode,
    OperationDefinitionNode,
    SelectionSetNode,
    get_named_type,
    value_from_ast_untyped,
)

MAX_NODES = 500_000
MAX_FIRST = 100


@dataclass
class Cost:
    """The sums of a document.

    Attributes:
        connections: requests that are needed to fulfil every connection, each of its parents reaching its limit.
        nodes: that it may return.
        errors: why it is refused.
    """

    connections: int = 0
    nodes: int = 0
    errors: list[dict[str, Any]] = field(default_factory=list)

    @property
    def points(self) -> int:
        """ "Divide the number by 100 and round the result to get the final aggregate cost", "the minimum is one"."""
        return max(1, (self.connections + 50) // 100)


def cost_of(schema: GraphQLSchema, document: DocumentNode, variables: Mapping[str, Any]) -> Cost:
    """Compute the cost of a document that is valid for the schema."""
    cost = Cost()
    fragments = {part.name.value: part for part in document.definitions if isinstance(part, FragmentDefinitionNode)}
    walk = _Walk(schema, fragments, variables, cost)
    for part in document.definitions:
        if isinstance(part, OperationDefinitionNode) and schema.query_type is not None:
            walk.variables = {**_defaults(part), **variables}
            walk.fields(part.selection_set, schema.query_type, 1, ("query",))
    if cost.nodes > MAX_NODES:
        cost.errors.append(
            _refusal(
                "MAX_NODE_LIMIT_EXCEEDED",
                ("query",),
                f"This query requests up to {cost.nodes:,} possible nodes which exceeds the maximum limit of "
                f"{MAX_NODES:,}.",
            )
        )
    return cost


def _defaults(operation: OperationDefinitionNode) -> dict[str, Any]:
    return {
        given.variable.name.value: value_from_ast_untyped(given.default_value)
        for given in operation.variable_definitions or ()
        if given.default_value is not None
    }


@dataclass
class _Walk:
    schema: GraphQLSchema
    fragments: Mapping[str, FragmentDefinitionNode]
    variables: Mapping[str, Any]
    cost: Cost

    def fields(self, chosen: SelectionSetNode, parent: Any, times: int, path: tuple[str, ...]) -> None:
        for type_, node in self._flat(chosen, parent):
            definition = getattr(type_, "fields", {}).get(node.name.value)
            if definition is None or node.selection_set is None:
                continue
            here = (*path, (node.alias or node.name).value)
            inside = times
            if "first" in definition.args:
                size = self._size(node, here)
                self.cost.connections += times
                self.cost.nodes += times * size
                inside = times * size
            self.fields(node.selection_set, get_named_type(definition.type), inside, here)

    def _flat(self, chosen: SelectionSetNode, parent: Any) -> Iterator[tuple[Any, FieldNode]]:
        for selection in chosen.selections:
            if isinstance(selection, FieldNode):
                yield parent, selection
                continue
            if isinstance(selection, InlineFragmentNode):
                condition, inside = selection.type_condition, selection.selection_set
            else:
                assert isinstance(selection, FragmentSpreadNode)
                fragment = self.fragments[selection.name.value]
                condition, inside = fragment.type_condition, fragment.selection_set
            type_ = parent if condition is None else self.schema.type_map[condition.name.value]
            yield from self._flat(inside, type_)

    def _size(self, node: FieldNode, path: tuple[str, ...]) -> int:
        """https://docs.github.com/en/graphql/overview/rate-limits-and-query-limits-for-the-graphql-api#node-limit"""
        given = {
            argument.name.value: value_from_ast_untyped(argument.value, dict(self.variables))
            for argument in node.arguments or ()
        }
        limits = [(name, given[name]) for name in ("first", "last") if given.get(name) is not None]
        name = node.name.value
        if not limits:
            message = f"You must provide a `first` or `last` value to properly paginate the `{name}` connection."
            self.cost.errors.append(_refusal("MISSING_PAGINATION_BOUNDARIES", path, message))
            return 0
        which, size = limits[0]
        if not 1 <= size <= MAX_FIRST:
            message = (
                f"Requesting {size} records on the `{name}` connection exceeds the `{which}` limit of {MAX_FIRST} "
                "records."
            )
            self.cost.errors.append(_refusal("EXCESSIVE_PAGINATION", path, message))
        return max(0, int(size))


def _refusal(kind: str, path: tuple[str, ...], message: str) -> dict[str, Any]:
    return {"type": kind, "path": list(path), "message": message}

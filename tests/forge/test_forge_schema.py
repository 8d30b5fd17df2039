"""The trimmed schema against the documents of the product, and both against the schema that GitHub publishes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from graphql import (
    GraphQLArgument,
    GraphQLEnumType,
    GraphQLInputObjectType,
    GraphQLInterfaceType,
    GraphQLObjectType,
    GraphQLSchema,
    GraphQLUnionType,
    Undefined,
    build_schema,
    parse,
    validate,
)

from forge.contract import GRAPHQL, can_fetch, contract
from forge.documents import documents
from forge.graph import SCHEMA

OURS = build_schema(SCHEMA.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def github() -> GraphQLSchema:
    if not can_fetch():
        pytest.skip("no npm, and NPM_CONFIG_REGISTRY names no registry")
    text = contract(GRAPHQL).read_text(encoding="utf-8")
    return build_schema(text, assume_valid=True, assume_valid_sdl=True)  # it states some fields twice


@pytest.mark.parametrize("name", documents())
def test_the_forge_can_answer_every_document_of_the_product(name: str) -> None:
    assert validate(OURS, parse(documents()[name])) == []


@pytest.mark.index
@pytest.mark.parametrize("name", documents())
def test_github_can_answer_every_document_of_the_product(name: str, github: GraphQLSchema) -> None:
    assert validate(github, parse(documents()[name])) == []


@pytest.mark.index
def test_the_forges_schema_is_a_part_of_githubs(github: GraphQLSchema) -> None:
    assert list(_differences(OURS, github)) == []


def test_a_schema_with_an_invented_field_is_no_part() -> None:
    published = build_schema("type Query { a(x: Int): Int! }")
    assert list(_differences(build_schema("type Query { a: Int! }"), published)) == []
    for invented in ("{ b: Int }", "{ a: Int }", "{ a: String! }", "{ a(y: Int): Int! }", "{ a(x: Int!): Int! }"):
        assert len(list(_differences(build_schema(f"type Query {invented}"), published))) == 1, invented


def _differences(ours: GraphQLSchema, theirs: GraphQLSchema) -> Iterator[str]:
    for name, type_ in ours.type_map.items():
        other = theirs.type_map.get(name)
        if type(other) is not type(type_):
            yield f"{name} is not theirs"
        elif isinstance(type_, GraphQLObjectType | GraphQLInterfaceType) and not name.startswith("__"):
            yield from _fields(name, type_, other)
        elif isinstance(type_, GraphQLEnumType) and not name.startswith("__"):
            yield from (f"{name}.{value} is not theirs" for value in type_.values.keys() - other.values.keys())
        elif isinstance(type_, GraphQLUnionType):
            missing = {member.name for member in type_.types} - {member.name for member in other.types}
            yield from (f"{member} is not in their {name}" for member in missing)
        elif isinstance(type_, GraphQLInputObjectType):
            yield from _inputs(name, type_, other)


def _fields(
    name: str, ours: GraphQLObjectType | GraphQLInterfaceType, theirs: GraphQLObjectType | GraphQLInterfaceType
) -> Iterator[str]:
    missing = {interface.name for interface in ours.interfaces} - {interface.name for interface in theirs.interfaces}
    yield from (f"their {name} is no {interface}" for interface in missing)
    for field_name, field in ours.fields.items():
        other = theirs.fields.get(field_name)
        where = f"{name}.{field_name}"
        if other is None:
            yield f"{where} is not theirs"
            continue
        if str(field.type) != str(other.type):
            yield f"{where} is {other.type} there, not {field.type}"
        for argument_name, argument in field.args.items():
            yield from _argument(f"{where}({argument_name})", argument, other.args.get(argument_name))
        yield from (
            f"{where}({argument_name}) is required there"
            for argument_name, argument in other.args.items()
            if str(argument.type).endswith("!")
            and argument.default_value is Undefined
            and argument_name not in field.args
        )


def _argument(where: str, ours: GraphQLArgument, theirs: GraphQLArgument | None) -> Iterator[str]:
    if theirs is None:
        yield f"{where} is not theirs"
    elif str(ours.type) != str(theirs.type):
        yield f"{where} is {theirs.type} there, not {ours.type}"
    elif ours.default_value != theirs.default_value:
        yield f"{where} is {theirs.default_value} by default there, not {ours.default_value}"


def _inputs(name: str, ours: GraphQLInputObjectType, theirs: GraphQLInputObjectType) -> Iterator[str]:
    for field_name, field in ours.fields.items():
        if str(field.type) != str(getattr(theirs.fields.get(field_name), "type", None)):
            yield f"{name}.{field_name} is not theirs"

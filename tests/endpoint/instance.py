"""The smallest value of a JSON schema, so that a reply fits whatever form was asked for."""

from __future__ import annotations

from typing import Any

_SCALARS: dict[str, Any] = {"string": "x", "integer": 1, "number": 1.0, "boolean": False, "null": None}


def instance(schema: dict[str, Any], root: dict[str, Any] | None = None) -> Any:
    """Return a value that a schema of the strict subset allows: null and nothing wherever that will do.

    Of a list of choices it has one: none of them would mean nothing.
    """
    root = schema if root is None else root
    if "$ref" in schema:
        at: Any = root
        for part in schema["$ref"].removeprefix("#/").split("/"):
            at = at[part]
        return instance(at, root)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    if "anyOf" in schema:
        return min((instance(option, root) for option in schema["anyOf"]), key=lambda one: one is not None)
    kinds = schema.get("type", "object")
    kind = kinds if isinstance(kinds, str) else "null" if "null" in kinds else kinds[0]
    if kind == "object":
        return {name: instance(inside, root) for name, inside in schema.get("properties", {}).items()}
    if kind == "array":
        return [instance(schema["items"], root)] * schema.get("minItems", int("enum" in schema["items"]))
    return max(_SCALARS[kind], schema["minimum"]) if "minimum" in schema else _SCALARS[kind]


def filled(schema: dict[str, Any], text: str, root: dict[str, Any] | None = None) -> Any:
    """Return a value that a schema allows, with a text wherever one has to stand, and one item in every list."""
    root = schema if root is None else root
    if "$ref" in schema:
        at: Any = root
        for part in schema["$ref"].removeprefix("#/").split("/"):
            at = at[part]
        return filled(at, text, root)
    kind = schema.get("type", "object" if "properties" in schema else None)
    if kind == "object":
        return {name: filled(inside, text, root) for name, inside in schema.get("properties", {}).items()}
    if kind == "array":
        return [filled(schema["items"], text, root)]
    return text if kind == "string" and "enum" not in schema and "const" not in schema else instance(schema, root)

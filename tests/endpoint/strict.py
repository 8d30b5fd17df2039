"""What a strict JSON schema may hold, and the error where it holds something else.

https://platform.openai.com/docs/guides/structured-outputs#supported-schemas
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

ALLOWED = frozenset(
    [
        "type",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "enum",
        "const",
        "anyOf",
        "$ref",
        "$defs",
        "definitions",
        "description",
        "title",
        "pattern",
        "format",
        "multipleOf",
        "maximum",
        "exclusiveMaximum",
        "minimum",
        "exclusiveMinimum",
        "minItems",
        "maxItems",
    ]
)
"""Everything else is refused: allOf, not, if, oneOf, default, uniqueItems, patternProperties, minLength ..."""
MAX_PROPERTIES = 5000
MAX_DEPTH = 10
MAX_ENUM = 1000
MAX_TEXT = 120_000

Path = tuple[str, ...]


def strict_error(schema: Any) -> str | None:
    """Return what is wrong with a schema for strict use, as the API says it; None where nothing is."""
    if not isinstance(schema, dict):
        return "schema must be a JSON Schema of 'type: \"object\"', got 'type: \"None\"'."
    if schema.get("type") != "object" or "anyOf" in schema:
        return f"schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{schema.get('type')}\"'."
    return next(_errors(schema, ()), None) or _sizes(schema)


def _errors(schema: Any, path: Path) -> Iterator[str]:
    where = f"In context={path!r}, "
    if not isinstance(schema, dict):
        yield f"{where}schema must be an object."
        return
    unknown = [name for name in schema if name not in ALLOWED]
    if unknown:
        yield f"{where}'{unknown[0]}' is not permitted."
    if "$ref" in schema and len(schema) > 1:
        others = {name for name in schema if name != "$ref"}
        yield f"{where}$ref cannot have keywords {others}."
    if not schema.keys() & {"type", "anyOf", "$ref", "enum", "const"}:
        yield f"{where}schema must have a 'type' key."
    if _is(schema, "object"):
        yield from _object_errors(schema, where)
    if _is(schema, "array") and "items" not in schema:
        yield f"{where}array schema missing items."
    for name, inside in _inner(schema):
        yield from _errors(inside, (*path, *name))


def _object_errors(schema: dict[str, Any], where: str) -> Iterator[str]:
    if schema.get("additionalProperties") is not False:
        yield f"{where}'additionalProperties' is required to be supplied and to be false."
    properties, required = schema.get("properties", {}), schema.get("required")
    rule = "'required' is required to be supplied and to be an array including every key in properties."
    if not isinstance(required, list):
        if properties:
            yield f"{where}{rule}"
        return
    missing = [name for name in properties if name not in required]
    extra = [name for name in required if name not in properties]
    if missing:
        yield f"{where}{rule} Missing '{missing[0]}'."
    if extra:
        yield f"{where}{rule} Extra required key '{extra[0]}' supplied."


def _is(schema: dict[str, Any], kind: str) -> bool:
    kinds = schema.get("type")
    return kinds == kind or (isinstance(kinds, list) and kind in kinds)


def _inner(schema: dict[str, Any]) -> Iterator[tuple[Path, Any]]:
    for group in ("properties", "$defs", "definitions"):
        yield from (((group, name), inside) for name, inside in schema.get(group, {}).items())
    if "items" in schema:
        yield ("items",), schema["items"]
    yield from (((f"anyOf[{index}]",), inside) for index, inside in enumerate(schema.get("anyOf", ())))


def _sizes(schema: dict[str, Any]) -> str | None:
    properties, text, choices, depth = _measure(schema, 1)
    for what, number, most in (
        ("properties", properties, MAX_PROPERTIES),
        ("levels of nesting", depth, MAX_DEPTH),
        ("enum values", choices, MAX_ENUM),
        ("characters of names and values", text, MAX_TEXT),
    ):
        if number > most:
            return f"Invalid schema: {number} {what}, expected no more than {most}."
    return None


def _measure(schema: dict[str, Any], depth: int) -> tuple[int, int, int, int]:
    values = [str(value) for value in (*schema.get("enum", ()), *([schema["const"]] if "const" in schema else ()))]
    names = [name for group in ("properties", "$defs", "definitions") for name in schema.get(group, {})]
    properties, choices = len(schema.get("properties", {})), len(schema.get("enum", ()))
    text, deepest = sum(map(len, [*values, *names])), depth
    for path, inside in _inner(schema):
        more = _measure(inside, depth + (path[0] in ("properties", "items")))
        properties, text, choices = properties + more[0], text + more[1], choices + more[2]
        deepest = max(deepest, more[3])
    return properties, text, choices, deepest

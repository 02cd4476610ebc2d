"""Does a JSON Schema let a JSON value through? The definition, keyword by keyword, for constants and for foreign
schemas.

Schemas that come from types have a decoder; this is for the values inside a schema (`enum`, `const`) and for
schemas that came from elsewhere. It follows 2020-12 with formats checked, and reads nothing but the document it
is given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from edgeagent.shape import formats, pattern
from edgeagent.shape.decode import fits, is_multiple, matches, same_json
from edgeagent.shape.pointer import Document


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_TYPES: dict[str, Callable[[Any], bool]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: _is_number(value) and value == int(value),
    "number": _is_number,
    "string": lambda value: isinstance(value, str),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}


def admits(schema: Any, value: Any, document: Document) -> bool:
    """Return whether the schema lets the value through; references are looked up in the document.

    A schema that asks itself about the same value (`{"not": {"$ref": "#"}}`) has no answer: nothing gets through.
    """
    try:
        return _admits(schema, value, document)
    except RecursionError:
        return False


def _admits(schema: Any, value: Any, document: Document) -> bool:
    if isinstance(schema, bool):
        return schema
    if "$ref" in schema and not _admits(document.at(schema["$ref"]), value, document):
        return False
    return _of_any_type(schema, value, document) and _of_its_type(schema, value, document)


def _of_any_type(schema: Mapping[str, Any], value: Any, document: Document) -> bool:
    types = schema.get("type")
    names = [types] if isinstance(types, str) else types or list(_TYPES)
    if not any(_TYPES[name](value) for name in names):
        return False
    if "const" in schema and not same_json(schema["const"], value):
        return False
    if "enum" in schema and not any(same_json(option, value) for option in schema["enum"]):
        return False

    def fits_schema(option: Any) -> bool:
        return _admits(option, value, document)

    if not all(map(fits_schema, schema.get("allOf", ()))):
        return False
    if "anyOf" in schema and not any(map(fits_schema, schema["anyOf"])):
        return False
    if "oneOf" in schema and sum(map(fits_schema, schema["oneOf"])) != 1:
        return False
    if "not" in schema and fits_schema(schema["not"]):
        return False
    if "if" in schema:
        return fits_schema(schema.get("then" if fits_schema(schema["if"]) else "else", True))
    return True


def _of_its_type(schema: Mapping[str, Any], value: Any, document: Document) -> bool:
    if _is_number(value):
        return _number(schema, value)
    if isinstance(value, str):
        return _string(schema, value)
    if isinstance(value, list):
        return _array(schema, value, document)
    if isinstance(value, dict):
        return _object(schema, value, document)
    return True


def _number(schema: Mapping[str, Any], value: float) -> bool:
    return (
        ("minimum" not in schema or value >= schema["minimum"])
        and ("maximum" not in schema or value <= schema["maximum"])
        and ("exclusiveMinimum" not in schema or value > schema["exclusiveMinimum"])
        and ("exclusiveMaximum" not in schema or value < schema["exclusiveMaximum"])
        and ("multipleOf" not in schema or is_multiple(value, schema["multipleOf"]))
    )


def _string(schema: Mapping[str, Any], value: str) -> bool:
    if not _counted(schema, len(value), "Length"):
        return False
    if "pattern" in schema:
        try:
            if not matches(schema["pattern"], value):
                return False
        except pattern.PatternError:
            return False  # Not readable: fail closed.
    known = formats.PATTERNS.get(schema.get("format", ""))
    return known is None or fits(known, value)


def _array(schema: Mapping[str, Any], value: list[Any], document: Document) -> bool:
    if not _counted(schema, len(value), "Items"):
        return False
    if schema.get("uniqueItems") and any(same_json(a, b) for i, a in enumerate(value) for b in value[:i]):
        return False
    places = schema.get("prefixItems", ())
    rest = schema.get("items", True)
    for index, item in enumerate(value):
        if not _admits(places[index] if index < len(places) else rest, item, document):
            return False
    if "contains" in schema:
        count = sum(_admits(schema["contains"], item, document) for item in value)
        return bool(schema.get("minContains", 1) <= count <= schema.get("maxContains", count))
    return True


def _object(schema: Mapping[str, Any], value: dict[str, Any], document: Document) -> bool:
    if not _counted(schema, len(value), "Properties") or any(key not in value for key in schema.get("required", ())):
        return False
    for key, needed in schema.get("dependentRequired", {}).items():
        if key in value and any(other not in value for other in needed):
            return False
    names = schema.get("propertyNames", True)
    return all(
        _admits(names, key, document) and all(_admits(part, item, document) for part in member_schemas(schema, key))
        for key, item in value.items()
    )


def member_schemas(schema: Mapping[str, Any], key: str) -> list[Any]:
    """Return every schema that the member of that key must fit."""
    parts = [schema["properties"][key]] if key in schema.get("properties", {}) else []
    parts += [part for searched, part in schema.get("patternProperties", {}).items() if matches(searched, key)]
    return parts or [schema.get("additionalProperties", True)]


def _counted(schema: Mapping[str, Any], count: int, what: str) -> bool:
    return bool(schema.get(f"min{what}", 0) <= count <= schema.get(f"max{what}", count))

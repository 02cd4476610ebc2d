"""Comparisons of arguments, held against the tools' schemas when rules are loaded: what can never apply is refused.

A comparison applies to a tool if its path leads to a value of the tool's arguments, by their JSON names, and that value
may be of the kind that is compared. It must apply to one of the tools that its place in the formula speaks of.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from edgeagent.core.agent import Tool
from edgeagent.errors import ConfigError, GrammarError
from edgeagent.policy.formula import (
    And,
    Argument,
    AtLeast,
    Formula,
    Happened,
    Historically,
    Implies,
    Once,
    Previously,
    Since,
)
from edgeagent.shape.admits import admits
from edgeagent.shape.pointer import Document

_ANYTHING: Mapping[str, Any] = {}

_NAMES = {"string": "text", "integer": "a number", "number": "a number", "array": "a list", "object": "a record"}
_NAMES |= {"boolean": "a truth value", "null": "null"}


def check_comparisons(where: str, formula: Formula, tools: Sequence[Tool]) -> None:
    """Raise ConfigError for a comparison that applies to none of the tools it is about, saying what there is."""
    for argument, about in _comparisons(formula, tuple(tools), tuple(tools)):
        problems = [_why_never(argument, tool) for tool in about]
        if problems and all(problems):
            why = "; ".join(dict.fromkeys(problems))
            raise ConfigError(f"{where} can never apply, {argument!r}: {why}")


def _comparisons(
    formula: Formula, about: tuple[Tool, ...], every: tuple[Tool, ...]
) -> Iterator[tuple[Argument, tuple[Tool, ...]]]:
    """Yield each comparison with the tools that its position may be about."""
    match formula:
        case Argument():
            yield formula, about
        case And(left=left, right=right):
            both = _named(left, _named(right, about))
            yield from _comparisons(left, both, every)
            yield from _comparisons(right, both, every)
        case Implies(left=left, right=right):
            yield from _comparisons(left, about, every)
            yield from _comparisons(right, _named(left, about), every)
        case Previously() | Once() | Historically() | AtLeast() | Since():
            for each in formula.children():
                yield from _comparisons(each, every, every)  # Another position, about whichever call.
        case _:
            for each in formula.children():
                yield from _comparisons(each, about, every)


def _named(formula: Formula, about: tuple[Tool, ...]) -> tuple[Tool, ...]:
    """Return those of the tools that the formula, where it holds, lets the position be about."""
    match formula:
        case Happened(tools=names) if names:
            return tuple(tool for tool in about if tool.name in names)
        case And(left=left, right=right):
            return _named(left, _named(right, about))
        case _:
            return about


def _why_never(argument: Argument, tool: Tool) -> str:
    """Return why the comparison never applies to the tool's arguments; '' if it may."""
    document = Document(tool.parameters.schema)
    found, path = [document.root], ""
    for name in argument.name.split("."):
        options = list(_options(found, document))
        below = [schema for option in options for schema in _members(option, name)]
        if not below:
            return _nothing_there(tool.name, path, name, options)
        found, path = below, f"{path}.{name}" if path else name
    return _why_no_such_value(f"{tool.name}.{path}", argument, list(_options(found, document)), document)


def _options(schemas: Sequence[Any], document: Document, depth: int = 0) -> Iterator[Mapping[str, Any]]:
    """Yield the schemas that a value may follow, references and alternatives resolved."""
    for schema in schemas:
        if not isinstance(schema, Mapping) or depth > 16:
            yield from [_ANYTHING] if schema is not False else []
            continue
        inner = [*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ())]
        if "$ref" in schema:
            try:
                inner.append(document.at(schema["$ref"]))
            except GrammarError:
                inner.append(True)  # Whoever compiles the schema says what is wrong with it.
        if not inner or schema.keys() & {"type", "properties", "enum", "const"}:
            yield schema
        yield from _options(inner, document, depth + 1)


def _members(schema: Mapping[str, Any], name: str) -> Iterator[Any]:
    properties = schema.get("properties", {})
    more = schema.get("additionalProperties", True)
    if name in properties:
        yield properties[name]
    elif "object" not in _types(schema) or more is False:
        return
    elif isinstance(more, Mapping):
        yield more
    elif not properties or "patternProperties" in schema:
        yield True


def _types(schema: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the types of JSON that the schema lets through."""
    constants = [schema["const"]] if "const" in schema else schema.get("enum")
    if constants is not None:
        return tuple(t for t in _NAMES if any(admits({"type": t}, each, Document({})) for each in constants))
    types = schema.get("type", ("object",) if "properties" in schema else tuple(_NAMES))
    return (types,) if isinstance(types, str) else tuple(types)


def _nothing_there(tool: str, path: str, name: str, options: Sequence[Mapping[str, Any]]) -> str:
    where = f"{tool}.{path}" if path else tool
    names = sorted({key for option in options for key in option.get("properties", {})})
    if names:
        return f"{where} has no {name}; it has: {', '.join(names)}"
    if any("array" in _types(option) for option in options):
        return f"{where} is a list, and a rule does not look into lists"
    kinds = dict.fromkeys(_NAMES[t] for option in options for t in _types(option))
    return f"{where} is {' or '.join(kinds)} and has no {name}" if path else f"{where} takes no arguments"


_COMPARED: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("<", "<=", ">", ">="), ("integer", "number")),
    "matches": ("string",),
    "from_user": ("string", "integer", "number", "array", "object"),
    "present": tuple(_NAMES),
}


def _why_no_such_value(where: str, argument: Argument, options: Sequence[Mapping[str, Any]], document: Document) -> str:
    if argument.comparison in ("==", "among"):
        values = argument.value if argument.comparison == "among" else (argument.value,)
        wrong = [v for v in values if not any(admits(option, v, document) for option in options)]
        return f"{where} is never {wrong[0]!r}; {_what_it_is(options)}" if wrong else ""
    types = {t for option in options for t in _types(option)}
    if types & set(_COMPARED[argument.comparison]):
        may_be = any(_may_be(argument, option) for option in options)
        return "" if may_be else f"{where} is never {argument!r}; {_what_it_is(options)}{_bounds(options)}"
    if argument.comparison in ("<", "<=", ">", ">=") and "string" in types:
        why = "as a Decimal, a date and a duration are: declare it int or float, or compare its text"
        return f"{where}: {_what_it_is(options)}, {why}"
    return f"{where}: {_what_it_is(options)}"


_ORDERS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def _may_be(argument: Argument, schema: Mapping[str, Any]) -> bool:
    """Whether some value that the schema names, or lets its bounds hold, compares so; unknown counts as yes."""
    if not set(_types(schema)) & set(_COMPARED[argument.comparison]):
        return False
    constants = [schema["const"]] if "const" in schema else schema.get("enum")
    order = _ORDERS.get(argument.comparison)
    if constants is not None and argument.comparison == "matches":
        return any(isinstance(each, str) and re.fullmatch(argument.value, each) for each in constants)
    if order is None:
        return True
    if constants is not None:
        return any(isinstance(each, int | float) and order(each, argument.value) for each in constants)
    end = "Maximum" if argument.comparison in (">", ">=") else "Minimum"
    is_open = f"exclusive{end}" in schema
    bound = schema.get(f"exclusive{end}", schema.get(end.lower()))
    if not isinstance(bound, int | float) or isinstance(bound, bool):
        return True
    return bool(order(bound, argument.value)) and not (is_open and bound == argument.value)


def _bounds(options: Sequence[Mapping[str, Any]]) -> str:
    names = {"minimum": "at least", "exclusiveMinimum": "above", "maximum": "at most", "exclusiveMaximum": "below"}
    found = [f"{word} {option[name]}" for option in options for name, word in names.items() if name in option]
    return f", {' and '.join(found)}" if found else ""


def _what_it_is(options: Sequence[Mapping[str, Any]]) -> str:
    return f"it is written as {' or '.join(dict.fromkeys(map(_kind, options)))}"


def _kind(schema: Mapping[str, Any]) -> str:
    constants = [schema["const"]] if "const" in schema else schema.get("enum")
    if constants is not None:
        return "one of " + ", ".join(map(repr, constants))
    return " or ".join(dict.fromkeys(_NAMES[t] for t in _types(schema)))

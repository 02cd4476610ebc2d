"""Arguments in Gemma's notation, `{key:value}` with strings between marks, as rules for llguidance. Text in, text out.

    {to:<escape>Bob<escape>,times:3,when:{urgent:true},also:[1,null]}

From the same lowered schemas as JSON. There are no escapes in it, so a string is whatever holds no `<`; a key is bare,
so it must be free of the notation's own characters. Numbers are llguidance's work (`%json`) here, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import orjson

from edgeagent.errors import GrammarError
from edgeagent.grammar.decimals import with_short_decimals
from edgeagent.grammar.frame import Schema
from edgeagent.grammar.gbnf_text import spelled

_KEY = re.compile(r"[^:{}\[\],<>\s](?:[^:{}\[\],<>\n]*[^:{}\[\],<>\s])?\Z")
_FREE_KEY = r"/[^:{}\[\],<>\s]{1,64}/"
_NO_MARK = r"/[^<]*/"


def marked_rules(name: str, schema: Schema, mark: str) -> list[str]:
    """Return the rules of which the one called `name` is a value of the schema; `mark` is what a string stands between,
    as it is written in the grammar. Raises GrammarError for what the notation cannot say.
    """
    rules = _Marked(name, schema, mark)
    body = rules.value(schema)
    return [f"{name}: {body}", *rules.lines]


class _Marked:
    def __init__(self, prefix: str, root: Schema, mark: str) -> None:
        self.lines: list[str] = []
        self._prefix, self._root, self._mark = prefix, root, mark
        self._definitions: dict[str, str] = {}
        self._any = ""

    def value(self, schema: Any) -> str:
        """Return what may stand for a value, as an expression; rules it needs are added to `lines`."""
        if not schema:
            return self._anything()
        if "$ref" in schema:
            return self._definition(schema["$ref"])
        if "anyOf" in schema:
            return _either([self.value(each) for each in schema["anyOf"]])
        if "enum" in schema:
            return _either([self._constant(each) for each in schema["enum"]])
        writers: dict[str, Callable[[Schema], str]] = {
            "null": lambda _: '"null"',
            "boolean": lambda _: '("true" | "false")',
            "integer": self._number,
            "number": self._number,
            "string": self._string,
            "array": self._array,
            "object": self._object,
        }
        return writers[schema["type"]](schema)

    def _new(self, body: str, kind: str = "") -> str:
        # Names in capitals are lexemes: regular expressions belong there.
        name = f"{kind}_{self._prefix}_{len(self.lines)}".upper() if kind else f"{self._prefix}_{len(self.lines)}"
        self.lines.append(f"{name}: {body}")
        return name

    def _number(self, schema: Schema) -> str:
        return self._new(f"%json {orjson.dumps(with_short_decimals(schema)).decode()}")

    def _string(self, schema: Schema) -> str:
        least, most = schema.get("minLength", 0), schema.get("maxLength", "")
        body = f"/[^<]{{{least},{most}}}/"
        if "pattern" in schema:
            pattern = schema["pattern"].removeprefix("^").removesuffix("$").replace("/", "\\/")
            body = f"/{pattern}/ & {body if least or most != '' else _NO_MARK}"
        return f"({self._mark} {self._new(body, 'text')} {self._mark})"

    def _constant(self, value: Any) -> str:
        if isinstance(value, str):
            if "<" in value:
                raise GrammarError(f"{value!r} holds a '<', which this notation keeps for its marks")
            return f"({self._mark} {_literal(value)} {self._mark})" if value else f"({self._mark} {self._mark})"
        if isinstance(value, list):
            items = ' "," '.join(map(self._constant, value))
            return f'("[" {items} "]")' if value else '"[]"'
        if isinstance(value, dict):
            members = ' "," '.join(f"{_key(key)} {self._constant(each)}" for key, each in value.items())
            return f'("{{" {members} "}}")' if value else '"{}"'
        return _literal(spelled(value))

    def _array(self, schema: Schema) -> str:
        first = [self.value(each) for each in schema.get("prefixItems", ())]
        least, most = schema.get("minItems", 0), schema.get("maxItems")
        if first:
            if least != len(first) or (most != len(first) and schema.get("items") is not False):
                raise GrammarError("a list with a type for each place must be of that length in this notation")
            items = ' "," '.join(first)
            return f'("[" {items} "]")'
        if most == 0 or schema.get("items") is False:
            return '"[]"'
        item = self._new(self.value(schema["items"]))
        more = _times(f'("," {item})', max(0, least - 1), None if most is None else most - 1)
        some = f"({item} {more})"
        return f'("[" {some if least else f"{some}?"} "]")'

    def _object(self, schema: Schema) -> str:
        properties: Schema = schema.get("properties", {})
        others = schema.get("additionalProperties", True)
        patterns: Schema = schema.get("patternProperties", {})
        if patterns or (not properties and others is not False):
            return self._map(schema, patterns, others)
        if others is not False:
            raise GrammarError("declared and free keys in one object cannot be written in this notation")
        return self._members(properties, schema.get("required", ()))

    def _members(self, properties: Schema, required: Sequence[str]) -> str:
        """One rule a member for 'nothing stands before it' and for 'something does', from the last to the first."""
        nothing_yet, something = '""', '""'
        for key in reversed(list(properties)):
            member = self._new(f"{_key(key)} {self.value(properties[key])}")
            if key in required:
                nothing_yet = f"{member} {something}"
                something = f'"," {member} {something}'
            else:
                nothing_yet = _either([f"{member} {something}", nothing_yet])
                something = f'("," {member})? {something}'
            nothing_yet, something = self._new(nothing_yet), self._new(something)
        return f'("{{" {nothing_yet} "}}")'

    def _map(self, schema: Schema, patterns: Schema, others: Any) -> str:
        least, most = schema.get("minProperties", 0), schema.get("maxProperties")
        key, value = _FREE_KEY, others
        for pattern, inner in patterns.items():
            bare = pattern.removeprefix("^").removesuffix("$").replace("/", "\\/")
            key, value = f"/{bare}/ & {_FREE_KEY}", inner
        if most == 0:
            return '"{}"'
        member = self._new(f'{self._new(key, "key")} ":" {self.value({} if value is True else value)}')
        more = _times(f'("," {member})', max(0, least - 1), None if most is None else most - 1)
        some = f"({member} {more})"
        return f'("{{" {some if least else f"{some}?"} "}}")'

    def _definition(self, reference: str) -> str:
        name = reference.removeprefix("#/$defs/")
        if name not in self._definitions:
            self._definitions[name] = rule = f"{self._prefix}_def_{len(self._definitions)}"
            self.lines.append(f"{rule}: {self.value(self._root['$defs'][name])}")
        return self._definitions[name]

    def _anything(self) -> str:
        if not self._any:
            self._any = f"{self._prefix}_any"
            scalar = f'({self._string({})} | {self._number({"type": "number"})} | "true" | "false" | "null")'
            key = self._new(_FREE_KEY, "key")
            array = f'"[" ({self._any} ("," {self._any})*)? "]"'
            members = f'"{{" ({key} ":" {self._any} ("," {key} ":" {self._any})*)? "}}"'
            self.lines.append(f"{self._any}: {scalar} | {array} | {members}")
        return self._any


def _either(options: Sequence[str]) -> str:
    return options[0] if len(options) == 1 else f"({' | '.join(options)})"


def _times(item: str, least: int, most: int | None) -> str:
    return f"{item}*" if most is None and not least else f"{item}{{{least},{'' if most is None else most}}}"


def _key(key: str) -> str:
    if not _KEY.match(key):
        raise GrammarError(f"the key {key!r} cannot be written bare: this notation keeps : {{ }} [ ] , < > for itself")
    return f"{_literal(key)} {_literal(':')}"


def _literal(text: str) -> str:
    return orjson.dumps(text).decode()

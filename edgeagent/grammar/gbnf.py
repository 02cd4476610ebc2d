"""Which text may a model write? A grammar for llama.cpp's own parser, from lowered schemas. Text in, text out.

The fallback where llguidance cannot be had, held to the same accepted texts. What llama.cpp's grammars cannot say
(multiples in a large range, long lengths beside a pattern) goes into the caller's list of relaxations, or is a
`GrammarError` if the caller gives none. Laws of that parser, learnt the hard way: rule names are letters, digits and
`-`; a repeat above 2,000 is refused; a grammar that does not parse is NULL, and the next sample a crash.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from edgeagent.errors import GrammarError
from edgeagent.grammar.frame import Answer, Call, Frame, Schema, checked
from edgeagent.grammar.gbnf_numbers import integer, number
from edgeagent.grammar.gbnf_rules import REPEAT_MAX, RuleBook
from edgeagent.grammar.gbnf_strings import characters, content
from edgeagent.grammar.gbnf_text import escaped, literal, one_of, spelled_key
from edgeagent.shape import pattern
from edgeagent.shape.lower import Relaxation


def gbnf(
    schema: Schema,
    *,
    root: str = "root",
    item_separator: str = ", ",
    key_separator: str = ": ",
    where: str = "",
    relaxed: list[Relaxation] | None = None,
) -> str:
    """Return the grammar of one JSON value of a lowered schema, its first rule named `root`.

    What cannot be said exactly is appended to `relaxed`; without that list it is a `GrammarError` naming the field.
    """
    rules = _Rules(schema, item_separator, key_separator, where, relaxed)
    return rules.text(root, rules.value(schema, ""))


def gbnf_calls(
    calls: Sequence[Call], frame: Frame, *, answer: Answer = "never", relaxed: list[Relaxation] | None = None
) -> str:
    """Return the grammar of one call to any of `calls`, or of an answer in words, or of either."""
    if answer in ("only", "line") or (answer == "allowed" and not calls):
        return f"root ::= {_words(frame.before, one_line=answer == 'line')}\n"
    if not calls:
        raise GrammarError("no tool is admissible and no answer is allowed: there is nothing the model may write")
    rules = _Rules({}, frame.item_separator, frame.key_separator, "", relaxed)
    options = []
    for name, schema in calls:
        rules.begin(schema, name)
        arguments = rules.named("args", rules.value(schema, ""))
        options.append(f"{literal(checked(name) + frame.between)} {arguments} {literal(frame.after)}".strip())
    call = rules.named("call", " | ".join(options))
    return rules.text("root", _framed(rules, call, frame, answer))


def _framed(rules: _Rules, call: str, frame: Frame, answer: Answer) -> str:
    before, trigger = frame.before, frame.trigger
    if answer == "never":
        return f"{literal(before)} {call}".strip()
    if trigger:
        rest = before.removeprefix(trigger)
        return rules.text_until(trigger, f"{literal(rest)} {call}".strip())
    return f"{literal(before)} {call} | {_words(before)}"


def _words(before: str, *, one_line: bool = False) -> str:
    """Words that do not begin like a call; white space in front would hide that one follows."""
    first = before.lstrip()[:1]
    begin = pattern.complement(pattern.union([(9, 13), (32, 32), *((ord(char), ord(char)) for char in first)]))
    rest = pattern.complement(((10, 10),) if one_line else ())
    return f"{one_of(begin)} {one_of(rest)}*"


class _Rules(RuleBook):
    """The rules of values: each method returns what may be written, and adds the rules it needs."""

    # --- values ----------------------------------------------------------------------------------------------------

    def value(self, schema: Any, path: str) -> str:
        """Return what one value of the schema is made of, as one alternative or a rule's name."""
        if "$ref" in schema:
            return self._reference(schema["$ref"])
        if "anyOf" in schema:
            return self.named(path, " | ".join(self.value(option, path) for option in schema["anyOf"]))
        if "enum" in schema:
            return self.constants(schema["enum"], path)
        match schema.get("type"):
            case None:
                return self._anything()
            case "null":
                return '"null"'
            case "boolean":
                return self.named("boolean", '"true" | "false"')
            case "integer":
                return integer(self, schema, path)
            case "number":
                return number(self, schema, path)
            case "string":
                return self.named(
                    path or "string", f"{literal(chr(34))} {content(self, schema, path)} {literal(chr(34))}"
                )
            case "array":
                return self._array(schema, path)
            case "object":
                return self._object(schema, path)
        raise GrammarError(f"{path}: {schema!r} is no lowered schema")

    def _reference(self, reference: str) -> str:
        name = reference.removeprefix("#/$defs/")
        if name not in self._references:
            self._references[name] = rule = self.new(name)
            body = self.value(self._definitions[name], name)
            self.bodies[rule] = body
        return self._references[name]

    def _anything(self) -> str:
        """Any JSON value, with our separators; one set of rules however often it is asked for."""
        if "any" in self.bodies:
            return "any"
        self.bodies["any"] = ""  # Holds the name while the parts refer to it.
        text = self.value({"type": "string"}, "string")
        number = self.value({"type": "number"}, "number")
        pair = self.named("pair", f"{text} {literal(self.key_separator)} any")
        some = f"({literal(self.item_separator)} {{}})*"
        members = f'"{{" ({pair} {some.format(pair)})? "}}"'
        items = f'"[" (any {some.format("any")})? "]"'
        self.bodies["any"] = f'{members} | {items} | {text} | {number} | "true" | "false" | "null"'
        return "any"

    # --- arrays ----------------------------------------------------------------------------------------------------

    def _array(self, schema: Any, path: str) -> str:
        places = [self.value(part, f"{path}[{index}]") for index, part in enumerate(schema.get("prefixItems", ()))]
        least, most = schema.get("minItems", 0), schema.get("maxItems")
        rest = "" if schema["items"] is False else self.value(schema["items"], f"{path}[]")
        between = literal(self.item_separator)
        tail = self._tail(rest, between, max(0, least - len(places)), None if most is None else most - len(places))
        for index in range(len(places) - 1, 0, -1):
            tail = f"{between} {places[index]} {tail}".strip()
            if index >= least:
                tail = f"({tail})?"
        if places:
            body = f"{places[0]} {tail}".strip()
        else:
            body = self._several(rest, between, max(1, least), most) if rest else ""
        if least == 0 and body:
            body = f"({body})?"
        return self.named(path or "array", f'"[" {body} "]"' if body else '"[]"')

    def _several(self, item: str, between: str, least: int, most: int | None) -> str:
        """One item or more, with separators; nothing if there may be none."""
        if most == 0:
            return ""
        more = self._tail(item, between, least - 1, None if most is None else most - 1)
        return f"{item} {more}".strip()

    def _tail(self, item: str, between: str, least: int, most: int | None) -> str:
        if not item or most == 0:
            return ""
        next_item = f"{between} {item}".strip()
        return self.repeat(
            f"({next_item})" if (most or least) <= REPEAT_MAX else self.named("next", next_item), least, most
        )

    # --- objects ---------------------------------------------------------------------------------------------------

    def _object(self, schema: Any, path: str) -> str:
        between = literal(self.item_separator)
        read = self._members if "properties" in schema else self._map
        body = read(schema, path, between)
        return self.named(path or "object", f'"{{" {body} "}}"' if body else '"{}"')

    def _map(self, schema: Any, path: str, between: str) -> str:
        if "patternProperties" in schema:
            ((searched, part),) = schema["patternProperties"].items()
            key = self.value({"type": "string", "pattern": searched}, f"{path}.key")
        else:
            key, part = self.value({"type": "string"}, "key"), schema["additionalProperties"]
        pair = self.named(f"{path}.pair", f"{key} {literal(self.key_separator)} {self.value(part, f'{path}.*')}")
        least, most = schema.get("minProperties", 0), schema.get("maxProperties")
        body = self._several(pair, between, max(1, least), most)
        return f"({body})?" if least == 0 and body else body

    def _members(self, schema: Any, path: str, between: str) -> str:
        """Members in their order; each optional one may be absent, and others may follow where that is allowed."""
        required = schema["required"]
        members = [
            (self._member(key, part, f"{path}.{key}" if path else key), key in required)
            for key, part in schema["properties"].items()
            if part is not False
        ]
        others = self._others(schema, path)
        more = f"({between} {others})*" if others else ""
        # From the back: what may follow a member, and what the object may begin with.
        begin = f"({others} {more})?".replace("( ", "(") if others else ""
        for member, needed in reversed(members):
            first = f"{member} {more}".strip()
            if needed:
                begin, more = first, f"{between} {member} {more}".strip()
                continue
            begin = self.named(f"{path}.begin", f"{first} | {begin}") if begin else f"({first})?"
            more = f"({between} {member})? {more}".strip()
            if len(more) > 200:  # A rule of its own, so that the text stays linear in the number of members.
                more = self.named(f"{path}.more", more)
        return begin

    def _member(self, key: str, part: Any, path: str) -> str:
        return self.named(path, f"{literal(spelled_key(key) + self.key_separator)} {self.value(part, path)}")

    def _others(self, schema: Any, path: str) -> str:
        if schema["additionalProperties"] is False:
            return ""
        key = self._other_key([*schema["properties"]], path)
        value = self.value(schema["additionalProperties"], f"{path}.*")
        return self.named(f"{path}.pair", f"{key} {literal(self.key_separator)} {value}")

    def _other_key(self, keys: Sequence[str], path: str) -> str:
        """A key that is none of the declared ones, spelt out as the tree of what they begin with."""
        inside = self._other_rest(frozenset(keys), path)
        return self.named(f"{path}.key", f"{literal(chr(34))} {inside}")

    def _other_rest(self, rests: frozenset[str], path: str) -> str:
        quote = literal('"')
        following: dict[str, set[str]] = {}
        for rest in rests:
            if rest:
                following.setdefault(rest[0], set()).add(rest[1:])
        free = pattern.complement(pattern.union((ord(char), ord(char)) for char in following))
        options = [] if "" in rests else [quote]
        options.append(f"{characters(self, free)} {characters(self, pattern.ANY_CHAR.ranges)}* {quote}")
        for char, tails in sorted(following.items()):
            options.append(f"{literal(escaped(ord(char), key=True))} {self._other_rest(frozenset(tails), path)}")
        return self.named(f"{path}.other", " | ".join(options))

    # --- free text -------------------------------------------------------------------------------------------------

    def text_until(self, trigger: str, then: str) -> str:
        """Free text that may end anywhere, or go on with `then` once the trigger has been written."""
        names = [self.new("text") for _ in trigger]
        for reached, name in enumerate(names):
            steps: dict[int, list[str]] = {}
            for char in sorted(set(trigger)):
                steps.setdefault(_reached(trigger, trigger[:reached] + char), []).append(char)
            known = pattern.union((ord(char), ord(char)) for char in set(trigger))
            options = [f"{one_of(pattern.complement(known))} {names[0]}", '""']
            for count, chars in sorted(steps.items()):
                following = then if count == len(trigger) else names[count]
                options.append(f"{one_of(pattern.union((ord(c), ord(c)) for c in chars))} {following}")
            self.bodies[name] = " | ".join(options)
        return names[0]


def _reached(trigger: str, text: str) -> int:
    """Return how much of the trigger's begin the text ends with."""
    return max(count for count in range(len(trigger) + 1) if text.endswith(trigger[:count]))

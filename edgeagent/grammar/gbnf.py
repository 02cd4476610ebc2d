"""Which text may a model write? A grammar for llama.cpp's own parser, from lowered schemas. Text in, text out.

The fallback where llguidance cannot be had, held to the same accepted texts. What llama.cpp's grammars cannot say
(multiples in a large range, long lengths beside a pattern) goes into the caller's list of relaxations, or is a
`GrammarError` if the caller gives none. Laws of that parser, learnt the hard way: rule names are letters, digits and
`-`; a repeat above 2,000 is refused; a grammar that does not parse is NULL, and the next sample a crash.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import ROUND_FLOOR, Decimal
from typing import Any, Literal, assert_never

from msgspec import Struct

from edgeagent.errors import GrammarError
from edgeagent.shape import pattern
from edgeagent.shape.lower import Relaxation
from edgeagent.shape.pattern_lengths import lengths, possible_lengths
from edgeagent.shape.pattern_steps import steps

Schema = Mapping[str, Any]
Call = tuple[str, Schema]
Answer = Literal["never", "allowed", "only", "line"]

# llama.cpp refuses a repeat above 2,000 and unrolls every other; longer ones are made of blocks of this size.
REPEAT_MAX = 1_000
# Digits of a number without bounds: more than a double distinguishes, few enough to end.
DIGITS_MAX = 20
# Significant digits of a number with bounds: that many always survive a double, so none rounds onto an open bound.
SIGNIFICANT_MAX = 15
# Multiples that are written out one by one; beyond it the decoder checks.
MULTIPLES_MAX = 1_024
# Rules that counting characters beside a pattern may take.
COUNTED_MAX = 1_000
# Constants up to that many stand side by side; more are written as the tree of what they begin with.
SIDE_BY_SIDE_MAX = 8

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]{0,127}\Z")
_SHORT = {8: "\\b", 9: "\\t", 10: "\\n", 12: "\\f", 13: "\\r", 34: '\\"', 92: "\\\\"}
# Characters that JSON text, as we write it, spells with an escape.
_ESCAPED = pattern.union([(0, 31), (34, 34), (92, 92), (127, 127)])
_RAW = pattern.complement(_ESCAPED)


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
    calls: Sequence[Call],
    *,
    before: str,
    between: str,
    after: str,
    answer: Answer = "never",
    item_separator: str = ", ",
    key_separator: str = ": ",
    trigger: str = "",
    root: str = "root",
    relaxed: list[Relaxation] | None = None,
) -> str:
    """Return the grammar of one call to any of `calls`, or of an answer in words, or of either.

    `trigger` is what ends free text and begins a call; without one a call begins with the text.
    """
    if answer in ("only", "line") or (answer == "allowed" and not calls):
        return f"{root} ::= {_words(before, one_line=answer == 'line')}\n"
    if not calls:
        raise GrammarError("no tool is admissible and no answer is allowed: there is nothing the model may write")
    rules = _Rules({}, item_separator, key_separator, "", relaxed)
    options = []
    for name, schema in calls:
        rules.begin(schema, name)
        arguments = rules.named("args", rules.value(schema, ""))
        options.append(f"{_literal(_checked(name) + between)} {arguments} {_literal(after)}".strip())
    call = rules.named("call", " | ".join(options))
    return rules.text(root, _framed(rules, call, before, trigger, answer))


def _framed(rules: _Rules, call: str, before: str, trigger: str, answer: Answer) -> str:
    if answer == "never":
        return f"{_literal(before)} {call}".strip()
    if trigger:
        rest = before.removeprefix(trigger)
        return rules.text_until(trigger, f"{_literal(rest)} {call}".strip())
    return f"{_literal(before)} {call} | {_words(before)}"


def _words(before: str, *, one_line: bool = False) -> str:
    """Words that do not begin like a call; white space in front would hide that one follows."""
    first = before.lstrip()[:1]
    begin = pattern.complement(pattern.union([(9, 13), (32, 32), *((ord(char), ord(char)) for char in first)]))
    rest = pattern.complement(((10, 10),) if one_line else ())
    return f"{_class(begin)} {_class(rest)}*"


def _checked(name: str) -> str:
    if not _NAME.match(name):
        raise GrammarError(
            f"tool {name!r}: a name that a model calls is a letter or '_' and then letters, digits, '_', '-' or '.'"
        )
    return name


# --- spelling ------------------------------------------------------------------------------------------------------


def _literal(text: str) -> str:
    """Return the text as a literal of a grammar; nothing for no text."""
    return '"' + "".join(_quoted(ord(char), '"\\') for char in text) + '"' if text else ""


def _class(ranges: pattern.Ranges) -> str:
    """Return a set of characters, negated where that is shorter."""
    gaps = pattern.complement(ranges)
    if not gaps:
        return r"[\x00-\U0010FFFF]"
    if ranges and ranges[-1][1] == pattern.UNICODE_LAST:
        return f"[^{_class_ranges(gaps)}]"
    return f"[{_class_ranges(ranges)}]"


def _class_ranges(ranges: pattern.Ranges) -> str:
    special = '[]\\^-"'
    return "".join(
        _quoted(low, special) if low == high else f"{_quoted(low, special)}-{_quoted(high, special)}"
        for low, high in ranges
    )


def _quoted(code: int, special: str) -> str:
    if code > 0xFFFF:
        return f"\\U{code:08X}"
    if code > 126:
        return f"\\u{code:04X}"
    if code < 32 or chr(code) in special:
        return f"\\x{code:02X}"
    return chr(code)


def escaped(code: int, *, key: bool = False) -> str:
    """Return one character as it stands inside a JSON string; keys hold DEL as it is, values escape it."""
    if code in _SHORT:
        return _SHORT[code]
    if code < 32 or (code == 127 and not key):
        return f"\\u{code:04x}"
    return chr(code)


def spelled(value: Any, item_separator: str = ", ", key_separator: str = ": ") -> str:
    """Return a constant as we write it: the one spelling that grammars of both engines hold."""
    if isinstance(value, str):
        return '"' + "".join(escaped(ord(char)) for char in value) + '"'
    if isinstance(value, list):
        return "[" + item_separator.join(spelled(item, item_separator, key_separator) for item in value) + "]"
    if isinstance(value, dict):
        members = (
            spelled_key(key) + key_separator + spelled(item, item_separator, key_separator)
            for key, item in value.items()
        )
        return "{" + item_separator.join(members) + "}"
    if isinstance(value, float):
        text = format(Decimal(repr(value)), "f")
        return text.rstrip("0").removesuffix(".") if "." in text else text
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return {None: "null", True: "true", False: "false"}[value]


def spelled_key(key: str) -> str:
    """Return the key of an object as we write it."""
    return '"' + "".join(escaped(ord(char), key=True) for char in key) + '"'


# --- numbers -------------------------------------------------------------------------------------------------------

Digits = str | None  # Digits after the point that a fraction is compared with; None compares with nothing.


def integers(low: int, high: int) -> list[str]:
    """Return the alternatives that spell exactly the integers from `low` to `high`, without leading zeros or -0."""
    options: list[str] = []
    if low < 0:
        negative = _naturals(max(1, -high), -low)
        options.append('"-" ' + _group(negative))
    if high >= 0:
        options.extend(_naturals(max(0, low), high))
    return options


def _naturals(low: int, high: int) -> list[str]:
    options: list[str] = []
    full: list[int] = []  # Lengths of which every number lies inside.
    for length in range(len(str(low)), len(str(high)) + 1):
        least, most = (0 if length == 1 else 10 ** (length - 1)), 10**length - 1
        if length > 1 and low <= least and most <= high:
            full.append(length)
        else:
            options.extend(_same_length(str(max(low, least)), str(min(high, most))))
    if full:
        options.append(f"[1-9] {_times('[0-9]', full[0] - 1, full[-1] - 1)}")
    return options


def _same_length(low: str, high: str) -> list[str]:
    """Alternatives for the numbers between two of the same number of digits."""
    if not low:
        return [""]
    if set(low) == {"0"} and set(high) == {"9"}:
        return [_times("[0-9]", len(low), len(low))]
    if low[0] == high[0]:
        return [f'"{low[0]}" {_group(_same_length(low[1:], high[1:]))}'.strip()]
    rest = len(low) - 1
    options = []
    first, last = int(low[0]), int(high[0])
    if set(low[1:]) - {"0"}:
        options.append(f'"{first}" {_group(_same_length(low[1:], "9" * rest))}')
        first += 1
    if set(high[1:]) - {"9"}:
        options.append(f'"{last}" {_group(_same_length("0" * rest, high[1:]))}')
        last -= 1
    if first <= last:
        digit = f"[{first}-{last}]" if first < last else f'"{first}"'
        options.append(f"{digit} {_times('[0-9]', rest, rest)}".strip())
    return options


def commonprefix(texts: Sequence[str]) -> str:
    """Return what all the texts begin with."""
    low, high = min(texts), max(texts)
    length = next((index for index, char in enumerate(low) if char != high[index]), len(low))
    return low[:length]


def _group(options: Sequence[str]) -> str:
    if len(options) == 1:
        return options[0]
    return "(" + " | ".join(options) + ")"


def _times(item: str, least: int, most: int | None) -> str:
    """Return a short repeat: nothing, the item, or the item with a count."""
    if most == 0:
        return ""
    if (least, most) == (1, 1):
        return item
    if (least, most) in ((0, 1), (0, None), (1, None)):
        return item + {(0, 1): "?", (0, None): "*", (1, None): "+"}[(least, most)]
    if least == most:
        return f"{item}{{{least}}}"
    return f"{item}{{{least},{'' if most is None else most}}}"


class _Edge(Struct, frozen=True):
    """One end of a range of positive decimals: its whole part, its digits after the point, and whether it is open."""

    whole: int
    digits: str
    is_open: bool


def _edge(number: Decimal, is_open: bool) -> _Edge:
    whole = int(number.to_integral_value(ROUND_FLOOR))
    fraction = format(number - whole, "f").partition(".")[2].rstrip("0")
    return _Edge(whole, fraction, is_open)


# --- rules ---------------------------------------------------------------------------------------------------------


class _Rules:
    """The rules of one grammar, each text once."""

    def __init__(
        self,
        schema: Schema,
        item_separator: str,
        key_separator: str,
        where: str,
        relaxed: list[Relaxation] | None,
    ) -> None:
        self.item_separator = item_separator
        self.key_separator = key_separator
        self.relaxed = relaxed
        self._bodies: dict[str, str] = {}
        self._known: dict[str, str] = {}
        self._count = 0
        self.begin(schema, where)

    def begin(self, schema: Schema, where: str) -> None:
        """Go on with another schema, which has definitions of its own."""
        self.where = where
        self._definitions = schema.get("$defs", {})
        self._references: dict[str, str] = {}

    def text(self, root: str, body: str) -> str:
        rules = "".join(f"{name} ::= {rule}\n" for name, rule in self._bodies.items())
        return f"{root} ::= {body}\n{rules}"

    def named(self, hint: str, body: str) -> str:
        """Return the name of a rule with that body; the same body is one rule."""
        if body not in self._known:
            self._known[body] = self._new(hint)
            self._bodies[self._known[body]] = body
        return self._known[body]

    def _new(self, hint: str) -> str:
        self._count += 1
        words = re.sub("[^A-Za-z0-9]+", "-", hint.split(".")[-1]).strip("-")[:32]
        return f"{words or 'part'}-{self._count}"

    def _place(self, path: str) -> str:
        parts = (f"tool {self.where}" if self.where else "", f"field {path}" if path else "")
        return ", ".join(part for part in parts if part) or "the schema"

    def relax(self, path: str, keyword: str, reason: str) -> None:
        if self.relaxed is None:
            raise GrammarError(f"{self._place(path)}: {keyword}: {reason}")
        note = Relaxation(path, keyword, reason)
        if note not in self.relaxed:
            self.relaxed.append(note)

    # --- values ----------------------------------------------------------------------------------------------------

    def value(self, schema: Any, path: str) -> str:
        """Return what one value of the schema is made of, as one alternative or a rule's name."""
        if "$ref" in schema:
            return self._reference(schema["$ref"])
        if "anyOf" in schema:
            return self.named(path, " | ".join(self.value(option, path) for option in schema["anyOf"]))
        if "enum" in schema:
            return self._constants(schema["enum"], path)
        match schema.get("type"):
            case None:
                return self._anything()
            case "null":
                return '"null"'
            case "boolean":
                return self.named("boolean", '"true" | "false"')
            case "integer":
                return self._integer(schema, path)
            case "number":
                return self._number(schema, path)
            case "string":
                return self.named(
                    path or "string", f"{_literal(chr(34))} {self._content(schema, path)} {_literal(chr(34))}"
                )
            case "array":
                return self._array(schema, path)
            case "object":
                return self._object(schema, path)
        raise GrammarError(f"{path}: {schema!r} is no lowered schema")

    def _reference(self, reference: str) -> str:
        name = reference.removeprefix("#/$defs/")
        if name not in self._references:
            self._references[name] = rule = self._new(name)
            body = self.value(self._definitions[name], name)
            self._bodies[rule] = body
        return self._references[name]

    def _constants(self, values: Sequence[Any], path: str) -> str:
        return self._words([spelled(value, self.item_separator, self.key_separator) for value in values], path)

    def _words(self, texts: Sequence[str], path: str) -> str:
        """One of the texts; many as a tree, for every alternative that begins alike costs time at every token."""
        if len(texts) == 1:
            return _literal(texts[0]) or '""'
        begin = commonprefix(texts)
        if begin:
            return f"{_literal(begin)} {self._words([text[len(begin) :] for text in texts], path)}"
        if len(texts) <= SIDE_BY_SIDE_MAX:
            return self.named(path, " | ".join(_literal(text) or '""' for text in texts))
        groups: dict[str, list[str]] = {}
        for text in texts:
            groups.setdefault(text[:1], []).append(text)
        return self.named(path, " | ".join(self._words(group, path) for group in groups.values()))

    def _anything(self) -> str:
        """Any JSON value, with our separators; one set of rules however often it is asked for."""
        if "any" in self._bodies:
            return "any"
        self._bodies["any"] = ""  # Holds the name while the parts refer to it.
        text = self.value({"type": "string"}, "string")
        number = self.value({"type": "number"}, "number")
        pair = self.named("pair", f"{text} {_literal(self.key_separator)} any")
        some = f"({_literal(self.item_separator)} {{}})*"
        members = f'"{{" ({pair} {some.format(pair)})? "}}"'
        items = f'"[" (any {some.format("any")})? "]"'
        self._bodies["any"] = f'{members} | {items} | {text} | {number} | "true" | "false" | "null"'
        return "any"

    # --- numbers ---------------------------------------------------------------------------------------------------

    def _integer(self, schema: Any, path: str) -> str:
        low, high, step = schema["minimum"], schema["maximum"], schema.get("multipleOf")
        if step is None:
            return self.named(path or "integer", " | ".join(integers(low, high)))
        first = -(-low // step) * step
        if (high - first) // step < MULTIPLES_MAX:
            return self._constants(list(range(first, high + 1, step)), path)
        self.relax(path, "multipleOf", f"llama.cpp's grammars do not count in steps of {step}")
        return self.named(path or "integer", " | ".join(integers(low, high)))

    def _number(self, schema: Any, path: str) -> str:
        if not schema.keys() & {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}:
            whole = f'("0" | [1-9] [0-9]{{0,{DIGITS_MAX - 1}}})'
            # Two digits of exponent: with twenty before the point the value stays inside a double.
            return self.named("number", f'"-"? {whole} ("." [0-9]{{1,{DIGITS_MAX}}})? ([eE] [-+]? [0-9]{{1,2}})?')
        low, low_open = _bound(schema, "minimum", "exclusiveMinimum")
        high, high_open = _bound(schema, "maximum", "exclusiveMaximum")
        options: list[str] = []
        if low is None or low < 0:
            # Mirrored, and without zero: -0 is never written.
            above = _Edge(0, "", True) if high is None or high >= 0 else _edge(-high, high_open)
            below = None if low is None else _edge(-low, low_open)
            options += [f'"-" {_group([option])}' for option in self._decimals(above, below)]
        if high is None or high >= 0:
            above = _Edge(0, "", False) if low is None or low < 0 else _edge(low, low_open)
            options += self._decimals(above, None if high is None else _edge(high, high_open))
        if not options:
            raise GrammarError(f"{self._place(path)}: no number of {SIGNIFICANT_MAX} digits lies inside the bounds")
        return self.named(path or "number", " | ".join(options))

    def _decimals(self, low: _Edge, high: _Edge | None) -> list[str]:
        """Alternatives for the decimals between two that are not negative."""
        top = 10 ** max(DIGITS_MAX, len(str(low.whole)) + 1) - 1 if high is None else high.whole
        if high is not None and low.whole == high.whole:
            return self._fraction(low, high)
        options = self._fraction(low, None)
        last = top if high is None else top - 1
        for length in range(len(str(low.whole + 1)), len(str(last)) + 1):
            first, most = max(low.whole + 1, 10 ** (length - 1)), min(last, 10**length - 1)
            if first <= most:
                point = f'("." {_times("[0-9]", 1, _places(most))})?' if _places(most) else ""
                options.append(f"{_group(integers(first, most))} {point}".strip())
        return options + (self._fraction(None, high) if high is not None else [])

    def _fraction(self, low: _Edge | None, high: _Edge | None) -> list[str]:
        """Alternatives for one whole part, that of the ends given, and the fractions that lie inside."""
        edge = low or high
        assert edge is not None
        low_digits = None if low is None or (low.digits == "" and not low.is_open) else low.digits
        high_digits = None if high is None else high.digits
        opens = low is not None and low.is_open, high is not None and high.is_open
        state = _Fraction(low_digits, high_digits, *opens)
        after = self._digits(state, _places(edge.whole))
        options = [f'"{edge.whole}"'] if state.may_end() else []
        return options + ([f'"{edge.whole}." {after}'] if after else [])

    def _digits(self, state: _Fraction, places: int) -> str:
        """Return what one or more further digits are made of; nothing if none fits."""
        if places == 0:
            return ""
        if state.low is None and state.high is None:
            return _times("[0-9]", 1, places)
        options: list[str] = []
        for first, last, following in state.steps():
            rest = self._digits(following, places - 1)
            digit = f'"{first}"' if first == last else f"[{first}-{last}]"
            if following.may_end():
                options.append(digit)
            if rest:
                options.append(f"{digit} {rest}")
        return self.named("digits", " | ".join(options)) if options else ""

    # --- strings ---------------------------------------------------------------------------------------------------

    def _content(self, schema: Any, path: str) -> str:
        least, most = schema.get("minLength", 0), schema.get("maxLength")
        if "pattern" not in schema:
            return self._repeat(self._chars(pattern.ANY_CHAR.ranges), least, most)
        tree = pattern.parse(schema["pattern"])
        if "minLength" not in schema and "maxLength" not in schema:
            return self._tree(tree)
        counting = _Counting(least, most)
        states = counting.states(tree)
        if states is None:
            self.relax(path, "maxLength", "too many states to count characters beside this pattern")
            return self._tree(tree)
        names = {state: self._new("counted") for state in states}
        for state, name in names.items():
            options = ['""'] if counting.may_end(state) else []
            for chars, after in counting.steps(state):
                rest = names[after] if after in names else self._tree(counting.trees[after[0]])
                options.append(f"{self._chars(chars.ranges)} {rest}".strip())
            self._bodies[name] = " | ".join(options)
        return names[states[0]] if states else self._tree(tree)

    def _tree(self, tree: pattern.Tree) -> str:
        match tree:
            case pattern.Chars():
                return self._chars(tree.ranges)
            case pattern.Seq():
                return " ".join(part for part in map(self._tree, tree.parts) if part)
            case pattern.Alt():
                return self.named("option", " | ".join(self._tree(option) or '""' for option in tree.options))
            case pattern.Repeat():
                item = self._tree(tree.item)
                if not item:
                    return ""
                simple = isinstance(tree.item, pattern.Chars | pattern.Alt)
                return self._repeat(item if simple else self.named("part", item), tree.least, tree.most)
            case pattern.Edge():
                raise AssertionError("anchors are gone after parse")
            case _:
                assert_never(tree)

    def _chars(self, ranges: pattern.Ranges) -> str:
        """Return one character out of the ranges, as JSON spells it."""
        raw = _common(ranges, _RAW)
        special = [code for low, high in _common(ranges, _ESCAPED) for code in range(low, high + 1)]
        options = [_class(raw)] if raw else []
        if len(special) == sum(
            high - low + 1 for low, high in _ESCAPED
        ):  # All of them, as in any free string: one class instead of a list.
            options += [r'"\\" (["\\bfnrt] | "u00" ("0" [0-7be-f] | "1" [0-9a-f] | "7f"))']
        else:
            options += [_literal(escaped(code)) for code in special]
        if not options:
            return "[^\\x00-\\U0010FFFF]"
        return options[0] if len(options) == 1 else self.named("char", " | ".join(options))

    def _repeat(self, item: str, least: int, most: int | None) -> str:
        """Return a repeat of any size, made of blocks where it is longer than the parser takes."""
        if (most or least) <= REPEAT_MAX:
            return _times(item, least, most)
        block = self.named("block", _times(item, REPEAT_MAX, REPEAT_MAX))
        blocks, rest = divmod(least, REPEAT_MAX)
        parts = [self._repeat(block, blocks, blocks), _times(item, rest, rest)]
        if most is None:
            parts.append(f"{item}*")
        else:
            more, last = divmod(most - least, REPEAT_MAX)
            parts.append(self._up_to(item, block, more, last))
        return " ".join(part for part in parts if part)

    def _up_to(self, item: str, block: str, blocks: int, last: int) -> str:
        if blocks == 0:
            return _times(item, 0, last)
        # Either all blocks and the last few, or fewer blocks and less than one: never two ways to the same count.
        full = f"{self._repeat(block, blocks, blocks)} {_times(item, 0, last)}".strip()
        fewer = f"{self._repeat(block, 0, blocks - 1)} {_times(item, 0, REPEAT_MAX - 1)}".strip()
        return f"({full} | {fewer})"

    # --- arrays ----------------------------------------------------------------------------------------------------

    def _array(self, schema: Any, path: str) -> str:
        places = [self.value(part, f"{path}[{index}]") for index, part in enumerate(schema.get("prefixItems", ()))]
        least, most = schema.get("minItems", 0), schema.get("maxItems")
        rest = "" if schema["items"] is False else self.value(schema["items"], f"{path}[]")
        between = _literal(self.item_separator)
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
        return self._repeat(
            f"({next_item})" if (most or least) <= REPEAT_MAX else self.named("next", next_item), least, most
        )

    # --- objects ---------------------------------------------------------------------------------------------------

    def _object(self, schema: Any, path: str) -> str:
        between = _literal(self.item_separator)
        read = self._members if "properties" in schema else self._map
        body = read(schema, path, between)
        return self.named(path or "object", f'"{{" {body} "}}"' if body else '"{}"')

    def _map(self, schema: Any, path: str, between: str) -> str:
        if "patternProperties" in schema:
            ((searched, part),) = schema["patternProperties"].items()
            key = self.value({"type": "string", "pattern": searched}, f"{path}.key")
        else:
            key, part = self.value({"type": "string"}, "key"), schema["additionalProperties"]
        pair = self.named(f"{path}.pair", f"{key} {_literal(self.key_separator)} {self.value(part, f'{path}.*')}")
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
        return self.named(path, f"{_literal(spelled_key(key) + self.key_separator)} {self.value(part, path)}")

    def _others(self, schema: Any, path: str) -> str:
        if schema["additionalProperties"] is False:
            return ""
        key = self._other_key([*schema["properties"]], path)
        value = self.value(schema["additionalProperties"], f"{path}.*")
        return self.named(f"{path}.pair", f"{key} {_literal(self.key_separator)} {value}")

    def _other_key(self, keys: Sequence[str], path: str) -> str:
        """A key that is none of the declared ones, spelt out as the tree of what they begin with."""
        inside = self._other_rest(frozenset(keys), path)
        return self.named(f"{path}.key", f"{_literal(chr(34))} {inside}")

    def _other_rest(self, rests: frozenset[str], path: str) -> str:
        quote = _literal('"')
        following: dict[str, set[str]] = {}
        for rest in rests:
            if rest:
                following.setdefault(rest[0], set()).add(rest[1:])
        free = pattern.complement(pattern.union((ord(char), ord(char)) for char in following))
        options = [] if "" in rests else [quote]
        options.append(f"{self._chars(free)} {self._chars(pattern.ANY_CHAR.ranges)}* {quote}")
        for char, tails in sorted(following.items()):
            options.append(f"{_literal(escaped(ord(char), key=True))} {self._other_rest(frozenset(tails), path)}")
        return self.named(f"{path}.other", " | ".join(options))

    # --- free text -------------------------------------------------------------------------------------------------

    def text_until(self, trigger: str, then: str) -> str:
        """Free text that may end anywhere, or go on with `then` once the trigger has been written."""
        names = [self._new("text") for _ in trigger]
        for reached, name in enumerate(names):
            steps: dict[int, list[str]] = {}
            for char in sorted(set(trigger)):
                steps.setdefault(_reached(trigger, trigger[:reached] + char), []).append(char)
            known = pattern.union((ord(char), ord(char)) for char in set(trigger))
            options = [f"{_class(pattern.complement(known))} {names[0]}", '""']
            for count, chars in sorted(steps.items()):
                following = then if count == len(trigger) else names[count]
                options.append(f"{_class(pattern.union((ord(c), ord(c)) for c in chars))} {following}")
            self._bodies[name] = " | ".join(options)
        return names[0]


def _reached(trigger: str, text: str) -> int:
    """Return how much of the trigger's begin the text ends with."""
    return max(count for count in range(len(trigger) + 1) if text.endswith(trigger[:count]))


def _bound(schema: Any, closed: str, opened: str) -> tuple[Decimal | None, bool]:
    number = schema.get(closed, schema.get(opened))
    return (None, False) if number is None else (Decimal(repr(number)), closed not in schema)


def _places(whole: int) -> int:
    """Return how many digits after the point a double still tells apart."""
    return max(0, SIGNIFICANT_MAX - len(str(whole)))


def _common(ranges: pattern.Ranges, others: pattern.Ranges) -> pattern.Ranges:
    return pattern.complement(pattern.union([*pattern.complement(ranges), *pattern.complement(others)]))


_State = tuple[int, int, int | None]  # what the pattern has left, by its place in `trees`; least and most characters


class _Counting:
    """A pattern while its characters are counted: what it can come to, without dead ends."""

    def __init__(self, least: int, most: int | None) -> None:
        self.trees: list[pattern.Tree] = []
        self._places: dict[pattern.Tree, int] = {}
        self._start = least, most
        self._steps: dict[int, list[tuple[pattern.Chars, int]]] = {}
        self._lengths: list[tuple[int, int | None]] = []
        self._possible: list[int] = []  # The lengths each tree can have, up to the most that may come, as bits.

    def states(self, tree: pattern.Tree) -> list[_State] | None:
        """Return every state in which characters are still counted; None if they are too many."""
        found: dict[_State, None] = {}
        todo: list[_State] = [(self._place(tree), *self._start)]
        while todo:
            state = todo.pop()
            if state in found or self.is_free(state):
                continue
            if len(found) >= COUNTED_MAX:
                return None
            found[state] = None
            todo.extend(after for _, after in self.steps(state))
        return list(found)

    def is_free(self, state: _State) -> bool:
        """Return whether counting can stop: the pattern alone keeps inside."""
        place, least, most = state
        low, high = self._lengths[place]
        return low >= least and (most is None or (high is not None and high <= most))

    def may_end(self, state: _State) -> bool:
        """Return whether nothing more need come."""
        return state[1] == 0 and self._lengths[state[0]][0] == 0

    def steps(self, state: _State) -> list[tuple[pattern.Chars, _State]]:
        """Return the next characters and what is left after them."""
        place, least, most = state
        if most == 0:
            return []
        if place not in self._steps:
            self._steps[place] = [(chars, self._place(after)) for chars, after in steps(self.trees[place])]
        fewer = max(0, least - 1), None if most is None else most - 1
        following = [(chars, (after, *fewer)) for chars, after in self._steps[place]]
        return [(chars, after) for chars, after in following if self._is_possible(after)]

    def _is_possible(self, state: _State) -> bool:
        place, least, most = state
        if most is None:
            high = self._lengths[place][1]
            return high is None or high >= least
        return (self._possible[place] & ((2 << most) - 1)) >> least != 0

    def _place(self, tree: pattern.Tree) -> int:
        if tree not in self._places:
            self._places[tree] = len(self.trees)
            self.trees.append(tree)
            self._lengths.append(lengths(tree))
            most = self._start[1]
            self._possible.append(0 if most is None else possible_lengths(tree, most))
        return self._places[tree]


class _Fraction(Struct, frozen=True):
    """How the digits so far compare with both ends: None is already inside, else the digits still to compare."""

    low: Digits
    high: Digits
    low_open: bool
    high_open: bool

    def may_end(self) -> bool:
        """Return whether the number may end here, as if zeros followed."""
        above = self.low is None or (self.low == "" and not self.low_open)
        below = self.high is None or self.high != "" or not self.high_open
        return above and below

    def steps(self) -> Iterable[tuple[int, int, _Fraction]]:
        """Return the next digits, grouped by what is still to compare after them."""
        groups: dict[_Fraction, list[int]] = {}
        for digit in range(10):
            low_digit = -1 if self.low is None else int(self.low[:1] or "0")
            high_digit = 10 if self.high is None else int(self.high[:1] or "0")
            if low_digit <= digit <= high_digit:
                low = self.low[1:] if self.low is not None and digit == low_digit else None
                high = self.high[1:] if self.high is not None and digit == high_digit else None
                low = None if low == "" and not self.low_open else low
                groups.setdefault(_Fraction(low, high, self.low_open, self.high_open), []).append(digit)
        return [(digits[0], digits[-1], following) for following, digits in groups.items()]

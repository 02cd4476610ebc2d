r"""Which texts a regular expression lets through: one reading, shared by the decoder and by every grammar.

A pattern is read once into a small tree, and everything else (the decoder's regular expression, the canonical
text for an engine, grammar rules) is printed from that tree, so that they cannot disagree. The reading is that of
JSON Schema, which is that of ECMA 262: a search, not a full match; `\d` and `\w` mean ASCII, `\s` does not; `.` is
anything but an end of line; `$` is the very end. What no grammar can hold (look-around, back references, word
boundaries, flags) is a `PatternError` with its reason.
"""

from __future__ import annotations

# The parser of the standard library: private by name, stable since Python 3.11, and the only way not to write
# a parser for regular expressions by hand.
import re
import re._constants as sre  # type: ignore[import-not-found]  # not in the stubs
import re._parser as sre_parser  # type: ignore[import-not-found]  # not in the stubs
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, assert_never

from msgspec import Struct

Ranges = tuple[tuple[int, int], ...]

UNICODE_LAST = 0x10FFFF
SURROGATES = (0xD800, 0xDFFF)  # No JSON text holds one alone, so no set of characters does.
# Alternatives that anchors inside groups may be multiplied out to: more than any pattern we have seen needs (4).
SPREAD_MAX = 64


class PatternError(ValueError):
    """A pattern that is not well formed, or that no grammar can hold; the text is the reason alone."""


class Chars(Struct, frozen=True):
    """One character out of sorted, disjoint, inclusive ranges of code points."""

    ranges: Ranges


class Seq(Struct, frozen=True):
    """One part after another; no part at all is the empty text."""

    parts: tuple[Tree, ...]


class Alt(Struct, frozen=True):
    """Any one of the options."""

    options: tuple[Tree, ...]


class Repeat(Struct, frozen=True):
    """The item at least and at most so many times; `most` None is without end."""

    item: Tree
    least: int
    most: int | None


class Edge(Struct, frozen=True):
    """The begin or the end of the whole text; gone once a pattern is anchored."""

    begin: bool


Tree = Chars | Seq | Alt | Repeat | Edge

EMPTY = Seq(())


def union(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Return the ranges sorted, joined and without surrogates."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(_without_surrogates(ranges)):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return tuple(merged)


def _without_surrogates(ranges: Iterable[tuple[int, int]]) -> Iterable[tuple[int, int]]:
    for low, high in ranges:
        if low < SURROGATES[0]:
            yield low, min(high, SURROGATES[0] - 1)
        if high > SURROGATES[1]:
            yield max(low, SURROGATES[1] + 1), high


def complement(ranges: Ranges) -> Ranges:
    """Return every character that is not in the ranges."""
    gaps, start = [], 0
    for low, high in ranges:
        if low > start:
            gaps.append((start, low - 1))
        start = high + 1
    if start <= UNICODE_LAST:
        gaps.append((start, UNICODE_LAST))
    return union(gaps)


DIGIT = union([(48, 57)])
WORD = union([(48, 57), (65, 90), (95, 95), (97, 122)])
# What ECMA 262 calls white space and line terminators.
SPACE = union((code, code) for code in (*range(9, 14), 32, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029))
SPACE = union([*SPACE, (0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000), (0xFEFF, 0xFEFF)])
NO_LINE = complement(union([(10, 10), (13, 13), (0x2028, 0x2029)]))
ANY_CHAR = Chars(complement(()))
ANY_TEXT = Repeat(ANY_CHAR, 0, None)

_CATEGORIES = {
    sre.CATEGORY_DIGIT: DIGIT,
    sre.CATEGORY_NOT_DIGIT: complement(DIGIT),
    sre.CATEGORY_WORD: WORD,
    sre.CATEGORY_NOT_WORD: complement(WORD),
    sre.CATEGORY_SPACE: SPACE,
    sre.CATEGORY_NOT_SPACE: complement(SPACE),
}
_EDGES = {
    sre.AT_BEGINNING: Edge(True),
    sre.AT_BEGINNING_STRING: Edge(True),
    sre.AT_END: Edge(False),
    sre.AT_END_STRING: Edge(False),
}
_REASONS = {
    sre.ASSERT: "a look-ahead or look-behind",
    sre.ASSERT_NOT: "a look-ahead or look-behind",
    sre.GROUPREF: "a back reference",
    sre.GROUPREF_EXISTS: "a conditional group",
    sre.ATOMIC_GROUP: "an atomic group",
    sre.POSSESSIVE_REPEAT: "a possessive repeat",
    sre.AT: "a word boundary",
}


@lru_cache(maxsize=512)
def parse(pattern: str) -> Tree:
    """Return the tree that the *whole* text must match; raise `PatternError` with the reason if there is none."""
    tree = _read(pattern)
    if tree.state.flags & ~sre.SRE_FLAG_UNICODE:
        raise PatternError("flags such as (?i) cannot be held by a grammar: write the characters out")
    return _anchored(_sequence(tree))


# Outside of a class Python reads {,3} as a count, which ECMA 262 does not; inside it warns of what may once be sets.
_TOKEN = re.compile(r"\\.|\[\^?|[\]{&|~]", re.DOTALL)
_COUNT = re.compile(r"\{[0-9]+(?:,[0-9]*)?\}")
# Python's own: ECMA 262 reads them as plain letters, as octal, or not at all.
_PYTHONS_OWN = re.compile(r"\\[AZaUN]|\\0[0-9]|\\[xu](?![0-9A-Fa-f])")
# ECMA 262's own, which Python does not read.
_ECMAS_OWN = {
    "p": "a property of Unicode has other members in every version: write ranges, such as [A-Za-zÀ-ÖØ-öø-ÿ] for \\p{L}",
    "k": "a back reference cannot be held by a grammar",
    "c": "a control character is written by its number, such as \\x0a for \\cJ",
}


def _as_python(pattern: str) -> str:
    """Return the pattern as Python's parser must be given it to be read as ECMA 262 does."""
    spelled, end, in_class = "", 0, False
    for token in _TOKEN.finditer(pattern):
        text, start = token[0], token.start()
        if own := _PYTHONS_OWN.match(pattern, start):
            raise PatternError(f"{own[0]} is not read alike by Python and ECMA 262: write ^, $ or the character itself")
        if reason := _ECMAS_OWN.get(text[1:].lower()):
            raise PatternError(f"{text}: {reason}")
        is_opening = text[0] == "[" and not in_class
        if is_opening and pattern[token.end() : token.end() + 1] == "]":
            raise PatternError("[] and [^] cannot be held: a class names its characters")
        is_literal = text in "&|~[" if in_class else text == "{" and not _COUNT.match(pattern, start)
        spelled += pattern[end:start] + ("\\" + text if is_literal else text)
        end = token.end()
        in_class = text != "]" if in_class else is_opening
    return spelled + pattern[end:]


def _read(pattern: str) -> Any:
    return _parsed(_as_python(pattern))


def _parsed(pattern: str) -> Any:
    try:
        return sre_parser.parse(pattern)
    except Exception as first:
        # `re.error` is a bare Exception, and deep nesting ends the private parser in a RecursionError. A named group
        # in JavaScript's spelling is tried as Python's.
        named = re.sub(r"\(\?<(?=[A-Za-z_])", "(?P<", pattern)
        if named != pattern:
            return _parsed(named)
        raise PatternError(f"not a regular expression: {first}") from None


def _sequence(parsed: Any) -> Tree:
    parts = tuple(_node(op, argument) for op, argument in parsed)
    return parts[0] if len(parts) == 1 else Seq(parts)


def _node(op: Any, argument: Any) -> Tree:
    if op is sre.LITERAL:
        return Chars(_single(argument))
    if op is sre.NOT_LITERAL:
        return Chars(complement(_single(argument)))
    if op is sre.ANY:
        return Chars(NO_LINE)
    if op is sre.IN:
        return Chars(_set(argument))
    if op is sre.BRANCH:
        return Alt(tuple(_sequence(option) for option in argument[1]))
    if op is sre.SUBPATTERN:
        return _group(*argument)
    if op in (sre.MAX_REPEAT, sre.MIN_REPEAT):
        least, most, item = argument
        return Repeat(_sequence(item), int(least), None if most is sre.MAXREPEAT else int(most))
    if op is sre.AT and argument in _EDGES:
        return _EDGES[argument]
    raise PatternError(f"{_REASONS.get(op, str(op))} cannot be held by a grammar")


def _group(_number: Any, flags_added: int, flags_removed: int, inside: Any) -> Tree:
    if flags_added or flags_removed:
        raise PatternError("flags such as (?i:…) cannot be held by a grammar: write the characters out")
    return _sequence(inside)


def _single(code: int) -> Ranges:
    if SURROGATES[0] <= code <= SURROGATES[1]:
        raise PatternError("half of a surrogate pair is no character: write the character itself")
    return ((code, code),)


def _set(items: Any) -> Ranges:
    ranges: list[tuple[int, int]] = []
    negated = False
    for op, argument in items:
        if op is sre.NEGATE:
            negated = True
        elif op is sre.LITERAL:
            ranges.append((argument, argument))
        elif op is sre.RANGE:
            ranges.append((argument[0], argument[1]))
        else:
            ranges.extend(_CATEGORIES[argument])
    return complement(union(ranges)) if negated else union(ranges)


# --- anchors -------------------------------------------------------------------------------------------------------

_Line = tuple[bool, Tree, bool]  # anchored at the begin, what is there, anchored at the end


def _anchored(tree: Tree) -> Tree:
    """Turn a search into a match of the whole text: what is not anchored may have anything beside it."""
    options: list[Tree] = []
    for begin, middle, end in _spread(tree):
        parts = ([] if begin else [ANY_TEXT]) + [middle] + ([] if end else [ANY_TEXT])
        options.append(parts[0] if len(parts) == 1 else Seq(tuple(parts)))
    return options[0] if len(options) == 1 else Alt(tuple(options))


def _spread(tree: Tree) -> list[_Line]:
    """Return the alternatives of a tree, each with its anchors taken off."""
    if not _has_edge(tree):
        return [(False, tree, False)]
    match tree:
        case Edge():
            return [(tree.begin, EMPTY, not tree.begin)]
        case Alt():
            return [line for option in tree.options for line in _spread(option)]
        case Seq():
            return _spread_sequence(tree)
        case Repeat(least=least, most=most) if (least, most) in ((0, 1), (1, 1)):
            return ([(False, EMPTY, False)] if least == 0 else []) + _spread(tree.item)
    raise PatternError("^ or $ inside a repeat cannot be held by a grammar")


def _spread_sequence(tree: Seq) -> list[_Line]:
    lines: list[_Line] = [(False, EMPTY, False)]
    for part in tree.parts:
        lines = [_joined(left, right) for left in lines for right in _spread(part)]
        if len(lines) > SPREAD_MAX:
            raise PatternError(f"^ and $ inside groups multiply to more than {SPREAD_MAX} alternatives")
    return lines


def _joined(left: _Line, right: _Line) -> _Line:
    if right[0] and left[1] != EMPTY:
        raise PatternError("^ after other characters cannot be held by a grammar")
    if left[2] and right[1] != EMPTY:
        raise PatternError("$ before other characters cannot be held by a grammar")
    parts = [part for part in (left[1], right[1]) if part != EMPTY]
    flat = [piece for part in parts for piece in (part.parts if isinstance(part, Seq) else (part,))]
    middle: Tree = flat[0] if len(flat) == 1 else Seq(tuple(flat))
    return (left[0] or right[0], middle, left[2] or right[2])


def _has_edge(tree: Tree) -> bool:
    match tree:
        case Edge():
            return True
        case Chars():
            return False
        case Seq():
            return any(_has_edge(part) for part in tree.parts)
        case Alt():
            return any(_has_edge(option) for option in tree.options)
        case Repeat():
            return _has_edge(tree.item)
        case _:
            assert_never(tree)


# --- printing ------------------------------------------------------------------------------------------------------


def regex(tree: Tree) -> str:
    """Return the tree as a regular expression of the *whole* text, without anchors, that Python and Rust read alike."""
    match tree:
        case Chars():
            return _print_chars(tree.ranges)
        case Edge():
            raise AssertionError("anchors are gone after parse")
        case Seq():
            return "".join(_wrapped(part) if isinstance(part, Alt) else regex(part) for part in tree.parts)
        case Alt():
            return "|".join(regex(option) for option in tree.options)
        case Repeat():
            return _wrapped(tree.item) + _print_count(tree.least, tree.most)
        case _:
            assert_never(tree)


def anchored_regex(tree: Tree) -> str:
    """Return the tree as a pattern that may stand in a schema: with ^ and $."""
    return f"^{_wrapped(tree)}$" if isinstance(tree, Alt) else f"^{regex(tree)}$"


def _wrapped(tree: Tree) -> str:
    return regex(tree) if isinstance(tree, Chars) else f"(?:{regex(tree)})"


def _print_count(least: int, most: int | None) -> str:
    if (least, most) in ((0, None), (1, None), (0, 1)):
        return {(0, None): "*", (1, None): "+", (0, 1): "?"}[(least, most)]
    if least == most:
        return f"{{{least}}}"
    return f"{{{least},{'' if most is None else most}}}"


def _print_chars(ranges: Ranges) -> str:
    if not ranges:
        return r"[^\x00-" + chr(UNICODE_LAST) + "]"  # No character at all: a part that can never match.
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return _print_char(ranges[0][0])
    gaps = complement(ranges)
    if gaps and ranges[-1][1] == UNICODE_LAST:
        return f"[^{_print_ranges(gaps)}]"
    if not gaps:
        return r"[\x00-" + chr(UNICODE_LAST) + "]"
    return f"[{_print_ranges(ranges)}]"


def _print_ranges(ranges: Ranges) -> str:
    return "".join(
        _print_char(low) if low == high else f"{_print_char(low)}-{_print_char(high)}" for low, high in ranges
    )


def _print_char(code: int) -> str:
    char = chr(code)
    if code < 32 or code == 127:
        return f"\\x{code:02x}"
    return "\\" + char if char in r".^$*+?()[]{}|\-&~" else char

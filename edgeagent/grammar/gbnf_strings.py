"""Strings in llama.cpp's grammars: patterns, lengths, and both at once, as JSON spells characters."""

from __future__ import annotations

from functools import partial
from typing import Any, assert_never

from edgeagent.grammar.gbnf_rules import RuleBook
from edgeagent.grammar.gbnf_text import escaped, literal, one_of
from edgeagent.shape import pattern
from edgeagent.shape.pattern_lengths import lengths, possible_lengths
from edgeagent.shape.pattern_steps import steps

# Rules that counting characters beside a pattern may take.
COUNTED_MAX = 1_000
# Characters that JSON text, as we write it, spells with an escape.
_ESCAPED = pattern.union([(0, 31), (34, 34), (92, 92), (127, 127)])
_RAW = pattern.complement(_ESCAPED)


def content(rules: RuleBook, schema: Any, path: str) -> str:
    least, most = schema.get("minLength", 0), schema.get("maxLength")
    if "pattern" not in schema:
        return rules.repeat(characters(rules, pattern.ANY_CHAR.ranges), least, most)
    tree = pattern.parse(schema["pattern"])
    if "minLength" not in schema and "maxLength" not in schema:
        return _tree(rules, tree)
    counting = _Counting(least, most)
    states = counting.states(tree)
    if states is None:
        rules.relax(path, "maxLength", "too many states to count characters beside this pattern")
        return _tree(rules, tree)
    names = {state: rules.new("counted") for state in states}
    for state, name in names.items():
        options = ['""'] if counting.may_end(state) else []
        for chars, after in counting.steps(state):
            rest = names[after] if after in names else _tree(rules, counting.trees[after[0]])
            options.append(f"{characters(rules, chars.ranges)} {rest}".strip())
        rules.bodies[name] = " | ".join(options)
    return names[states[0]] if states else _tree(rules, tree)


def _tree(rules: RuleBook, tree: pattern.Tree) -> str:
    match tree:
        case pattern.Chars():
            return characters(rules, tree.ranges)
        case pattern.Seq():
            return " ".join(part for part in map(partial(_tree, rules), tree.parts) if part)
        case pattern.Alt():
            return rules.named("option", " | ".join(_tree(rules, option) or '""' for option in tree.options))
        case pattern.Repeat():
            item = _tree(rules, tree.item)
            if not item:
                return ""
            simple = isinstance(tree.item, pattern.Chars | pattern.Alt)
            return rules.repeat(item if simple else rules.named("part", item), tree.least, tree.most)
        case pattern.Edge():
            raise AssertionError("anchors are gone after parse")
        case _:
            assert_never(tree)


def characters(rules: RuleBook, ranges: pattern.Ranges) -> str:
    """Return one character out of the ranges, as JSON spells it."""
    raw = _common(ranges, _RAW)
    special = [code for low, high in _common(ranges, _ESCAPED) for code in range(low, high + 1)]
    options = [one_of(raw)] if raw else []
    if len(special) == sum(
        high - low + 1 for low, high in _ESCAPED
    ):  # All of them, as in any free string: one class instead of a list.
        options += [r'"\\" (["\\bfnrt] | "u00" ("0" [0-7be-f] | "1" [0-9a-f] | "7f"))']
    else:
        options += [literal(escaped(code)) for code in special]
    if not options:
        return "[^\\x00-\\U0010FFFF]"
    return options[0] if len(options) == 1 else rules.named("char", " | ".join(options))


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

"""Rules of one grammar for llama.cpp, each text once; and where it says less than was asked of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from edgeagent.errors import GrammarError
from edgeagent.grammar.frame import Schema
from edgeagent.grammar.gbnf_text import commonprefix, literal, spelled, times
from edgeagent.shape.lower import Relaxation

# llama.cpp refuses a repeat above 2,000 and unrolls every other; longer ones are made of blocks of this size.
REPEAT_MAX = 1_000
# Constants up to that many stand side by side; more are written as the tree of what they begin with.
SIDE_BY_SIDE_MAX = 8


class RuleBook:
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
        self.bodies: dict[str, str] = {}
        self._known: dict[str, str] = {}
        self._count = 0
        self.begin(schema, where)

    def begin(self, schema: Schema, where: str) -> None:
        """Go on with another schema, which has definitions of its own."""
        self.where = where
        self._definitions = schema.get("$defs", {})
        self._references: dict[str, str] = {}

    def text(self, root: str, body: str) -> str:
        rules = "".join(f"{name} ::= {rule}\n" for name, rule in self.bodies.items())
        return f"{root} ::= {body}\n{rules}"

    def named(self, hint: str, body: str) -> str:
        """Return the name of a rule with that body; the same body is one rule."""
        if body not in self._known:
            self._known[body] = self.new(hint)
            self.bodies[self._known[body]] = body
        return self._known[body]

    def new(self, hint: str) -> str:
        self._count += 1
        words = re.sub("[^A-Za-z0-9]+", "-", hint.split(".")[-1]).strip("-")[:32]
        return f"{words or 'part'}-{self._count}"

    def place(self, path: str) -> str:
        parts = (f"tool {self.where}" if self.where else "", f"field {path}" if path else "")
        return ", ".join(part for part in parts if part) or "the schema"

    def relax(self, path: str, keyword: str, reason: str) -> None:
        if self.relaxed is None:
            raise GrammarError(f"{self.place(path)}: {keyword}: {reason}")
        note = Relaxation(path, keyword, reason)
        if note not in self.relaxed:
            self.relaxed.append(note)

    def constants(self, values: Sequence[Any], path: str) -> str:
        return self._words([spelled(value, self.item_separator, self.key_separator) for value in values], path)

    def _words(self, texts: Sequence[str], path: str) -> str:
        """One of the texts; many as a tree, for every alternative that begins alike costs time at every token."""
        if len(texts) == 1:
            return literal(texts[0]) or '""'
        begin = commonprefix(texts)
        if begin:
            return f"{literal(begin)} {self._words([text[len(begin) :] for text in texts], path)}"
        if len(texts) <= SIDE_BY_SIDE_MAX:
            return self.named(path, " | ".join(literal(text) or '""' for text in texts))
        groups: dict[str, list[str]] = {}
        for text in texts:
            groups.setdefault(text[:1], []).append(text)
        return self.named(path, " | ".join(self._words(group, path) for group in groups.values()))

    def repeat(self, item: str, least: int, most: int | None) -> str:
        """Return a repeat of any size, made of blocks where it is longer than the parser takes."""
        if (most or least) <= REPEAT_MAX:
            return times(item, least, most)
        block = self.named("block", times(item, REPEAT_MAX, REPEAT_MAX))
        blocks, rest = divmod(least, REPEAT_MAX)
        parts = [self.repeat(block, blocks, blocks), times(item, rest, rest)]
        if most is None:
            parts.append(f"{item}*")
        else:
            more, last = divmod(most - least, REPEAT_MAX)
            parts.append(self._up_to(item, block, more, last))
        return " ".join(part for part in parts if part)

    def _up_to(self, item: str, block: str, blocks: int, last: int) -> str:
        if blocks == 0:
            return times(item, 0, last)
        # Either all blocks and the last few, or fewer blocks and less than one: never two ways to the same count.
        full = f"{self.repeat(block, blocks, blocks)} {times(item, 0, last)}".strip()
        fewer = f"{self.repeat(block, 0, blocks - 1)} {times(item, 0, REPEAT_MAX - 1)}".strip()
        return f"({full} | {fewer})"

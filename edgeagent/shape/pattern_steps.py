"""A pattern one character at a time: what may come first, and what must follow it."""

from __future__ import annotations

from typing import assert_never

from edgeagent.shape.pattern import EMPTY, Alt, Chars, Edge, Repeat, Seq, Tree
from edgeagent.shape.pattern_lengths import lengths


def may_be_empty(tree: Tree) -> bool:
    """Return whether the empty text matches."""
    return lengths(tree)[0] == 0


def steps(tree: Tree) -> tuple[tuple[Chars, Tree], ...]:
    """Return every way to begin: a first character out of a set, and the tree of what must follow it.

    These are Antimirov's partial derivatives (1996): going on so, a tree comes to finitely many others.
    """
    match tree:
        case Chars():
            return ((tree, EMPTY),)
        case Edge():
            return ()
        case Alt():
            return tuple(dict.fromkeys(step for option in tree.options for step in steps(option)))
        case Seq():
            return _sequence_steps(tree)
        case Repeat():
            if tree.most == 0:
                return ()
            least = 0 if may_be_empty(tree.item) else max(0, tree.least - 1)
            rest = Repeat(tree.item, least, None if tree.most is None else tree.most - 1)
            return tuple((chars, _then(after, rest)) for chars, after in steps(tree.item))
        case _:
            assert_never(tree)


def _sequence_steps(tree: Seq) -> tuple[tuple[Chars, Tree], ...]:
    found: dict[tuple[Chars, Tree], None] = {}
    for index, part in enumerate(tree.parts):
        rest = Seq(tree.parts[index + 1 :])
        found |= dict.fromkeys((chars, _then(after, rest)) for chars, after in steps(part))
        if not may_be_empty(part):
            break
    return tuple(found)


def _then(first: Tree, second: Tree) -> Tree:
    parts: list[Tree] = []
    for tree in (first, second):
        pieces = tree.parts if isinstance(tree, Seq) else (tree,)
        parts.extend(piece for piece in pieces if not (isinstance(piece, Repeat) and piece.most == 0))
    return parts[0] if len(parts) == 1 else Seq(tuple(parts))

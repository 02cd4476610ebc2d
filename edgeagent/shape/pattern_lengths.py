"""Lengths of the texts that a pattern lets through, and the pattern cut to lengths."""

from __future__ import annotations

from typing import assert_never

from edgeagent.shape.pattern import Alt, Chars, Edge, Repeat, Seq, Tree


def lengths(tree: Tree) -> tuple[int, int | None]:
    """Return the least and the most characters of a text that matches; None is without end."""
    match tree:
        case Chars():
            return (1, 1)
        case Edge():
            return (0, 0)
        case Seq():
            spans = [lengths(part) for part in tree.parts]
            return sum(low for low, _ in spans), _total([high for _, high in spans])
        case Alt():
            spans = [lengths(option) for option in tree.options]
            highs = [high for _, high in spans]
            return min(low for low, _ in spans), None if None in highs else max(h for h in highs if h is not None)
        case Repeat():
            low, high = lengths(tree.item)
            most = 0 if high == 0 or tree.most == 0 else None if high is None or tree.most is None else high * tree.most
            return low * tree.least, most
        case _:
            assert_never(tree)


def _total(highs: list[int | None]) -> int | None:
    return None if None in highs else sum(high for high in highs if high is not None)


def possible_lengths(tree: Tree, most: int) -> int:
    """Return the lengths up to `most` that some matching text has, as bits: bit n is length n."""
    cap = (1 << (most + 1)) - 1
    match tree:
        case Chars():
            return 2 & cap if tree.ranges else 0
        case Edge():
            return 1
        case Seq():
            bits = 1
            for part in tree.parts:
                bits = _sums(bits, possible_lengths(part, most), cap)
            return bits
        case Alt():
            bits = 0
            for option in tree.options:
                bits |= possible_lengths(option, most)
            return bits
        case Repeat():
            return _repeated(tree, possible_lengths(tree.item, most), most, cap)
        case _:
            assert_never(tree)


def _sums(left: int, right: int, cap: int) -> int:
    total = 0
    while right:
        lowest = right & -right
        total |= left << (lowest.bit_length() - 1)
        right ^= lowest
    return total & cap


def _repeated(tree: Repeat, item: int, most: int, cap: int) -> int:
    bits = 1
    for _ in range(tree.least):
        longer = _sums(bits, item, cap)
        if longer == bits:
            break
        bits = longer
    total = bits
    # Every further round adds a character or changes nothing, so that `most` rounds reach all.
    for _ in range(most if tree.most is None else min(most, tree.most - tree.least)):
        bits = _sums(bits, item, cap)
        if bits | total == total:
            break
        total |= bits
    return total


def bounded(tree: Tree, most: int) -> Tree:
    """Return the tree with no endless repeat left: each gets at most `most` rounds (or its own least)."""
    match tree:
        case Chars() | Edge():
            return tree
        case Seq():
            return Seq(tuple(bounded(part, most) for part in tree.parts))
        case Alt():
            return Alt(tuple(bounded(option, most) for option in tree.options))
        case Repeat():
            rounds = max(tree.least, most) if tree.most is None else tree.most
            return Repeat(bounded(tree.item, most), tree.least, rounds)
        case _:
            assert_never(tree)


def within(tree: Tree, least: int, most: int | None) -> Tree | None:
    """Return the tree cut to the lengths, exactly, or None when the tree alone cannot say it.

    It can when every length is already inside, and for a single set of characters repeated, the common cases.
    """
    low, high = lengths(tree)
    if low >= least and (most is None or (high is not None and high <= most)):
        return tree
    fixed, repeat = _one_repeat(tree)
    if repeat is None:
        return None
    rounds_low = max(repeat.least, least - fixed)
    rounds_high = (
        repeat.most if most is None else most - fixed if repeat.most is None else min(repeat.most, most - fixed)
    )
    if rounds_high is not None and rounds_high < rounds_low:
        return None
    return _replaced(tree, repeat, Repeat(repeat.item, rounds_low, rounds_high))


def _one_repeat(tree: Tree) -> tuple[int, Repeat | None]:
    """Return the fixed length around the one repeat of single characters, if the tree is of that kind."""
    parts = tree.parts if isinstance(tree, Seq) else (tree,)
    repeats = [part for part in parts if isinstance(part, Repeat) and isinstance(part.item, Chars)]
    others = [lengths(part) for part in parts if not (isinstance(part, Repeat) and isinstance(part.item, Chars))]
    if len(repeats) != 1 or any(low != high for low, high in others):
        return 0, None
    return sum(low for low, _ in others), repeats[0]


def _replaced(tree: Tree, old: Repeat, new: Repeat) -> Tree:
    if isinstance(tree, Seq):
        return Seq(tuple(new if part is old else part for part in tree.parts))
    return new

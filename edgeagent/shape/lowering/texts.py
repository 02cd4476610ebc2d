"""Strings, their patterns, formats and lengths."""

from __future__ import annotations

from typing import Any

from edgeagent.shape import formats, pattern
from edgeagent.shape.lowering.work import NEVER, Work, length_keywords
from edgeagent.shape.merge import Plain
from edgeagent.shape.pattern_lengths import bounded, lengths, possible_lengths, within

# Lengths up to which it is worked out whether a pattern has a text of that length.
LENGTHS_TRIED_MAX = 2_000


def string(work: Work, plain: Plain, path: str) -> Any:
    """Return a string with one pattern at most, and its lengths."""
    least, most = plain.get("minLength", 0), plain.get("maxLength")
    if most is not None and most < least:
        return NEVER
    tree = _pattern(work, plain, path)
    if tree is None:
        if most is None and work.string_max is not None:
            most = max(work.string_max, least)
            work.restrict(path, "maxLength", f"at most {most} characters, for nothing else bounds it")
        return {"type": "string", **length_keywords(least, most, "Length")}
    if not _some_length(tree, least, most):
        return NEVER
    cut = within(tree, least, most)
    held = tree if cut is None else cut
    if work.string_max is not None and lengths(held)[1] is None and most is None:
        held = bounded(held, work.string_max)
        work.restrict(path, "pattern", f"each endless part at most {work.string_max} times")
    counted = {} if cut is not None else length_keywords(least, most, "Length")
    return {"type": "string", "pattern": pattern.anchored_regex(held), **counted}


def _pattern(work: Work, plain: Plain, path: str) -> pattern.Tree | None:
    """Return the one pattern that will be held; a second one beside it is reported."""
    name = plain.get("format")
    tree = None
    if "pattern" in plain:
        try:
            tree = pattern.parse(plain["pattern"])
        except pattern.PatternError as error:
            raise work.refuse(path, f"the pattern {plain['pattern']}: {error}") from None
    if name is None:
        return tree
    if name not in formats.PATTERNS:
        work.relax(path, "format", f"the format {name} is not checked")
        return tree
    if tree is not None:
        work.relax(path, "format", f"the pattern is held, the format {name} beside it is not")
        return tree
    if name in formats.NARROWED:
        work.restrict(path, "format", f"{name}: {formats.NARROWED[name]}")
    return pattern.parse(f"^(?:{formats.PATTERNS[name]})$")


def _some_length(tree: pattern.Tree, least: int, most: int | None) -> bool:
    """Return whether a text of the pattern has a length inside; a very long one is believed."""
    low, high = lengths(tree)
    if (most is not None and low > most) or (high is not None and high < least):
        return False
    end = most if most is not None else high
    if end is None or end > LENGTHS_TRIED_MAX:
        return True
    return possible_lengths(tree, end) >> least != 0

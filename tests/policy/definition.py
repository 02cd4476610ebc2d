"""The definition that monitors are held to: past-time temporal logic, read over the whole trace."""

from __future__ import annotations

from edgeagent.policy.formula import (
    And,
    AtLeast,
    Happened,
    Historically,
    Implies,
    KOf,
    Not,
    Once,
    Or,
    Previously,
    Said,
    Since,
    Untrusted,
)


def in_window(within, trace, j):
    """Whether position j is in the window that ends at the last position."""
    here, there = trace[-1], trace[j]
    match within.unit:
        case "session":
            return True
        case "turn":
            return there.turn == here.turn
        case "seconds":
            return here.at_ms - there.at_ms < within.width
        case "events":
            return len(trace) - j <= within.width


def holds(f, trace, value):
    """Whether f holds at the last position of the trace; `value(g, j)` is whether g holds at position j."""
    last = len(trace) - 1
    match f:
        case Happened():
            here = trace[last]
            return here.kind == f.kind and here.tool != "" and (not f.tools or here.tool in f.tools)
        case Said():
            return trace[last].kind == "said"
        case Untrusted():
            return trace[last].kind in ("returned", "failed") and trace[last].untrusted
        case Not():
            return not value(f.of, last)
        case And():
            return value(f.left, last) and value(f.right, last)
        case Or():
            return value(f.left, last) or value(f.right, last)
        case Implies():
            return not value(f.left, last) or value(f.right, last)
        case KOf():
            return sum(value(g, last) for g in f.parts) >= f.k
    window = [j for j in range(last + 1) if in_window(f.within, trace, j)]
    match f:
        case Previously():
            return last - 1 in window and value(f.of, last - 1)
        case Once():
            return any(value(f.of, j) for j in window)
        case Historically():
            return all(value(f.of, j) for j in window)
        case AtLeast():
            return sum(value(f.of, j) for j in window) >= f.n
        case Since():
            return any(value(f.right, j) and all(value(f.left, k) for k in range(j + 1, last + 1)) for j in window)


def holds_at_end(f, trace):
    """The definition with nothing remembered: every part is read again over its prefix of the trace."""
    return holds(f, trace, lambda g, j: holds_at_end(g, trace[: j + 1]))

"""What a rule demands of a call's arguments, as JSON Schema, so that a grammar can keep to it beforehand.

Only a relaxation: what the schema lets through is judged again. A demand is an argument comparison that must hold
unless something else makes the rule true; `needs_of` returns both.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from edgeagent.core.values import canonical_json
from edgeagent.policy.formula import And, Argument, Formula, Happened, Implies, Not, Or

Narrowed = tuple[str, str, str]
"""Tool, argument, JSON Schema as canonical text."""

Demand = tuple[Argument, bool]
"""An argument comparison, and whether it must hold (or must not)."""

NOTHING = Happened("called") & ~Happened("called")
"""A formula that never holds."""


def needs_of(formula: Formula, others: Formula = NOTHING, positive: bool = True) -> Iterator[tuple[Demand, Formula]]:
    """Yield what the formula (or its opposite) demands, with the formula that would make each demand superfluous."""
    match formula:
        case Argument():
            yield (formula, positive), others
        case Not(of=of):
            yield from needs_of(of, others, not positive)
        case Implies(left=left, right=right):
            yield from needs_of(~left | right, others, positive)
        case And(left=left, right=right) if positive:
            yield from needs_of(left, others)
            yield from needs_of(right, others)
        case Or(left=left, right=right) if not positive:
            yield from needs_of(left, others, False)
            yield from needs_of(right, others, False)
        case And(left=left, right=right):  # Not both: one demand falls away when the other side is false.
            yield from needs_of(left, others | ~right, False)
            yield from needs_of(right, others | ~left, False)
        case Or(left=left, right=right):
            yield from needs_of(left, others | right)
            yield from needs_of(right, others | left)
        case _:
            return  # It demands nothing of arguments here.


def schema_of(demand: Demand) -> str | None:
    """Return the demand as JSON Schema, or None if a grammar could not keep to it."""
    argument, positive = demand
    if "." in argument.name:
        return None
    table = _MUST if positive else _MUST_NOT
    make = table.get(argument.comparison)
    return canonical_json(make(argument.value)) if make else None


_MUST: dict[str, Any] = {
    "<": lambda v: {"exclusiveMaximum": v},
    "<=": lambda v: {"maximum": v},
    ">": lambda v: {"exclusiveMinimum": v},
    ">=": lambda v: {"minimum": v},
    "==": lambda v: {"enum": [v]},
    "among": lambda v: {"enum": list(v)},
    "matches": lambda v: {"pattern": f"^(?:{v})$"},
}
_MUST_NOT: dict[str, Any] = {
    "<": lambda v: {"minimum": v},
    "<=": lambda v: {"exclusiveMinimum": v},
    ">": lambda v: {"maximum": v},
    ">=": lambda v: {"exclusiveMaximum": v},
}

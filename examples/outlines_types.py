"""Types of the package outlines as argument types: `to: Annotated[...]` made of `outlines.types.email` and the like.

from examples.outlines_types import argument

Email = argument(outlines.types.email)
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta
from outlines import types
from outlines.types.dsl import CFG, Choice, JsonSchema, Term, to_regex

from edgeagent.shape.foreign import Schema
from edgeagent.shape.parse import parse

READY: dict[str, Any] = {
    types.integer.pattern: int,
    types.number.pattern: float,
    types.boolean.pattern: bool,
    types.string.pattern: str,
}
"""What these say as a pattern, a Python type says better."""


def argument(term: Term) -> Any:
    """Return the annotation of an argument that is of the term. Raises TypeError for what is no JSON value."""
    meant = READY.get(getattr(term, "pattern", ""))
    if meant is not None:
        return meant
    match term:
        case Choice(items=items):
            return Literal[tuple(items)]
        case JsonSchema(schema=schema):
            return Annotated[Any, Schema(parse(schema))]
        case CFG():
            raise TypeError("a context-free grammar of outlines is no JSON value: take a type")
        case _:
            return Annotated[str, Meta(pattern=f"^(?:{to_regex(term)})$")]

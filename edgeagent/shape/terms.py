"""What does a type of the package outlines mean as an argument? Its regular expressions, choices and JSON Schemas.

Recognised by where its class comes from, so that outlines is never imported for an author who does not use it.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from edgeagent.errors import ShapeError
from edgeagent.shape.foreign import foreign
from edgeagent.shape.nodes import Foreign
from edgeagent.shape.parse import parse
from edgeagent.shape.pointer import pointer_to

HOME = "outlines.types.dsl"


class TermError(ValueError):
    """A term that no argument can be; the text is reason and remedy."""


def is_term(annotation: Any) -> bool:
    """Return whether this is a value of outlines' types, such as `outlines.types.email`."""
    return any(kind.__module__ == HOME and kind.__name__ == "Term" for kind in type(annotation).__mro__)


def kind_of(term: Any) -> str:
    """Return the name of the term's class: `Choice`, `JsonSchema`, `CFG`, or one of those that are regular."""
    return type(term).__name__


def python_type(term: Any) -> Any:
    """Return the Python type that a ready type of outlines stands for, or None."""
    ready = sys.modules["outlines.types"]
    pattern = getattr(term, "pattern", None)
    meant = {"integer": int, "number": float, "boolean": bool, "string": str}
    return next((python for name, python in meant.items() if getattr(ready, name).pattern == pattern), None)


def pattern_of(term: Any) -> str:
    """Return the pattern that a whole text must be of. Raises TermError."""
    try:
        return f"^(?:{sys.modules[HOME].to_regex(term)})$"
    except (TypeError, ValueError) as error:
        raise TermError(f"outlines makes no regular expression of it: {error}") from None


def foreign_term(term: Any, name: str) -> Foreign:
    """Return the node of a JSON Schema that stands under `$defs` as `name`. Raises TermError."""
    try:
        schema = parse(term.schema)
        if not isinstance(schema, dict):
            raise TermError("a JSON Schema is an object here")
        node = foreign(schema)
    except (ShapeError, ValueError) as error:
        raise TermError(str(error)) from None
    return Foreign(_moved(node.schema, pointer_to(["$defs", name])), node.why_not)


def _moved(schema: Any, root: str) -> Any:
    """The schema with its references as they are from where it stands."""
    if isinstance(schema, list):
        return [_moved(each, root) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    moved = {key: _moved(each, root) for key, each in schema.items()}
    reference = moved.get("$ref")
    if isinstance(reference, str) and (reference == "#" or reference.startswith("#/")):
        moved["$ref"] = root + reference[1:]
    return moved

"""JSON Schemas from elsewhere as nodes: a value goes through as it is, or is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from edgeagent.errors import GrammarError, ShapeError
from edgeagent.shape.admits import admits
from edgeagent.shape.nodes import Foreign
from edgeagent.shape.pointer import Document


def foreign(schema: Mapping[str, Any]) -> Foreign:
    """Return the node of a schema. Raises ShapeError for what cannot be checked."""
    try:
        own = orjson.loads(orjson.dumps(schema))  # A copy of our own, and JSON through and through.
        document = Document(own)
        document.check_references(own)
    except (TypeError, GrammarError) as error:
        raise ShapeError(str(error)) from None
    return Foreign(own, lambda value: admits(own, value, document))


def foreign_arguments(schema: Mapping[str, Any]) -> Foreign:
    """Return the node of a schema that says what the arguments of a tool are: an object."""
    if not isinstance(schema, Mapping) or schema.get("type", "object") != "object":
        raise ShapeError('the schema of a tool\'s arguments is of an object: {"type": "object", "properties": {...}}')
    return foreign({"type": "object", **schema})

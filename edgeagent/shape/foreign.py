"""JSON Schemas from elsewhere as nodes: a value goes through as it is, or is refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from edgeagent.errors import GrammarError, ShapeError
from edgeagent.shape.admits import why_not
from edgeagent.shape.drafts import renewed
from edgeagent.shape.nodes import Foreign
from edgeagent.shape.pointer import Document


class Schema(Struct, frozen=True):
    """A JSON Schema of any draft beside a type: `level: Annotated[Any, Schema({"maximum": 3})]`."""

    schema: Any


def foreign(schema: Any) -> Foreign:
    """Return the node of a schema of any draft. Raises ShapeError for what cannot be kept to."""
    try:
        new = renewed(json.loads(json.dumps(schema, allow_nan=False)))  # Our own, and JSON through and through.
        own = {} if new is True else {"not": {}} if new is False else new
        document = Document(own)
        document.check_references(own)
    except (TypeError, ValueError, GrammarError) as error:
        raise ShapeError(str(error)) from None
    except RecursionError:
        raise ShapeError("nested too deep to be held") from None
    return Foreign(own, lambda value, path: why_not(own, value, document, path))


def foreign_arguments(schema: Any) -> Foreign:
    """Return the node of a schema that says what the arguments of a tool are: an object."""
    if not isinstance(schema, Mapping) or schema.get("type", "object") != "object":
        raise ShapeError('the schema of a tool\'s arguments is of an object: {"type": "object", "properties": {...}}')
    return foreign({"type": "object", **schema})


_VALUES = frozenset(("enum", "const", "default", "examples"))


def moved(schema: Any, root: str) -> Any:
    """Return the schema with its references as they are from where it now stands."""
    if isinstance(schema, list):
        return [moved(each, root) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    own = {key: each if key in _VALUES else moved(each, root) for key, each in schema.items()}
    reference = own.get("$ref")
    if isinstance(reference, str):
        own["$ref"] = root + reference[1:]
    return own

"""Keywords of JSON Schema, of every draft: since when, until when, who holds a value to it, what may stand behind it.

in the grammar  what it forbids is never written by a model that writes under a grammar; the decoder checks it too
decoder         the decoder checks it, and a call that does not keep to it does not run
note            it restricts nothing
refused         a schema that uses it is refused when the tool is declared, by the keyword's name
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

DRAFTS = {
    "3": "http://json-schema.org/draft-03/schema",
    "4": "http://json-schema.org/draft-04/schema",
    "6": "http://json-schema.org/draft-06/schema",
    "7": "http://json-schema.org/draft-07/schema",
    "2019-09": "https://json-schema.org/draft/2019-09/schema",
    "2020-12": "https://json-schema.org/draft/2020-12/schema",
}
"""The drafts by name, oldest first, with what `$schema` says for each."""

NEWEST = "2020-12"

Held = Literal["grammar", "decoder", "note", "refused"]
Inside = Literal[
    "any", "text", "flag", "count", "number", "step", "pattern", "types", "values", "names", "needs", "vocabulary",
    "schema", "schemas", "items", "map", "patterns", "dependencies", "bound",
]  # fmt: skip


class Keyword(Struct, frozen=True):
    """One keyword, and what may stand behind it; `says` is for the table where the name does not say enough."""

    held: Held
    inside: Inside
    since: str = "3"
    until: str = NEWEST
    says: str = ""

    def is_of(self, draft: str) -> bool:
        """Return whether the draft knows the keyword."""
        names = list(DRAFTS)
        return names.index(self.since) <= names.index(draft) <= names.index(self.until)


KEYWORDS: dict[str, Keyword] = {
    "$schema": Keyword("note", "text", says="chooses the draft; an unknown one is refused"),
    "id": Keyword("note", "any", until="4", says="`#name` is an anchor; refused where references stand below it"),
    "$id": Keyword("note", "text", "6", says="`#name` is an anchor (6, 7); refused where references stand below it"),
    "$anchor": Keyword("grammar", "text", "2019-09"),
    "$ref": Keyword("grammar", "text", says="within the schema; elsewhere is refused. To 7 it stands alone"),
    "$recursiveRef": Keyword("grammar", "text", "2019-09", "2019-09", "means `#`: a schema is one document"),
    "$recursiveAnchor": Keyword("note", "flag", "2019-09", "2019-09"),
    "$dynamicRef": Keyword("grammar", "text", "2020-12", says="the anchor of that name: a schema is one document"),
    "$dynamicAnchor": Keyword("grammar", "text", "2020-12"),
    "$vocabulary": Keyword("refused", "any", "2019-09"),
    "$comment": Keyword("note", "any"),
    "$defs": Keyword("note", "map"),
    "definitions": Keyword("note", "map"),
    "title": Keyword("note", "text"),
    "description": Keyword("note", "text"),
    "default": Keyword("note", "any"),
    "examples": Keyword("note", "any"),
    "deprecated": Keyword("note", "any"),
    "readOnly": Keyword("note", "any"),
    "writeOnly": Keyword("note", "any"),
    "contentMediaType": Keyword("note", "text"),
    "contentEncoding": Keyword("note", "text"),
    "contentSchema": Keyword("note", "any"),
    "type": Keyword("grammar", "types", says="in 3 and 4, 1.0 is no integer"),
    "enum": Keyword("grammar", "values"),
    "const": Keyword("grammar", "any", "6"),
    "multipleOf": Keyword("grammar", "step", "4", says="with more than 1,024 multiples of a fraction: decoder"),
    "divisibleBy": Keyword("refused", "step", "3", "3", "write `multipleOf`"),
    "minimum": Keyword("grammar", "number"),
    "maximum": Keyword("grammar", "number"),
    "exclusiveMinimum": Keyword("grammar", "bound", says="a flag beside the bound in 3 and 4"),
    "exclusiveMaximum": Keyword("grammar", "bound", says="a flag beside the bound in 3 and 4"),
    "minLength": Keyword("grammar", "count"),
    "maxLength": Keyword("grammar", "count"),
    "pattern": Keyword("grammar", "pattern", says="what no grammar can hold is refused"),
    "format": Keyword("grammar", "any", says="those listed below; another one is a note"),
    "items": Keyword("grammar", "items", says="a list means `prefixItems`, to 2019-09"),
    "prefixItems": Keyword("grammar", "schemas", "2020-12"),
    "additionalItems": Keyword("grammar", "schema", until="2019-09"),
    "minItems": Keyword("grammar", "count"),
    "maxItems": Keyword("grammar", "count"),
    "uniqueItems": Keyword("decoder", "flag"),
    "contains": Keyword("decoder", "schema", "6"),
    "minContains": Keyword("decoder", "count", "2019-09"),
    "maxContains": Keyword("decoder", "count", "2019-09"),
    "unevaluatedItems": Keyword("decoder", "schema", "2019-09", says="2019-09: refused in a schema with `contains`"),
    "properties": Keyword("grammar", "map"),
    "required": Keyword("grammar", "names", says="in 3 a flag of the property itself"),
    "additionalProperties": Keyword("grammar", "schema"),
    "patternProperties": Keyword("grammar", "patterns", says="beside `properties`, and beyond the first: decoder"),
    "propertyNames": Keyword("grammar", "schema", "6"),
    "minProperties": Keyword("decoder", "count", "4", says="of a map: in the grammar"),
    "maxProperties": Keyword("decoder", "count", "4", says="of a map: in the grammar"),
    "dependentRequired": Keyword("decoder", "needs", "2019-09"),
    "dependentSchemas": Keyword("decoder", "map", "2019-09"),
    "dependencies": Keyword("decoder", "dependencies", says="both of these in one, to 7; kept to in every draft"),
    "unevaluatedProperties": Keyword("grammar", "schema", "2019-09"),
    "allOf": Keyword("grammar", "schemas", "4"),
    "anyOf": Keyword("grammar", "schemas", "4"),
    "oneOf": Keyword("grammar", "schemas", "4", says="options that may overlap: decoder"),
    "not": Keyword("decoder", "schema", "4"),
    "if": Keyword("decoder", "schema", "7"),
    "then": Keyword("decoder", "schema", "7"),
    "else": Keyword("decoder", "schema", "7"),
    "extends": Keyword("grammar", "schemas", "3", "3", "means `allOf`"),
    "disallow": Keyword("refused", "any", "3", "3", "write `not`"),
}

TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")


def draft_of(uri: str) -> str | None:
    """Return the draft that `$schema` names, or None."""
    known = uri.rstrip("#").replace("https://json-schema.org/draft-0", "http://json-schema.org/draft-0")
    return next((name for name, said in DRAFTS.items() if said == known), None)

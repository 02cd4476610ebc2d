"""What a server offers, as it declares it: tools and resources, each with the digest that an approval pins.

Pure. What a server writes is outsiders' text: it is made fit to be read before anything else is done with it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

import msgspec

from edgeagent.core.agent import Tool
from edgeagent.core.names import is_real
from edgeagent.core.text import shown
from edgeagent.core.values import canonical_json
from edgeagent.driver.mcp.settings import ServerSettings
from edgeagent.errors import EdgeAgentError

ABOUT_CHARS_MAX = 600
"""What a model is told of one tool: some 150 tokens. The whole text is pinned all the same."""

NAME_CHARS_MAX = 90
"""Of a tool's own name, so that it fits behind that of its server."""

RESOURCE = "resource:"
"""How `allow` names what can be read instead of called; a URI follows."""

READ_RESOURCE = "read_resource"
"""The tool by which a server's resources are read."""


class Declared(msgspec.Struct, frozen=True, dict=True):
    """A tool or a resource (`resource:URI`) as its server declares it."""

    name: str
    about: str
    schema: dict[str, Any]

    @cached_property
    def digest(self) -> str:
        """Digest of all of it: what changes is another tool."""
        return hashlib.sha256(canonical_json([self.name, self.about, self.schema]).encode()).hexdigest()[:16]

    @property
    def is_resource(self) -> bool:
        """Whether it is read by its URI instead of being called."""
        return self.name.startswith(RESOURCE)


def declared_tool(found: Any) -> Declared | None:
    """The tool that an entry of `tools/list` declares; None if it is none."""
    if not isinstance(found, Mapping) or not isinstance(found.get("name"), str):
        return None
    about, schema = found.get("description"), found.get("inputSchema")
    if not isinstance(schema, Mapping) or not isinstance(about, str | None):
        return None
    title = found.get("title")
    return _declared(found["name"], about or (title if isinstance(title, str) else "") or found["name"], dict(schema))


def declared_resource(found: Any) -> Declared | None:
    """The resource that an entry of `resources/list` declares; None if it is none."""
    if not isinstance(found, Mapping) or not isinstance(found.get("uri"), str):
        return None
    words = [found[key] for key in ("name", "description") if isinstance(found.get(key), str) and found[key]]
    return _declared(RESOURCE + found["uri"], ": ".join(words), {})


def _declared(name: str, about: str, schema: dict[str, Any]) -> Declared | None:
    declared = Declared(name, about, schema)
    try:
        _ = declared.digest
    except (TypeError, ValueError, RecursionError):
        return None  # It cannot be written down, so nobody could approve it.
    return declared


def why_not_fit(declared: Declared, server: str) -> str:
    """Why nobody can be offered this tool, whoever approves it; empty if it is fit."""
    if declared.is_resource:
        return "" if declared.name.isascii() and declared.name.isprintable() else "its URI is not plain text"
    if len(declared.name) > NAME_CHARS_MAX or not is_real(declared.name):
        return "its name is not letters, digits, '_', '-', '.' and '/'"
    if declared.name == READ_RESOURCE:
        return f"it is called {READ_RESOURCE}, as the tool is by which resources are read"
    try:
        _ = Tool.of_schema(
            f"{server}/{declared.name}", "-", closed(declared.schema), lambda given: None, idempotent=True
        )
    except EdgeAgentError as error:
        return str(error)
    return ""


def told(declared: Declared, server: ServerSettings) -> tuple[str, dict[str, Any], bool]:
    """What the model is told of a tool: the words, the schema, and whether its server wrote any of them."""
    own = server.about.get(declared.name)
    if own:
        return own, _without_words(closed(declared.schema)), False
    about = shown(declared.about, lines=True).strip()
    if len(about) > ABOUT_CHARS_MAX:
        about = f"{about[:ABOUT_CHARS_MAX].rstrip()}…"
    return about or declared.name, closed(declared.schema), True


def closed(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of arguments with nothing in it but what it names, where it leaves that open."""
    return {"type": "object", "properties": {}, "additionalProperties": False} | dict(schema)


_WORDS = frozenset(("title", "description", "examples", "$comment", "markdownDescription"))
_NAMED = frozenset(("properties", "patternProperties", "$defs", "definitions", "dependentSchemas"))
_VALUES = frozenset(("enum", "const"))


def _without_words(schema: Any) -> Any:
    """A schema without what is said in it to its reader."""
    if isinstance(schema, list):
        return [_without_words(each) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    kept: dict[str, Any] = {}
    for key, each in schema.items():
        if key in _NAMED and isinstance(each, Mapping):
            kept[key] = {name: _without_words(inner) for name, inner in each.items()}
        elif key not in _WORDS:
            kept[key] = each if key in _VALUES else _without_words(each)
    return kept


def digest_of(offer: Iterable[Declared]) -> str:
    """One digest of several declarations, in any order: what a person has seen and says yes to."""
    digests = sorted(each.digest for each in offer)
    return hashlib.sha256("".join(digests).encode()).hexdigest()[:16]

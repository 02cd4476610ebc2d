"""Where a `$ref` points: JSON Pointer inside one schema document, never by splitting names or fetching anything."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from edgeagent.errors import GrammarError


class Document:
    """One schema and everything inside it that a reference may name."""

    def __init__(self, root: Any) -> None:
        self.root = root

    def at(self, reference: Any) -> Any:
        """Return the schema a reference points at; raise `GrammarError` saying why there is none."""
        if not isinstance(reference, str) or not reference.startswith("#"):
            raise GrammarError(f"$ref {reference!r} leaves the document: put the schema under $defs")
        fragment = _unquoted(reference[1:])
        if fragment and not fragment.startswith("/"):
            return self._anchor(fragment)
        found = self.root
        for part in parts_of(reference[1:]):
            found = self._step(found, part, reference)
        if not isinstance(found, dict | bool):
            raise GrammarError(f"$ref {reference!r} points at no schema")
        return found

    def check_references(self, inside: Any) -> None:
        """Look up every reference inside a schema; raise `GrammarError` for one that points at nothing."""
        for schema in _objects(inside):
            if isinstance(schema.get("$ref"), str):
                self.at(schema["$ref"])

    def _step(self, found: Any, part: str, reference: str) -> Any:
        if isinstance(found, dict) and part in found:
            return found[part]
        if isinstance(found, list) and part.isascii() and part.isdigit() and int(part) < len(found):
            return found[int(part)]
        raise GrammarError(f"$ref {reference!r} points at nothing: there is no {part!r}")

    def _anchor(self, name: str) -> Any:
        for schema in _objects(self.root):
            if schema.get("$anchor") == name:
                return schema
        raise GrammarError(f"$ref '#{name}' points at nothing: no $anchor has that name")


def parts_of(fragment: str) -> tuple[str, ...]:
    """Return the keys that a JSON Pointer in a URI's fragment names, from the root on."""
    parts = _unquoted(fragment).split("/")[1:]
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in parts)


def pointer_to(parts: Iterable[str]) -> str:
    """Return the reference to where the keys lead."""
    return "".join(("#", *(f"/{part.replace('~', '~0').replace('/', '~1').replace('%', '%25')}" for part in parts)))


def _unquoted(fragment: str) -> str:
    """Return the fragment of a URI with its percent escapes read."""
    escapes = re.compile("(?:%[0-9A-Fa-f]{2})+")
    return escapes.sub(lambda match: bytes.fromhex(match[0].replace("%", "")).decode(errors="replace"), fragment)


def _objects(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        yield node
        for item in node.values():
            yield from _objects(item)
    elif isinstance(node, list):
        for item in node:
            yield from _objects(item)

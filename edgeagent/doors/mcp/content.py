"""What a tool returned, as the contents that MCP knows: text, pictures, sounds, and files of any other kind.

The runtime tells of bytes only their kind, size and digest, and keeps them beside the trace; a program gets them whole.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from typing import Any

from edgeagent.core.values import canonical_json
from edgeagent.runtime.answer import Called

BLOBS_BYTES_MAX = 1 << 20
"""Bytes of one result that are sent; what is larger is only told of."""

RESULT = "edgeagent://result/"
"""How the URI of bytes begins that a tool returned: their digest follows."""

Blob = Callable[[str], bytes | None]
"""The bytes of a digest, where they are kept and not too many."""


def told_result(called: Called, blob: Blob) -> dict[str, Any]:
    """A result of `tools/call`."""
    if called.error:
        return told_failure(called.error)
    result = called.result
    blobs = list(_contents(result, blob))
    text = called.unshown or (result if isinstance(result, str) else canonical_json(result))
    contents = [] if _is_bytes(result) and blobs else [{"type": "text", "text": text}]
    told: dict[str, Any] = {"content": [*contents, *blobs]}
    return told | {"structuredContent": result} if isinstance(result, dict) else told


def told_failure(why: str) -> dict[str, Any]:
    """A result that says why there is none."""
    return {"content": [{"type": "text", "text": why}], "isError": True}


def _is_bytes(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() == {"bytes", "kind", "sha256"}


def _contents(value: Any, blob: Blob) -> Iterator[dict[str, Any]]:
    if _is_bytes(value):
        content = blob(value["sha256"])
        if content is not None:
            yield _content(value["kind"], value["sha256"], content)
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _contents(each, blob)


def _content(kind: str, digest: str, content: bytes) -> dict[str, Any]:
    family, coded = kind.partition("/")[0], base64.b64encode(content).decode()
    if family in ("image", "audio"):
        return {"type": family, "data": coded, "mimeType": kind}
    held = {"text": content.decode()} if kind == "text/plain" else {"blob": coded}
    return {"type": "resource", "resource": {"uri": RESULT + digest, "mimeType": kind} | held}

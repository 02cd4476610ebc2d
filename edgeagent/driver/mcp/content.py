"""What came of a call, as a value: an MCP result → what a tool returns. Pure; all of it is outsiders' text.

A text that is JSON is given as the value it is, so that it can be cut where a part ends; what is no text is told by its
kind, size and digest.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from edgeagent.codec.json_text import read_any
from edgeagent.driver.result import told_of_bytes
from edgeagent.errors import PeerMisbehaved

BLOCKS_MAX = 1000
"""Parts of one result."""


def value_of(result: Any) -> Any:
    """The value that a result of `tools/call` holds. Raises PeerMisbehaved."""
    if not isinstance(result, Mapping):
        raise PeerMisbehaved("its answer is no result")
    if result.get("structuredContent") is not None:
        return result["structuredContent"]
    return _joined(_blocks(result, "content"))


def error_of(result: Any) -> str | None:
    """What the server says went wrong in the call; None if it says that it worked."""
    if not isinstance(result, Mapping) or result.get("isError") is not True:
        return None
    said = _joined(_blocks(result, "content"))
    return said if isinstance(said, str) and said else "it failed, and does not say why" if not said else str(said)


def resource_of(result: Any) -> Any:
    """The value that a result of `resources/read` holds. Raises PeerMisbehaved."""
    if not isinstance(result, Mapping):
        raise PeerMisbehaved("its answer is no result")
    return _joined([_resource(each) for each in _list(result, "contents")])


def _blocks(result: Mapping[str, Any], key: str) -> list[Any]:
    return [_block(each) for each in _list(result, key)]


def _list(result: Mapping[str, Any], key: str) -> list[Any]:
    found = result.get(key, [])
    if not isinstance(found, list) or len(found) > BLOCKS_MAX:
        raise PeerMisbehaved(f"its answer has no list `{key}` of at most {BLOCKS_MAX} parts")
    return found


def _joined(parts: list[Any]) -> Any:
    return parts[0] if len(parts) == 1 else parts or ""


def _block(block: Any) -> Any:
    if not isinstance(block, Mapping):
        raise PeerMisbehaved("a part of its answer is no object")
    match block.get("type"):
        case "text":
            return _text(block.get("text"))
        case "image" | "audio":
            return _bytes(block.get("data"))
        case "resource":
            return _resource(block.get("resource"))
        case "resource_link":
            return {key: block[key] for key in ("uri", "name", "description") if isinstance(block.get(key), str)}
        case other:
            raise PeerMisbehaved(f"a part of its answer is {str(other)[:40]!r}, which is no kind of content")


def _resource(found: Any) -> Any:
    if not isinstance(found, Mapping):
        raise PeerMisbehaved("a resource in its answer is no object")
    return _bytes(found["blob"]) if "blob" in found else _text(found.get("text"))


def _text(text: Any) -> Any:
    if not isinstance(text, str):
        raise PeerMisbehaved("a text in its answer is none")
    if text.lstrip()[:1] in ("{", "["):
        value = read_any(text)
        return text if value is None else value
    return text


def _bytes(data: Any) -> Any:
    try:
        return told_of_bytes(base64.b64decode(data, validate=True))
    except (TypeError, ValueError, binascii.Error):
        raise PeerMisbehaved("bytes in its answer are not base64") from None

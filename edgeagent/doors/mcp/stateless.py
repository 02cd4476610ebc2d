"""MCP without a session, as of 2026-07-28: each request says itself what its client can, and is answered by itself.

What a request says stands in its body and, for those in between, in its headers too; the two must agree.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from edgeagent.codec.frames import Skipped
from edgeagent.codec.jsonrpc import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    Batch,
    Fault,
    Incoming,
    Message,
    Notification,
    Request,
    Result,
)
from edgeagent.core.text import shown
from edgeagent.doors.mcp.answers import CAPABILITIES, NO_SUCH_RESOURCE, SERVER, VERSIONS, Answers
from edgeagent.doors.mcp.client import LEVELS, Client
from edgeagent.doors.mcp.stream import Stream
from edgeagent.driver.peer import Call, Refused

STATELESS = "2026-07-28"

HEADER_MISMATCH, BAD_VERSION = -32020, -32022
META = "io.modelcontextprotocol/"

NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""What of a request stands in the header Mcp-Name."""

GONE = frozenset({"initialize", "ping", "logging/setLevel"})
"""Methods that belong to sessions."""

LISTS = frozenset({"tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read"})
PRIVATE = {"ttlMs": 0, "cacheScope": "private"}
"""How results of these may be kept by those in between: what a key may see is its own, and may change at once."""


def is_stateless(headers: Mapping[str, str], message: Incoming) -> bool:
    """Whether a message is one of this kind; what begins or names a session is not."""
    version = headers.get("mcp-protocol-version")
    if version == STATELESS:
        return True
    if "mcp-session-id" in headers or not isinstance(message, Request):
        return False
    has_said = f"{META}protocolVersion" in _meta(message)
    return has_said or message.method == "server/discover" or (version not in (None, *VERSIONS))


def wrong(headers: Mapping[str, str], request: Request) -> Fault | None:
    """Why a request cannot be taken; None where it can."""
    meta, version = _meta(request), headers.get("mcp-protocol-version", "")
    said = meta.get(f"{META}protocolVersion")
    if not isinstance(said, str) or not isinstance(meta.get(f"{META}clientCapabilities"), dict):
        needed = f"_meta must hold {META}protocolVersion and {META}clientCapabilities"
        return Fault(request.id, INVALID_PARAMS, needed)
    if said != version:
        return Fault(request.id, HEADER_MISMATCH, "MCP-Protocol-Version is not what the body says")
    if said != STATELESS:
        data = {"supported": [STATELESS], "requested": said[:80]}
        return Fault(request.id, BAD_VERSION, "this version is spoken with a session, or not at all", data)
    if headers.get("mcp-method") != request.method:
        return Fault(request.id, HEADER_MISMATCH, "Mcp-Method is not what the body says")
    name = NAMED.get(request.method)
    if name is not None and isinstance(request.params, dict):
        stands = request.params.get(name)
        if isinstance(stands, str) and _decoded(headers.get("mcp-name", "")) != stands:
            return Fault(request.id, HEADER_MISMATCH, f"Mcp-Name is not the {name} that the body says")
    return None


def client_of(request: Request) -> Client:
    """What a request says of its client. No log is sent: it could not be switched on."""
    client = Client()
    can = _meta(request).get(f"{META}clientCapabilities", {})
    client.asks, client.is_asked_later, client.level = "elicitation" in can, True, len(LEVELS)
    return client


def status_of(fault: Fault) -> int:
    """The status with which an error is answered."""
    if fault.code == METHOD_NOT_FOUND:
        return 404
    return 400 if fault.code in (HEADER_MISMATCH, BAD_VERSION, INVALID_PARAMS) else 200


class Alone:
    """One request: the owner of its talk, and the way back."""

    def __init__(self, request: Request, answers: Answers, stream: Stream) -> None:
        self._request, self._answers, self._stream = request, answers, stream
        self.fault: Fault | None = None
        """The error that was its answer."""

    def asked(self, call: Call) -> None:
        """Answer it, or put it into its queue."""
        params = call.params if isinstance(call.params, dict) else {}
        if call.method == "server/discover":
            return call.answer({"supportedVersions": [STATELESS], "capabilities": CAPABILITIES} | PRIVATE)
        if call.method in GONE:
            raise Refused(METHOD_NOT_FOUND, f"no method {shown(call.method)!r} without a session")
        return self._answers.asked_by(call, client_of(self._request), params)

    def told(self, note: Notification) -> None:
        """Nothing is told by itself."""

    def skipped(self, found: Skipped) -> Fault | None:
        """Only whole requests come here."""
        return None

    def send(self, message: Message | Batch) -> bool:
        """Send what goes back; an answer with what this version wants in it."""
        if isinstance(message, Result) and isinstance(message.result, dict):
            more = PRIVATE if self._request.method in LISTS else {}
            meta = {"_meta": {f"{META}serverInfo": SERVER}}
            message = Result(message.id, {"resultType": "complete"} | more | meta | message.result)
        elif isinstance(message, Fault):
            code = INVALID_PARAMS if message.code == NO_SUCH_RESOURCE else message.code
            message = self.fault = Fault(message.id, code, message.message, message.data)
        return self._stream.send(message)


def _meta(request: Request) -> dict[str, Any]:
    meta = request.params.get("_meta") if isinstance(request.params, dict) else None
    return meta if isinstance(meta, dict) else {}


def _decoded(value: str) -> str:
    """A header's value: what is no plain ASCII stands there as `=?base64?...?=`."""
    if not (value.startswith("=?base64?") and value.endswith("?=")):
        return value
    try:
        return base64.b64decode(value[9:-2], validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return ""

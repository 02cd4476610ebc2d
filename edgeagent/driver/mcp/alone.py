"""Version 2026-07-28 of the protocol, as a client speaks it: no session, and each request says all of itself.

What a server wants to know in the middle it asks as its answer (`input_required`); the request then comes again.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Any

from edgeagent.codec.jsonrpc import Request
from edgeagent.core.text import shown
from edgeagent.driver.unknown import CommandFailed
from edgeagent.errors import PeerMisbehaved
from edgeagent.version import __version__

STATELESS = "2026-07-28"
BAD_VERSION = -32022

OURS = {"name": "edgeagent", "version": __version__}

ROUNDS_MAX = 8
"""How often one request may be answered by a question."""

MIRRORED = "x-mcp-header"
"""In an argument's schema: the header in which it is to be told to those in between."""

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")

_META = "io.modelcontextprotocol/"
_NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_PLAIN = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")


def with_meta(params: dict[str, Any]) -> dict[str, Any]:
    """The parameters with what this version wants said in every request."""
    said = {"protocolVersion": STATELESS, "clientInfo": OURS, "clientCapabilities": {}}
    return params | {"_meta": {_META + name: value for name, value in said.items()}}


def headers_of(request: Request, mirrored: Mapping[str, str]) -> tuple[str, ...]:
    """What those in between are told of a request; it must agree with what the request says.

    `mirrored` are the arguments that the tool wants told so too, each with the name of its header.
    """
    params = request.params if isinstance(request.params, dict) else {}
    headers = [f"Mcp-Method: {request.method}"]
    named = params.get(_NAMED.get(request.method, ""))
    headers += [f"Mcp-Name: {_header(named)}"] if isinstance(named, str) else []
    given = params.get("arguments", {})
    told = {header: given.get(argument) for argument, header in mirrored.items()}
    return (
        *headers,
        *(f"Mcp-Param-{name}: {_header(_text(value))}" for name, value in told.items() if value is not None),
    )


def mirrored_in(schema: Any) -> dict[str, str] | None:
    """The arguments that a tool wants in headers, each with the header's name; None where it wants what cannot be."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    marked = (
        {name: each for name, each in properties.items() if isinstance(each, dict) and MIRRORED in each}
        if isinstance(properties, dict)
        else {}
    )
    headers = {name: each[MIRRORED] for name, each in marked.items()}
    fits = all(isinstance(each, str) and _TOKEN.fullmatch(each) for each in headers.values())
    if not fits or len({each.lower() for each in headers.values()}) < len(headers):
        return None
    return headers if all(each.get("type") in ("string", "integer", "boolean") for each in marked.values()) else None


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _header(value: str) -> str:
    """A header's value: what is no plain ASCII stands there in base64."""
    if not value or (_PLAIN.fullmatch(value) and not value.startswith("=?base64?")):
        return value
    return f"=?base64?{base64.b64encode(value.encode()).decode()}?="


def is_asked(result: Any) -> bool:
    """Whether a result is none, but asks something."""
    return isinstance(result, dict) and result.get("resultType") == "input_required"


def declining(params: dict[str, Any], result: dict[str, Any]) -> dict[str, Any]:
    """The parameters with which the request comes again: every question to the user declined.

    Raises CommandFailed where it asks for more than that, PeerMisbehaved where it asks nothing.
    """
    asked, state = result.get("inputRequests", {}), result.get("requestState")
    if not isinstance(asked, dict) or not (asked or isinstance(state, str)):
        raise PeerMisbehaved("it wants something before it answers, and does not say what")
    for each in asked.values():
        method = each.get("method") if isinstance(each, dict) else None
        if method != "elicitation/create":
            raise CommandFailed(f"it wants {shown(str(method))[:40]} before it answers, which is not allowed here")
    again = {name: value for name, value in params.items() if name not in ("inputResponses", "requestState")}
    more: dict[str, Any] = {"inputResponses": {name: {"action": "decline"} for name in asked}} if asked else {}
    return again | more | ({"requestState": state} if isinstance(state, str) else {})

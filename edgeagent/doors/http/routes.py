"""Routes: which function answers which request; and the OpenAPI file, which is made from the same table."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec
from msgspec.structs import replace

from edgeagent.doors.http.gate import LOCAL, Gate
from edgeagent.doors.http.login import COOKIE_NAME
from edgeagent.doors.http.message import JSON, Refused, Reply, Request
from edgeagent.version import __version__


class Call(msgspec.Struct, frozen=True):
    """A request on its route: whose it is, and what stands in the path's braces."""

    request: Request
    who: str
    parts: dict[str, str]


@dataclass(frozen=True)
class Route:
    """One line of the table. `path` holds parts in braces; `takes` is the body's type; `needs_key` says who may."""

    method: str
    path: str
    name: str
    about: str
    handle: Callable[[Call], Awaitable[Reply]]
    takes: type | None = None
    gives: tuple[str, ...] = (JSON,)
    query: tuple[str, ...] = ()
    refusals: tuple[int, ...] = ()
    needs_key: bool = True

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """What the path must be."""
        return re.compile(re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>[^/]{1,200})", re.escape(self.path)))


class Router:
    """Answers requests by the table, after the gate has let them in. `told` is given each route's name and status."""

    def __init__(self, routes: Sequence[Route], gate: Gate, told: Callable[[str, int], None] = lambda *_: None) -> None:
        self.routes, self._gate, self._told = tuple(routes), gate, told

    async def answer(self, request: Request) -> Reply:
        """Answer a request. Raises Refused."""
        name = "none"
        try:
            self._gate.check_host(request)
            route, parts = self._found(request)
            name = route.name
            who = self._gate.who(request) if route.needs_key else LOCAL
            reply = await route.handle(Call(request, who, parts))
            if reply.pieces is not None:
                reply = replace(reply, pieces=self._gate.while_in(request, reply.pieces))
        except Refused as refused:
            self._told(name, refused.status)
            raise
        self._told(name, reply.status)
        return reply

    def _found(self, request: Request) -> tuple[Route, dict[str, str]]:
        method = "GET" if request.method == "HEAD" else request.method
        matching = [(route, found) for route in self.routes if (found := route.pattern.fullmatch(request.path))]
        for route, found in matching:
            if route.method == method:
                return route, found.groupdict()
        if matching:
            allowed = ", ".join(sorted({route.method for route, _ in matching}))
            raise Refused(405, "bad_method", f"{request.path} takes {allowed}", (("Allow", allowed),))
        raise Refused(404, "no_such_route", "there is nothing at this path; /openapi.json lists what there is")


def openapi(routes: Sequence[Route]) -> dict[str, Any]:
    """The table as an OpenAPI 3.1 document."""
    kinds = [route.takes for route in routes if route.takes is not None]
    schemas, components = msgspec.json.schema_components(kinds, ref_template="#/components/schemas/{name}")
    bodies = dict(zip(kinds, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        body = None if route.takes is None else bodies[route.takes]
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, body)
    return {
        "openapi": "3.1.0",
        "info": {"title": "edgeagent", "version": __version__},
        "paths": paths,
        "components": {
            "schemas": components | {"Error": ERROR},
            "securitySchemes": {
                "key": {"type": "http", "scheme": "bearer"},
                "page": {"type": "apiKey", "in": "cookie", "name": COOKIE_NAME},
            },
        },
    }


ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["message", "type", "code"],
            "properties": {"message": {"type": "string"}, "type": {"type": "string"}, "code": {"type": "string"}},
        }
    },
}


def _operation(route: Route, body: dict[str, Any] | None) -> dict[str, Any]:
    parts = [_parameter(name, "path") for name in re.findall(r"\{(\w+)\}", route.path)]
    refusals = sorted({400, *route.refusals, *((401, 429) if route.needs_key else ())})
    refused = {"content": {JSON: {"schema": {"$ref": "#/components/schemas/Error"}}}}
    kinds: dict[str, Any] = {kind: {"schema": {"type": "object" if kind == JSON else "string"}} for kind in route.gives}
    operation: dict[str, Any] = {
        "operationId": route.name,
        "summary": route.about,
        "parameters": parts + [_parameter(name, "query") for name in route.query],
        "responses": {"200": {"description": "done", "content": kinds}}
        | {str(status): {"description": "refused"} | refused for status in refusals},
        "security": [{"key": []}, {"page": []}] if route.needs_key else [],
    }
    if body is not None:
        operation["requestBody"] = {"required": True, "content": {JSON: {"schema": body}}}
    return operation


def _parameter(name: str, place: str) -> dict[str, Any]:
    return {"name": name, "in": place, "required": place == "path", "schema": {"type": "string"}}

"""Page for a person: its files as they are in the package, log-in and log-out, and who is logged in."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec

from edgeagent.doors.http.gate import Gate
from edgeagent.doors.http.login import Logins, cookie_in, setting
from edgeagent.doors.http.message import Refused, Reply, as_json
from edgeagent.doors.http.routes import Call, Route
from edgeagent.errors import TraceError

FOLDER = Path(__file__).with_name("page")
KINDS = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


class Key(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A key of this server, as a person types it."""

    key: str


class Page:
    """The routes of the page. Its files are read once, and no other path is ever opened."""

    def __init__(self, gate: Gate, logins: Logins | None) -> None:
        self._gate, self._logins = gate, logins
        self._files = {file.name: (file.read_bytes(), KINDS[file.suffix]) for file in FOLDER.iterdir()}
        html, js = (KINDS[".html"],), (KINDS[".js"], KINDS[".css"], KINDS[".svg"])
        self.routes = (
            Route("GET", "/", "page", "The page for a person.", self._index, gives=html, needs_key=False),
            Route("GET", "/page/{file}", "page_file", "Its parts.", self._file, gives=js, needs_key=False),
            Route("POST", "/api/login", "log_in", "A key for a cookie.", self._log_in, Key, needs_key=False),
            Route("POST", "/api/logout", "log_out", "End the log-in of the cookie.", self._log_out, needs_key=False),
            Route("GET", "/api/me", "me", "Whose key this is, and the token of its page.", self._me),
        )

    async def _index(self, call: Call) -> Reply:
        return self._reply("index.html")

    async def _file(self, call: Call) -> Reply:
        return self._reply(call.parts["file"])

    def _reply(self, name: str) -> Reply:
        found = self._files.get(name)
        if found is None:
            raise Refused(404, "no_such_route", "the page has no such part")
        return Reply(200, *found)

    async def _log_in(self, call: Call) -> Reply:
        key = call.request.as_json(Key).key.strip()
        if self._logins is None:
            return as_json({"name": ""})
        name = self._gate.name_of(key, call.request.peer)
        try:
            cookie = await asyncio.to_thread(self._logins.cookie_for, name)
        except TraceError as error:
            raise Refused(503, "not_kept", str(error)) from None
        return as_json({"name": name}, headers=(setting(cookie, is_secure=call.request.is_secure),))

    async def _log_out(self, call: Call) -> Reply:
        if self._logins is not None:
            try:
                await asyncio.to_thread(self._logins.end, cookie_in(call.request))
            except TraceError as error:
                raise Refused(
                    503, "not_kept", f"logged out until this server starts again, no longer: {error}"
                ) from None
        return as_json({}, headers=(setting("", is_secure=call.request.is_secure),))

    async def _me(self, call: Call) -> Reply:
        cookie = cookie_in(call.request)
        token = self._logins.token_for(cookie) if self._logins is not None and cookie else ""
        return as_json({"name": call.who, "token": token, "has_keys": self._logins is not None})

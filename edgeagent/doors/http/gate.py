"""Gate: may this request come in, and whose is it? Host and origin first, then the key.

A page of another host can make a browser on this network send requests here: under a name of its own that it points at
us (DNS rebinding; told by Host), or across origins (told by Origin and Sec-Fetch-Site). An address in Host is no such
name: it cannot be pointed elsewhere.
"""

from __future__ import annotations

import contextlib
import ipaddress
import math
import socket
import time
from collections import OrderedDict, deque
from collections.abc import AsyncGenerator, Iterable

from edgeagent.doors.http.keys import Keys
from edgeagent.doors.http.login import TOKEN_HEADER, Logins, cookie_in
from edgeagent.doors.http.message import Refused, Request

TRIES_MAX, TRIES_S = 10, 60.0
"""Wrong keys of one address in so many seconds; a person mistypes less often, and a program must wait."""

ADDRESSES_MAX = 1_024
"""Addresses that are remembered for it."""

READING = frozenset({"GET", "HEAD"})
LOCAL = ""
"""Whose a request is where there are no keys: this machine's."""


class Gate:
    """Lets requests in. `names` are the host names under which this server is known, besides its addresses."""

    def __init__(self, keys: Keys | None, names: Iterable[str] = (), logins: Logins | None = None) -> None:
        self._keys, self._logins = keys, logins
        own = socket.gethostname().lower()
        self._names = {"localhost", own, f"{own}.local", *(name.lower() for name in names)}
        self._wrong: OrderedDict[str, deque[float]] = OrderedDict()

    def check_host(self, request: Request) -> None:
        """Raises Refused for a request that a page of another host may have sent."""
        if not request.peer:
            return  # A unix socket: no browser reaches it.
        host = request.headers.get("host", "localhost")
        name = host[1 : host.index("]")] if host.startswith("[") else host.partition(":")[0]
        if name.lower().rstrip(".") not in self._names and not _is_address(name):
            raise Refused(403, "wrong_host", f"this server is not known as {name}; if it is, say --name {name} to it")
        origin = request.headers.get("origin")
        scheme = "https" if request.is_secure else "http"
        if origin is not None and origin not in {f"{scheme}://{host}", f"https://{host}"}:
            raise Refused(403, "wrong_origin", "pages of other hosts may send nothing here")
        if request.headers.get("sec-fetch-site") in {"cross-site", "same-site"}:
            raise Refused(403, "wrong_origin", "pages of other hosts may send nothing here")

    def who(self, request: Request) -> str:
        """The name of the key that came with the request. Raises Refused."""
        if self._keys is None:
            return LOCAL
        if self._logins is not None and "authorization" not in request.headers and cookie_in(request):
            return self._logged_in(self._logins, request)
        scheme, _, key = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not key.strip():
            raise self._unknown("send a key of this server as `Authorization: Bearer KEY`")
        return self.name_of(key.strip(), request.peer)

    def _logged_in(self, logins: Logins, request: Request) -> str:
        cookie = cookie_in(request)
        name = logins.name_in(cookie)
        if name is None:
            raise self._unknown("the log-in has ended: log in again")
        if request.method not in READING and not logins.is_token(request.headers.get(TOKEN_HEADER, ""), cookie):
            raise Refused(403, "no_token", f"a page that is logged in sends its token as {TOKEN_HEADER}")
        return name

    async def while_in(self, request: Request, pieces: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
        """A stream for as long as its request would still be let in: one that a log-in was given ends with it."""
        cookie = cookie_in(request) if self._logins is not None and "authorization" not in request.headers else ""
        async with contextlib.aclosing(pieces):
            async for piece in pieces:
                if cookie and self._logins is not None and self._logins.name_in(cookie) is None:
                    return
                yield piece

    def name_of(self, key: str, peer: str) -> str:
        """Whose key this is. Raises Refused, after some wrong ones of one address with a time to wait."""
        now = time.monotonic()
        tries = self._wrong.get(peer, deque())
        while tries and tries[0] <= now - TRIES_S:
            tries.popleft()
        if len(tries) >= TRIES_MAX:
            wait = math.ceil(tries[0] + TRIES_S - now)
            raise Refused(429, "too_many_tries", f"too many wrong keys; wait {wait} s", (("Retry-After", str(wait)),))
        name = None if self._keys is None else self._keys.name_of(key)
        if name is None:
            self._wrong[peer] = tries
            self._wrong.move_to_end(peer)
            tries.append(now)
            while len(self._wrong) > ADDRESSES_MAX:
                self._wrong.popitem(last=False)
            raise self._unknown("this is no key of this server")
        return name

    def forget_tries(self) -> None:
        """Let every address try again."""
        self._wrong.clear()

    def _unknown(self, why: str) -> Refused:
        return Refused(401, "invalid_api_key", why, (("WWW-Authenticate", 'Bearer realm="edgeagent"'),))


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches this address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"

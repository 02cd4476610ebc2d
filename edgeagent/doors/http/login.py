"""Log-in of a page: a key is given once, and a cookie stands for it from then on, until its time or a log-out ends it.

A browser sends a cookie by itself, also for what another page makes it send. So the cookie is `SameSite=Strict`, no
script can read it, and whatever changes something carries a token besides, which only our own page can ask for.

Law: a cookie holds for as long as its log-in stands in the file, whoever has a copy of it. A file that is lost or
damaged holds none.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
import time
from collections.abc import Callable
from pathlib import Path

from edgeagent.doors.http.keys import Keys
from edgeagent.doors.http.message import Request
from edgeagent.runtime.logins import Standing, logins_of, write_logins

COOKIE_NAME = "edgeagent"
TOKEN_HEADER = "x-csrf-token"

LASTS_S = 30 * 24 * 3600
"""A phone on the wall should not ask each morning; who takes the key out of the file ends it at once."""


LOGINS_MAX = 32
"""Log-ins of one key; one more ends the oldest. A person has a few browsers, and one that is cleared logs in again."""


class Logins:
    """The log-ins of one server: they outlive a restart, and end with their time, with their key, or by a log-out."""

    def __init__(self, secret: bytes, keys: Keys, root: Path, now: Callable[[], float] = time.time) -> None:
        """`root` is the state folder."""
        self._secret, self._keys, self._root, self._now = secret, keys, root, now
        self._changing = threading.Lock()
        self._standing = logins_of(root)

    def cookie_for(self, name: str) -> str:
        """A cookie's value that stands for the key of this name. Raises TraceError where that cannot be kept."""
        number, expires = secrets.token_hex(16), int(self._now()) + LASTS_S
        with self._changing:
            own = {each: end for each, end in self._standing.get(name, {}).items() if end > self._now()}
            own = dict(list(own.items())[1 - LOGINS_MAX :]) | {number: expires}
            self._keep(self._standing | {name: own})
        return f"{name}.{number}.{expires}.{self._seal(name, number, str(expires))}"

    def end(self, cookie: str) -> None:
        """End the log-in of this cookie, for whoever has a copy too. Raises TraceError where that cannot be kept."""
        name = self.name_in(cookie)
        if name is None:
            return
        with self._changing:
            own = {each: end for each, end in self._standing.get(name, {}).items() if each != cookie.split(".")[1]}
            self._keep(self._standing | {name: own})

    def name_in(self, cookie: str) -> str | None:
        """Whose cookie this is; None if it is none of ours, or not any more."""
        name, _, rest = cookie.partition(".")
        number, _, rest = rest.partition(".")
        expires, _, seal = rest.partition(".")
        if not expires.isdecimal() or len(expires) > 12:
            return None
        is_ours = hmac.compare_digest(seal.encode(), self._seal(name, number, expires).encode())
        stands = self._keys.mark_of(name) is not None and number in self._standing.get(name, {})
        return name if is_ours and stands and self._now() < int(expires) else None

    def token_for(self, cookie: str) -> str:
        """What a page that has this cookie must send beside it."""
        return self._mac(b"token", cookie.encode())

    def is_token(self, token: str, cookie: str) -> bool:
        """Whether this is that."""
        return hmac.compare_digest(token.encode(), self.token_for(cookie).encode())

    def _keep(self, standing: Standing) -> None:
        """Change what stands: at once, and on the disk before it is said to be done."""
        self._standing = {name: own for name, own in standing.items() if own and self._keys.mark_of(name) is not None}
        write_logins(self._root, self._standing)

    def _seal(self, name: str, number: str, expires: str) -> str:
        return self._mac(b"cookie", name.encode(), number.encode(), expires.encode(), self._keys.mark_of(name) or b"")

    def _mac(self, *parts: bytes) -> str:
        text = b"".join(len(part).to_bytes(4, "big") + part for part in parts)
        return hmac.new(self._secret, text, hashlib.sha256).hexdigest()


def cookie_in(request: Request) -> str:
    """Our cookie's value, empty where there is none."""
    for pair in request.headers.get("cookie", "").split(";"):
        name, _, value = pair.strip().partition("=")
        if name == COOKIE_NAME:
            return value
    return ""


def setting(value: str, *, is_secure: bool) -> tuple[str, str]:
    """The header that sets our cookie; with an empty value it is taken away."""
    lasts = LASTS_S if value else 0
    more = "; Secure" if is_secure else ""
    return "Set-Cookie", f"{COOKIE_NAME}={value}; Path=/; Max-Age={lasts}; HttpOnly; SameSite=Strict{more}"

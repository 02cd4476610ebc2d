"""Log-in of a page: a key is given once, and a cookie stands for it from then on. Signed values, nothing is kept.

A browser sends a cookie by itself, also for what another page makes it send. So the cookie is `SameSite=Strict`, no
script can read it, and whatever changes something carries a token besides, which only our own page can ask for.
"""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Callable

from edgeagent.doors.http.keys import Keys
from edgeagent.doors.http.message import Request

COOKIE_NAME = "edgeagent"
TOKEN_HEADER = "x-csrf-token"

LASTS_S = 30 * 24 * 3600
"""A phone on the wall should not ask each morning; who takes the key out of the file ends it at once."""


class Logins:
    """The log-ins of one server: they outlive a restart, and end with their time or with their key."""

    def __init__(self, secret: bytes, keys: Keys, now: Callable[[], float] = time.time) -> None:
        self._secret, self._keys, self._now = secret, keys, now

    def cookie_for(self, name: str) -> str:
        """A cookie's value that stands for the key of this name."""
        expires = int(self._now()) + LASTS_S
        return f"{name}.{expires}.{self._seal(name, str(expires))}"

    def name_in(self, cookie: str) -> str | None:
        """Whose cookie this is; None if it is none of ours, or not any more."""
        name, _, rest = cookie.partition(".")
        expires, _, seal = rest.partition(".")
        if not expires.isdecimal() or len(expires) > 12:
            return None
        is_ours = hmac.compare_digest(seal.encode(), self._seal(name, expires).encode())
        is_known = self._keys.mark_of(name) is not None
        return name if is_ours and is_known and self._now() < int(expires) else None

    def token_for(self, cookie: str) -> str:
        """What a page that has this cookie must send beside it."""
        return self._mac(b"token", cookie.encode())

    def is_token(self, token: str, cookie: str) -> bool:
        """Whether this is that."""
        return hmac.compare_digest(token.encode(), self.token_for(cookie).encode())

    def _seal(self, name: str, expires: str) -> str:
        return self._mac(b"cookie", name.encode(), expires.encode(), self._keys.mark_of(name) or b"")

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

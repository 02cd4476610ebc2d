"""Doubt on a line: after an answer that did not come, what may still come, and whose it must not become.

Law: a request without an answer leaves its line doubtful until `late_s` after it was sent. Before that no request is
sent whose answer could be taken for the missing one; what comes meanwhile is drained. The doubt ends early when the
late answer itself has come. Protocols that number their requests (SMP) need none of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Generic, TypeVar

from msgspec import Struct

from edgeagent.driver.line.port import SerialPort

Request = TypeVar("Request")


class Missing(Struct, Generic[Request], frozen=True):
    """A request whose answer did not come: when it was sent, and from which offset on the answer would be heard."""

    request: Request
    sent_at: float
    since: int


class Doubt(Generic[Request]):
    """The answers that are missing on one line."""

    def __init__(self, port: SerialPort, late_s: float, is_answer: Callable[[bytes, Request], bool]) -> None:
        """`is_answer` says whether what was heard holds the answer to a request."""
        self.port = port
        self.late_s = late_s
        self._is_answer = is_answer
        self._missing: tuple[Missing[Request], ...] = ()

    def missed(self, request: Request, sent_at: float, since: int) -> None:
        """Note that the answer to this request did not come."""
        self._missing = (*self._missing, Missing(request, sent_at, since))

    def drain(self, mistakable: Callable[[Request], bool]) -> None:
        """Wait until no missing answer may come any more that could be taken for the next one. Raises LinkLost."""
        at = self.port.offset
        while True:
            now = time.monotonic()
            self._missing = tuple(each for each in self._missing if self._may_come(each, now))
            waiting = [each.sent_at + self.late_s for each in self._missing if mistakable(each.request)]
            if not waiting:
                return
            _, at = self.port.wait(at, max(waiting) - now)

    def _may_come(self, missing: Missing[Request], now: float) -> bool:
        if now >= missing.sent_at + self.late_s:
            return False
        return not self._is_answer(self.port.heard(missing.since), missing.request)

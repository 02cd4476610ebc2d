"""Places of those who wait for an answer: so many at most, and who finds none free is told when to come again."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterator

from edgeagent.doors.http.message import Refused

WAITING_MAX = 32
"""Asks that may wait for the model; on a small board the last of them waits some minutes already."""

ANSWER_S = 5.0
"""What an answer takes, before one has been measured."""


class Places:
    """Counts who waits, and measures how long an answer takes. Only the event loop's thread calls it."""

    def __init__(self, most: int = WAITING_MAX) -> None:
        self.most, self.taken = most, 0
        self._seconds = ANSWER_S

    @contextlib.contextmanager
    def one(self) -> Iterator[Places]:
        """Hold a place. Raises Refused (429) where none is free."""
        if self.taken >= self.most:
            raise self.full(f"{self.taken} asks wait for the model, and no more may")
        self.taken += 1
        among, began = self.taken, time.monotonic()
        try:
            yield self
        finally:
            self.taken -= 1
            self._seconds += ((time.monotonic() - began) / among - self._seconds) / 4

    def full(self, why: str) -> Refused:
        """The refusal of one more, with the time after which the half of those who wait has been served."""
        wait = max(1, min(600, math.ceil(self._seconds * max(1, self.taken) / 2)))
        return Refused(429, "queue_full", f"{why}; come again in {wait} s", (("Retry-After", str(wait)),))

"""Plays: what a console is asked to do, without I/O. Bytes and time go in; what to type and when to look come out.

A play is a generator. It yields wishes (`Type`, `Look`) and is given what came of each; whoever moves the bytes runs it
to its end, and what it returns is the result. So every play can be run against any device model, any clock, any cut.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TypeVar

from msgspec import Struct

from edgeagent.driver.line.profile import Profile
from edgeagent.driver.line.view import View

ECHO_S = 2.0
"""How long a typed line may take to come back, besides the line's own round trip."""

LAG_S_MAX = 3.0
"""How long the first answer is waited for: satellites take two seconds there and back. A profile may say more."""


class Type(Struct, frozen=True):
    """Please send these bytes, once. `hidden`: they go into no record."""

    data: bytes
    hidden: bool = False


class Look(Struct, frozen=True):
    """Please say what came, as soon as anything did, and at this time at the latest."""

    until: float


Wish = Type | Look


class Given(Struct, frozen=True):
    """What came of a wish: the time, the bytes heard, how many of the typed ones left, and why the line is gone."""

    now: float
    heard: bytes = b""
    accepted: int = 0
    lost: str = ""


Result = TypeVar("Result")
Play = Generator[Wish, Given, Result]


class LineGone(Exception):
    """The line went away inside a play."""


class Typist:
    """What every play on a console is made of: typing at the device's pace, looking, waiting.

    `lag_s` is how long the line takes there and back, as it was measured last (satellite, cellular); never less than
    the profile says.
    """

    def __init__(self, profile: Profile, word: Callable[[], str]) -> None:
        self.profile = profile
        self.word = word
        self.now = 0.0
        self.lag_s = profile.round_trip_s
        self.view = View(profile)
        self._beside: View | None = None

    def wish(self, wish: Wish) -> Play[Given]:
        """Have one wish carried out, and take in what came of it. Raises LineGone."""
        given = yield wish
        self.now = given.now
        if given.heard:
            self.view.feed(given.heard)
            if self._beside is not None:
                self._beside.feed(given.heard)
        if given.lost:
            raise LineGone(given.lost)
        return given

    def measured(self, round_trip_s: float) -> None:
        """Take in how long an answer took. It goes down slowly: what came early may have answered something before."""
        self.lag_s = max(self.profile.round_trip_s, round_trip_s, self.lag_s / 2)

    def look(self, seconds: float, until: float | None = None) -> Play[bool]:
        """Take in what comes within the seconds, not after `until`; return whether anything came."""
        limit = self.now + max(0.0, seconds)
        given = yield from self.wish(Look(limit if until is None else min(limit, until)))
        return bool(given.heard)

    def quiet(self, seconds: float) -> Play[bool]:
        """Wait so long; return whether nothing came."""
        came = yield from self.look(seconds)
        return not came

    def pause(self, seconds: float) -> Play[None]:
        """Wait so long, whatever comes."""
        until = self.now + seconds
        while self.now < until:
            yield from self.wish(Look(until))

    def fresh(self) -> Play[View]:
        """Begin a new view. What came before belongs to the old one."""
        while (yield from self.look(0)):
            pass
        self.view = View(self.profile)
        return self.view

    def send(self, keys: str) -> Play[None]:
        """Press keys."""
        if keys:
            yield from self.wish(Type(keys.encode("latin-1")))

    def type(self, text: str, *, slower: int = 0, until: float | None = None, hidden: bool = False) -> Play[int]:
        """Type at the pace that the device can take; return the bytes that the line took. Each try is slower."""
        pacing = self.profile.pacing
        data = text.encode()
        size = 1 if pacing.char_ms or slower > 1 else max(1, min(pacing.chunk_bytes, 256 if not slower else 16))
        wait_ms = max(pacing.char_ms if size == 1 else pacing.chunk_ms, (0, 10, 5)[slower])
        accepted = 0
        for at in range(0, len(data), size):
            if until is not None and self.now >= until:
                return accepted
            portion = data[at : at + size]
            given = yield from self.wish(Type(portion, hidden))
            accepted += given.accepted
            if given.accepted < len(portion) or (hidden and self.view.clean[0].strip("*")):
                return accepted
            if wait_ms:
                yield from self.pause(wait_ms / 1000)
        if pacing.line_ms:
            yield from self.pause(pacing.line_ms / 1000)
        return accepted

    def answer_cursor(self) -> Play[None]:
        """Say where the cursor is, where the profile says that the device wants to know."""
        asked, self.view.asked = self.view.asked, 0
        if asked and self.profile.answer_cursor_query:
            yield from self.send("\x1b[1;1R" * asked)

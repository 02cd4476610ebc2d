"""MicroPython's raw REPL as a transaction of its own: what it says, and the play that runs code in it.

It takes code up to Ctrl-D, then sends `OK`, the output, Ctrl-D, the traceback, Ctrl-D and `>`.
"""

from __future__ import annotations

from edgeagent.driver.line.outcome import DeviceReset, Done, Failed, Outcome, TimedOut
from edgeagent.driver.line.play import Play, Typist

ENTER = "\x02\x03\x03\x01"
"""Leave a raw REPL that somebody else left open, break off what runs, enter. No soft reset: what was defined stays."""

RUN = "\x04"
LEAVE = "\x02"
ANSWER_S = 2.0
"""How long the device may take to go in or out of it, besides the line's own round trip."""


def is_ready(heard: bytes) -> bool:
    """Return whether the raw prompt stands there; its banner may be cut and follow anything (micropython#1491)."""
    return heard.endswith(b"CTRL-B to exit\r\n>")


def read(heard: bytes) -> Done | Failed | None:
    """Return how the code ended, or None while it runs."""
    if not heard.endswith(b"\x04>"):
        return None
    _, begun, rest = heard.partition(b"OK")
    if not begun:
        return Failed(_text(heard), None)
    output, middle, traceback = rest[:-2].rpartition(b"\x04")
    if not middle:
        return None  # The output itself ends so; the real end is still to come.
    return Failed(_text(output + traceback), 1) if traceback.strip() else Done(_text(output))


def begun(heard: bytes) -> str:
    """Return the output so far."""
    return _text(heard.partition(b"OK")[2])


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "backslashreplace").replace("\r\n", "\n").strip("\n")


def enter(typist: Typist, until: float) -> Play[bool]:
    """Synchronise as tolerantly as ampy#43 asks for: what stands before the prompt does not matter."""
    view = yield from typist.fresh()
    yield from typist.send(ENTER)
    limit = min(until, typist.now + ANSWER_S + typist.lag_s)
    while typist.now < limit and not is_ready(bytes(view.raw)):
        yield from typist.look(0.1, limit)
    return is_ready(bytes(view.raw))


def until_end(typist: Typist, until: float) -> Play[Outcome]:
    """Have the code that was typed run, and read how it ended."""
    started = typist.now
    view = yield from typist.fresh()
    yield from typist.send(RUN)
    while True:
        yield from typist.look(0.2, until)
        if (answer := read(bytes(view.raw))) is not None:
            return answer
        if banner := view.banner:
            return DeviceReset(view.clean[0], banner)
        if typist.now >= until:
            return TimedOut(begun(bytes(view.raw)), round((typist.now - started) * 1000))


def leave(typist: Typist) -> Play[None]:
    """Go back to the friendly prompt."""
    view = yield from typist.fresh()
    yield from typist.send(LEAVE)
    limit = typist.now + ANSWER_S + typist.lag_s
    while typist.now < limit and not view.prompt:
        yield from typist.look(0.1, limit)

"""What does MicroPython's raw REPL say? Bytes in, an outcome out.

It takes code up to Ctrl-D, then sends `OK`, the output, Ctrl-D, the traceback, Ctrl-D and `>`.
"""

from __future__ import annotations

from edgeagent.driver.line.outcome import Done, Failed

ENTER = "\x02\x03\x03\x01"
"""Leave a raw REPL that somebody else left open, break off what runs, enter. No soft reset: what was defined stays."""

RUN = "\x04"
LEAVE = "\x02"


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

"""How a line is shown: as text, as hex, as one JSON object a moment. Moments in, bytes for the terminal out."""

from __future__ import annotations

import json
import time
from typing import Literal, Protocol

from edgeagent.core.text import shown
from edgeagent.driver.line.displayed import Displayed, HexView
from edgeagent.driver.line.port import Moment

Stamps = Literal["none", "clock", "start", "delta"]
STAMPS: tuple[Stamps, ...] = ("none", "clock", "start", "delta")


class Stamper:
    """Times that stand before lines. Counts by the clock that never jumps, and reads the wall clock once."""

    def __init__(self, kind: Stamps, start_ns: int, wall_ns: int) -> None:
        self.kind = kind
        self._start_ns = start_ns
        self._wall_ns = wall_ns
        self._before_ns = start_ns

    def stamp(self, at_ns: int) -> str:
        """The stamp of this moment; empty without stamps."""
        before, self._before_ns = self._before_ns, at_ns  # Asked once a line.
        match self.kind:
            case "none":
                return ""
            case "clock":
                wall_ms = (self._wall_ns + at_ns - self._start_ns) // 1_000_000
                return time.strftime("[%H:%M:%S", time.localtime(wall_ms // 1000)) + f".{wall_ms % 1000:03d}] "
            case "start":
                return f"[{(at_ns - self._start_ns) / 1e9:10.3f}] "
            case "delta":
                return f"[{(at_ns - before) / 1e9:+10.3f}] "


class Show(Protocol):
    """One way to show a line."""

    def moment(self, moment: Moment) -> bytes:
        """Return what is written for it."""
        ...

    @property
    def restoring(self) -> bytes:
        """What puts the terminal right again."""
        ...


class LineShow:
    """Text or hex with stamps, and notes of ours between brackets."""

    def __init__(self, stamper: Stamper, *, as_hex: bool) -> None:
        self._stamper = stamper
        self._view = HexView() if as_hex else Displayed()

    def moment(self, moment: Moment) -> bytes:
        """What the device sent, fit for a terminal; a note."""
        if moment.who == "device":
            return self._view.feed(moment.data, lambda: self._stamper.stamp(moment.at_ns))
        return noted(moment.note) if moment.who == "port" and moment.note else b""

    @property
    def restoring(self) -> bytes:
        """What takes back whatever the device changed of the terminal."""
        return self._view.restoring


class JsonShow:
    """One JSON object a moment, for a program."""

    restoring = b""

    def moment(self, moment: Moment) -> bytes:
        """The moment as a row."""
        row = {
            "at_ms": moment.at_ns // 1_000_000,
            "who": moment.who,
            "text": moment.data.decode("utf-8", "backslashreplace"),
            "note": moment.note,
        }
        text = json.dumps(row, ensure_ascii=False)
        return (text if shown(text) == text else json.dumps(row)).encode() + b"\n"


def noted(note: str) -> bytes:
    """A word of ours, on a line of its own."""
    return f"\r\n[edgeagent: {shown(note)}]\r\n".encode()

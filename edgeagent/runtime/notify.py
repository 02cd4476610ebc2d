"""How is the service manager told that we are up, alive or leaving? systemd's protocol over one plain datagram.

Nothing is sent where nobody listens (`NOTIFY_SOCKET` unset), and a lost datagram is no error of ours: the manager then
does what it would do to a silent service. The watchdog is fed by `progress` alone, which the caller calls when an event
was taken, a token was written or a prompt's batch was evaluated: a thread that merely ticks would keep a hung agent
alive. At rest, waiting for a user is no hang: `resting` feeds it by the clock until `working` is called.
Source of the protocol: sd_notify(3).
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Mapping

FEED_FRACTION = 0.4
"""Of the watchdog's period; sd_watchdog_enabled(3) advises half, and a slow board may be late."""


class Notifier:
    """Talks to the service manager. Every method may be called from any thread and returns at once."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        self._address = _address(environment.get("NOTIFY_SOCKET", ""))
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) if self._address else None
        if self._socket is not None:
            self._socket.setblocking(False)
        self._period_s = _watchdog_s(environment)
        self._fed_s = 0.0
        self._resting = threading.Event()
        self._closed = threading.Event()
        self._clock: threading.Thread | None = None

    @property
    def watchdog_s(self) -> float:
        """The watchdog's period, 0 if there is none."""
        return self._period_s

    def ready(self, status: str = "") -> None:
        """Everything is loaded; the service counts as started."""
        self._send("READY=1", f"STATUS={_line(status)}")

    def status(self, text: str) -> None:
        """One line for `systemctl status`."""
        self._send(f"STATUS={_line(text)}")

    def stopping(self) -> None:
        """We are going down in good order."""
        self._send("STOPPING=1")

    def extend_start(self, seconds: float) -> None:
        """Loading takes longer than the unit allows; ask for this much more."""
        self._send(f"EXTEND_TIMEOUT_USEC={int(seconds * 1e6)}")

    def progress(self) -> None:
        """Something was really done. Cheap enough to be called for every token."""
        if not self._period_s:
            return
        now_s = time.monotonic()
        if now_s - self._fed_s >= self._period_s * FEED_FRACTION / 2:
            self._fed_s = now_s
            self._send("WATCHDOG=1")

    def resting(self) -> None:
        """Nothing is outstanding: feed by the clock, until `working`."""
        self._resting.set()
        if self._period_s and self._clock is None:
            self._clock = threading.Thread(target=self._tick, name="watchdog", daemon=True)
            self._clock.start()

    def working(self) -> None:
        """Work has begun; from now on only `progress` feeds."""
        self._resting.clear()
        self.progress()

    def close(self) -> None:
        """Stop the clock and let go of the socket."""
        self._closed.set()
        self._resting.set()
        if self._clock is not None:
            self._clock.join()
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _tick(self) -> None:
        while not self._closed.is_set():
            self._resting.wait()
            if self._closed.is_set():
                return
            self._send("WATCHDOG=1")
            self._closed.wait(self._period_s * FEED_FRACTION)

    def _send(self, *lines: str) -> None:
        connection = self._socket
        if connection is None:
            return
        try:
            connection.sendto("\n".join(lines).encode(), self._address)
        except OSError:
            return  # full or gone; what follows is the manager's to decide


def _address(named: str) -> str:
    """A path, or an abstract name that systemd writes with an @ for the leading zero byte."""
    if named.startswith("@"):
        return "\0" + named[1:]
    return named if named.startswith("/") else ""


def _watchdog_s(environment: Mapping[str, str]) -> float:
    """The period that is meant for this process, in seconds."""
    if environment.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return 0.0
    period = environment.get("WATCHDOG_USEC", "")
    return int(period) / 1e6 if period.isdecimal() else 0.0


def _line(text: str) -> str:
    return text.replace("\n", " ")

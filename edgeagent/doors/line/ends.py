"""Two ways to hold a line: our own port, or a view of the agent's that owns it. One shape for both.

A line puts what it says into an `Incoming`, takes what a person types, and is closed in bounded time.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from typing import Protocol

from edgeagent.doors.line.incoming import Incoming
from edgeagent.doors.line.sender import Sender
from edgeagent.driver.line.port import LinkLost, Moment, SerialPort
from edgeagent.driver.line.profile import Pacing
from edgeagent.errors import DriverUnavailable

TAKEN_S = 1.0
"""How long one portion of what is typed may take before the person hears that the device does not take it."""

COME_BACK_S = 0.5
"""How often a line that is gone is looked for."""


class Line(Protocol):
    """One line, as a person at a terminal has it."""

    incoming: Incoming
    sender: Sender
    about: str
    pacing: Pacing

    @property
    def port(self) -> SerialPort:
        """The port, where it is ours. Raises DriverUnavailable with what to do where it is not."""
        ...

    def type(self, data: bytes) -> None:
        """Have this typed."""
        ...

    def close(self) -> None:
        """Let it go, in bounded time, whatever is under way."""
        ...


class OwnLine:
    """A line that this process holds: everything can be done on it."""

    def __init__(self, port: SerialPort, pacing: Pacing, *, comes_back: bool = True) -> None:
        """Make it before the port is opened, so that nothing goes by. `comes_back`: a lost line is opened again.

        `pacing` is for devices that lose what comes too fast.
        """
        self.port = port
        self.about = f"{port.settings.identity} is open and yours"
        self.incoming = Incoming()
        self.pacing = pacing
        self._comes_back = comes_back
        self.sender = Sender(self._typed, self.incoming.note)
        port.watchers.append(self._watch)

    def close(self) -> None:
        """Let the line go."""
        with contextlib.suppress(ValueError):
            self.port.watchers.remove(self._watch)
        self.sender.stop()  # A file that is given up is still cancelled at the device.
        self.port.close()
        self.incoming.close()

    def _watch(self, moment: Moment) -> None:
        if moment.who == "person":
            return  # They have seen it: the device echoes it, or they want no echo.
        self.incoming.put(moment)
        if moment.note.startswith("link lost"):
            if self._comes_back:
                self.sender.forget()  # What waits was meant for what stood there before.
                self.sender.do(self._come_back)
            else:
                self.incoming.end(f"{self.port.settings.identity}: {moment.note}")

    def _come_back(self) -> None:
        """Look for the line until it is there again, or the person leaves."""
        while not self.sender.stopped.wait(COME_BACK_S):
            with contextlib.suppress(DriverUnavailable):
                self.port.reopen(0.0)
                return

    def type(self, data: bytes) -> None:
        """Have this typed; nothing is kept for a line that is gone."""
        if self.port.is_open:
            self.sender.type(data)
        else:
            self.incoming.note("not typed: the line is gone")

    def _typed(self, data: bytes) -> int:
        try:
            return self._paced(data)
        except LinkLost:  # The port tells of it.
            return len(data)

    def _paced(self, data: bytes) -> int:
        if not self.pacing.char_ms and not self.pacing.line_ms:
            return self.port.write(data, who="person", timeout_s=TAKEN_S)
        taken = 0
        for byte in data:
            if self.port.write(bytes([byte]), who="person", timeout_s=TAKEN_S) == 0:
                break
            taken += 1
            ended_line = self.pacing.line_ms if byte in b"\r\n" else 0
            if self.sender.stopped.wait((self.pacing.char_ms + ended_line) / 1000):
                break
        return taken


class AgentsLine:
    """A view of a line that an agent holds. What is typed counts once the person has broken in."""

    def __init__(self, view: socket.socket, where: str) -> None:
        self.pacing = Pacing()
        self.about = f"attached to the agent that owns {where}"
        self._where = where
        self._view = view
        view.settimeout(TAKEN_S)
        self.incoming = Incoming()
        self.sender = Sender(self._typed, self.incoming.note)
        threading.Thread(target=self._hear, name="view", daemon=True).start()

    @property
    def port(self) -> SerialPort:
        """Refused: the agent holds it."""
        raise DriverUnavailable(f"the agent that owns {self._where} has its port: for this, end it and start again")

    def close(self) -> None:
        """End the view; the agent goes on."""
        self.sender.stopped.set()
        with contextlib.suppress(OSError):
            self._view.shutdown(socket.SHUT_RDWR)
        self._view.close()
        self.sender.stop()
        self.incoming.close()

    def type(self, data: bytes) -> None:
        """Have this typed, if the person has broken in."""
        self.sender.type(data)

    def _hear(self) -> None:
        because = "the agent that owns the line has ended, or let it go"
        while not self.sender.stopped.is_set():
            try:
                portion = self._view.recv(4_096)
            except TimeoutError:
                continue
            except OSError as error:
                because = f"the view ended: {error.strerror or error}"
                break
            if not portion:
                break
            self.incoming.put(Moment(time.monotonic_ns(), "device", portion))
        self.incoming.end(because)

    def _typed(self, data: bytes) -> int:
        try:
            return self._view.send(data)
        except TimeoutError:
            return 0
        except OSError as error:
            raise LinkLost(f"the view ended: {error.strerror or error}", 0) from None

"""A switch at the end of a real pseudo-terminal: it asks for a log-in, echoes what is typed, prints what it likes."""

from __future__ import annotations

import contextlib
import os
import select
import threading
import tty

PASSWORD = "geheim-7731"
PROFILE = """
name = "switch"
extends = "generic"

[[commands]]
name = "show_version"
help = "Tell which firmware runs on the switch."
command = "show version"
effect = "read"
idempotent = true
"""
AGENT = """
from edgeagent import Agent
from edgeagent.driver.device.device import Device, LogIn

device = Device({where!r}, {profile!r}, log_in=LogIn("admin", lambda: {password!r}), mirrored=False)
agent = Agent("switches", "You look after switches.", device.tools)
"""


class PtyDevice:
    """The switch. `typed` is every byte that it was sent."""

    def __init__(self, folder) -> None:
        self._outer, self._inner = os.openpty()
        tty.setraw(self._inner)
        self.where, self.typed = os.ttyname(self._inner), b""
        (folder / "switch.toml").write_text(PROFILE)
        self._line, self._asks, self._closing = b"", b"login: ", False
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def agent(self, folder) -> str:
        """The file of an agent that has this device."""
        profile = str(folder / "switch.toml")
        return AGENT.format(where=self.where, profile=profile, password=PASSWORD)

    def prints(self, text: bytes) -> None:
        """Print by itself."""
        os.write(self._outer, text)

    def close(self) -> None:
        """Go away, as a device that is unplugged; twice is fine."""
        self._closing = True
        self._thread.join()  # Only a terminal that nobody reads any more is gone for the other end.
        for each in (self._inner, self._outer):
            with contextlib.suppress(OSError):
                os.close(each)

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while not self._closing:
                if not select.select([self._outer], [], [], 0.05)[0]:
                    continue
                portion = os.read(self._outer, 256)
                self.typed += portion
                for byte in portion:
                    self._hear(bytes([byte]))

    def _hear(self, byte: bytes) -> None:
        if byte == b"\r":
            said, self._line = self._line.strip(), b""
            self.prints(b"\r\n" + self._answer(said) + self._asks)
        elif byte == b"\x15":
            self._line = b""
        elif byte >= b" ":
            self._line += byte
            self.prints(byte)  # A password too: such devices there are.

    def _answer(self, said: bytes) -> bytes:
        if self._asks == b"login: ":
            self._asks = b"Password: " if said else self._asks
            return b""
        if self._asks == b"Password: ":
            self._asks = b"sw1# " if said == PASSWORD.encode() else b"login: "
            return b"Welcome, " + said + b"\r\n"
        return b"firmware 1.2\r\n" if said == b"show version" else b""

"""Device as an agent's author sees it: a name, a profile, tools. Its line is opened at the first call."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Collection
from pathlib import Path

from msgspec import Struct

from edgeagent.core.agent import Tool
from edgeagent.driver.device.bus_profile import is_bus_profile, load_bus_profile
from edgeagent.driver.device.bus_tools import BusDevice
from edgeagent.driver.device.device_tools import DeviceTools
from edgeagent.driver.device.listener import Listener
from edgeagent.driver.line.console import READY, Console
from edgeagent.driver.line.last_lines import LastLines
from edgeagent.driver.line.mirror import Mirror, socket_path
from edgeagent.driver.line.port import PortSettings, SerialPort
from edgeagent.driver.line.profile import Profile, load_profile
from edgeagent.errors import ConfigError, DriverUnavailable

OPEN_S = 2.0
SILENT_MAX = 2
"""After so many uses in a row without a byte a network connection is made anew."""

ENTER_S = 15.0
"""How long a boot loader may take to its prompt after the line was opened."""


class LogIn(Struct, frozen=True):
    """Who logs in, and where the password comes from; it is asked for only when its prompt stands there."""

    user: str
    password: Callable[[], str]


class Device:
    """A device on a serial line. Nothing is opened before the first call; `close` lets it go."""

    def __init__(
        self,
        where: str,
        profile: str | Profile,
        *,
        ruled: Collection[str] = (),
        baud: int | None = None,
        log_in: LogIn | None = None,
        mirrored: bool = True,
    ) -> None:
        """`where` names the port as in `edgeagent device list`; `ruled` the commands that a rule guards already."""
        self.where = where
        self.profile = load_profile(profile) if isinstance(profile, str) else profile
        self.port = SerialPort(port_settings(where, self.profile, baud))
        self._log_in = log_in
        self._mirrored = mirrored
        self._mirror: Mirror | None = None
        self._console: Console | None = None
        self._opening = threading.Lock()
        self._silent, self._heard = 0, -1
        self.lines = LastLines(self.port, self.profile.columns)
        """What it has printed, for a person to look at; looking opens nothing and types nothing."""
        notes = self.port.take_notes
        self._guarded = DeviceTools(self.profile, self.console, ruled=ruled, notes=notes, lines=self.lines)

    @property
    def tools(self) -> tuple[Tool, ...]:
        """One tool for each command of the profile."""
        return self._guarded.tools

    def looked(self) -> tuple[str, ...]:
        """A person has looked at the device; calls with an unknown effect may be made again."""
        return self._guarded.looked()

    def console(self) -> Console:
        """Return the open console; open the line, or find it again after it was lost. Raises DriverUnavailable."""
        with self._opening:
            silent = self._console is not None and self.port.is_open and self._fell_silent()
            if self._console is not None and self.port.is_open and not silent:
                if self._log_in is not None and not self._console.person_has_it and self._console.look() == "log_in":
                    self._prepare(self._console)  # It started again, or ended the session.
                return self._console
            self.port.reopen(OPEN_S, f"nothing was heard {SILENT_MAX} times: connected anew" if silent else "")
            self._silent, self._heard = 0, self.port.offset
            self._console = self._console or Console(self.port, self.profile)
            if self._mirrored and self._mirror is None:
                self._mirror = Mirror(self._console)
                with contextlib.suppress(DriverUnavailable, OSError):  # Without a view the device still works.
                    self._mirror.serve_socket(socket_path(self.where))
            self._console.enter(ENTER_S)
            self._prepare(self._console)
            return self._console

    def _prepare(self, console: Console) -> None:
        """Log in where that is asked for, and do what is to be done on entry."""
        if console.state in ("log_in", "password") and self._log_in is not None:
            console.log_in(self._log_in.user, self._log_in.password)
        if self.ready:
            for command in self.profile.on_entry:
                console.run(command)

    def listen(self, hear: Callable[[str], None]) -> Listener:
        """Have every line that the profile's `wake` names told to `hear`, from now until the listener is closed.

        The line is opened now, and again whenever it was lost. Raises ConfigError for a profile without `wake`.
        """
        if not self.profile.wake:
            raise ConfigError(f"profile {self.profile.name} has no wake: name the lines that are worth a turn")
        return Listener(self.console, hear, self.port.offset)

    def _fell_silent(self) -> bool:
        """Count uses without a byte heard. A connection over a network may be dead and not know (ser2net#33)."""
        heard, self._heard = self._heard, self.port.offset
        self._silent = self._silent + 1 if heard == self._heard else 0
        return self._silent >= SILENT_MAX and "://" in self.where

    @property
    def ready(self) -> bool:
        """Whether a prompt was seen last."""
        return self._console is not None and self._console.state in READY

    def close(self) -> None:
        """Let the line and its views go."""
        if self._mirror is not None:
            self._mirror.close()
            self._mirror = None
        self.port.close()


def port_settings(where: str, profile: Profile, baud: int | None = None) -> PortSettings:
    """Return how to speak on this port, by the profile and the caller's wish."""
    wire = profile.wire
    return PortSettings(where, baud or wire.baud, wire.data_bits, wire.parity, wire.stop_bits, wire.flow)


def device_of(where: str, profile: str, *, ruled: Collection[str] = (), mirrored: bool = True) -> Device | BusDevice:
    """Return the device at this port, whatever its profile says it speaks. Nothing is opened yet."""
    if not is_bus_profile(profile):
        return Device(where, profile, ruled=ruled, mirrored=mirrored)
    return BusDevice(where, load_bus_profile(profile), ruled=ruled, folder=str(Path(profile).parent))


def device_tools(where: str, profile: str | Path, *, ruled: Collection[str] = ()) -> tuple[Tool, ...]:
    """Return the tools of the device at this port, as its profile describes them. Nothing is opened yet."""
    return device_of(where, str(profile), ruled=ruled).tools

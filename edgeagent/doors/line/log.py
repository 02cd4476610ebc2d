"""Log of a line in a file: its bytes as they came, or its text with times. Never waits for the disk."""

from __future__ import annotations

import os
import time
from pathlib import Path

from edgeagent.doors.line.terminal import Outlet
from edgeagent.driver.line.displayed import PlainText
from edgeagent.driver.line.port import Moment
from edgeagent.errors import ConfigError

LOG_BYTES_MAX = 4 << 20
"""What may wait for a disk that is busy."""


class Log:
    """One file that what the device says is added to. Only its owner may read it."""

    def __init__(self, path: Path, *, as_text: bool) -> None:
        """Raises ConfigError when it cannot be opened."""
        self.path = path
        self._plain = PlainText() if as_text else None
        try:
            # Without waiting: a pipe that nobody reads is refused, and else the open would hang.
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK | os.O_CLOEXEC
            self._file = os.fdopen(os.open(path, flags, 0o600), "w")
        except OSError as error:
            raise ConfigError(f"cannot log to {path}: {error.strerror or error}") from None
        self._out = Outlet(self._file, lambda dropped: f"[{dropped} bytes not logged]\n".encode(), LOG_BYTES_MAX)

    def moment(self, moment: Moment) -> None:
        """Add what the device said."""
        if moment.who == "device":
            plain = self._plain
            self._out.put(moment.data if plain is None else plain.feed(moment.data, _now))

    @property
    def failed(self) -> bool:
        """Whether the file takes no more, as on a disk that is full."""
        return self._out.gone

    def close(self) -> None:
        """Write what is left, in bounded time."""
        self._out.end()


def _now() -> str:
    ms = time.time_ns() // 1_000_000
    return time.strftime("[%Y-%m-%d %H:%M:%S", time.localtime(ms // 1000)) + f".{ms % 1000:03d}] "

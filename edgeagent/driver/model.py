"""Promise of every model driver: it answers AskModel, says what was loaded, and may offer more.

What a driver may offer is an attribute that is None where it cannot: whoever has a driver looks at the attribute, and
never at the driver's class.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import msgspec

from edgeagent.driver.base import Driver
from edgeagent.trace.disk import DISK, Disk

NO_ROOM = "no call fits into"
"""How the failure begins of an ask whose limit is too short for any call."""


class Sampling(msgspec.Struct, frozen=True):
    """How a model draws its words; `top_p` None is the server's own."""

    temperature: float = 0.0
    top_p: float | None = None


class Warm(Protocol):
    """Memory that outlives the process."""

    def keep_warm(self, session_folder: Path, prefix_folder: Path, secret: bytes, disk: Disk = DISK) -> None:
        """Give back what the session, or else its agent, left in these folders; leave it there again on `close`.

        Call it before the first ask, which finds it. `secret` seals the files; `disk` says what they may take.
        """


class ModelDriver(Driver, Protocol):
    """A driver that answers AskModel."""

    @property
    def warm(self) -> Warm | None:
        """The keeping of memory, where there is memory to keep."""

    def describe(self) -> str:
        """What was loaded, in a sentence."""

"""Promise of every model driver: it answers AskModel, says what was loaded, and may offer more.

What a driver may offer is an attribute that is None where it cannot: whoever has a driver looks at the attribute, and
never at the driver's class.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Protocol

import msgspec

from edgeagent.core.effects import AskModel
from edgeagent.driver.base import Driver
from edgeagent.request.calibration_weights import Fitted
from edgeagent.request.judge import Judge
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


class Weighing(NamedTuple):
    """The judgement of a model, for one ask: the judge, the weights of its evidence, and from which log-odds on a call
    is made, if that is not theirs."""

    judge: Judge
    fitted: Fitted
    needed: float | None = None


class Lender(Protocol):
    """A driver whose model weighs texts for asks that another model answers."""

    def lend(self, ask: AskModel, do: Callable[[Weighing | None], None]) -> None:
        """Have something done while this model can weigh; with None where it has no room, no time or no turn left."""

    def cancel(self, effect_id: int) -> None:
        """Let it wait no longer."""


class ModelDriver(Driver, Protocol):
    """A driver that answers AskModel."""

    @property
    def warm(self) -> Warm | None:
        """The keeping of memory, where there is memory to keep."""

    def describe(self) -> str:
        """What was loaded, in a sentence."""

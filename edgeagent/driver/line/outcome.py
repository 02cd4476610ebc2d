"""Ends of a command on a console. One closed union; only `Done` is good news, and "unknown" is said as such."""

from __future__ import annotations

from msgspec import Struct


class Done(Struct, frozen=True):
    """The command ended, well as far as is known. `noise` is what others printed meanwhile, kept aside.

    `status` is None where the end was seen and the device told no status.
    """

    output: str
    status: int | None = 0
    noise: tuple[str, ...] = ()


class Failed(Struct, frozen=True):
    """The device ran it and said that it failed."""

    output: str
    status: int | None
    noise: tuple[str, ...] = ()


class NotSent(Struct, frozen=True):
    """Nothing was executed: the console was not at a prompt, or did not take in the line. It may be tried again."""

    because: str
    output: str = ""


class WaitingForInput(Struct, frozen=True):
    """The command asks something back and still runs."""

    question: str
    output: str
    noise: tuple[str, ...] = ()


class TimedOut(Struct, frozen=True):
    """No end was seen in time. Its effect is unknown; it is never sent again by itself."""

    output: str
    after_ms: int
    noise: tuple[str, ...] = ()


class DeviceReset(Struct, frozen=True):
    """The device started again before the end was seen. The effect of the command is unknown."""

    output: str
    banner: str
    noise: tuple[str, ...] = ()


class LinkWasLost(Struct, frozen=True):
    """The line went away before the end was seen. The effect of the command is unknown."""

    output: str
    because: str
    noise: tuple[str, ...] = ()


Outcome = Done | Failed | NotSent | WaitingForInput | TimedOut | DeviceReset | LinkWasLost

UNKNOWN = (TimedOut, DeviceReset, LinkWasLost, WaitingForInput)
"""Outcomes after which nobody may say what the command did."""

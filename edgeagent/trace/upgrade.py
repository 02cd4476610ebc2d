"""How records of older formats are read today: one numbered function for each step, or a refusal by name.

`UPGRADES[n]` takes an event's array of format n and returns that of format n + 1. Bytes on the disk are never changed;
the hashes stay those of what was written. A field that was only added at the end, with a default, needs no step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from edgeagent.errors import TraceError

FORMAT = 1
"""What we write."""

Upgrade = Callable[[list[Any]], list[Any]]

UPGRADES: Mapping[int, Upgrade] = {}
"""Format 1 is the first one."""


def check_format(found: int, *, ours: int = FORMAT, upgrades: Mapping[int, Upgrade] = UPGRADES) -> None:
    """Raise TraceError, naming the format, when there is no way from it to ours."""
    if found > ours:
        raise TraceError(f"this trace has format {found}; this version reads up to {ours}: use a newer edgeagent")
    missing = [n for n in range(found, ours) if n not in upgrades]
    if missing:
        raise TraceError(f"this trace has format {found}, and no upgrade from format {missing[0]} is known any more")


def upgraded(
    event: list[Any], found: int, *, ours: int = FORMAT, upgrades: Mapping[int, Upgrade] = UPGRADES
) -> list[Any]:
    """Return the event's array in our format."""
    for number in range(found, ours):
        event = upgrades[number](event)
    return event

"""Calls whose effect is unknown: none is made again with the same arguments until a person has looked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from edgeagent.errors import DriverError


class EffectUnknown(DriverError):
    """It was sent and its end was not seen. It must not be sent again before somebody has looked."""


class CommandFailed(DriverError):
    """It was done, or refused, and its failure was told."""


class UnknownEffects:
    """What is not known of one device, or of one server."""

    def __init__(self, *unknown: type[DriverError]) -> None:
        """`unknown` are further errors after which the effect is unknown."""
        self._kinds: tuple[type[DriverError], ...] = (EffectUnknown, *unknown)
        self._held: dict[tuple[str, str], str] = {}

    def looked(self) -> tuple[str, ...]:
        """A person has looked: calls with an unknown effect may be made again. Returns what was held."""
        held = tuple(self._held.values())
        self._held.clear()
        return held

    def check(self, key: tuple[str, str]) -> None:
        """Refuse a call whose effect is unknown. Raises EffectUnknown."""
        if key in self._held:
            raise EffectUnknown(f"not sent again: {self._held[key]}. A person must look first")

    def noted(self, key: tuple[str, str], call: Callable[[], Any], *, harmless: bool) -> Any:
        """Make a call and hold it if its effect is unknown, unless making it twice is `harmless`."""
        try:
            return call()
        except self._kinds as unknown:
            if not harmless:
                self._held[key] = str(unknown)
            raise

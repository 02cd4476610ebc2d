"""SIGHUP: the settings are to be read again, or the terminal has gone that the program was started from."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator


class Terminal:
    """The terminal that the program was started from, if there is one."""

    def __init__(self) -> None:
        found = [number for number in (0, 1, 2) if _is_terminal(number)]
        self._files = [*found, *map(os.dup, found)]  # While a tool runs, something else may stand in their places.

    @property
    def has_gone(self) -> bool:
        """Whether there was one that answers no more, as when its window was closed."""
        return bool(self._files) and not any(map(_is_terminal, self._files))


def _is_terminal(number: int) -> bool:
    with contextlib.suppress(OSError):
        return os.isatty(number)
    return False


@contextlib.contextmanager
def hangup_taken(take: Callable[[], None]) -> Iterator[None]:
    """Have something done, in a thread of its own, at each SIGHUP; where the terminal has gone it ends the program."""
    before, terminal = signal.getsignal(signal.SIGHUP), Terminal()
    if before is signal.SIG_IGN:  # As nohup leaves it.
        yield
        return

    def taken(*_: object) -> None:
        if terminal.has_gone:
            signal.signal(signal.SIGHUP, before)
            signal.raise_signal(signal.SIGHUP)
        else:
            threading.Thread(target=take, name="reload", daemon=True).start()

    signal.signal(signal.SIGHUP, taken)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)

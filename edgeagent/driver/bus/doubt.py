"""Doubt on a line: after an answer that did not come, what may still come, and whose it must not become.

Law: a request without an answer leaves its line doubtful until `late_s` after it was sent. Before that no request is
sent whose answer could be taken for the missing one; what comes meanwhile is drained. The doubt ends early when the
late answer itself has come. It is noted before the request leaves, in a file, so a process that is killed leaves it to
the next one. Protocols that number their requests (SMP) need none of it.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Struct

from edgeagent.driver.line.identity import locate
from edgeagent.driver.line.port import SerialPort
from edgeagent.driver.line.run_folder import made_ours, name_of, run_folder

Request = TypeVar("Request")

BOOT = Path("/proc/sys/kernel/random/boot_id")


class Missing(Struct, Generic[Request], frozen=True):
    """A request whose answer did not come: until when it still may, and from which offset on it would be heard."""

    request: Request
    until: float
    since: int


class Doubt(Generic[Request]):
    """The answers that are missing on one line."""

    def __init__(
        self, port: SerialPort, late_s: float, is_answer: Callable[[bytes, Request], bool], kind: type[Request]
    ) -> None:
        """`is_answer` says whether what was heard holds the answer to a request, which is of this kind."""
        self.port = port
        self.late_s = late_s
        self._is_answer = is_answer
        self._kept = KeptDoubt(port.settings.identity, kind)
        self._missing: tuple[Missing[Request], ...] = ()
        self._unsure_until = 0.0
        self._begun = False

    def asked(self, request: Request, since: int) -> None:
        """Note, before it leaves, that the answer to this request is awaited, and missing until it has come."""
        self._missing = (*self._missing, Missing(request, time.monotonic() + self.late_s, since))
        self._kept.write(self._missing)

    def answered(self) -> None:
        """The answer to what was asked last has come."""
        self._missing = self._missing[:-1]
        self._kept.write(self._missing)

    def drain(self, mistakable: Callable[[Request], bool]) -> None:
        """Wait until no missing answer may come any more that could be taken for the next one. Raises LinkLost."""
        at = self.port.offset
        self._begin()
        while True:
            now = time.monotonic()
            self._missing = tuple(each for each in self._missing if self._may_come(each, now))
            waiting = [each.until for each in self._missing if mistakable(each.request)]
            until = max((*waiting, self._unsure_until))
            if until <= now:
                return
            _, at = self.port.wait(at, until - now)

    def _begin(self) -> None:
        """Take over what a process before left; where that cannot be told, any answer may still come."""
        if self._begun:
            return
        self._begun = True
        left = self._kept.read()
        if left is None:
            self._unsure_until = time.monotonic() + self.late_s
        else:
            self._missing = (*left, *self._missing)

    def _may_come(self, missing: Missing[Request], now: float) -> bool:
        return now < missing.until and not self._is_answer(self.port.heard(missing.since), missing.request)


class KeptDoubt(Generic[Request]):
    """The file of one line's doubt. Its times are those of this boot."""

    def __init__(self, identity: str, kind: type[Request]) -> None:
        self._identity = identity
        rows: Any = tuple[str, tuple[Missing[kind], ...]]  # type: ignore[valid-type]  # a type that is made here
        self._decoder = msgspec.json.Decoder(rows)
        self._path: Path | None = None
        self._empty = True

    def read(self) -> tuple[Missing[Request], ...] | None:
        """Return what is still missing, to be heard from now on; None where that cannot be told."""
        try:
            made_ours(run_folder())
            self._path = run_folder() / f"doubt-{name_of(_line_of(self._identity))}.json"
            boot, missing = self._decoder.decode(self._path.read_bytes())
        except FileNotFoundError:
            return ()
        except (OSError, msgspec.DecodeError):
            return None
        self._empty = not missing
        left = (each for each in missing if boot == _boot() and each.until > time.monotonic())
        return tuple(msgspec.structs.replace(each, since=0) for each in left)

    def write(self, missing: tuple[Missing[Request], ...]) -> None:
        """Keep what is missing; what is cut by a full disk cannot be read, and so leaves everything in doubt."""
        if self._path is None or (self._empty and not missing):
            return
        self._empty = not missing
        with contextlib.suppress(OSError):
            self._path.write_bytes(msgspec.json.encode((_boot(), missing)))


def _line_of(identity: str) -> str:
    """Return what is the same for a line however it is named; a pseudo-terminal of the same number is another one."""
    place = locate(identity)
    if not place.startswith("/"):
        return place
    place = os.path.realpath(place)
    return f"{place} {Path(place).stat().st_ctime_ns}" if place.startswith("/dev/pts/") else place


def _boot() -> str:
    try:
        return BOOT.read_text().strip()
    except OSError:
        return ""

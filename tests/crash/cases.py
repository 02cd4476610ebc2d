"""All groups of crash cases by name, over one session that was recorded for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from edgeagent.core.events import UserSaid
from edgeagent.trace.file import TraceFile, examine_file
from tests.crash import bytes_cases, program_cases, session_cases
from tests.crash.bytes_cases import Case
from tests.crash.world import QUICK, whole_session


def groups(room: Path, every: int = 1) -> dict[str, Callable[[], Iterator[Case]]]:
    """The groups; each takes every `every`-th of its cases."""
    _, source = whole_session(room / "whole")
    _, stale = whole_session(room / "stale")
    return {
        "cuts and tails": lambda: bytes_cases.cuts(source, stale, every),
        "flipped bits": lambda: bytes_cases.flips(source, every),
        "flipped bits before a cut": lambda: bytes_cases.flips_and_cuts(source, 7 * every),
        "holes": lambda: bytes_cases.holes(longer_trace(room)),
        "two writers": lambda: bytes_cases.doubled(source),
        "resumed after a cut": lambda: session_cases.cuts_resumed(room, every),
        "killed": lambda: session_cases.killed(room, every),
        "power cut": lambda: session_cases.power_cut(room, every),
        "failing disk": lambda: session_cases.failing(room, every),
        "full disk": lambda: session_cases.full(room, every),
        "caches": lambda: session_cases.caches(room, every),
        "heads": lambda: session_cases.heads(room, every),
        "program": lambda: program_cases.program(room, every),
    }


def longer_trace(room: Path) -> bytes:
    """A trace of several pages."""
    path = room / "longer"
    path.unlink(missing_ok=True)
    trace = TraceFile.create(path, disk=QUICK)
    started = examine_file(whole_session(room / "whole")[0] / "trace.cbor").records[0].event
    trace.append(started, (), sync=False)
    for number in range(80):
        text = f"{number} " + "words " * (number % 40)
        trace.append(UserSaid(1_764_535_118_000 + number, text), (), sync=False)
    trace.close()
    return path.read_bytes()

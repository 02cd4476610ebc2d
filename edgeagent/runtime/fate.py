"""Fate of calls: those of which nobody can tell whether they happened, from a session's records alone.

A call that a crash has taken, and that is not made again by itself, is named in its EffectLost. One that was out when
the process died, in a session that nobody has opened since, is the newest that the head vouches for: what the model
wrote names it. No agent is loaded for this.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from edgeagent.codec.dialect import dialect_called
from edgeagent.core.events import Cancelled, EffectLost, ModelAnswered, ModelFailed, ToolFailed, ToolReturned
from edgeagent.core.reading import Calls
from edgeagent.core.values import canonical_json
from edgeagent.errors import EdgeAgentError
from edgeagent.runtime.folder import read_about
from edgeagent.runtime.vouched import head_of
from edgeagent.trace.record import Record
from edgeagent.trace.recover import Examined


class Fate(NamedTuple):
    """A call that may have happened or not. `is_lost` False: it is running, or was when its process died."""

    seq: int
    tool: str
    arguments: str
    is_lost: bool = True


def unknown_calls(directory: Path, found: Examined) -> list[Fate]:
    """The calls of a session of which nobody can tell whether they happened, oldest first."""
    lost = [
        Fate(r.seq, r.event.tool, r.event.arguments)
        for r in found.records
        if isinstance(r.event, EffectLost) and r.event.tool
    ]
    return [*lost, *_out(directory, found)]


def _out(directory: Path, found: Examined) -> list[Fate]:
    """The calls that were out when the last record was written, and must not be made twice."""
    head = head_of(directory)
    first = found.records[0].seq if found.records else 0
    if head is None or not first < head.seq <= first + len(found.records):
        return []
    vouched = head.seq - first
    wrote = next((n for n in range(vouched - 1, -1, -1) if isinstance(found.records[n].event, ModelAnswered)), None)
    if wrote is None:
        return []
    since = [r.event for r in found.records[wrote + 1 :]]
    if any(isinstance(event, ModelAnswered | ModelFailed | Cancelled | EffectLost) for event in since):
        return []
    answered = sum(isinstance(event, ToolReturned | ToolFailed) for event in since)
    calls = _calls_in(directory, found.records[wrote])
    return calls if answered < len(calls) else []


def _calls_in(directory: Path, record: Record) -> list[Fate]:
    event = record.event
    assert isinstance(event, ModelAnswered), "the caller has looked"
    try:
        reading = dialect_called(read_about(directory).dialect).read(event.text)
    except EdgeAgentError:
        return []
    calls = reading.calls if isinstance(reading, Calls) else ()
    return [Fate(record.seq, call.tool, canonical_json(call.arguments), is_lost=False) for call in calls]

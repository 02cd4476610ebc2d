"""Fork a session: a new one that begins with another's first records, and knows what that one has done since.

What the other session did after these records has happened. So it is recorded in the new one, as `Forked`: it counts
for rules and budgets of a session, and the very same call is asked about first if it must not be made twice.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from edgeagent.core.agent import Agent
from edgeagent.core.calls import must_not_repeat
from edgeagent.core.effects import CallTool
from edgeagent.core.events import Forked
from edgeagent.errors import ConfigError, EdgeAgentError
from edgeagent.runtime.folder import TRACE_NAME, locked, new_directory, read_about, write_about
from edgeagent.runtime.recording import effects_of, load_recording
from edgeagent.runtime.rests import copy_results
from edgeagent.runtime.stamps import wall_clock_ms
from edgeagent.runtime.vouched import HeadFile, examine_to_go_on
from edgeagent.trace.disk import DISK, Disk
from edgeagent.trace.file import TraceFile, copy_records, damaged
from edgeagent.trace.recover import Damaged, Examined

MADE_MAX = 512
"""Calls of the other session that are recorded; a bound for the state, which remembers which of them they were."""


class Fork(NamedTuple):
    """A forked session, and the calls that the other one has made since and that must not be made twice."""

    directory: Path
    once: tuple[tuple[str, str], ...]


def fork_session(
    root: Path,
    source: Path,
    *,
    at: int | None = None,
    again: bool = False,
    agent: Agent | str | None = None,
    disk: Disk = DISK,
) -> Fork:
    """Make a new session from the first `at` records of another, which is not changed.

    `agent` is the other session's, and its own unless given: it tells what was done after these records. With `again`
    nothing of that is known to the new session. Raises TraceDamaged, TraceError and ConfigError.
    """
    about = read_about(source)
    found = examine_to_go_on(source / TRACE_NAME)
    if isinstance(found.verdict, Damaged):
        raise damaged(source / TRACE_NAME, found.verdict)
    count = len(found.records) if at is None else at
    if found.header is None or not 0 < count <= len(found.records):
        raise ConfigError(f"session {source.name} has {len(found.records)} records; --at takes 1 to that many")
    made, once = ((), ()) if again or count == len(found.records) else _made_since(source, found, count, agent)
    directory = new_directory(root, wall_clock_ms(), disk)
    last = found.records[count - 1]
    with locked(directory):
        head = HeadFile(directory, disk)
        head.begin(last.seq + 1, last.hash)
        fields = {"id": directory.name, "forked_from": f"{source.name}@{count}", "sealed_by": head.seal_id}
        write_about(directory, replace(about, **fields), disk)
        copy_records(source / TRACE_NAME, directory / TRACE_NAME, found, count, disk=disk)
        copy_results(source, directory, found.records[:count], disk)
        if made:
            trace, _ = TraceFile.resume(directory / TRACE_NAME, disk=disk, vouch=head.move)
            trace.append(Forked(last.event.at_ms, made, last.event.skew_ms), (), sync=True)
            trace.close()
    return Fork(directory, once)


Calls = tuple[tuple[str, str], ...]


def _made_since(source: Path, found: Examined, count: int, agent: Agent | str | None) -> tuple[Calls, Calls]:
    """The calls that a session has made after its first `count` records, and those that must not be made twice."""
    first, calls = found.records[count].seq, []
    try:
        recording = load_recording(source / TRACE_NAME, agent)
        for record, _, effects in effects_of(recording, found):
            if record.seq >= first:
                calls += [(e.tool, e.arguments) for e in effects if isinstance(e, CallTool)]
    except EdgeAgentError as error:
        raise ConfigError(
            f"what session {source.name} has done after record {count} cannot be told: {error}. Name the agent that it "
            "was recorded with (--agent FILE.py), or say --again: then it may be done again"
        ) from error
    if len(calls) > MADE_MAX:
        raise ConfigError(
            f"session {source.name} has made {len(calls)} calls after record {count}, and {MADE_MAX} is the most that "
            "a fork can know of: fork it later, or say --again: then they may be made again"
        )
    once = (call for call in calls if must_not_repeat(recording.agent, call[0]))
    return tuple(calls), tuple(dict.fromkeys(once))

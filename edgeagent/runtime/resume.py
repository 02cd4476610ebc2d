"""Carry on where a session ended or was cut off: recover its trace, fold it, declare what was lost.

    lock → examine and cut a torn end → fold (from a snapshot that fits, else from the beginning) → SessionResumed
    → TraceRepaired → EffectLost for each effect without a result → the loop, as if nothing had been

What is outstanding after the fold is known from the state alone, so a completed effect cannot run again; what an
EffectLost leads to is decided in step, like everything else.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from edgeagent.core.agent import Agent
from edgeagent.core.calls import must_not_repeat
from edgeagent.core.events import EffectLost, Event, SessionResumed, TraceRepaired
from edgeagent.core.replay import Step
from edgeagent.core.state import PendingCall, State, calls_out, outstanding
from edgeagent.core.step import LOST_MAX
from edgeagent.driver.base import Driver
from edgeagent.errors import TraceDamaged, TraceError
from edgeagent.runtime.caches import clear_leftovers
from edgeagent.runtime.folder import (
    TRACE_NAME,
    About,
    durability_of,
    lock,
    read_about,
)
from edgeagent.runtime.outside import Files, Outside
from edgeagent.runtime.recording import records_of, start_of
from edgeagent.runtime.session import Session, started_event
from edgeagent.runtime.snapshot import read_snapshot
from edgeagent.runtime.vouched import HeadFile, examine_to_go_on, vouchers_of
from edgeagent.trace.check import fold
from edgeagent.trace.disk import Disk
from edgeagent.trace.file import Durability, TraceFile, cut_before
from edgeagent.trace.recover import Examined
from edgeagent.trace.snapshot import decode_state
from edgeagent.version import __version__


def resume_session(
    directory: Path,
    agent: Agent,
    step: Step,
    drivers: Mapping[type, Driver],
    durability: Durability | None = None,
    outside: Outside | None = None,
) -> Session:
    """Open a session again. Events that say what a crash has lost wait in the inbox; `resume_turn` works on them.

    Raises ConfigError when another process has it, TraceDamaged (nothing is changed then), TraceDisagrees when this
    agent would have acted otherwise, and TraceError.
    """
    outside = outside or Outside()
    disk = outside.disk
    about = read_about(directory)
    held = lock(directory, disk)
    try:
        clear_leftovers(directory)
        path = directory / TRACE_NAME
        mode = durability or durability_of(about)
        trace, found = _open(path, mode, disk)
        try:
            state = folded(directory, agent, step, found)
            _check_owner(about, state, path)
        except BaseException:
            trace.close()
            raise
        session = Session(agent, step, drivers, Files(directory, held, trace), outside, state)
        session.take_up(lost_events(about, agent, state, found, cut_before(path, found)))
    except BaseException:
        held.release()
        raise
    return session


def _check_owner(about: About, state: State, path: Path) -> None:
    """Raise TraceDamaged if the records are another session's; a fork has those of the one it was made from."""
    if about.id != path.parent.name:
        raise TraceDamaged(f"{path} lies in the place of another session, {about.id}: renamed, copied or exchanged", 0)
    if state.session and state.session != about.id and not about.forked_from:
        raise TraceDamaged(f"{path} holds the records of session {state.session}, not of {about.id}: exchanged", 0)


def lost_events(about: About, agent: Agent, state: State, found: Examined, cut_bytes: int) -> list[Event]:
    """What a crash has made of the session, as events: started after all, repaired, effects lost."""
    if not found.records and state == State():
        return [started_event(agent, about)]
    lost = outstanding(state)
    # First of all, because it is measured against the time of the last record before the crash.
    events: list[Event] = [SessionResumed(0, agent.digest, __version__)] if lost else []
    if cut_bytes:
        events.append(TraceRepaired(0, found.end, cut_bytes))
    calls = {call.effect_id: call for call in calls_out(state)}
    return [*events, *(_lost(agent, effect_id, calls.get(effect_id)) for effect_id in lost)]


def _lost(agent: Agent, effect_id: int, call: PendingCall | None) -> EffectLost:
    """An effect that was lost; a call that is not made again is named."""
    if call is None or (not must_not_repeat(agent, call.tool) and call.lost < LOST_MAX):
        return EffectLost(0, effect_id)
    return EffectLost(0, effect_id, tool=call.tool, arguments=call.arguments)


def folded(directory: Path, agent: Agent, step: Step, found: Examined) -> State:
    """The state after all records: from the snapshot if it belongs to this trace and agent, else from the start."""
    guard_step = partial(step, agent)
    snapshot = read_snapshot(directory, agent)
    if snapshot is not None:
        rest = [r for r in found.records if r.seq >= snapshot.seq]
        last = next((r for r in found.records if r.seq == snapshot.seq - 1), None)
        if last is not None and last.hash == snapshot.head:
            with contextlib.suppress(TraceError):  # Of another version of the state: the records are the truth.
                return fold(guard_step, rest, decode_state(snapshot.state))[0]
    return fold(guard_step, found.records, start_of(found))[0]


def _open(path: Path, mode: Durability, disk: Disk) -> tuple[TraceFile, Examined]:
    vouch = HeadFile(path.parent, disk).move
    if path.exists():
        found = examine_to_go_on(path, events=False)
        return TraceFile.resume(path, durability=mode, disk=disk, vouch=vouch, found=found)
    if any(vouched.seq for vouched in vouchers_of(path.parent)):
        raise TraceDamaged(f"{path} is gone, and records are vouched for: restore it. What was in it has happened", 0)
    trace = TraceFile.create(path, durability=mode, disk=disk, vouch=vouch)  # Cut off between session.json and it.
    return trace, records_of(path)

"""Timers of a session: set again after a restart, and a past one fires at once."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

from edgeagent.core.agent import Agent
from edgeagent.core.events import Heard, ModelAnswered, TimerFired
from edgeagent.core.state import State
from edgeagent.driver.base import Driver
from edgeagent.driver.scripted import ScriptedModel
from edgeagent.runtime.folder import TRACE_NAME, Beginning
from edgeagent.runtime.resume import resume_session
from edgeagent.runtime.session import Outside, Session, new_session
from edgeagent.runtime.wiring import drivers_of, step_of, with_dialect
from edgeagent.trace.check import fold
from edgeagent.trace.file import examine_file

AGENT = with_dialect(Agent("timed", timers=True), "plain")
CALL = '{"name": "set_timer", "arguments": {"seconds": 3600, "note": "Look again."}}'
STARTED_MS = 1_700_000_000_000


def drivers(*texts: str) -> dict[type, Driver]:
    return drivers_of(AGENT, ScriptedModel(texts))


def start(root: Path, *texts: str) -> Session:
    beginning = Beginning(agent_spec="timed.py", model="script", seed=1)
    return new_session(AGENT, step_of(AGENT), drivers(*texts), root, beginning, Outside(clock_ms=lambda: STARTED_MS))


def until_fired(session: Session) -> State:
    """Work until no timer is set any more."""
    deadline = time.monotonic() + 60
    while session.state.timers and time.monotonic() < deadline:
        session.resume_turn()
        time.sleep(0.01)
    return session.state


def test_a_timer_whose_time_passed_while_nothing_ran_fires_when_the_session_is_opened(tmp_path: Path) -> None:
    session = start(tmp_path, CALL, "I will.")
    session.say("Look again in an hour.")
    assert [t.note for t in session.state.timers] == ["Look again."]
    session.close()
    later = Outside(clock_ms=lambda: STARTED_MS + 3_600_001)
    again = resume_session(session.directory, AGENT, step_of(AGENT), drivers("Looked."), outside=later)
    state = until_fired(again)
    again.close()
    assert [m.text for m in state.past[-1].messages] == ["Look again.", "Looked."]
    records = examine_file(session.directory / TRACE_NAME).records
    assert [type(r.event) for r in records[-2:]] == [TimerFired, ModelAnswered]
    assert fold(partial(step_of(AGENT), AGENT), records)[0] == state


def test_what_nobody_listens_to_is_not_even_recorded(tmp_path: Path) -> None:
    session = start(tmp_path, "Hello.")
    session.post_heard("door", "open")
    session.say("Hello.")
    session.close()
    kinds = [type(r.event) for r in examine_file(session.directory / TRACE_NAME).records]
    assert Heard not in kinds

"""Opening a session without a command line: what is asked for is a value, and any door may stand at its end."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from edgeagent.core.agent import Agent, tool
from edgeagent.core.effects import Say
from edgeagent.errors import ConfigError
from edgeagent.runtime.door import QuietDoor
from edgeagent.runtime.open import OpenRequest, open_session
from edgeagent.runtime.recording import load_recording
from edgeagent.runtime.wiring import load_agent


@tool(idempotent=True, effect="read")
def depth() -> int:
    """Measure how deep the well is."""
    return 7


WELL = Agent("well", "You watch a well.", (depth,))


class Listener(QuietDoor):
    """Keeps what is said, and what it is told."""

    def __init__(self):
        self.said, self.told = [], []

    def watch(self, event, state, effects):
        self.said += [effect.text for effect in effects if isinstance(effect, Say)]

    def activity(self, text):
        self.told.append(text)


@pytest.fixture
def asked(tmp_path):
    """What is asked for: a session of the well, whose model follows a script."""
    script = tmp_path / "script.json"
    script.write_text(json.dumps([json.dumps({"name": "depth", "arguments": {}}), "Seven metres.", "Still seven."]))
    return OpenRequest(agent=WELL, model=f"script:{script}", state=tmp_path / "state")


def test_an_agent_that_is_a_value_needs_no_file(asked):
    door = Listener()
    session = open_session(asked, door)
    session.say("How deep is it?")
    session.close()
    assert door.said == ["Seven metres."]


def test_a_session_of_a_value_goes_on_with_the_value(asked):
    first = open_session(asked, QuietDoor())
    first.say("How deep is it?")
    first.close()
    door = Listener()
    again = open_session(OpenRequest(agent=WELL, state=asked.state, last=True), door)
    again.say("And now?")
    again.close()
    assert (door.said, door.told) == (["Still seven."], [])


def test_a_session_of_a_value_says_what_is_needed_to_look_into_it(asked):
    session = open_session(asked, QuietDoor())
    session.close()
    with pytest.raises(ConfigError, match=r"opened from Python: say which agent it is"):
        load_recording(session.trace_path)
    assert load_recording(session.trace_path, WELL).agent.digest == WELL.digest


def test_what_was_fixed_when_a_session_began_cannot_be_asked_for_again(asked):
    open_session(asked, QuietDoor()).close()
    with pytest.raises(ConfigError, match="max_steps was fixed when the session began"):
        open_session(OpenRequest(agent=WELL, state=asked.state, last=True, max_steps=3), QuietDoor())


def test_without_an_agent_it_is_said_what_is_missing(tmp_path):
    with pytest.raises(ConfigError, match="say which agent"):
        open_session(OpenRequest(state=tmp_path), QuietDoor())


def test_a_session_is_opened_without_what_a_command_line_needs():
    code = "import edgeagent.runtime.open, sys; print([m for m in ('click', 'rich') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_an_agent_of_a_file_finds_the_settings_beside_it(tmp_path: Path):
    (tmp_path / "well.py").write_text("from edgeagent import Agent\nWELL = Agent('well', 'You watch a well.')\n")
    (tmp_path / "one.json").write_text('["Seven."]')
    (tmp_path / "edgeagent.toml").write_text(
        f'state = "{tmp_path / "state"}"\n[model]\nname = "script:{tmp_path / "one.json"}"\n'
    )
    door = Listener()
    session = open_session(OpenRequest(agent=str(tmp_path / "well.py")), door)
    session.say("How deep?")
    session.close()
    assert door.said == ["Seven."]
    assert session.directory.parent == tmp_path / "state" / "sessions"


def test_an_agent_file_that_ends_the_program_is_told_as_the_setup_s_fault(tmp_path):
    (tmp_path / "a.py").write_text("import sys\n\nsys.exit(3)\n")
    with pytest.raises(ConfigError, match=r"a\.py, line 3: it ends the program \(sys\.exit\): put that below"):
        load_agent(str(tmp_path / "a.py"))

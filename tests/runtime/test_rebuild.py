"""A session.json that was lost: rebuilt from the trace and the agent, without a word less of the rules."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from edgeagent import open as open_agent
from edgeagent.core.events import SessionStarted
from edgeagent.errors import ConfigError, TraceDamaged
from edgeagent.runtime.door import QuietDoor
from edgeagent.runtime.folder import read_about
from edgeagent.runtime.model import Script
from edgeagent.runtime.open import OpenRequest, open_session
from edgeagent.runtime.serve import Service
from edgeagent.trace.file import examine_file

AGENT = """
from edgeagent import Agent, tool

@tool(idempotent=True, effect="read")
def look() -> int:
    "Look how much is left."
    return 42

agent = Agent("looker", "You look.", [look])
"""
RULES = """
[[policy.rules]]
rule = "at_most"
tool = "look"
n = 1
"""
LOST = {"missing": None, "empty": b"", "zeros": bytes(700), "cut": b'{"id": "2026', "noise": b"\xff\x00\x81"}


class Listening(QuietDoor):
    """Keeps what is said about what goes on."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def activity(self, text: str) -> None:
        self.said.append(text)


@pytest.fixture
def agent(tmp_path: Path) -> str:
    (tmp_path / "agent.py").write_text(AGENT)
    return str(tmp_path / "agent.py")


def begun(agent: str, root: Path) -> Path:
    """The directory of a session that was asked once."""
    with open_agent(agent, Script(["There are 42."]), state=root, seed=7) as session:
        assert session.ask("How many?").text == "There are 42."
    return session.directory


def lose(directory: Path, content: bytes | None) -> None:
    file = directory / "session.json"
    file.unlink()
    if content is not None:
        file.write_bytes(content)


def resumed(agent: str | None, directory: Path, door: Listening) -> str:
    request = OpenRequest(agent=agent, state=directory.parent.parent, resume=directory.name)
    with open_session(request, door, Script(["There are 42.", "Still 42."])) as session:
        return session.ask("And now?").text


@pytest.mark.parametrize("content", LOST.values(), ids=LOST)
def test_a_lost_session_json_is_rebuilt_and_the_session_goes_on(
    agent: str, tmp_path: Path, content: bytes | None
) -> None:
    directory, door = begun(agent, tmp_path / "state"), Listening()
    before = read_about(directory)
    lose(directory, content)
    assert resumed(agent, directory, door) == "Still 42."
    assert replace(read_about(directory), created_ms=before.created_ms) == before
    assert any("rebuilt from the trace" in said for said in door.said)
    assert not any("differ" in said for said in door.said)


def test_what_a_damaged_session_json_still_holds_is_kept_beside_it(agent: str, tmp_path: Path) -> None:
    directory = begun(agent, tmp_path / "state")
    lose(directory, b'{"id": "2026')
    resumed(agent, directory, Listening())
    assert (directory / "session.json.damaged").read_bytes() == b'{"id": "2026'


def test_without_the_agent_it_is_said_how_to_name_it(agent: str, tmp_path: Path) -> None:
    directory = begun(agent, tmp_path / "state")
    lose(directory, None)
    with pytest.raises(ConfigError, match=rf"run AGENT.py --resume {directory.name}"):
        resumed(None, directory, Listening())


def test_the_operators_rules_hold_in_a_rebuilt_session(agent: str, tmp_path: Path) -> None:
    (tmp_path / "edgeagent.toml").write_text(RULES)
    directory = begun(agent, tmp_path / "state")
    before = read_about(directory)
    lose(directory, None)
    resumed(agent, directory, Listening())
    assert read_about(directory).policy == before.policy != {}


def test_rules_that_are_gone_since_are_said(agent: str, tmp_path: Path) -> None:
    (tmp_path / "edgeagent.toml").write_text(RULES)
    directory, door = begun(agent, tmp_path / "state"), Listening()
    lose(directory, None)
    (tmp_path / "edgeagent.toml").unlink()
    resumed(agent, directory, door)
    assert any("agent, rules or limits differ" in said for said in door.said)


def test_a_lost_session_json_does_not_hide_a_shortened_trace(agent: str, tmp_path: Path) -> None:
    directory = begun(agent, tmp_path / "state")
    lose(directory, None)
    (directory.parent.parent / "heads" / directory.name).unlink()
    with pytest.raises(TraceDamaged, match="nothing vouches"):
        resumed(agent, directory, Listening())


def test_a_service_resumes_a_session_whose_session_json_was_lost(agent: str, tmp_path: Path) -> None:
    from edgeagent.runtime.wiring import load_agent

    directory = begun(agent, tmp_path / "state")
    lose(directory, b"")
    with Service(Script(["There are 42."]), state=tmp_path / "state") as service:
        assert [session.id for session in service.resume(load_agent(agent))] == [directory.name]


def test_a_trace_without_its_session_json_is_read_in_the_dialect_it_was_recorded_in(agent: str, tmp_path: Path) -> None:
    from edgeagent.runtime.recording import load_recording

    directory = begun(agent, tmp_path / "state")
    lose(directory, None)
    started = examine_file(directory / "trace.cbor").records[0].event
    assert isinstance(started, SessionStarted)
    recording = load_recording(directory / "trace.cbor", agent)
    assert recording.agent.dialect is not None
    assert recording.agent.dialect.name == started.dialect

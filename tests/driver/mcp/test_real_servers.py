"""Servers that nobody here wrote: a call each through a whole session, and with SmolLM2 the right one of five.

`tests/driver/mcp/setup.sh` brings them; `make mcp-test` tries all, and fails where one is missing.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from edgeagent.core.agent import Agent
from edgeagent.core.effects import CallTool
from edgeagent.core.events import ToolReturned
from edgeagent.driver.mcp.settings import ServerSettings
from edgeagent.runtime.door import QuietDoor
from edgeagent.runtime.offered import look
from edgeagent.runtime.open import OpenRequest, open_session
from edgeagent.runtime.servers import approve
from tests.driver.mcp.conftest import a_call

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "edgeagent" / "mcp" / "1"
AGENT = Agent("clerk", "You look things up.")


class Peer(NamedTuple):
    """A server, what of it is allowed, a call with a word that its answer must hold, and a request for that call."""

    program: str
    arguments: tuple[str, ...]
    allow: tuple[str, ...]
    tool: str
    given: dict[str, object]
    holds: str
    asked: str


PEERS = {
    "time": Peer(
        "mcp-server-time",
        (),
        ("get_current_time", "convert_time"),
        "convert_time",
        {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"},
        "T21:00",
        "What is the current time in Asia/Tokyo?",
    ),
    "git": Peer(
        "mcp-server-git",
        (),
        ("git_status", "git_log", "git_show", "git_branch"),
        "git_log",
        {"repo_path": "{folder}", "max_count": 1},
        "Water the garden",
        'Show the commit log of "{folder}"',
    ),
    "files": Peer(
        "mcp-server-filesystem",
        ("{folder}",),
        ("read_text_file", "list_directory", "get_file_info"),
        "read_text_file",
        {"path": "{folder}/note.txt"},
        "two litres a bed",
        'Read the file "{folder}/note.txt"',
    ),
    "all": Peer(
        "mcp-server-everything",
        (),
        ("echo", "get-sum", "get-tiny-image"),
        "get-sum",
        {"a": 17, "b": 25},
        "42",
        "What is the sum of 17 and 25?",
    ),
}


class Watching(QuietDoor):
    """Keeps the calls and what they returned."""

    def __init__(self):
        self.calls, self.values = [], []

    def watch(self, event, state, effects):
        self.calls += [effect for effect in effects if isinstance(effect, CallTool)]
        if isinstance(event, ToolReturned):
            self.values.append(event.value)


def program_of(peer):
    places = (Path(sys.executable).parent / peer.program, CACHE / "node_modules" / ".bin" / peer.program)
    found = next((str(place) for place in places if place.exists()), None)
    if found is None or (found == str(places[1]) and shutil.which("node") is None):
        why = f"{peer.program} is missing, so it was NOT tried: make mcp-test"
        pytest.fail(why) if os.environ.get("MCP_TEST") else pytest.skip(why)
    return found


@pytest.fixture
def folder(tmp_path):
    where = tmp_path / "garden"
    where.mkdir()
    (where / "note.txt").write_text("two litres a bed\n")
    git = ["git", "-C", str(where), "-c", "user.name=a", "-c", "user.email=a@example.com"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "Water the garden"], check=True)
    return where


def filled(value, folder):
    return json.loads(json.dumps(value).replace("{folder}", str(folder)))


def opened(name, folder, tmp_path, model, door):
    """A session with one of the servers, approved as it is."""
    peer = PEERS[name]
    command = [program_of(peer), *filled(peer.arguments, folder)]
    settings = {"command": command, "allow": peer.allow, "effect": "read", "idempotent": True}
    lines = [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
    (tmp_path / "edgeagent.toml").write_text("\n".join([f"[mcp.{name}]", *lines]))
    server = msgspec.convert(settings | {"folder": str(tmp_path)}, ServerSettings)
    state = tmp_path / "state"
    looked = look(state, name, server)
    assert approve(state, name, server, looked.offered, looked.seen) == len(peer.allow)
    asked = OpenRequest(agent=AGENT, model=model, config=tmp_path / "edgeagent.toml", state=state)
    return open_session(asked, door)


@pytest.mark.long
@pytest.mark.parametrize("name", PEERS)
def test_a_call_of_a_real_server_comes_back_with_what_it_found(name, folder, tmp_path):
    peer, door = PEERS[name], Watching()
    script = tmp_path / "script.json"
    script.write_text(json.dumps([a_call(f"{name}_{peer.tool}", **filled(peer.given, folder)), "Done."]))
    session = opened(name, folder, tmp_path, f"script:{script}", door)
    session.say(filled(peer.asked, folder))
    session.close()
    [value] = door.values
    assert peer.holds in value


@pytest.mark.slow
@pytest.mark.model
@pytest.mark.parametrize("name", PEERS)
def test_a_small_model_calls_the_right_tool_of_a_real_server(name, folder, tmp_path):
    peer, door = PEERS[name], Watching()
    session = opened(name, folder, tmp_path, "smollm2", door)
    answer = session.ask(filled(peer.asked, folder))
    session.close()
    wanted = "get_current_time" if name == "time" else peer.tool
    calls = [(call.tool, call.arguments) for call in door.calls]
    print(f"{peer.program}: {filled(peer.asked, folder)} -> {calls} -> {answer.text[:200]}")
    assert [tool for tool, _ in calls] == [f"{name}/{wanted}"]
    assert door.values

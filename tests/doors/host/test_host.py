"""The door of hosts: transcripts for any implementation, the schema of its messages, and a socket for several hosts."""

from __future__ import annotations

import json
import re
import shutil
import socket
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from edgeagent.codec.frames import Lines
from edgeagent.codec.jsonrpc import Reader
from edgeagent.doors.acp.house import House
from edgeagent.doors.acp.opening import Opening
from edgeagent.doors.host.door import Listener
from edgeagent.doors.host.messages import ASKED, CALL_TOOL, RECORD, schema
from edgeagent.errors import ConfigError
from tests.doors.acp.garden import ROOT, SENSOR, Garden, call
from tests.doors.host.replayer import FOLDER, play, steps_of

SOON = 60.0
TRANSCRIPTS = sorted(FOLDER.glob("*.jsonl"))
PAGE = (ROOT / "docs" / "host.md").read_text()


@pytest.mark.long
@pytest.mark.parametrize("file", TRANSCRIPTS, ids=lambda file: file.stem)
def test_a_transcript_is_played_as_it_was_written(file):
    assert play(file) == []


def messages_in(file: Path) -> list[dict[str, Any]]:
    return [message for step in steps_of(file)[1] for message in step.values()]


@pytest.mark.parametrize("file", TRANSCRIPTS, ids=lambda file: file.stem)
def test_a_transcript_is_read_alike_however_its_bytes_are_cut(file):
    sent = b"".join(json.dumps(message).encode() + b"\n" for message in messages_in(file))
    whole = Reader(Lines()).feed(sent)
    reader = Reader(Lines())
    assert [found for byte in sent for found in reader.feed(bytes((byte,)))] == whole
    assert len(whole) == len(messages_in(file))


def test_every_message_of_the_transcripts_fits_the_schema_of_its_method():
    whole, checked, asked = schema(), set(), {}
    kinds = whole["x-asked-by-host"] | whole["x-asked-of-host"] | whole["x-told-to-host"]
    for file in TRANSCRIPTS:
        for who, message in ((who, m) for step in steps_of(file)[1] for who, m in step.items()):
            method = message.get("method", "")
            if method in kinds and "error" not in file.stem:
                asked[file, who, message.get("id")] = method
                if file.stem != "refusals":
                    jsonschema.validate(message["params"], {**whole, **kinds[method]["params"]})
                    checked.add(method)
            other = {"host": "agent", "agent": "host"}[who]
            method = asked.pop((file, other, message.get("id")), "") if "result" in message else ""
            if method and isinstance(kinds[method]["result"], dict):
                jsonschema.validate(message["result"], {**whole, **kinds[method]["result"]})
    assert checked == {*ASKED, CALL_TOOL, RECORD}


def test_the_schema_that_is_kept_is_the_one_that_is_made():
    kept = json.loads((ROOT / "host" / "schema.json").read_text())
    assert kept == schema(), "renew it: edgeagent host --schema > host/schema.json"


def test_the_page_names_every_method():
    assert {name for name in (*ASKED, CALL_TOOL, RECORD) if f"`{name}`" not in PAGE} == set()


def test_the_host_of_the_page_runs_its_tool(tmp_path):
    (program,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    garden = Garden(tmp_path, call("set_lamp", on=True), "It is on.")
    command = [each if each != "acp" else "host" for each in garden.command()]
    run = [sys.executable, "-c", program, *command]
    done = subprocess.run(run, capture_output=True, text=True, env=garden.env, check=True)
    assert done.stdout == "lamp: True\nIt is on.\n"


@pytest.mark.long
def test_the_host_in_node_runs_its_tool(tmp_path):
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is missing, so the host in Node was NOT tried: apt-get install nodejs")
    garden = Garden(tmp_path, call("set_lamp", on=True), "It is on.")
    command = [each if each != "acp" else "host" for each in garden.command()]
    run = [node, str(ROOT / "host" / "node" / "lamp.mjs"), "Switch the lamp on.", *command]
    done = subprocess.run(run, capture_output=True, text=True, env=garden.env, check=True)
    assert done.stdout == "lamp: on\nIt is on.\n"


# -- several hosts at a socket ---------------------------------------------------------------------------------------


class Host:
    """One host at a socket."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(SOON)
        self._socket.connect(str(path))
        self._lines = self._socket.makefile("rb")
        self.told: list[dict[str, Any]] = []
        self._next = 0
        self.ask("initialize", protocolVersion=1)

    def send(self, **message: Any) -> None:
        self._socket.sendall(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def begin(self, method: str, **params: Any) -> int:
        self._next += 1
        self.send(id=self._next, method=method, params=params)
        return self._next

    def until(self, request: int | None) -> dict[str, Any]:
        """Read on to this answer, or to a request."""
        while True:
            found = json.loads(self._lines.readline())
            if "method" in found and "id" not in found:
                self.told.append(found)
            elif "method" in found or found["id"] == request:
                return found

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        found = self.until(self.begin(method, **params))
        return found.get("result", found.get("error"))

    def session(self) -> str:
        return self.ask("session/new", cwd="/", mcpServers=[])["sessionId"]

    def say(self, session: str, text: str) -> int:
        return self.begin("session/prompt", sessionId=session, prompt=[{"type": "text", "text": text}])

    def close(self) -> None:
        self._lines.close()
        self._socket.close()


LAMP = {
    "name": "set_lamp",
    "description": "Switch a lamp.",
    "inputSchema": {"type": "object", "properties": {"on": {"type": "boolean"}}, "required": ["on"]},
    "idempotent": True,
}


@pytest.fixture
def place(tmp_path):
    """A listener in this process, at a path."""
    garden = Garden(tmp_path, call("set_lamp", on=True), "It is on.", SENSOR, "At 41 %.")
    opening = Opening(
        str(tmp_path / "garden.py"), (), {"model": f"script:{tmp_path / 'script.json'}", "state": tmp_path / "state"}
    )
    with House(opening) as house:
        listener = Listener(house, tmp_path / "socket", lambda text: None)
        thread = threading.Thread(target=listener.run)
        thread.start()
        yield garden
        listener.stop()
        thread.join(SOON)
        assert not thread.is_alive()
        assert not (tmp_path / "socket").exists()


def test_only_its_owner_can_open_the_socket(place):
    assert stat.S_IMODE((place.folder / "socket").stat().st_mode) == 0o600


def test_each_host_runs_its_own_tools_and_sees_its_own_sessions(place):
    one, other = Host(place.folder / "socket"), Host(place.folder / "socket")
    assert one.ask("_edgeagent/declare_tools", tools=[LAMP]) == {"tools": ["set_lamp"]}
    session = one.session()
    prompt = one.say(session, "Switch it on.")
    asked = one.until(prompt)
    assert (asked["method"], asked["params"]["arguments"]) == (CALL_TOOL, {"on": True})
    assert other.ask("session/list")["sessions"] == []
    assert "error" not in other.ask("session/new", cwd="/", mcpServers=[])
    one.send(id=asked["id"], result={"lamp": "on"})
    assert one.until(prompt)["result"]["stopReason"] == "end_turn"
    one.close()
    other.close()


def test_a_host_that_goes_away_lets_its_sessions_go_and_another_may_load_them(place):
    one = Host(place.folder / "socket")
    one.ask("_edgeagent/declare_tools", tools=[LAMP])
    session = one.session()
    one.until(one.say(session, "Switch it on."))
    one.close()
    other = Host(place.folder / "socket")
    other.ask("_edgeagent/declare_tools", tools=[LAMP])
    while "code" in (found := other.ask("session/load", sessionId=session, cwd="/", mcpServers=[])):
        assert found["code"] == -32603, "it is still being let go of"
    kinds = [each["params"]["update"]["sessionUpdate"] for each in other.told if each["method"] == "session/update"]
    assert kinds[:2] == ["user_message_chunk", "tool_call"]
    other.close()


def test_a_tool_of_the_host_is_cancelled_with_its_turn(place):
    host = Host(place.folder / "socket")
    host.ask("_edgeagent/declare_tools", tools=[LAMP])
    session = host.session()
    prompt = host.say(session, "Switch it on.")
    asked = host.until(prompt)
    host.send(method="session/cancel", params={"sessionId": session})
    assert host.until(prompt)["result"]["stopReason"] == "cancelled"
    cancelled = [each["params"]["requestId"] for each in host.told if each["method"] == "$/cancel_request"]
    while not cancelled:
        host.ask("session/list")
        cancelled = [each["params"]["requestId"] for each in host.told if each["method"] == "$/cancel_request"]
    assert cancelled == [asked["id"]]
    host.close()


def test_who_follows_a_session_is_told_each_record_once_and_in_order(place):
    host = Host(place.folder / "socket")
    host.ask("_edgeagent/declare_tools", tools=[LAMP])
    session = host.session()
    first = host.ask("_edgeagent/events", sessionId=session, follow=True)
    prompt = host.say(session, "Switch it on.")
    host.send(id=host.until(prompt)["id"], result="on")
    host.until(prompt)
    again = host.ask("_edgeagent/events", sessionId=session, since=0)
    told = [each["params"]["record"]["seq"] for each in host.told if each["method"] == RECORD]
    assert [each["seq"] for each in first["records"]] + told == [each["seq"] for each in again["records"]]
    assert host.ask("_edgeagent/replay", sessionId=session)["agrees"]
    host.close()


def test_a_socket_that_a_dead_process_left_is_taken_over_and_a_live_one_is_not(tmp_path):
    path = tmp_path / "socket"
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(path))
    left.close()
    house = House(Opening("agent.py"))
    first = Listener(house, path, lambda text: None)
    with pytest.raises(ConfigError, match="--unix PATH"):
        Listener(house, path, lambda text: None)
    first.stop()
    (tmp_path / "file").write_text("kept")
    with pytest.raises(ConfigError):
        Listener(house, tmp_path / "file", lambda text: None)
    assert (tmp_path / "file").read_text() == "kept"


def test_hello_is_answered_on_stdio_too(tmp_path):
    garden = Garden(tmp_path)
    command = [each if each != "acp" else "host" for each in garden.command()]
    hello = b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}\n'
    done = subprocess.run(command, input=hello, capture_output=True, env=garden.env, check=True)
    meta = json.loads(done.stdout)["result"]["agentCapabilities"]["_meta"]["edgeagent"]
    assert meta["asked"] == sorted(ASKED)

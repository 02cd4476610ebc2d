"""The door of editors as bytes: what is wrong is answered and changes nothing, and no line stops it."""

from __future__ import annotations

import json
import os
import random
import threading
import tracemalloc
from functools import partial

import pytest

from edgeagent.doors.acp.door import AcpDoor
from edgeagent.doors.acp.house import House
from edgeagent.doors.acp.opening import Opening
from tests.doors.acp.garden import SENSOR, VALVE, Garden

SOON = 60.0


class Wire:
    """A door in this process, and the client's end of its pipes."""

    def __init__(self, garden: Garden, *, begins: bool = True) -> None:
        self.garden, self.told = garden, []
        (self._in, self.send_to), (self._from, self._out) = os.pipe(), os.pipe()
        script, state = garden.folder / "script.json", garden.folder / "state"
        opening = Opening(str(garden.folder / "garden.py"), (), {"model": f"script:{script}", "state": state})
        self.house = House(opening)
        self.door = AcpDoor(self.house, self._in, partial(os.write, self._out), self.told.append)
        self.thread = threading.Thread(target=self.door.run)
        self.thread.start()
        self.lines = os.fdopen(self._from, "rb")
        self.updates: list[dict] = []
        self._next = 0
        if begins:
            self.ask("initialize", protocolVersion=1)

    def send(self, line: bytes) -> None:
        os.write(self.send_to, line + b"\n")

    def begin(self, method: str, **params: object) -> int:
        self._next += 1
        self.send(json.dumps({"jsonrpc": "2.0", "id": self._next, "method": method, "params": params}).encode())
        return self._next

    def next(self) -> dict:
        return json.loads(self.lines.readline())

    def until(self, request: int | None) -> dict:
        """Read on to this answer; a question on the way is left to the caller."""
        while True:
            found = self.next()
            if found.get("method") == "session/update":
                self.updates.append(found["params"]["update"])
            elif found.get("method") or found.get("id") == request:
                return found

    def ask(self, method: str, **params: object) -> dict:
        found = self.until(self.begin(method, **params))
        return found.get("result", found.get("error"))

    def session(self) -> str:
        return self.ask("session/new", cwd=str(self.garden.folder), mcpServers=[])["sessionId"]

    def close(self) -> None:
        os.close(self.send_to)
        self.thread.join(SOON)
        assert not self.thread.is_alive()
        self.house.close()
        for each in (self._in, self._out):
            os.close(each)
        self.lines.close()


@pytest.fixture
def wire(tmp_path):
    made = Wire(Garden(tmp_path, SENSOR, "At 41 %.", VALVE, "Open."))
    yield made
    made.close()


def words(text: str) -> list[dict]:
    return [{"type": "text", "text": text}]


def test_a_newer_client_is_answered_with_the_version_that_is_spoken_here(wire):
    assert wire.ask("initialize", protocolVersion=99)["protocolVersion"] == 1


def test_nothing_is_done_before_the_client_has_said_what_it_can(tmp_path):
    wire = Wire(Garden(tmp_path), begins=False)
    assert "initialize first" in wire.ask("session/new", cwd="/", mcpServers=[])["message"]
    wire.close()


@pytest.mark.parametrize(
    ("method", "params", "code", "said"),
    [
        ("session/new", {}, -32602, "`cwd`"),
        ("session/new", {"cwd": 7}, -32602, "$.cwd"),
        ("session/new", {"cwd": "here"}, -32602, "no absolute path"),
        ("session/new", {"cwd": "/", "additionalDirectories": ["a"]}, -32602, "no absolute path"),
        ("session/load", {"cwd": "/", "sessionId": "../../etc"}, -32002, "no session"),
        ("session/load", {"cwd": "/", "sessionId": "20200101-000000-0000"}, -32002, "no session"),
        ("session/prompt", {"sessionId": "x", "prompt": [{"type": "text", "text": "a"}]}, -32002, "no session"),
        ("session/prompt", {"sessionId": "x", "prompt": "words"}, -32602, "$.prompt"),
        ("session/prompt", {"sessionId": "x", "prompt": [{"type": "video"}]}, -32602, "video"),
        ("session/set_mode", {"sessionId": "x", "modeId": "\u202eask"}, -32602, "\\u202eask"),
        ("session/close", {"sessionId": "x"}, -32002, "no session"),
        ("session/list", {"cursor": []}, -32602, "$.cursor"),
        ("authenticate", {"methodId": "x"}, -32601, "authenticate"),
        ("fs/read_text_file", {"path": "/"}, -32601, "there are: initialize"),
        ("initialize", {"protocolVersion": "1"}, -32602, "$.protocolVersion"),
    ],
)
def test_what_is_wrong_with_a_request_is_its_answer(wire, method, params, code, said):
    error = wire.ask(method, **params)
    assert error["code"] == code
    assert said in error["message"]


@pytest.mark.parametrize(
    ("blocks", "said"),
    [
        ([], "no words"),
        ([{"type": "text", "text": " \n"}], "no words"),
        ([{"type": "image", "data": "", "mimeType": "image/png"}], "a picture"),
        ([{"type": "audio", "data": "", "mimeType": "audio/wav"}], "a sound"),
        ([{"type": "resource", "resource": {"uri": "file:///a", "blob": "AA=="}}], "bytes"),
        ([{"type": "resource_link", "uri": "file:///a", "name": "a"}], "no words"),
        ([{"type": "text", "text": "x" * (1 << 20) + "y"}], "are the most"),
    ],
)
def test_a_prompt_that_cannot_be_read_is_refused_and_the_session_goes_on(wire, blocks, said):
    session = wire.session()
    error = wire.ask("session/prompt", sessionId=session, prompt=blocks)
    assert (error["code"], said in error["message"]) == (-32602, True)
    assert wire.ask("session/prompt", sessionId=session, prompt=words("How wet?"))["stopReason"] == "end_turn"


def test_what_is_attached_is_not_the_persons_word(wire):
    session = wire.session()
    file = {"type": "resource", "resource": {"uri": "file:///notes", "text": "Open the south valve."}}
    said = [*words("Follow "), file, *words(" please.")]
    wire.ask("session/prompt", sessionId=session, prompt=said)
    wire.ask("session/load", sessionId=session, cwd="/", mcpServers=[])
    spoken = [each["content"]["text"] for each in wire.updates if each["sessionUpdate"] == "user_message_chunk"]
    assert spoken == ["Follow [attached] please."]


def test_a_second_prompt_waits_for_the_end_of_the_first(wire):
    wire.garden.hold()
    session = wire.session()
    first = wire.begin("session/prompt", sessionId=session, prompt=words("How wet is the soil?"))
    second = wire.begin("session/prompt", sessionId=session, prompt=words("And the air?"))
    assert "open in this session" in wire.until(second)["error"]["message"]
    wire.garden.let_go()
    assert wire.until(first)["result"]["stopReason"] == "end_turn"


@pytest.mark.parametrize("by_request", [True, False])
def test_a_cancellation_that_follows_at_once_still_cancels(wire, by_request):
    wire.garden.hold()
    session = wire.session()
    prompt = wire.begin("session/prompt", sessionId=session, prompt=words("How wet is the soil?"))
    note = ("$/cancel_request", {"requestId": prompt}) if by_request else ("session/cancel", {"sessionId": session})
    wire.send(json.dumps({"jsonrpc": "2.0", "method": note[0], "params": note[1]}).encode())
    assert wire.until(prompt)["result"]["stopReason"] == "cancelled"
    wire.garden.let_go()


def test_an_answer_to_a_question_that_has_lapsed_changes_nothing(wire):
    session = wire.session()
    wire.ask("session/prompt", sessionId=session, prompt=words("How wet is the soil?"))
    prompt = wire.begin("session/prompt", sessionId=session, prompt=words("Open the north valve for 30 seconds."))
    question = wire.until(prompt)
    wire.send(b'{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"%s"}}' % session.encode())
    while (found := wire.until(prompt)).get("method") == "$/cancel_request":
        assert found["params"]["requestId"] == question["id"]
    assert found["result"]["stopReason"] == "cancelled"
    yes = {"outcome": {"outcome": "selected", "optionId": question["params"]["options"][0]["optionId"]}}
    wire.send(json.dumps({"jsonrpc": "2.0", "id": question["id"], "result": yes}).encode())
    wire.ask("session/list")
    assert wire.garden.effects == []


def test_a_question_is_taken_back_when_its_session_is_loaded_and_then_asked_anew(wire):
    session = wire.session()
    wire.ask("session/prompt", sessionId=session, prompt=words("How wet is the soil?"))
    prompt = wire.begin("session/prompt", sessionId=session, prompt=words("Open the north valve for 30 seconds."))
    first = wire.until(prompt)
    load = wire.begin("session/load", sessionId=session, cwd="/", mcpServers=[])
    found = [wire.next() for _ in range(2)]
    while not any(each.get("method") == "session/request_permission" for each in found):
        found.append(wire.next())
    taken_back = [each["params"]["requestId"] for each in found if each.get("method") == "$/cancel_request"]
    failed = [each["error"]["message"] for each in found if each.get("id") == prompt and "error" in each]
    assert (taken_back, len(failed)) == ([first["id"]], 1)
    assert any(each.get("id") == load and "result" in each for each in found)
    yes = {"outcome": {"outcome": "selected", "optionId": found[-1]["params"]["options"][0]["optionId"]}}
    for question in (first, found[-1]):
        wire.send(json.dumps({"jsonrpc": "2.0", "id": question["id"], "result": yes}).encode())
    while "Open." not in json.dumps(wire.next()):
        pass
    assert wire.garden.effects == ["north 30"]


def test_sessions_above_the_most_are_put_down_and_taken_up_again_when_they_are_wanted(wire, monkeypatch):
    monkeypatch.setattr("edgeagent.doors.acp.sessions.OPEN_MAX", 2)
    names = [wire.session() for _ in range(4)]
    assert len({*names}) == 4
    for name in names:
        assert wire.ask("session/prompt", sessionId=name, prompt=words("How wet?"))["stopReason"] == "end_turn"
    assert {each["sessionId"] for each in wire.ask("session/list")["sessions"]} == {*names}


def test_an_agent_that_cannot_be_loaded_is_said_and_the_editor_may_mend_it_and_go_on(tmp_path):
    garden = Garden(tmp_path, SENSOR, "At 41 %.")
    right = (tmp_path / "garden.py").read_text()
    (tmp_path / "garden.py").write_text("agent = 1 / 0\n")
    wire = Wire(garden)
    assert "ZeroDivisionError" in wire.ask("session/new", cwd="/", mcpServers=[])["message"]
    (tmp_path / "garden.py").write_text(right)
    assert wire.session()
    wire.close()


def test_a_session_of_another_agent_is_as_if_it_were_not_there(wire, tmp_path):
    session = wire.session()
    about = tmp_path / "state" / "sessions" / session / "session.json"
    wire.ask("session/close", sessionId=session)
    about.write_text(about.read_text().replace('"garden"', '"other"'))
    assert wire.ask("session/load", sessionId=session, cwd="/", mcpServers=[])["code"] == -32002


# -- any line --------------------------------------------------------------------------------------------------------

WORDS = (
    b'{"jsonrpc":"2.0"', b"}", b'"id":', b"1", b'"a"', b"null", b",", b'"method":"session/prompt"', b"[", b"]", b"{",
    b'"params":', b'{"sessionId":"x","prompt":[]}', b'"session/cancel"', b'"result":', b'"error":', b"\xff\xfe", b"\0",
    b'"initialize"', b'"protocolVersion":1', b"1e999", b"99999999999999999999", b"\\ud800", b" ", b"NaN",
    b'{"a":' * 300,
    b'{"jsonrpc":"2.0","id":5,"method":"session/new","params":{"cwd":"/"}', b'"outcome":{"outcome":"selected"}',
)  # fmt: skip


def any_line(chance: random.Random) -> bytes:
    match chance.randrange(4):
        case 0:
            return chance.randbytes(chance.randrange(80)).replace(b"\n", b"")
        case 1:
            return b"".join(chance.choices(WORDS, k=chance.randrange(1, 12)))
        case 2:
            methods = ("session/prompt", "session/list", "session/load", "session/set_mode", "nope", "session/cancel")
            params = {"sessionId": chance.choice(("x", 1, None)), "prompt": [], "cwd": chance.choice(("/", 3, ""))}
            row = {"jsonrpc": "2.0", "method": chance.choice(methods), "params": params}
            return json.dumps(row | ({"id": chance.randrange(9)} if chance.randrange(5) else {})).encode()
        case _:
            return json.dumps({"jsonrpc": "2.0", "id": chance.randrange(99), "result": {"outcome": {}}}).encode()


def pour(wire: Wire, lines: int, seed: int) -> None:
    """Send so many lines of any kind, then ask; the answer comes behind all others."""
    chance, last = random.Random(seed), f"last {seed}"

    def send() -> None:
        for _ in range(lines // 100):
            wire.send(b"\n".join(any_line(chance) for _ in range(100)))
        wire.send(json.dumps({"jsonrpc": "2.0", "id": last, "method": "session/list", "params": {}}).encode())

    sender = threading.Thread(target=send)
    sender.start()
    while wire.next().get("id") != last:
        pass
    sender.join(SOON)


@pytest.mark.parametrize("lines", [pytest.param(2_000), pytest.param(100_000, marks=pytest.mark.slow)])
def test_no_line_stops_the_door_or_stays_in_its_memory(wire, lines):
    session = wire.session()
    pour(wire, lines // 2, seed=1)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    pour(wire, lines // 2, seed=2)
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert grown < 2_000_000
    wire._next = 1_000
    assert wire.ask("session/prompt", sessionId=session, prompt=words("How wet?"))["stopReason"] == "end_turn"
    assert wire.garden.effects == []

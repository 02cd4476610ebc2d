"""`edgeagent ask` and `edgeagent watch` at a server that runs: the same sessions from a shell, without a model."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from edgeagent.doors.cli.far import FarScreen, OwnTurn, value_of
from edgeagent.doors.http.client import Client, Sent, events_in, read_at
from edgeagent.errors import ConfigError, PeerMisbehaved
from tests.doors.http.serving import ANNE, serving

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[3]
ORDER = "Open north for 30 seconds."
KEYED = {"ANNES_KEY": ANNE}


@pytest.fixture
def at(tmp_path):
    """A server, and how it is named on a command line."""
    with serving(tmp_path / "served") as server:
        yield server, ("--at", f"http://127.0.0.1:{server.port}", "--key", "env:ANNES_KEY")


def test_an_answer_is_printed_with_the_calls_before_it(edgeagent, at):
    _, where = at
    done = edgeagent("ask", *where, "--yes", "set_valve", ORDER, **KEYED)
    assert (done.returncode, done.stdout) == (0, "It is open.\n")
    assert '→ set_valve(seconds=30, valve="north")' in done.stderr
    assert '← "north is open for 30 s"' in done.stderr


def test_a_person_on_the_terminal_is_asked_and_a_no_is_refused(terminal, at, monkeypatch):
    server, where = at
    monkeypatch.setenv("ANNES_KEY", ANNE)
    shell = terminal("ask", *where, ORDER)
    shell.wait_for("[y/N] ")
    assert b'set_valve(seconds=30, valve="north")' in shell.written
    shell.type("n\n")
    assert shell.end() == 3
    session = server.ask("GET", "/api/sessions")[1]["sessions"][0]["id"]
    events = [e["data"]["event"] for e in server.events(session, until="Say") if e["event"] == "record"]
    assert [e["approved"] for e in events if e["type"] == "UserDecided"] == [False]


def test_a_question_that_is_answered_at_another_end_is_not_waited_for_here(terminal, at, monkeypatch):
    server, where = at
    monkeypatch.setenv("ANNES_KEY", ANNE)
    shell = terminal("ask", *where, ORDER)
    shell.wait_for("[y/N] ")
    session = server.ask("GET", "/api/sessions")[1]["sessions"][0]["id"]
    approve(server, session)
    shell.wait_for("It is open.")
    assert shell.end() == 0


def test_ctrl_c_stops_the_turn_on_the_server(terminal, at, monkeypatch):
    server, where = at
    monkeypatch.setenv("ANNES_KEY", ANNE)
    shell = terminal("ask", *where, ORDER)
    shell.wait_for("[y/N] ")
    shell.type("\x03")
    assert shell.end() == 130
    state = server.ask("GET", "/api/sessions")[1]["sessions"][0]["state"]
    assert (state["phase"], state["outcome"]["kind"]) == ("Idle", "cancelled")


def test_without_a_terminal_the_question_stays_open_for_another_end(tmp_path, at):
    server, where = at
    environment = {**os.environ, **KEYED, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "edgeagent", "ask", *where, ORDER]
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, env=environment, cwd=tmp_path, **pipes) as shell:
        line = shell.stderr.readline()
        while "waits for a person's yes" not in line:
            assert line, "it has ended"
            line = shell.stderr.readline()
        approve(server, server.ask("GET", "/api/sessions")[1]["sessions"][0]["id"])
        out, _ = shell.communicate(timeout=60)
    assert (shell.returncode, out) == (0, "It is open.\n")


def test_a_program_answers_the_question_with_its_digest(tmp_path, at):
    _, where = at
    environment = {**os.environ, **KEYED, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "edgeagent", "ask", *where, "--json", ORDER]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, text=True, env=environment, cwd=tmp_path, **pipes) as shell:
        rows = [json.loads(shell.stdout.readline())]
        while rows[-1].get("effect") != "AskUser":
            rows.append(json.loads(shell.stdout.readline()))
        said = {"effect_id": rows[-1]["effect_id"], "approved": True, "digest": rows[-1]["digest"]}
        out, _ = shell.communicate(json.dumps(said) + "\n", timeout=60)
    rows += [json.loads(line) for line in out.splitlines()]
    assert shell.returncode == 0
    assert rows[-1]["outcome"]["kind"] == "answered" and rows[-1]["session"]


def test_a_session_is_carried_on(edgeagent, tmp_path):
    with serving(tmp_path / "served", ("Good day.", "Goodbye."), keys=None) as server:
        where = ("--at", f"http://127.0.0.1:{server.port}")
        assert edgeagent("ask", *where, "Hello").stdout == "Good day.\n"
        assert edgeagent("ask", *where, "--continue", "Bye").stdout == "Goodbye.\n"
        assert len(server.ask("GET", "/api/sessions", key="")[1]["sessions"]) == 1
        seen = edgeagent("watch", *where, "--since", "0", "--rest")
    assert seen.returncode == 0
    assert "user: Hello" in seen.stdout and "Good day.\n" in seen.stdout and "Goodbye.\n" in seen.stdout


def test_what_others_say_moves_no_terminal(terminal, tmp_path, monkeypatch):
    with serving(tmp_path / "served", ("It is \x1b[2J\u202e done.",), keys=None) as server:
        session = server.opened("")
        server.ask("POST", f"/api/sessions/{session}/words", {"text": "Cl\x1b[2Jear"}, key="")
        shell = terminal("watch", "--at", f"http://127.0.0.1:{server.port}", "--since", "0", "--rest", session)
        assert shell.end() == 0
    assert b"\x1b[2J" not in shell.written and "\u202e".encode() not in shell.written
    assert b"done." in shell.written


def test_both_go_on_where_they_were_when_the_server_starts_again(tmp_path):
    root, socket = tmp_path / "served", tmp_path / "door"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    served = {"keys": None, "unix": socket}
    with serving(root, **served):
        base = [sys.executable, "-m", "edgeagent"]
        asking = subprocess.Popen(
            [*base, "ask", "--at", f"unix:{socket}", ORDER], text=True, env=environment, cwd=tmp_path, **pipes
        )
        while "waits for a person's yes" not in asking.stderr.readline():
            assert asking.poll() is None
        watching = subprocess.Popen(
            [*base, "watch", "--at", f"unix:{socket}", "--since", "0", "--json"],
            text=True,
            env=environment,
            cwd=tmp_path,
            **pipes,
        )
        rows = [json.loads(watching.stdout.readline())]
        while rows[-1]["effects"] == [] or rows[-1]["effects"][-1]["type"] != "AskUser":
            rows.append(json.loads(watching.stdout.readline()))
    with serving(root, **served):
        client = Client(read_at(f"unix:{socket}"))
        session = client.call("GET", "/api/sessions")["sessions"][0]["id"]
        question = open_question(lambda: client.call("GET", f"/api/sessions/{session}"))
        body = {"approved": True, "digest": question["digest"]}
        client.call("POST", f"/api/sessions/{session}/questions/{question['id']}", body)
        out, err = asking.communicate(timeout=60)
        assert (asking.returncode, out) == (0, "It is open.\n"), err
        while rows[-1]["state"]["phase"] != "Idle":
            rows.append(json.loads(watching.stdout.readline()))
        watching.terminate()
        watching.communicate()
    assert [row["seq"] for row in rows] == list(range(len(rows)))


def approve(server, session):
    question = open_question(lambda: server.ask("GET", f"/api/sessions/{session}")[1])
    body = {"approved": True, "digest": question["digest"]}
    assert server.ask("POST", f"/api/sessions/{session}/questions/{question['id']}", body)[0] == 200


def open_question(shown):
    for _ in range(6_000):
        if questions := shown()["state"]["questions"]:
            return questions[0]
        time.sleep(0.01)
    raise AssertionError("nothing was asked")


def test_words_that_are_told_again_from_their_beginning_are_not_written_twice():
    out = Terminal()
    screen = FarScreen(out, Terminal(), as_json=False, streams=True)
    for text, at in (("Good ", 0), ("day, ", 5), ("Good day, ", 0), ("Anne", 10), ("Hello", 0)):
        screen.take(Sent("words", None, {"text": text, "at": at}))
    assert out.getvalue() == "Good day, Anne\nHello"


class Terminal(io.StringIO):
    """What is written, as if to a terminal."""

    def isatty(self):
        return True


# -- errors --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--at", "http://127.0.0.1:1"), 1, "is not reached"),
        (("--at", "unix:/nowhere/door"), 1, "is not reached"),
        (("--at", "ftp://127.0.0.1"), 2, "write http://HOST:PORT"),
        (("--at", "http://me:geheim@127.0.0.1"), 2, "without a path or a key"),
        (("--at", "http://127.0.0.1:1", "--key", "geheim-geheim"), 2, "never the key itself"),
        (("--at", "http://127.0.0.1:1", "--key", "env:NONE"), 2, "there is no variable NONE"),
    ],
)
def test_what_is_wrong_with_the_address_or_the_key_is_said_without_repeating_a_key(edgeagent, arguments, code, said):
    done = edgeagent("ask", *arguments, "Hello")
    assert done.returncode == code
    assert said in done.stderr and "geheim" not in done.stderr


def test_a_missing_and_a_wrong_key_are_told_apart_from_a_missing_session(edgeagent, at):
    server, where = at
    assert "give a key with --key" in edgeagent("ask", *where[:2], "Hello").stderr
    assert "no key of this server" in edgeagent("ask", *where, "Hello", ANNES_KEY="x" * 30).stderr
    assert "no session of that id" in edgeagent("watch", *where, "20200101-000000-abcd", **KEYED).stderr
    assert "there is no session of yours" in edgeagent("watch", *where, **KEYED).stderr
    server.door.gate.forget_tries()


def test_events_are_read_as_the_specification_has_them():
    import io

    text = b': alive\n\nid: 7\nevent: record\ndata: {"a":\ndata: 1}\n\nevent:words\ndata:{"text":"x"}\n\nid: 8\ndata: {'
    found = list(events_in(io.BytesIO(text)))
    assert found == [("record", 7, {"a": 1}), ("words", None, {"text": "x"})]
    with pytest.raises(PeerMisbehaved, match="proxy"):
        list(events_in(io.BytesIO(b"data: <html>\n\n")))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("http://h", "http://h:8383"),
        ("https://[::1]:1/", "https://[::1]:1"),
        ("unix:door", "unix:door"),
    ],
)
def test_an_address_is_read(text, shown):
    assert str(read_at(text)) == shown


@pytest.mark.parametrize("text", ["", "h:1", "unix:", "http://", "http://h:x", "http://h/path", "http://h?key=k"])
def test_what_is_no_address_is_refused(text):
    with pytest.raises(ConfigError, match="no address"):
        read_at(text)


# -- which records are a word's own --------------------------------------------------------------------------------


def row(seq, turn, phase, *said, queued=0, outcome=None, trouble=None):
    outcome = outcome and {"kind": outcome, "detail": ""}
    state = {"turn": turn, "phase": phase, "queued": queued, "outcome": outcome, "trouble": trouble}
    effects = [{"type": "Say", "text": text} for text in said]
    return {"seq": seq, "event": {"type": "X"}, "effects": effects, "state": state}


def said_in(rows, number, before):
    turn, found = OwnTurn(number, before["state"]), []
    for each in rows:
        part = turn.part_of(each)
        found += [effect["text"] for effect in part["effects"]] if part else []
        if turn.is_over:
            break
    return found, turn.outcome and turn.outcome.kind


def test_a_word_that_waits_is_answered_by_its_own_turn():
    before = row(4, 1, "AwaitingModel")
    rows = [
        row(5, 1, "AwaitingModel", queued=1),
        row(6, 2, "AwaitingModel", "not ours"),
        row(7, 2, "Idle", "ours", outcome="answered"),
        row(8, 3, "AwaitingModel", "not ours"),
    ]
    assert said_in(rows, 5, before) == (["ours"], "answered")


def test_a_turn_that_ends_while_another_begins_is_over_with_what_it_said():
    before = row(4, 1, "Idle", outcome="answered")
    rows = [row(5, 2, "AwaitingModel"), row(6, 3, "AwaitingModel", "ours")]
    assert said_in(rows, 5, before) == (["ours"], "answered")


def test_a_word_that_is_forgotten_or_not_kept_is_over_without_words():
    before = row(4, 1, "AwaitingModel")
    forgotten = [row(5, 1, "AwaitingModel", queued=1), row(6, 1, "Idle", "stopped", outcome="cancelled")]
    assert said_in(forgotten, 5, before) == ([], "cancelled")
    assert said_in([row(5, 1, "AwaitingModel")], 5, before) == ([], "failed")


def test_a_kind_of_record_that_is_not_known_is_nothing_and_one_that_is_broken_is_said():
    assert value_of({"type": "OfALaterVersion", "x": 1}) is None
    with pytest.raises(PeerMisbehaved):
        value_of({"type": "ToolReturned", "value": {"no": "usage"}})

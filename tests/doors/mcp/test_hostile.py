"""Hostile clients of MCP over HTTP: each is bounded, and others are served meanwhile."""

from __future__ import annotations

import http.client
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, closing

import pytest

from edgeagent.doors.http.server import CONNECTIONS_MAX
from edgeagent.doors.http.wire import WireLimits
from edgeagent.doors.mcp import watched
from edgeagent.doors.mcp.http import CLIENTS_OF_KEY_MAX, OPEN_MAX
from tests.doors.http.serving import ANNE, BERT, serving
from tests.doors.mcp.garden import AGENT
from tests.doors.mcp.test_http import SCRIPT, Speaking, next_message, sensor

HEAD = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
HEAD += f"Authorization: Bearer {ANNE}\r\n".encode()
OPENS = {"name": "set_valve", "arguments": {"valve": "north", "seconds": 30}}


@pytest.fixture
def server(tmp_path):
    limits = WireLimits(head_s=1.0, body_s=1.0)
    with serving(tmp_path, SCRIPT, agent=AGENT, limits=limits) as running:
        yield running


def assert_others_are_served(server):
    answered = sensor(Speaking(server, BERT).greeted())[2][-1]
    assert answered["result"]["structuredContent"]["percent"] == 41


def wait_until(is_so):
    until = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < until, "it has not come"
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"Content-Length: 10737418240\r\n\r\n{", b"413"),
        (b"Transfer-Encoding: chunked\r\n\r\n" + b"10000\r\n" + b" " * 65536 + b"\r\n", b"408"),
        (b'Content-Length: 99\r\n\r\n{"jsonrpc": ', b"408"),
        (b"Content-Length: 100000\r\n\r\n" + b"[" * 100_000, b"400"),
        (b'Content-Length: 30\r\n\r\n{"jsonrpc":"2.0","id":1e99999}', b"400"),
        (b'Content-Length: 27\r\n\r\n{"jsonrpc":"2.0","id":true}', b"400"),
    ],
)
def test_a_body_that_is_too_long_or_half_or_none_is_refused(server, body, status):
    assert server.raw(HEAD + b"Connection: close\r\n" + body).split(b" ")[1] == status
    assert_others_are_served(server)


def test_a_body_that_grows_over_the_most_is_refused(server):
    chunk = b"10000\r\n" + b" " * 65536 + b"\r\n"
    got = server.raw(HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunk * 16)
    assert got.split(b" ")[1] == b"413"


@pytest.mark.long
def test_no_random_message_is_our_fault(server):
    client, chance = Speaking(server).greeted(), random.Random(7)
    methods = ("initialize", "tools/call", "resources/read", "prompts/get", "completion/complete", "logging/setLevel")
    values = (None, 1, "x", [], {}, {"name": 3}, {"uri": None}, {"ref": 1, "argument": []}, {"level": []}, True)
    for number in range(300):
        message = {"jsonrpc": "2.0", "id": number, "method": chance.choice(methods), "params": chance.choice(values)}
        for gone in chance.sample(list(message), chance.randrange(2)):
            del message[gone]
        status, _, _ = client.send(message)
        assert status in (200, 202, 400), (status, message)
    assert_others_are_served(server)


def test_a_session_id_of_another_key_opens_nothing_and_ends_nothing(server):
    anne = Speaking(server).greeted(elicitation={})
    with anne.stream({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": OPENS}) as reply:
        asked = next_message(reply)
        thief = Speaking(server, BERT, **{"Mcp-Session-Id": anne.headers["Mcp-Session-Id"]})
        said = {"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "accept", "content": {"run": True}}}
        assert thief.send(said)[0] == 404
        assert thief.send(None, "GET", Last_Event_ID="1-0")[0] == 404
        anne.send(said | {"result": {"action": "decline"}})
        assert next_message(reply)["result"]["isError"]


def test_a_flood_of_streams_holds_one_connection(server):
    client = Speaking(server).greeted()
    with ExitStack() as held:
        for _ in range(2 * CONNECTIONS_MAX):
            connection = socket.create_connection(("127.0.0.1", server.port), timeout=60)
            held.callback(connection.close)
            head = {"Host": "localhost", "Authorization": f"Bearer {ANNE}"} | client.headers
            lines = "".join(f"{name}: {value}\r\n" for name, value in head.items())
            connection.sendall(f"GET /mcp HTTP/1.1\r\n{lines}Connection: close\r\n\r\n".encode())
            assert connection.recv(12).startswith(b"HTTP/1.1 200")
        wait_until(lambda: server.door.server.connections <= 1)
        assert_others_are_served(server)


def test_clients_that_only_listen_give_their_places_to_those_that_begin(server):
    with ExitStack() as held:
        for _ in range(CLIENTS_OF_KEY_MAX):
            client = Speaking(server).greeted()
            assert held.enter_context(client.stream(None, "GET")).status == 200
        assert sensor(Speaking(server).greeted())[0] == 200


def test_a_flood_of_greetings_leaves_as_many_clients_as_a_key_may_have(server):
    threads = threading.active_count()
    for _ in range(100):
        Speaking(server).greeted()
    assert server.door.mcp.count == CLIENTS_OF_KEY_MAX
    assert threading.active_count() <= threads + 4
    assert_others_are_served(server)


def test_of_one_client_only_so_many_requests_are_open(server):
    client = Speaking(server).greeted(elicitation={})
    with ExitStack() as held:
        for number in range(OPEN_MAX):
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
            held.enter_context(closing(connection))
            body = {"jsonrpc": "2.0", "id": f"n{number}", "method": "tools/call", "params": OPENS}
            sent = client.headers | {"Authorization": f"Bearer {ANNE}"}
            connection.request("POST", "/mcp", json.dumps(body), sent)
        wait_until(lambda: client.request("ping")[0] == 429)
        assert_others_are_served(server)


KILLED = """
import http.client, json, sys
connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]))
connection.request("POST", "/mcp", sys.argv[2], json.loads(sys.argv[3]))
reply = connection.getresponse()
print(reply.status, flush=True)
reply.read()
"""


def killed_in_mid_call(client, params):
    """Have another process make this call, and kill it when the stream of its answer has begun."""
    body = json.dumps({"jsonrpc": "2.0", "id": "k", "method": "tools/call", "params": params})
    sent = json.dumps(client.headers | {"Authorization": f"Bearer {client.key}"})
    command = [sys.executable, "-c", KILLED, str(client.server.port), body, sent]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as running:
        assert running.stdout.readline() == b"200\n"
        os.kill(running.pid, signal.SIGKILL)


@pytest.mark.long
def test_clients_that_are_killed_while_their_users_are_asked_hold_nobody_up(server, tmp_path):
    for _ in range(CLIENTS_OF_KEY_MAX):
        killed_in_mid_call(Speaking(server).greeted(elicitation={}), OPENS)
    wait_until(lambda: server.door.server.connections == 0)
    assert_others_are_served(server)
    assert sensor(Speaking(server).greeted())[0] == 200, "they give their places to those that are there"
    assert not (tmp_path / "effects").exists()


def test_who_never_answers_a_question_has_said_no(server, tmp_path, monkeypatch):
    monkeypatch.setattr(watched, "ASKED_S", 0.1)
    client = Speaking(server).greeted(elicitation={})
    answer = client.request("tools/call", OPENS)[2][-1]
    assert answer["result"]["isError"] and not (tmp_path / "effects").exists()
    assert sensor(client)[2][-1]["result"]["structuredContent"]["percent"] == 41

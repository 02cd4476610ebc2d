"""MCP over HTTP at a real server: what the protocol wants of the transport, one sentence each."""

from __future__ import annotations

import http.client
import json
from contextlib import closing, contextmanager

import pytest

from tests.doors.http.serving import ANNE, BERT, serving
from tests.doors.mcp.garden import AGENT

BOTH = "application/json, text/event-stream"
VERSION = "2025-11-25"
SCRIPT = (json.dumps({"name": "read_sensor", "arguments": {"sensor": "soil"}}), "Forty-one percent.")


@pytest.fixture
def server(tmp_path):
    with serving(tmp_path, SCRIPT, agent=AGENT) as running:
        yield running


class Speaking:
    """A client that speaks MCP in plain HTTP."""

    def __init__(self, server, key=ANNE, **headers):
        self.server, self.key = server, key
        self.headers = {"Accept": BOTH, "Content-Type": "application/json", **headers}
        self.next = 0

    def send(self, body, method="POST", **headers):
        """Send; return status, headers and what came."""
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=60)
        sent = self.headers | {"Authorization": f"Bearer {self.key}"}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        payload = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        with closing(connection):
            connection.request(method, "/mcp", payload, {k: v for k, v in sent.items() if v is not None})
            reply = connection.getresponse()
            return reply.status, reply.headers, read(reply)

    def request(self, method, params=None, **headers):
        self.next += 1
        body = {"jsonrpc": "2.0", "id": self.next, "method": method} | ({} if params is None else {"params": params})
        return self.send(body, **headers)

    def greeted(self, version=VERSION, **capabilities):
        """Begin a session."""
        params = {"protocolVersion": version, "capabilities": capabilities, "clientInfo": {"name": "t", "version": "1"}}
        status, headers, [answer] = self.request("initialize", params)
        assert status == 200, answer
        self.headers |= {"Mcp-Session-Id": headers["Mcp-Session-Id"]}
        self.headers |= {"MCP-Protocol-Version": answer["result"]["protocolVersion"]}
        assert self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})[0] == 202
        return self

    def call(self, name, arguments, **meta):
        return self.request("tools/call", {"name": name, "arguments": arguments} | ({"_meta": meta} if meta else {}))

    @contextmanager
    def stream(self, body, method="POST", **headers):
        """A reply that is read line by line."""
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=60)
        sent = self.headers | {"Authorization": f"Bearer {self.key}"}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        with closing(connection):
            connection.request(method, "/mcp", None if body is None else json.dumps(body), sent)
            yield connection.getresponse()


def read(reply):
    """The messages of a reply."""
    text = reply.read().decode()
    if reply.headers.get_content_type() == "text/event-stream":
        rows = (line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: "))
        return [json.loads(row) for row in rows if row.strip()]
    return [json.loads(text)] if text else []


def sensor(client, **meta):
    return client.call("read_sensor", {"sensor": "soil"}, **meta)


def test_a_call_that_is_answered_at_once_is_answered_as_json(server):
    status, headers, [answer] = sensor(Speaking(server).greeted())
    assert (status, headers.get_content_type()) == (200, "application/json")
    assert answer["result"]["structuredContent"] == {"sensor": "soil", "percent": 41}


def test_progress_goes_before_the_answer_in_one_stream(server):
    status, headers, messages = sensor(Speaking(server).greeted(), progressToken="p")
    assert (status, headers.get_content_type()) == (200, "text/event-stream")
    *notes, answer = messages
    counted = [each["params"]["progress"] for each in notes]
    assert len(counted) >= 3 and counted == sorted(set(counted))
    assert {each["params"]["progressToken"] for each in notes} == {"p"}
    assert "result" in answer


def test_a_log_is_told_from_the_level_that_was_set(server):
    client = Speaking(server).greeted()
    assert client.request("logging/setLevel", {"level": "debug"})[2][0]["result"] == {}
    *notes, _ = sensor(client)[2]
    assert {"ToolReturned"} <= {each["params"]["data"]["event"] for each in notes}
    client.request("logging/setLevel", {"level": "error"})
    assert len(sensor(client)[2]) == 1
    assert client.request("logging/setLevel", {"level": "loud"})[2][0]["error"]["code"] == -32602


def test_the_agent_is_asked_with_the_model_that_the_server_has(server):
    [answer] = Speaking(server).greeted().call("ask_garden", {"text": "How wet is the soil?"})[2]
    assert answer["result"]["content"] == [{"type": "text", "text": "Forty-one percent."}]


def test_a_session_is_there_for_its_own_key_alone(server):
    anne = Speaking(server).greeted()
    stolen = Speaking(server, BERT, **{"Mcp-Session-Id": anne.headers["Mcp-Session-Id"]})
    assert stolen.request("tools/list")[0] == 404
    assert stolen.send(None, "DELETE")[0] == 404
    assert stolen.send(None, "GET")[0] == 404
    assert anne.request("tools/list")[0] == 200


def test_a_session_that_was_ended_is_not_there(server):
    client = Speaking(server).greeted()
    assert client.send(None, "DELETE")[0] == 200
    assert client.request("ping")[0] == 404
    assert client.send(None, "DELETE")[0] == 404


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({"Mcp-Session-Id": None}, 400),
        ({"Mcp-Session-Id": "guessed"}, 404),
        ({"MCP-Protocol-Version": "2024-01-01"}, 400),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": None}, 415),
        ({"Accept": "text/html"}, 406),
        ({"Accept": "application/json"}, 406),
        ({"Origin": "http://evil.example.com"}, 403),
        ({"Host": "evil.example.com"}, 403),
        ({"Authorization": "Bearer " + "x" * 30}, 401),
    ],
)
def test_a_request_that_may_not_be_is_refused_by_its_status(server, changed, status):
    client = Speaking(server).greeted()
    body = {"jsonrpc": "2.0", "id": 9, "method": "tools/list"}
    assert client.send(body, **changed)[0] == status
    assert client.request("ping")[0] == 200


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"a"', b'{"jsonrpc":"1.0","id":1,"method":"ping"}', b"\xff" * 9])
def test_what_is_no_message_is_told_so(server, body):
    status, _, [answer] = Speaking(server).greeted().send(body)
    assert status == 400 and answer["error"]["code"] in (-32700, -32600)


def test_messages_come_together_only_where_the_version_has_it(server):
    two = [{"jsonrpc": "2.0", "id": each, "method": "ping"} for each in (7, 8)]
    assert Speaking(server).greeted().send(two)[0] == 400
    status, _, [answers] = Speaking(server).greeted("2025-03-26").send(two)
    assert status == 200 and sorted(each["id"] for each in answers) == [7, 8]


def test_a_question_goes_to_the_client_in_the_stream_of_its_call(server):
    client = Speaking(server).greeted(elicitation={})
    body = {"name": "set_valve", "arguments": {"valve": "north", "seconds": 30}}
    with client.stream({"jsonrpc": "2.0", "id": "c", "method": "tools/call", "params": body}) as reply:
        asked = next_message(reply)
        assert asked["method"] == "elicitation/create" and "set_valve" in asked["params"]["message"]
        said = {"action": "accept", "content": {"run": True}}
        assert client.send({"jsonrpc": "2.0", "id": asked["id"], "result": said})[0] == 202
        answer = next_message(reply)
    assert answer["id"] == "c" and not answer["result"].get("isError")


def test_who_has_lost_the_line_has_the_rest_from_where_it_was(server):
    client = Speaking(server).greeted(elicitation={})
    body = {"name": "set_valve", "arguments": {"valve": "north", "seconds": 30}}
    with client.stream({"jsonrpc": "2.0", "id": "c", "method": "tools/call", "params": body}) as reply:
        last, asked = next_event(reply)
    said = {"action": "accept", "content": {"run": True}}
    assert client.send({"jsonrpc": "2.0", "id": asked["id"], "result": said})[0] == 202
    with client.stream(None, "GET", Last_Event_ID=last) as reply:
        answer = next_message(reply)
    assert answer["id"] == "c" and not answer["result"].get("isError")


def test_a_call_that_is_cancelled_ends(server):
    client = Speaking(server).greeted(elicitation={})
    body = {"name": "set_valve", "arguments": {"valve": "north", "seconds": 30}}
    with client.stream({"jsonrpc": "2.0", "id": "c", "method": "tools/call", "params": body}) as reply:
        assert next_message(reply)["method"] == "elicitation/create"
        gone = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "c"}}
        assert client.send(gone)[0] == 202
        told, answer = next_message(reply), next_message(reply)
    assert told["method"] == "notifications/cancelled" and answer["id"] == "c" and answer["result"]["isError"]
    assert sensor(client)[2][-1]["result"]["structuredContent"]["percent"] == 41


def test_traces_are_read_and_completed_by_their_own_key_alone(server):
    session = server.opened(ANNE)
    anne, bert = Speaking(server).greeted(), Speaking(server, BERT).greeted()
    uris = [each["uri"] for each in anne.request("resources/list")[2][0]["result"]["resources"]]
    assert f"edgeagent://trace/{session}" in uris
    [read_] = anne.request("resources/read", {"uri": f"edgeagent://session/{session}"})[2][0]["result"]["contents"]
    assert json.loads(read_["text"])["agent"] == "garden"
    told = anne.request("resources/read", {"uri": f"edgeagent://trace/{session}"})[2][0]["result"]["contents"]
    assert told[0]["mimeType"] == "text/plain"
    assert bert.request("resources/list")[2][0]["result"]["resources"] == []
    for kind in ("trace", "session"):
        refused = bert.request("resources/read", {"uri": f"edgeagent://{kind}/{session}"})[2][0]["error"]
        assert refused["code"] == -32002
    about = {"type": "ref/resource", "uri": "edgeagent://trace/{session}"}
    wanted = {"ref": about, "argument": {"name": "session", "value": session[:3]}}
    assert session in anne.request("completion/complete", wanted)[2][0]["result"]["completion"]["values"]
    assert bert.request("completion/complete", wanted)[2][0]["result"]["completion"]["values"] == []


def test_of_too_many_clients_of_a_key_the_one_that_rested_longest_is_forgotten(server):
    first = Speaking(server).greeted()
    others = [Speaking(server).greeted() for _ in range(8)]
    assert first.request("ping")[0] == 404
    assert all(each.request("ping")[0] == 200 for each in others)
    assert server.door.mcp.count == 8


def next_event(reply):
    """The number and the message of the next event that holds one."""
    number = ""
    for line in reply:
        name, _, value = line.decode().rstrip("\n").partition(": ")
        number = value if name == "id" else number
        if name == "data" and value.strip():
            return number, json.loads(value)
    raise AssertionError("the stream has ended")


def next_message(reply):
    return next_event(reply)[1]

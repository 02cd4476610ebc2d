"""MCP without a session: a question is put between two requests, and only a yes to it lets exactly that call run."""

from __future__ import annotations

import pytest

from tests.doors.http.serving import BERT, serving
from tests.doors.mcp.garden import AGENT
from tests.doors.mcp.test_http import SCRIPT, Speaking, sensor

VERSION = "2026-07-28"
OPENS = {"name": "set_valve", "arguments": {"valve": "north", "seconds": 30}}
YES, NO = ({"run": {"action": "accept", "content": {"run": says}}} for says in (True, False))


@pytest.fixture
def server(tmp_path):
    with serving(tmp_path, SCRIPT, agent=AGENT) as running:
        yield running


class Alone(Speaking):
    """A client that says with each request what it can."""

    def request(self, method, params=None, *, can=None, **headers):
        meta = {"io.modelcontextprotocol/protocolVersion": VERSION}
        meta["io.modelcontextprotocol/clientCapabilities"] = {"elicitation": {}} if can is None else can
        params = (params or {}) | {"_meta": meta}
        said = {"MCP-Protocol-Version": VERSION, "Mcp-Method": method}
        if "name" in params or "uri" in params:
            said["Mcp-Name"] = params.get("name", params.get("uri"))
        return super().request(method, params, **(said | headers))

    def opens(self, **more):
        status, _, [answer] = self.request("tools/call", OPENS | more)
        return status, answer


def effects(folder):
    return (folder / "effects").read_text().splitlines() if (folder / "effects").exists() else []


def asked(client):
    status, answer = client.opens()
    assert (status, answer["result"]["resultType"]) == (200, "input_required")
    assert "set_valve" in answer["result"]["inputRequests"]["run"]["params"]["message"]
    return answer["result"]["requestState"]


def test_a_read_is_answered_by_itself(server):
    result = sensor(Alone(server))[2][0]["result"]
    assert (result["resultType"], result["structuredContent"]["percent"]) == ("complete", 41)


@pytest.mark.parametrize(("said", "done"), [(YES, ["north 30"]), (NO, [])])
def test_a_write_runs_only_after_a_yes_to_it(server, tmp_path, said, done):
    client = Alone(server)
    word = asked(client)
    assert effects(tmp_path) == []
    _, answer = client.opens(requestState=word, inputResponses=said)
    assert (effects(tmp_path), bool(answer["result"].get("isError"))) == (done, not done)


def test_a_yes_counts_once(server, tmp_path):
    client = Alone(server)
    more = {"requestState": asked(client), "inputResponses": YES}
    client.opens(**more)
    status, answer = client.opens(**more)
    assert (status, answer["error"]["code"], effects(tmp_path)) == (400, -32602, ["north 30"])


@pytest.mark.parametrize(
    "other",
    [
        {"arguments": {"valve": "north", "seconds": 999}},
        {"requestState": "guessed"},
        {"requestState": 7},
    ],
)
def test_a_yes_to_one_call_lets_no_other_run(server, tmp_path, other):
    client = Alone(server)
    status, answer = client.opens(**({"requestState": asked(client), "inputResponses": YES} | other))
    assert (status, answer["error"]["code"], effects(tmp_path)) == (400, -32602, [])


def test_a_yes_without_the_word_of_its_question_is_none(server, tmp_path):
    _, answer = Alone(server).opens(inputResponses=YES)
    assert (answer["result"]["resultType"], effects(tmp_path)) == ("input_required", [])


def test_the_word_of_another_keys_question_is_none(server, tmp_path):
    word = asked(Alone(server))
    status, _ = Alone(server, BERT).opens(requestState=word, inputResponses=YES)
    assert (status, effects(tmp_path)) == (400, [])


def test_who_cannot_be_asked_has_not_said_yes(server, tmp_path):
    [answer] = Alone(server).request("tools/call", OPENS, can={})[2]
    assert answer["result"]["isError"] and effects(tmp_path) == []


@pytest.mark.parametrize(
    "headers", [{"Mcp-Method": "tools/list"}, {"Mcp-Name": "read_sensor"}, {"MCP-Protocol-Version": "2025-11-25"}]
)
def test_headers_that_say_something_else_than_the_body_are_refused(server, tmp_path, headers):
    status, _, [answer] = Alone(server).request("tools/call", OPENS, **headers)
    assert (status, answer["error"]["code"], effects(tmp_path)) == (400, -32020, [])

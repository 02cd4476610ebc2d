"""Sessions over HTTP: whose they are, what is shown of them, and how a person decides from afar."""

from __future__ import annotations

import json
import time
from pathlib import Path

import jsonschema
import pytest
from prometheus_client.parser import text_string_to_metric_families

from edgeagent.doors.http.queue import Places
from edgeagent.errors import ConfigError
from tests.doors.http.serving import ANNE, BERT, serving

SAID = {"text": "Open north for 30 seconds."}


def asked(server, key: str = ANNE) -> tuple[str, dict]:
    """A session in which a question is open, and the question."""
    session = server.opened(key)
    assert server.ask("POST", f"/api/sessions/{session}/words", SAID | {"wait": False}, key)[0] == 202
    return session, question_of(server, session, key)


def question_of(server, session: str, key: str = ANNE) -> dict:
    for _ in range(6_000):
        questions = server.ask("GET", f"/api/sessions/{session}", key=key)[1]["state"]["questions"]
        if questions:
            return questions[0]
        time.sleep(0.01)
    raise AssertionError("nothing was asked")


def decide(server, session: str, question: dict, **more) -> tuple[int, dict]:
    body = {"approved": True, "digest": question["digest"]} | more
    return server.ask("POST", f"/api/sessions/{session}/questions/{question['id']}", body)


# -- keys ----------------------------------------------------------------------------------------------------------


def test_no_route_lets_in_who_has_no_key_or_another_ones(server):
    session, question = asked(server)
    cut, cased, twice = ANNE[:-1], ANNE.upper(), f"{ANNE} {ANNE}"
    wrong = {"none": None, "another scheme": f"Basic {ANNE}", "a bare key": ANNE, "empty": "Bearer "}
    wrong |= {each: f"Bearer {each}" for each in (cut, cased, twice, f"{ANNE}x")}
    for route in server.door.routes:
        path = route.path.replace("{session}", session).replace("{question}", str(question["id"]))
        path = path.replace("{agent}", "garden")
        body = b"{}" if route.takes else None
        for name, given in wrong.items():
            server.door.gate.forget_tries()
            headers = {} if given is None else {"Authorization": given}
            status, said = server.ask(route.method, path, body, "", **headers)
            assert (status == 401) == route.needs_key, (route, name, status, said)
        if "{session}" in route.path:
            status, said = server.ask(route.method, path, valid(route.name, question), BERT)
            assert (status, said["error"]["code"]) == (404, "no_such_session"), route
    assert {r["id"] for r in server.ask("GET", "/api/sessions", key=BERT)[1]["sessions"]}.isdisjoint({session})
    assert question_of(server, session) == question


def valid(name: str, question: dict):
    return {"say": SAID, "decide": {"approved": True, "digest": question["digest"]}, "cancel": {}}.get(name)


def test_another_ones_session_and_none_are_answered_alike(server):
    session = server.opened()
    theirs = server.ask("GET", f"/api/sessions/{session}", key=BERT)
    assert theirs == server.ask("GET", "/api/sessions/20200101-000000-abcd", key=BERT)


def test_after_some_wrong_keys_an_address_must_wait(server):
    server.door.gate.forget_tries()
    for _ in range(10):
        assert server.ask("GET", "/api/sessions", key="x" * 30)[0] == 401
    got = server.raw(
        b"GET /api/sessions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer y\r\nConnection: close\r\n\r\n"
    )
    server.door.gate.forget_tries()
    assert b" 429 " in got.split(b"\r\n")[0] and b"Retry-After: " in got


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "localhost.evil.example:8383"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Sec_Fetch_Site": "cross-site"},
    ],
)
def test_what_a_page_of_another_host_sends_is_refused(server, headers):
    assert server.ask("GET", "/api/sessions", **headers)[0] == 403


def test_a_page_of_this_host_may_ask(server):
    host = f"127.0.0.1:{server.port}"
    assert (
        server.ask("GET", "/api/sessions", Host=host, Origin=f"http://{host}", Sec_Fetch_Site="same-origin")[0] == 200
    )


# -- sessions ------------------------------------------------------------------------------------------------------


def test_a_question_is_answered_from_afar_and_the_call_runs(server):
    session, question = asked(server)
    assert (question["tool"], question["arguments"]) == ("set_valve", {"valve": "north", "seconds": 30})
    assert decide(server, session, question) == (200, {"taken": True})
    last = server.events(session, until="Say")[-1]["data"]
    assert last["effects"][-1]["text"] == "It is open."
    assert last["state"]["outcome"]["kind"] == "answered"


def test_an_answer_to_another_question_is_refused_and_the_question_stays_open(server):
    session, question = asked(server)
    status, said = decide(server, session, question, digest="0" * 16)
    assert (status, said["error"]["code"]) == (409, "other_question")
    assert question_of(server, session) == question
    assert decide(server, session, question, approved=False)[0] == 200
    assert decide(server, session, question)[1]["error"]["code"] == "not_open"


def test_waiting_for_the_answer_gives_it_with_the_calls(tmp_path):
    with serving(tmp_path, ("Good day.",)) as server:
        status, answer = server.ask("POST", f"/api/sessions/{server.opened()}/words", {"text": "Hello"})
    assert (status, answer) == (200, {"text": "Good day.", "outcome": {"kind": "answered", "detail": ""}, "calls": []})


RULE = """
[[policy.rules]]
rule = "never"
tool = "set_valve"
because = "the pipes are frozen"
"""


@pytest.mark.parametrize("named", ["edgeagent.toml", "elsewhere.toml"])
def test_the_operators_rules_hold_and_are_shown(tmp_path, named):
    file = tmp_path / ("" if named == "edgeagent.toml" else "other") / named
    file.parent.mkdir(exist_ok=True)
    file.write_text(RULE)
    with serving(tmp_path, config=None if named == "edgeagent.toml" else file) as server:
        _, shown = server.ask("GET", "/api/agents")
        assert "the pipes are frozen" in str(shown["agents"][0]["rules"])
        session = server.opened()
        assert server.ask("POST", f"/api/sessions/{session}/words", SAID | {"wait": False})[0] == 202
        answered = str(server.events(session, until="Say"))
    assert "the pipes are frozen" in answered and "CallTool" not in answered and "AskUser" not in answered


def test_a_turn_is_stopped_from_afar(server):
    session, _ = asked(server)
    assert server.ask("POST", f"/api/sessions/{session}/cancel")[0] == 200
    for _ in range(6_000):
        outcome = server.ask("GET", f"/api/sessions/{session}")[1]["state"]["outcome"]
        if outcome:
            break
        time.sleep(0.01)
    assert outcome["kind"] == "cancelled"


def test_what_is_no_session_or_no_words_is_refused(server):
    session = server.opened()
    assert server.ask("POST", "/api/sessions", {"agent": "nobody"})[0] == 404
    assert server.ask("POST", f"/api/sessions/{session}/words", {"text": "  "})[0] == 400
    assert server.ask("GET", f"/api/sessions/{session}/events?since=-1")[0] == 400
    assert server.ask("DELETE", f"/api/sessions/{session}")[0] == 405
    assert server.ask("GET", "/api/sessions/../../etc/passwd")[0] == 404


def test_sessions_are_listed_the_newest_first_also_those_of_one_second(server):
    begun = [server.opened() for _ in range(8)]
    listed = [row["id"] for row in server.ask("GET", "/api/sessions")[1]["sessions"]]
    assert listed[:8] == begun[::-1]


def test_a_title_is_the_first_words_without_what_would_move_a_screen(server):
    session = server.opened()
    server.ask("POST", f"/api/sessions/{session}/words", {"text": "Open\x1b[2J it \u202e now", "wait": False})
    title = next(r["title"] for r in server.ask("GET", "/api/sessions")[1]["sessions"] if r["id"] == session)
    assert title.startswith("Open") and "\x1b" not in title and "\u202e" not in title


# -- events --------------------------------------------------------------------------------------------------------


def test_events_resume_behind_any_record_without_loss_or_doubles(server):
    session, question = asked(server)
    decide(server, session, question)
    whole = records(server.events(session, until="Say"))
    assert [each["seq"] for each in whole] == list(range(len(whole)))
    for last in range(len(whole) - 1):
        assert records(server.events(session, until="Say", Last_Event_ID=str(last))) == whole[last + 1 :]
        assert records(server.events(session, last, until="Say")) == whole[last:]


def records(events: list[dict]) -> list[dict]:
    found = [each for each in events if each["event"] == "record"]
    assert all(int(each["id"]) == each["data"]["seq"] for each in found)
    return [each["data"] for each in found]


def test_a_server_that_starts_again_takes_up_the_turn_and_the_same_events(tmp_path):
    with serving(tmp_path) as server:
        session, question = asked(server)
        before = records(server.events(session, until="AskUser"))
    with serving(tmp_path) as server:
        again = question_of(server, session)
        assert {k: again[k] for k in ("tool", "arguments", "digest")} == {
            k: question[k] for k in ("tool", "arguments", "digest")
        }
        assert decide(server, session, again)[0] == 200
        whole = records(server.events(session, until="Say"))
        assert whole[: len(before)] == before
        assert [each["seq"] for each in whole] == list(range(len(whole)))
        assert server.ask("GET", f"/api/sessions/{session}", key=BERT)[0] == 404


def test_sessions_that_rest_are_put_down_for_others_and_opened_again(tmp_path):
    with serving(tmp_path, ("Good day.",) * 9) as server:
        server.door.sessions.open_max = 2
        names = [server.opened() for _ in range(5)]
        assert server.door.sessions.open_count == 2
        for name in names:
            assert server.ask("POST", f"/api/sessions/{name}/words", {"text": "Hello"})[1]["text"] == "Good day."
        assert [row["id"] for row in server.ask("GET", "/api/sessions")[1]["sessions"]] == names[::-1]


# -- figures and documents -----------------------------------------------------------------------------------------


def test_the_metrics_are_what_prometheus_reads(server):
    session, question = asked(server)
    decide(server, session, question)
    server.events(session, until="Say")
    text = server.ask("GET", "/metrics")[1]
    found = {family.name: family for family in text_string_to_metric_families(text)}
    turns = {tuple(sample.labels.items()): sample.value for sample in found["edgeagent_turns"].samples}
    assert turns[("agent", "garden"), ("outcome", "answered")] >= 1
    assert found["edgeagent_resident_bytes"].samples[0].value > 1e6
    assert {sample.labels["kind"] for sample in found["edgeagent_tokens"].samples} >= {"prompt", "completion"}


def test_health_says_what_is_wrong(server, monkeypatch):
    assert server.ask("GET", "/health", key="") == (200, {"ready": True, "wrong": [], "devices": {}})
    monkeypatch.setattr("edgeagent.doors.http.metrics.free_bytes", lambda folder: 1 << 20)
    status, said = server.ask("GET", "/health", key="")
    assert status == 503 and "takes only 1 MB more" in said["wrong"][0]


def test_the_openapi_file_lists_every_route_and_is_json_schema(server):
    document = server.ask("GET", "/openapi.json", key="")[1]
    listed = {(method.upper(), path) for path, each in document["paths"].items() for method in each}
    assert listed == {(route.method, route.path) for route in server.door.routes}
    assert document["openapi"] == "3.1.0"
    names = [each["operationId"] for path in document["paths"].values() for each in path.values()]
    assert len(set(names)) == len(names)
    for schema in document["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)
    for reference in _references(document):
        assert reference.removeprefix("#/components/schemas/") in document["components"]["schemas"]


def _references(value):
    if isinstance(value, dict):
        yield from ([value["$ref"]] if "$ref" in value else [])
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _references(each)


def test_every_route_is_in_the_docs(server):
    page = (Path(__file__).parents[3] / "docs" / "serve.md").read_text()
    for route in server.door.routes:
        assert f"`{route.method} {route.path}`" in page, route


# -- keys' file ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "mode", "said"),
    [
        ("anne " + "k" * 20, 0o644, "chmod 600"),
        ("", 0o600, "holds no key"),
        ("anne short", 0o600, "fewer than 20"),
        ("anne", 0o600, "NAME KEY"),
        ("an/ne " + "k" * 20, 0o600, "NAME KEY"),
        ("anne " + "k" * 20 + "\nanne " + "l" * 20, 0o600, "twice"),
        ("anne " + "k" * 20 + "\nbert " + "k" * 20, 0o600, "twice"),
        ("anne " + "ä" * 20, 0o600, "plain ASCII"),
    ],
)
def test_a_keys_file_that_is_no_good_is_refused_without_showing_a_key(tmp_path, content, mode, said):
    from edgeagent.doors.http.keys import read_keys

    file = tmp_path / "keys"
    file.write_text(content)
    file.chmod(mode)
    with pytest.raises(ConfigError, match=said) as raised:
        read_keys(file)
    assert "kkkkk" not in str(raised.value) and "short" not in str(raised.value)


def test_keys_come_from_a_systemd_credential(tmp_path):
    from edgeagent.doors.http.keys import keys_file, read_keys

    (tmp_path / "edgeagent.keys").write_text(f"# who may come in\nanne {ANNE}\n")
    (tmp_path / "edgeagent.keys").chmod(0o400)
    file = keys_file(None, {"CREDENTIALS_DIRECTORY": str(tmp_path)})
    assert file is not None and read_keys(file).name_of(ANNE) == "anne"
    assert read_keys(file).name_of(ANNE + "x") is None


def test_who_finds_no_place_is_told_when_to_come_again():
    from edgeagent.doors.http.message import Refused

    places = Places(1)
    with places.one(), pytest.raises(Refused) as raised, places.one():
        pass
    assert raised.value.status == 429 and dict(raised.value.headers)["Retry-After"].isdecimal()
    assert json.loads(raised.value.reply().body)["error"]["type"] == "rate_limit_error"
    with places.one():
        pass

"""A remote model answers each ask with exactly one event: a reply as the dialect writes it, or what went wrong."""

from __future__ import annotations

import json
import threading

import pytest

from edgeagent.core.events import ModelAnswered, ModelFailed
from edgeagent.core.reading import Answer, Calls, Unreadable
from edgeagent.core.values import Message
from edgeagent.driver.remote.model import Price
from edgeagent.driver.remote.planned import Planner
from edgeagent.request.more import READ_ON
from tests.driver.remote.asking import AGENT, ask, asking
from tests.driver.remote.peer import OK, calling, chunk, peer, refusing, saying


def test_words_come_as_they_are_and_are_shown_as_they_come():
    with peer(saying("The bed is dry.")) as served, asking(served.url) as asked:
        event = asked.event()
    assert isinstance(event, ModelAnswered)
    assert (event.text, event.stop) == ("The bed is dry.", "end")
    assert "".join(asked.shown) == "The bed is dry."
    assert (event.usage.prompt, event.usage.completion) == (10, 4)


def test_a_call_is_written_as_the_dialect_writes_it():
    with peer(calling(("set_valve", '{"valve": "north", "seconds": 30}'))) as served, asking(served.url) as asked:
        event = asked.event()
    reading = AGENT.dialect.read(event.text)
    assert isinstance(reading, Calls)
    assert [(each.tool, each.arguments) for each in reading.calls] == [("set_valve", {"valve": "north", "seconds": 30})]


def test_several_calls_are_one_batch():
    with (
        peer(calling(("look", "{}"), ("look", ""), ("set_valve", '{"valve":"a"}'))) as served,
        asking(served.url) as asked,
    ):
        event = asked.event()
    reading = AGENT.dialect.read(event.text)
    assert [(each.tool, each.arguments) for each in reading.calls] == [
        ("look", {}),
        ("look", {}),
        ("set_valve", {"valve": "a"}),
    ]


@pytest.mark.parametrize("arguments", ['{"valve": ', "[1]", '{"a": 1, "a": 2}', "NaN", '{} {"b": 1}', '"x"'])
def test_arguments_that_are_no_object_are_unreadable_and_not_mended(arguments):
    with peer(calling(("set_valve", arguments))) as served, asking(served.url) as asked:
        event = asked.event()
    assert isinstance(AGENT.dialect.read(event.text), Unreadable)


@pytest.mark.parametrize("text", ['{"soil": "dry"}', "{ not JSON", '[{"a": 1}]'])
def test_words_that_look_like_a_broken_call_stay_words(text):
    with peer(saying(text)) as served, asking(served.url) as asked:
        event = asked.event()
    assert isinstance(AGENT.dialect.read(event.text), Answer)
    assert text in event.text


def test_the_request_holds_the_talk_the_tools_that_may_be_called_and_the_limits():
    with peer(saying("Yes.")) as served, asking(served.url) as asked:
        asked.event(ask(tools=("look",), max_tokens=33))
    (body,) = served.bodies
    assert body["messages"] == [
        {"role": "system", "content": "You water a garden."},
        {"role": "user", "content": "Open the north valve."},
    ]
    assert [each["function"]["name"] for each in body["tools"]] == ["look"]
    assert (body["model"], body["max_tokens"], body["stream"], body["seed"]) == ("m", 33, True, 7)


def test_calls_and_results_go_back_as_calls_and_results():
    messages = (
        Message("user", "Open it."),
        Message("assistant", '{"name": "set_valve", "arguments": {"valve": "north"}}'),
        Message("tool", '"north"', tool="set_valve"),
    )
    with peer(saying("It is open.")) as served, asking(served.url) as asked:
        asked.event(ask(messages=messages))
    said, called, result = served.bodies[0]["messages"][1:]
    assert said == {"role": "user", "content": "Open it."}
    (call,) = called["tool_calls"]
    assert (call["function"]["name"], json.loads(call["function"]["arguments"])) == ("set_valve", {"valve": "north"})
    assert result == {"role": "tool", "tool_call_id": call["id"], "content": '"north"'}


def test_the_tool_that_reads_on_is_told_while_a_result_is_cut_and_where_it_was_called():
    read_on = Message("assistant", '{"name": "result_more", "arguments": {}}')
    messages = (Message("user", "Look."), read_on, Message("tool", '"dry"', tool="result_more"), Message("user", "So?"))
    with peer(saying("Yes.")) as served, asking(served.url) as asked:
        asked.event(ask(tools=("look", "result_more")))
        asked.event(ask(messages=messages, effect_id=2))
    told = [[each["function"]["name"] for each in body["tools"]] for body in served.bodies]
    assert told == [["look", "result_more"], ["set_valve", "look", "result_more"]]


def test_a_planned_model_reads_on_where_that_is_asked_and_else_does_as_if_nothing_were_cut():
    offered = (*AGENT.tool_names, "result_more")
    planner = Planner(AGENT)
    assert planner.planned(ask("Read on.", tools=offered)) is READ_ON
    assert planner.planned(ask(tools=offered)) == planner.planned(ask())


def test_a_call_without_a_result_is_given_one_since_servers_refuse_it_else():
    messages = (
        Message("user", "Look."),
        Message("assistant", '{"name": "look", "arguments": {}}'),
        Message("user", "Well?"),
    )
    with peer(saying("Dry.")) as served, asking(served.url) as asked:
        asked.event(ask(messages=messages))
    roles = [each["role"] for each in served.bodies[0]["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "user"]


def test_a_call_that_could_not_be_read_goes_back_as_it_was_with_the_error():
    messages = (
        Message("user", "Open it."),
        Message("assistant", '{"name": "set_valve", "arguments": {"valve": '),
        Message("tool", '{"refused":"not one JSON call"}'),
    )
    with peer(saying("Sorry.")) as served, asking(served.url) as asked:
        asked.event(ask(messages=messages))
    *_, written, error = served.bodies[0]["messages"]
    assert written == {"role": "assistant", "content": messages[1].text}
    assert error["role"] == "user" and "not one JSON call" in error["content"]


def test_an_answer_that_is_not_streamed_is_read_all_the_same():
    body = json.dumps({"choices": [{"message": {"content": "Dry."}, "finish_reason": "stop"}]}).encode()
    whole = refusing(200, body, "Content-Type: application/json")
    for stream in (True, False):
        with peer(whole) as served, asking(served.url, stream=stream) as asked:
            assert asked.event().text == "Dry."
        assert served.bodies[0].get("stream", False) is stream


def test_an_answer_that_reaches_its_limit_says_so():
    with (
        peer(OK + chunk({"content": "The bed"}) + chunk({}, "length") + b"data: [DONE]\n\n") as served,
        asking(served.url) as asked,
    ):
        event = asked.event()
    assert (event.text, event.stop) == ("The bed", "limit")


def test_an_answer_ends_with_its_last_event_though_the_connection_stays_open():
    def stays(connection, _):
        connection.sendall(saying("Dry."))
        while connection.recv(65536):  # Until the client has gone.
            pass

    with peer(stays) as served, asking(served.url) as asked:
        assert asked.event().text == "Dry."


def test_a_call_costs_its_tokens_at_the_price_and_never_less():
    with (
        peer(saying("Dry.", prompt_tokens=1001, completion_tokens=3)) as served,
        asking(served.url, price=Price(input=0.5, output=2)) as asked,
    ):
        assert asked.event().usage.cost == 507  # 500.5 and 6, rounded up


def test_tokens_that_a_server_does_not_count_are_taken_from_the_bytes():
    with (
        peer(OK + chunk({"content": "The bed is dry."}, "stop") + b"data: [DONE]\n\n") as served,
        asking(served.url, price=Price(output=1)) as asked,
    ):
        usage = asked.event().usage
    assert usage.completion == 5
    assert usage.prompt > 20
    assert usage.cost == 5


def test_a_prompt_that_the_budget_has_no_room_for_is_not_sent():
    with peer(saying("Dry.")) as served, asking(served.url) as asked:
        event = asked.event(ask("word " * 400, prompt_tokens_max=100))
    assert (event.reason, served.requests) == ("context_full", [])
    assert event.prompt_tokens > 300


def test_what_stays_here_is_not_asked_elsewhere():
    with peer(saying("Dry.")) as served, asking(served.url, here=False) as asked:
        event = asked.event(ask(stays="what read_pin returned stays on this device"))
    assert isinstance(event, ModelFailed)
    assert (event.reason, served.accepted) == ("unavailable", 0)
    assert "was not asked: what read_pin returned stays on this device" in event.message


def test_what_stays_here_may_be_asked_of_a_server_on_this_machine():
    with peer(saying("Dry.")) as served, asking(served.url) as asked:
        assert asked.event(ask(stays="it stays")).text == "Dry."


def test_a_unix_socket_is_asked(tmp_path):
    path = str(tmp_path / "model.sock")
    with peer(saying("Dry."), path) as served, asking(served.url, socket=path) as asked:
        assert asked.event().text == "Dry."


def test_a_proxy_is_asked_where_the_settings_name_one():
    with peer(saying("Dry.")) as served:
        way = {"proxy": served.url.removesuffix("/v1"), "plain_http": True}
        with asking("http://models.example:8080/v1", **way) as asked:
            assert asked.event().text == "Dry."
    assert served.requests[0].startswith(b"POST http://models.example:8080/v1/chat/completions ")


def test_this_machine_is_asked_without_any_proxy(monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    with peer(saying("Dry.")) as served, asking(served.url) as asked:
        assert asked.event().text == "Dry."


def test_a_cancelled_ask_ends_in_the_middle_of_its_stream_with_one_event():
    begun = threading.Event()

    def drips(connection, _):
        connection.sendall(OK)
        while True:
            connection.sendall(chunk({"content": "dry "}))
            begun.set()
            threading.Event().wait(0.01)

    with peer(drips) as served, asking(served.url, price=Price(input=1, output=1)) as asked:
        asked.driver.submit(ask(), asked.events.put)
        assert begun.wait(60)
        while not asked.shown:
            threading.Event().wait(0.005)
        asked.driver.cancel(1)
        event = asked.events.get(timeout=60)
        assert served.gone.wait(60)  # The connection is closed, so that the server stops, too.
    assert (type(event), event.stop) == (ModelAnswered, "cancelled")
    assert event.usage.cost > 0  # What was written until then is paid for.


def test_nothing_is_posted_after_close():
    with peer(lambda connection, _: threading.Event().wait(3)) as served, asking(served.url) as asked:
        asked.driver.submit(ask(), asked.events.put)
        asked.driver.close()


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (OK + chunk({"content": " "}, "stop") + b"data: [DONE]\n\n", "stop"),
        (OK + chunk({}, "length") + b"data: [DONE]\n\n", "its limit of tokens left no room"),
        (OK + chunk({}, "content_filter") + b"data: [DONE]\n\n", "its server's filter kept it back"),
    ],
)
def test_an_empty_answer_is_a_failure_that_says_why_and_is_paid_for(answer, why):
    with peer(answer) as served, asking(served.url, price=Price(input=1)) as asked:
        event = asked.event()
    assert event.message == f"the model answered nothing: {why}"
    assert event.spent.cost > 0


def test_a_call_where_only_words_are_wanted_is_no_answer():
    with peer(calling(("look", "{}"))) as served, asking(served.url) as asked:
        assert isinstance(asked.event(ask(choice="answer", tools=())), ModelFailed)

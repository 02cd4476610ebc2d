"""A model that does not call tools by itself: the request is read here, and its server holds it to the call."""

from __future__ import annotations

import dataclasses

import pytest

from edgeagent.codec.dialect import dialect_called
from edgeagent.core.events import ModelAnswered
from edgeagent.core.reading import Calls
from edgeagent.core.values import Message
from edgeagent.driver.model import Sampling
from tests.driver.remote.asking import AGENT, ask, asking
from tests.driver.remote.peer import peer, saying

CALL = '{"name": "set_valve", "arguments": {"valve": "north", "seconds": 30}}'
OPEN = "Open the north valve for 30 seconds."


@pytest.mark.parametrize("calls", ["schema", "object", "grammar"])
def test_the_call_that_is_asked_for_is_what_the_server_holds_the_model_to(calls):
    with peer(saying(CALL)) as served, asking(served.url, calls=calls) as asked:
        event = asked.event(ask(OPEN))
    assert isinstance(AGENT.dialect.read(event.text), Calls)
    (body,) = served.bodies
    assert "tools" not in body
    system = body["messages"][0]["content"]
    assert '"set_valve"' in system and "You water a garden." in system
    if calls == "grammar":
        assert "set_valve" in body["grammar"] and "look" not in body["grammar"]
        return
    form = body["response_format"]
    schema = form["json_schema"]["schema"] if calls == "schema" else form["schema"]
    assert form["type"] == {"schema": "json_schema", "object": "json_object"}[calls]
    assert schema["properties"]["name"] == {"const": "set_valve"}
    assert schema["properties"]["arguments"]["properties"]["seconds"]["enum"] == [30]


def test_what_the_request_says_of_the_arguments_is_in_the_event():
    with peer(saying(CALL)) as served, asking(served.url, calls="schema") as asked:
        event = asked.event(ask(OPEN))
    assert dict(event.evidence)["set_valve.seconds"]
    assert dict(event.scores)["set_valve"] > dict(event.scores)["look"]


def test_several_calls_are_held_as_one_list():
    both = f'[{CALL}, {{"name": "look", "arguments": {{}}}}]'
    with peer(saying(both)) as served, asking(served.url, calls="object") as asked:
        event = asked.event(ask("Open the north valve for 30 seconds and look at the bed."))
    assert len(AGENT.dialect.read(event.text).calls) == 2
    schema = served.bodies[0]["response_format"]["schema"]
    assert [each["properties"]["name"]["const"] for each in schema["prefixItems"]] == ["set_valve", "look"]


def test_what_forbids_something_is_answered_without_the_server():
    with peer(saying("Never.")) as served, asking(served.url, calls="schema") as asked:
        event = asked.event(ask("Don't open the north valve."))
    assert (type(event), served.accepted, event.usage.cost) == (ModelAnswered, 0, 0)
    assert "".join(asked.shown) == event.text != ""


def test_a_result_is_told_without_the_server():
    messages = (Message("user", OPEN), Message("assistant", CALL), Message("tool", '"north"', tool="set_valve"))
    with peer(saying("Never.")) as served, asking(served.url, calls="schema") as asked:
        assert "north" in asked.event(ask(messages=messages)).text
    assert served.accepted == 0


def test_words_are_asked_for_without_tools_or_a_schema():
    with peer(saying("I water.")) as served, asking(served.url, calls="schema") as asked:
        assert asked.event(ask("Who are you?", choice="answer", tools=())).text == "I water."
    (body,) = served.bodies
    assert "response_format" not in body and "tools" not in body


def test_the_model_may_be_left_alone_with_its_tools():
    alone = {"sampling": Sampling(0.5, 0.9), "plans": False}
    with peer(saying("Dry.")) as served, asking(served.url, calls="schema", driver=alone) as asked:
        asked.event(ask(OPEN))
    (body,) = served.bodies
    assert len(body["tools"]) == 2
    assert (body["temperature"], body["top_p"]) == (0.5, 0.9)


def test_the_call_is_written_in_the_dialect_that_the_session_has_for_a_loaded_model():
    agent = dataclasses.replace(AGENT, dialect=dialect_called("hermes"))
    with peer(saying(CALL)) as served, asking(served.url, calls="schema", agent=agent) as asked:
        event = asked.event(ask(OPEN))
    (call,) = agent.dialect.read(event.text).calls
    assert (call.tool, call.arguments) == ("set_valve", {"valve": "north", "seconds": 30})

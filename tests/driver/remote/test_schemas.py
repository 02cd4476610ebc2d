"""What a server refuses of a schema: it is asked again with less, that is said, and remembered."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator

import pytest

from edgeagent.core.events import ModelAnswered, ModelFailed
from edgeagent.core.reading import Calls
from edgeagent.driver.order import OrderedModels
from tests.driver.remote.asking import AGENT, ask, asking
from tests.driver.remote.peer import Peer, calling, peer, refusing, saying

CALL = '{"name": "set_valve", "arguments": {"valve": "north", "seconds": 30}}'
OPEN = "Open the north valve for 30 seconds."


@contextlib.contextmanager
def refuses(body: bytes, when: Callable[[dict], bool], answer: bytes = b"") -> Iterator[Peer]:
    """A server that refuses a request with this body where `when` says so of the request."""

    def serve(connection, number):
        sent = served.bodies[number - 1]
        connection.sendall(refusing(400, body) if when(sent) else answer or saying(CALL))

    with peer(serve) as served:
        yield served


def form(sent: dict) -> str:
    """How the model was held."""
    if "grammar" in sent:
        return "grammar"
    told = sent.get("response_format", {})
    return {"json_schema": "schema", "json_object": "object" if "schema" in told else "none"}.get(
        told.get("type"), "own"
    )


UNKNOWN = b'{"error": {"message": "Unrecognized request argument supplied: grammar", "type": "invalid_request_error"}}'
NO_SCHEMA = b'{"detail": [{"type": "literal_error", "loc": ["body", "response_format"], "msg": "Input should be"}]}'
KEYWORD = b'{"error": {"message": "Invalid schema for response_format: \'const\' is not permitted", "code": 400}}'


@pytest.mark.parametrize(
    ("calls", "body", "taken", "forms"),
    [
        ("grammar", UNKNOWN, ("schema", "object", "none"), ["grammar", "schema"]),
        ("schema", NO_SCHEMA, ("object", "none"), ["schema", "schema", "object"]),
        ("object", NO_SCHEMA, ("none",), ["object", "object", "none"]),
    ],
)
def test_a_server_that_refuses_is_held_by_what_it_takes(calls, body, taken, forms):
    with refuses(body, lambda sent: form(sent) not in taken) as served, asking(served.url, calls=calls) as asked:
        first, second = asked.event(ask(OPEN)), asked.event(ask(OPEN, effect_id=2))
        sent = [form(each) for each in served.bodies]
    assert sent == [*forms, forms[-1]]  # What was refused is not tried again.
    assert isinstance(AGENT.dialect.read(first.text), Calls) and first.text == second.text
    assert [why != "" for _, why in first.asked] == [*[True] * (len(forms) - 1), False]
    assert "sent again as" in first.asked[0][1]
    assert second.asked == ()


def test_words_that_a_server_does_not_know_are_left_out_of_the_schema():
    when = lambda sent: '"const"' in json.dumps(sent)  # noqa: E731
    with refuses(KEYWORD, when) as served, asking(served.url, calls="schema") as asked:
        event = asked.event(ask(OPEN))
        second = served.bodies[1]["response_format"]["json_schema"]["schema"]
    assert isinstance(event, ModelAnswered)
    assert second["properties"]["name"] == {"enum": ["set_valve"]}


def test_tools_are_offered_without_what_their_schemas_may_not_say():
    body = b'{"error": {"message": "tools.0.function.parameters: unsupported keyword default"}}'
    when = lambda sent: '"default"' in json.dumps(sent)  # noqa: E731
    with refuses(body, when, calling(("set_valve", '{"valve": "north"}'))) as served, asking(served.url) as asked:
        event = asked.event()
        offered = served.bodies[1]["tools"][0]["function"]["parameters"]
    assert isinstance(AGENT.dialect.read(event.text), Calls)
    assert set(offered["properties"]) == {"valve", "seconds"} and "default" not in json.dumps(offered)


def test_a_server_that_refuses_all_of_them_fails_the_ask_with_what_it_says():
    with peer(refusing(400, KEYWORD)) as served, asking(served.url, calls="schema") as asked:
        event = asked.event(ask(OPEN))
    assert isinstance(event, ModelFailed) and "is not permitted" in event.message


def test_another_refusal_is_not_tried_again():
    body = b'{"error": {"message": "temperature must be 1", "type": "invalid_request_error"}}'
    with peer(refusing(400, body)) as served, asking(served.url, calls="schema") as asked:
        assert isinstance(asked.event(ask(OPEN)), ModelFailed)
        assert len(served.requests) == 1


def test_the_settings_say_with_which_subset_it_begins():
    with peer(saying(CALL)) as served, asking(served.url, calls="schema", schemas="none") as asked:
        asked.event(ask(OPEN))
        assert served.bodies[0]["response_format"] == {"type": "json_object"}


def test_strict_tools_are_told_so_and_nulls_for_what_was_left_out_are_taken_away():
    with peer(calling(("set_valve", '{"valve": "north", "seconds": null}'))) as served:
        with asking(served.url, schemas="strict") as asked:
            event = asked.event()
        function = served.bodies[0]["tools"][0]["function"]
    assert function["strict"] is True
    assert function["parameters"]["required"] == ["valve", "seconds"]
    (call,) = AGENT.dialect.read(event.text).calls
    assert call.arguments == {"valve": "north"}


def test_in_an_order_of_models_the_refusal_stands_under_the_models_name():
    with refuses(UNKNOWN, lambda sent: form(sent) == "grammar") as served, asking(served.url, calls="grammar") as asked:
        OrderedModels([("lan", asked.driver)]).submit(ask(OPEN), asked.events.put)
        (first, why), (second, none) = asked.events.get(timeout=60).asked
    assert (first, second, none) == ("lan", "lan", "") and "Unrecognized" in why

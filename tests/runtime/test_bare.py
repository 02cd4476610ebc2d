"""The bare model: what a client's tools are to it, and calls of before as each family of models writes them."""

from __future__ import annotations

import pytest

from edgeagent.codec.dialect import DIALECTS
from edgeagent.core.reading import Calls
from edgeagent.core.values import Message, ToolCall
from edgeagent.errors import ShapeError
from edgeagent.runtime.bare import Bare, BareAsk, Offered, arguments_in
from edgeagent.runtime.config import ModelSettings
from edgeagent.runtime.door import QuietDoor
from edgeagent.runtime.model import Script

CALLS = [("get_weather", {"city": "São Paulo", "days": 2, "tags": ["a", "b"], "at": {"x": 1.5, "y": None}})]


def bare(tmp_path, *answers: str, dialect: str = "plain") -> Bare:
    return Bare(Script(answers, ModelSettings(name="script", dialect=dialect)), tmp_path)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_calls_of_before_are_read_as_the_family_writes_them(tmp_path, dialect):
    for calls in (CALLS, CALLS * 2, [("get_time", {})]):
        text = bare(tmp_path, dialect=dialect).calls_text(calls)
        assert DIALECTS[dialect].read(text) == Calls(tuple(ToolCall(*call) for call in calls))


@pytest.mark.parametrize(
    ("name", "about", "effect"),
    [("get_weather", "Tell the weather.", "read"), ("HassTurnOn", "Turns on a device.", "write"), ("x", "", "write")],
)
def test_a_clients_tool_changes_nothing_only_where_its_words_say_so(tmp_path, name, about, effect):
    seen = []

    class Looking(Script):
        def driver(self, agent, doors, root, answered, manner=None):
            seen.append(agent.by_name[name].effect)
            return super().driver(agent, doors, root, answered, manner)

    ask = BareAsk(messages=(Message("user", "Hello"),), tools=(Offered(name, about, {"type": "object"}),))
    Bare(Looking(["Hello."]), tmp_path).begin(ask, QuietDoor()).release()
    assert seen == [effect]


def test_an_ask_like_the_last_one_is_given_its_place_and_another_one_is_not(tmp_path):
    asked = bare(tmp_path, "One.", "Two.")
    hello = BareAsk(messages=(Message("user", "Hello"),))
    for ask, said in ((hello, "One."), (hello, "Two."), (BareAsk(messages=hello.messages, system="S"), "One.")):
        running = asked.begin(ask, QuietDoor())
        assert running.written().words == said
        running.release()
    assert asked.kept == 2
    asked.close()
    assert asked.kept == 0


@pytest.mark.parametrize("text", ["[]", "{", '{"a": 1, "a": 2}', '{"a": NaN}', ""])
def test_arguments_that_are_no_object_are_refused(text):
    with pytest.raises(ShapeError):
        arguments_in(text)

"""What models write, read."""

from __future__ import annotations

import pytest

from edgeagent.codec.dialect import Plain, dialect_called
from edgeagent.core.agent import tool
from edgeagent.core.reading import Answer, Calls, Unreadable
from edgeagent.core.values import Message, ToolCall
from edgeagent.errors import ConfigError


def test_words_are_an_answer():
    assert Plain().read("  It is {fine}. ") == Answer("It is {fine}.")


def test_one_object_is_a_call():
    assert Plain().read('{"name": "f", "arguments": {"b": 1, "a": 2}}') == Calls((ToolCall("f", {"b": 1, "a": 2}),))


def test_a_list_is_several_calls():
    reading = Plain().read('[{"name": "f", "arguments": {}}, {"name": "g", "arguments": {}}]')
    assert reading == Calls((ToolCall("f", {}), ToolCall("g", {})))


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "{}",
        '{"name": "f"}',
        '{"name": "f", "arguments": []}',
        '{"name": 1, "arguments": {}}',
        '{"name": "f", "arguments": {}, "more": 1}',
        '{"name": "f", "name": "g", "arguments": {}}',
        '{"name": "f", "arguments": {"a": NaN}}',
        '{"name": "f", "arguments": {}} and more',
        "[" * 10_000,
        '[{"name": "f", "arguments": {}}, 3]',
    ],
)
def test_what_only_looks_like_a_call_is_unreadable(text):
    reading = Plain().read(text)
    assert isinstance(reading, Unreadable | Answer)
    if text.startswith(("{", "[{")):
        assert isinstance(reading, Unreadable)


def test_the_system_text_lists_each_tool_on_a_line_and_never_changes():
    @tool(idempotent=True)
    def look(where: str) -> None:
        """Look somewhere."""

    text = Plain().system_text("You look.", [look])
    assert text.startswith("You look.\n")
    assert text.splitlines()[-1].startswith('{"name": "look", "description": "Look somewhere."')
    assert text == Plain().system_text("You look.", [look])


@pytest.mark.parametrize(
    ("result", "shown"),
    [
        ('"sky"', 'Result of look: "sky".'),
        ('{"open":true,"valve":"north"}', "Result of look: open true, valve north."),
        ('{"beginning":"cut off', 'Result of look: {"beginning":"cut off.'),
    ],
)
def test_a_result_is_shown_in_words_with_its_tools_name(result, shown):
    (message,) = Plain().chat([Message("tool", result, tool="look")])
    assert message == {"role": "user", "content": shown}


def test_the_closing_answer_is_asked_for_with_its_reason():
    (message,) = Plain().chat([Message("user", "go")], closing="steps")
    assert "limit of steps" in message["content"]


def test_an_unknown_dialect_is_refused_by_name():
    with pytest.raises(ConfigError, match="klingon"):
        dialect_called("klingon")

"""The dialects of model families: chosen by the template, and each reads what its own grammar writes."""

from __future__ import annotations

import json
from typing import Annotated

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Meta

from edgeagent.codec.dialect import DIALECTS, dialect_called, dialect_for
from edgeagent.core.agent import tool
from edgeagent.core.reading import Answer, Calls, Unreadable
from edgeagent.core.values import Message, ToolCall

NAMES = sorted(DIALECTS)
ARGUMENTS = {"text": 'a "quoted" <tool_call> [TOOL_CALLS] \n é', "n": -1.5, "deep": {"list": [1, None, True, {}]}}


def framed(name, arguments=ARGUMENTS):
    frame = dialect_called(name).frame
    return f"{frame.before}look{frame.between}{json.dumps(arguments, ensure_ascii=False)}{frame.after}"


@pytest.mark.parametrize(
    ("template", "name"),
    [
        ("{{ '<|im_start|>' + message.role }}", "plain"),
        ("<|im_start|>{% if tools %}<tools>…<tool_call>", "hermes"),
        ("<tool_call>\n<function=example>\n<parameter=x>", "plain"),
        ('<|start_header_id|>…{"name": function name, "parameters": …}', "llama"),
        ("<|start_header_id|>{{ message.content }}<|eot_id|>", "plain"),
        ("[AVAILABLE_TOOLS]…[TOOL_CALLS] [{", "mistral"),
        ("[TOOL_CALLS]{{ name }}[ARGS]{{ arguments }}", "mistral-args"),
        ("<|tool_call>call:{{ name }}", "gemma"),
        ("<start_function_call>call:", "functiongemma"),
        ("<start_of_turn>model", "plain"),
        ("", "plain"),
    ],
)
def test_the_template_tells_the_dialect(template, name):
    assert dialect_for(template) == name


@pytest.mark.parametrize("name", NAMES)
def test_a_dialect_reads_what_its_frame_holds(name):
    assert dialect_called(name).read(framed(name)) == Calls((ToolCall("look", ARGUMENTS),))


@pytest.mark.parametrize("name", [name for name in NAMES if DIALECTS[name].frame.trigger])
def test_words_may_stand_before_the_trigger(name):
    assert dialect_called(name).read("Let me look. " + framed(name)) == Calls((ToolCall("look", ARGUMENTS),))


@pytest.mark.parametrize("name", NAMES)
def test_a_call_that_is_cut_off_anywhere_is_never_a_call(name):
    text = framed(name, {"text": "x", "n": 12})
    for end in range(len(text)):
        reading = dialect_called(name).read(text[:end])
        whole = isinstance(reading, Calls) and reading.calls[0].arguments == {"text": "x", "n": 12}
        assert not isinstance(reading, Calls) or whole, text[:end]


@pytest.mark.parametrize("name", NAMES)
def test_words_are_an_answer(name):
    assert dialect_called(name).read(" It is {fine}. \n") == Answer("It is {fine}.")


PIECES = st.sampled_from(
    [
        *(mark for d in DIALECTS.values() for mark in (d.frame.before, d.frame.after, d.frame.between) if mark),
        "<think>",
        "</think>",
        "[THINK]",
        "[ARGS]",
        "[CALL_ID]",
        "<|channel>",
        "<escape>",
        '<|"|>',
        "<|python_tag|>",
        '{"name": "f", "arguments": {}}',
        "{",
        "}",
        "[",
        "]",
        '"',
        ",",
        ":",
        "call:f{",
        "1e999",
        "-0",
        "NaN",
        "[" * 2000,
    ]
)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=150)
@given(pieces=st.lists(PIECES | st.text(max_size=5), max_size=12))
def test_whatever_was_written_is_read_without_an_exception(name, pieces):
    assert isinstance(dialect_called(name).read("".join(pieces)), Calls | Answer | Unreadable)


def test_functiongemma_writes_strings_between_its_own_marks():
    text = "<start_function_call>call:f{a:<escape>x, {y}<escape>,b:[1,<escape>z<escape>],c:{d:null}}<end_function_call>"
    assert dialect_called("functiongemma").read(text) == Calls(
        (ToolCall("f", {"a": "x, {y}", "b": [1, "z"], "c": {"d": None}}),)
    )


def test_a_key_twice_is_unreadable_in_every_notation():
    assert isinstance(dialect_called("gemma").read("<|tool_call>call:f{a:1,a:2}<tool_call|>"), Unreadable)
    assert isinstance(
        dialect_called("hermes").read('<tool_call>{"name": "f", "name": "g", "arguments": {}}</tool_call>'), Unreadable
    )


def test_thoughts_are_no_words_and_no_calls():
    for name, text in (
        ("hermes", "<think>I could <tool_call>.</think>Fine."),
        ("hermes", "So I thought.</think>\n\nFine."),
        ("mistral", "[THINK]hm [TOOL_CALLS][/THINK]Fine."),
        ("gemma", "<|channel>thought\nhm<channel|>Fine."),
    ):
        assert dialect_called(name).read(text) == Answer("Fine.")


def test_what_a_template_takes_out_of_an_answer_is_not_given_to_it():
    (message,) = dialect_called("hermes").chat([Message("assistant", "<think>hm</think>\n\nFine.", b"abc")])
    assert message == {"role": "assistant", "content": "Fine."}


def test_a_result_stands_in_the_familys_own_tags():
    (message,) = dialect_called("hermes").chat([Message("tool", '{"open":true}', tool="look")])
    assert message == {"role": "user", "content": '<tool_response>\n{"open":true}\n</tool_response>'}


@pytest.mark.parametrize("name", NAMES)
def test_the_system_text_names_the_tools_and_how_they_are_called(name):
    @tool(idempotent=True)
    def look(where: Annotated[str, Meta(max_length=9)]) -> None:
        """Look somewhere."""

    dialect = dialect_called(name)
    text = dialect.system_text("You look.", [look])
    assert text.startswith("You look.\n") and "Look somewhere." in text
    assert (dialect.frame.trigger or '{"name": ') in text
    assert dialect.system_text("You look.", []) == "You look."

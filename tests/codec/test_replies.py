"""What servers write in their own ways, read as one reply: the three APIs, streamed."""

from __future__ import annotations

from typing import Any

import pytest

from edgeagent.codec.apis import APIS, api_called
from edgeagent.codec.conversation import (
    Call,
    CallArguments,
    CallBegun,
    Conversation,
    Delta,
    Ended,
    FromTool,
    FromUser,
    Reasoning,
    Refusal,
    Reply,
    Text,
)
from edgeagent.codec.failures import Failure
from edgeagent.codec.json_text import read_any, read_object, write
from edgeagent.codec.reading import CALLS_MAX
from edgeagent.codec.stream import Stream
from edgeagent.core.values import Usage
from edgeagent.errors import ConfigError


def streamed(api: str, *events: dict[str, Any] | bytes) -> tuple[list[Delta], Reply]:
    stream = APIS[api].stream()
    deltas: list[Delta] = []
    for each in events:
        deltas += stream.feed(b"data: " + (each if isinstance(each, bytes) else write(each)) + b"\n\n")
    deltas += stream.close()
    reply = stream.reply()
    assert isinstance(reply, Reply), reply
    return deltas, reply


def chunk(finish: str | None = None, /, **delta: Any) -> dict[str, Any]:
    return {"id": "i", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def call(
    index: int | None, call_id: str | None = None, name: str | None = None, arguments: Any = None
) -> dict[str, Any]:
    function = {k: v for k, v in (("name", name), ("arguments", arguments)) if v is not None}
    return {k: v for k, v in (("index", index), ("id", call_id)) if v is not None} | {"function": function}


def test_other_api_is_refused_by_name():
    with pytest.raises(ConfigError, match=r"no API is called 'gemini'; there are: chat, responses, messages"):
        api_called("gemini")


# -- chat completions ------------------------------------------------------------------------------------------------


def test_deltas_come_in_order_and_end_once():
    deltas, reply = streamed(
        "chat",
        chunk(role="assistant", content=""),
        chunk(content="Let me "),
        chunk(content="see.", tool_calls=[call(0, "a", "f", "")]),
        chunk(tool_calls=[call(0, None, None, '{"x"'), call(1, "b", "g", "{}")]),
        chunk(tool_calls=[call(0, None, None, ":1}")]),
        chunk("tool_calls"),
        {
            "choices": [],
            "usage": {"prompt_tokens": 9, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 6}},
        },
        b"[DONE]",
    )
    assert deltas == [
        Text("Let me "),
        Text("see."),
        CallBegun(0, "a", "f"),
        CallArguments(0, '{"x"'),
        CallBegun(1, "b", "g"),
        CallArguments(1, "{}"),
        CallArguments(0, ":1}"),
        Usage(9, 3, 4),
        Ended("calls", "tool_calls"),
    ]
    assert reply.text == "Let me see."
    assert reply.calls == (Call("a", "f", '{"x":1}'), Call("b", "g", "{}"))


CALLS = {
    "all at index 0, told apart by their ids": [call(0, "a", "f", "{}"), call(0, "b", "g", "{}")],
    "without an index": [call(None, "a", "f", "{"), call(None, None, None, "}"), call(None, "b", "g", "{}")],
    "arguments as an object": [call(0, "a", "f", {}), call(1, "b", "g", {})],
    "arguments before the name": [call(0, None, None, "{}"), call(0, "a", "f"), call(1, "b", "g", "{}")],
    "the name repeated": [call(0, "a", "f", "{"), call(0, "a", "f", "}"), call(1, "b", "g", "{}")],
    "an empty id repeated": [call(0, "a", "f", "{"), call(0, "", None, "}"), call(1, "b", "g", "{}")],
}


@pytest.mark.parametrize("pieces", CALLS.values(), ids=CALLS)
def test_calls_are_told_apart_however_a_server_writes_them(pieces):
    _, reply = streamed("chat", chunk(role="assistant"), *(chunk(tool_calls=[each]) for each in pieces), chunk("stop"))
    assert reply.calls == (Call("a", "f", "{}"), Call("b", "g", "{}"))
    assert reply.ended.reason == "calls"


def test_call_without_id_or_arguments_is_given_both():
    deltas, reply = streamed("chat", chunk(tool_calls=[call(0, None, "f")]), chunk("tool_calls"))
    assert reply.calls == (Call("call_0", "f", "{}"),)
    assert deltas[0] == CallBegun(0, "call_0", "f")
    sent = read_object(APIS["chat"].encode(Conversation(model="m", turns=(reply.turn(), FromTool("call_0", "ok")))))
    assert sent["messages"][0]["tool_calls"][0]["id"] == sent["messages"][1]["tool_call_id"]


def test_call_without_a_name_is_told_without_one():
    deltas, reply = streamed("chat", chunk(tool_calls=[call(0, "a", None, "{}")]), chunk("tool_calls"))
    assert deltas[:2] == [CallBegun(0, "a", ""), CallArguments(0, "{}")]
    assert reply.calls == (Call("a", "", "{}"),)


def test_old_form_of_one_call_is_read():
    _, reply = streamed(
        "chat",
        chunk(function_call={"name": "f", "arguments": ""}),
        chunk(function_call={"arguments": "{}"}),
        chunk("function_call"),
    )
    assert reply.calls == (Call("call_0", "f", "{}"),)


@pytest.mark.parametrize("api", APIS)
def test_more_calls_than_are_taken_is_a_failure(api):
    many = range(CALLS_MAX + 1)
    body = {
        "choices": [{"message": {"tool_calls": [call(n, f"c{n}", "f", "{}") for n in many]}}],
        "content": [{"type": "tool_use", "id": f"c{n}", "name": "f", "input": {}} for n in many],
        "output": [{"type": "function_call", "call_id": f"c{n}", "name": "f", "arguments": "{}"} for n in many],
    }
    failure = APIS[api].decode(write(body))
    assert isinstance(failure, Failure)
    assert failure.kind == "too_large"
    assert str(CALLS_MAX) in failure.text


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning", "thinking"])
def test_reasoning_under_any_of_its_names_is_apart_and_goes_back(name):
    deltas, reply = streamed(
        "chat", *(chunk(**{name: each}) for each in ("Hm", "m.")), chunk(content="7"), chunk("stop")
    )
    assert deltas[:3] == [Reasoning("Hm"), Reasoning("m."), Text("7")]
    assert (reply.reasoning, reply.text) == ("Hmm.", "7")
    assert read_object(reply.kept.body) == {"role": "assistant", "content": "7", name: "Hmm."}


def test_reasoning_that_is_sent_under_two_names_is_told_once():
    _, reply = streamed("chat", *(chunk(reasoning=each, reasoning_content=each) for each in "ab"), chunk("stop"))
    assert reply.reasoning == "ab"


def test_content_in_parts_is_text_and_reasoning():
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}
    _, reply = streamed(
        "chat", chunk(content=[thinking]), chunk(content=[{"type": "text", "text": "7"}]), chunk("stop")
    )
    assert (reply.reasoning, reply.text) == ("Hm.", "7")


@pytest.mark.parametrize("finish", ["stop", "refusal"])
def test_refusal_of_chat_is_no_text(finish):
    deltas, reply = streamed("chat", chunk(refusal="I "), chunk(refusal="won't."), chunk(finish))
    assert deltas == [Refusal("I "), Refusal("won't."), Ended("refused", finish)]
    assert (reply.text, reply.refusal) == ("", "I won't.")
    assert reply.turn().text == "I won't."


@pytest.mark.parametrize(
    ("finish", "reason"), [("length", "limit"), ("content_filter", "filtered"), ("eos", "other"), ("stop", "end")]
)
def test_reason_of_an_end_is_one_of_ours_and_its_own_word(finish, reason):
    _, reply = streamed("chat", chunk(content="a"), chunk(finish))
    assert reply.ended == Ended(reason, finish)


def test_failure_in_the_middle_of_an_answer_is_no_end():
    stream = APIS["chat"].stream()
    stream.feed(b"data: " + write(chunk(content="a")) + b"\n\n")
    (failure,) = stream.feed(b"data: " + write(chunk("error", content="")) + b"\n\n")
    assert failure.kind == "server"
    assert stream.feed(b"data: " + write(chunk("stop")) + b"\n\n") == []
    assert stream.reply() == failure


def test_vendors_fields_of_pieces_are_joined_and_go_back():
    _, reply = streamed(
        "chat",
        chunk(content="a", details=[{"n": 1}], signature="ab", extra={"k": "x"}),
        chunk(content="b", details=[{"n": 2}], signature="cd", extra={"k": "y"}),
        chunk(tool_calls=[call(0, "a", "f", "{}") | {"extra_content": {"google": {"thought_signature": "s"}}}]),
        chunk("tool_calls"),
    )
    message = read_object(reply.kept.body)
    assert (message["content"], message["details"], message["signature"]) == ("ab", [{"n": 1}, {"n": 2}], "abcd")
    assert message["extra"] == {"k": "xy"}
    assert message["tool_calls"][0]["extra_content"] == {"google": {"thought_signature": "s"}}


def test_second_choice_is_not_mixed_in():
    second = chunk(content="B")
    second["choices"][0]["index"] = 1
    _, reply = streamed("chat", chunk(content="a"), second, chunk(content="b"), second, chunk("stop"))
    assert reply.text == "ab"


def test_half_a_surrogate_pair_is_replaced():
    _, reply = streamed(
        "chat", chunk(content=""), b'{"choices":[{"index":0,"delta":{"content":"a\\ud83d"}}]}', chunk("stop")
    )
    assert reply.text == "a\ufffd"


# -- Anthropic's messages --------------------------------------------------------------------------------------------


def test_blocks_of_messages_are_told_and_go_back_whole():
    deltas, reply = streamed(
        "messages",
        {
            "type": "message_start",
            "message": {"id": "i", "model": "m", "usage": {"input_tokens": 5, "output_tokens": 1}},
        },
        {"type": "ping"},
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "thinking", "thinking": "", "signature": ""},
        },
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "Hm"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "m."}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "c2ln"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "redacted_thinking", "data": "ZGF0YQ"}},
        {"type": "content_block_start", "index": 2, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 2, "delta": {"type": "text_delta", "text": "Let me see."}},
        {"type": "content_block_delta", "index": 2, "delta": {"type": "citations_delta", "citation": {"n": 1}}},
        {"type": "content_block_delta", "index": 2, "delta": {"type": "citations_delta", "citation": {"n": 2}}},
        {
            "type": "content_block_start",
            "index": 3,
            "content_block": {"type": "tool_use", "id": "a", "name": "f", "input": {}},
        },
        {"type": "content_block_delta", "index": 3, "delta": {"type": "input_json_delta", "partial_json": ""}},
        {"type": "content_block_delta", "index": 3, "delta": {"type": "input_json_delta", "partial_json": '{"x": 1'}},
        {"type": "content_block_delta", "index": 3, "delta": {"type": "input_json_delta", "partial_json": "}"}},
        {"type": "content_block_start", "index": 4, "content_block": {"type": "tool_use", "id": "b", "name": "g"}},
        {
            "type": "content_block_start",
            "index": 5,
            "content_block": {"type": "server_tool_use", "id": "s", "name": "web"},
        },
        {"type": "content_block_delta", "index": 5, "delta": {"type": "input_json_delta", "partial_json": '{"q":1}'}},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "tool_use", "stop_sequence": None},
            "usage": {"output_tokens": 9, "cache_read_input_tokens": 3, "input_tokens": None},
        },
        {"type": "message_stop"},
    )
    assert deltas == [
        Reasoning("Hm"),
        Reasoning("m."),
        Text("Let me see."),
        CallBegun(0, "a", "f"),
        CallArguments(0, '{"x": 1'),
        CallArguments(0, "}"),
        CallBegun(1, "b", "g"),
        Usage(8, 5, 9),
        Ended("calls", "tool_use"),
    ]
    assert (reply.id, reply.model, reply.reasoning, reply.text) == ("i", "m", "Hmm.", "Let me see.")
    assert reply.calls == (Call("a", "f", '{"x": 1}'), Call("b", "g", "{}"))
    assert read_any(reply.kept.body) == [
        {"type": "thinking", "thinking": "Hmm.", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "ZGF0YQ"},
        {"type": "text", "text": "Let me see.", "citations": [{"n": 1}, {"n": 2}]},
        {"type": "tool_use", "id": "a", "name": "f", "input": {"x": 1}},
        {"type": "tool_use", "id": "b", "name": "g", "input": {}},
        {"type": "server_tool_use", "id": "s", "name": "web", "input": {"q": 1}},
    ]


def test_input_of_a_call_keeps_every_digit():
    body = b'{"content":[{"type":"tool_use","id":"a","name":"f","input":{"n":123456789012345678901234567890}}]}'
    reply = APIS["messages"].decode(body)
    assert reply.calls[0].arguments == '{"n":123456789012345678901234567890}'
    assert "123456789012345678901234567890" in reply.kept.body


def test_input_that_is_no_object_goes_back_all_the_same():
    _, reply = streamed(
        "messages",
        {"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "a", "name": "f"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": '{"x": '}},
        {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}},
        {"type": "message_stop"},
    )
    assert reply.calls == (Call("a", "f", '{"x": '),)
    assert reply.ended.reason == "limit"
    assert read_any(reply.kept.body)[0]["input"] == {"unreadable": '{"x": '}


def test_refusal_of_messages_is_told_by_its_reason():
    _, reply = streamed(
        "messages", {"type": "message_delta", "delta": {"stop_reason": "refusal"}}, {"type": "message_stop"}
    )
    assert reply.ended == Ended("refused", "refusal")


# -- responses -------------------------------------------------------------------------------------------------------


def response(status: str = "completed", **more: Any) -> dict[str, Any]:
    return {"type": f"response.{status}", "response": {"id": "r", "model": "m", "status": status} | more}


REASONING = {
    "type": "reasoning",
    "id": "rs",
    "summary": [{"type": "summary_text", "text": "Hmm."}],
    "encrypted_content": "e",
}
MESSAGE = {"type": "message", "id": "ms", "role": "assistant", "content": [{"type": "output_text", "text": "7"}]}
CALL = {"type": "function_call", "id": "fc", "call_id": "a", "name": "f", "arguments": '{"x":1}'}
OUTPUT = [REASONING, MESSAGE, CALL]
USAGE = {"input_tokens": 9, "output_tokens": 4, "input_tokens_details": {"cached_tokens": 6}}


def items_streamed(*, index: bool) -> list[dict[str, Any]]:
    """The same response in pieces; some servers leave the places out."""
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {"id": "r", "model": "m", "status": "in_progress"}},
        {"type": "response.output_item.added", "output_index": 0, "item": REASONING | {"summary": []}},
        {"type": "response.reasoning_summary_text.delta", "output_index": 0, "item_id": "rs", "delta": "Hmm."},
        {"type": "response.output_item.done", "output_index": 0, "item": REASONING},
        {"type": "response.output_text.delta", "output_index": 1, "item_id": "ms", "delta": "7"},
        {"type": "response.output_text.done", "output_index": 1, "item_id": "ms", "text": "7"},
        {"type": "response.output_item.done", "output_index": 1, "item": MESSAGE},
        {"type": "response.output_item.added", "output_index": 2, "item": CALL | {"arguments": ""}},
        {"type": "response.function_call_arguments.delta", "output_index": 2, "item_id": "fc", "delta": '{"x"'},
        {"type": "response.function_call_arguments.delta", "output_index": 2, "item_id": "fc", "delta": ":1}"},
        {"type": "response.output_item.done", "output_index": 2, "item": CALL},
        response(output=OUTPUT, usage=USAGE),
    ]
    return events if index else [{k: v for k, v in each.items() if k != "output_index"} for each in events]


WAYS = {
    "in pieces": items_streamed(index=True),
    "in pieces, by id": items_streamed(index=False),
    "items whole": [each for each in items_streamed(index=True) if "delta" not in each and "added" not in each["type"]],
    "pieces and the end": [each for each in items_streamed(index=True) if "done" not in each["type"]],
    "pieces by id and the end": [each for each in items_streamed(index=False) if "done" not in each["type"]],
    "all at the end": [response(output=OUTPUT, usage=USAGE)],
}


@pytest.mark.parametrize("events", WAYS.values(), ids=WAYS)
def test_response_is_the_same_however_much_of_it_was_streamed(events):
    deltas, reply = streamed("responses", *events)
    assert [each for each in deltas if not isinstance(each, CallArguments)] == [
        Reasoning("Hmm."),
        Text("7"),
        CallBegun(0, "a", "f"),
        Usage(9, 3, 4),
        Ended("calls", "completed"),
    ]
    assert (reply.reasoning, reply.text, reply.calls) == ("Hmm.", "7", (Call("a", "f", '{"x":1}'),))
    assert read_any(reply.kept.body) == OUTPUT
    sent = read_object(APIS["responses"].encode(Conversation(model="m", turns=(FromUser("?"), reply.turn()))))
    assert sent["input"][1:] == OUTPUT


def test_refusal_of_a_response_is_no_text():
    item = MESSAGE | {"content": [{"type": "refusal", "refusal": "I won't."}]}
    _, whole = streamed("responses", response(output=[item]))
    _, pieces = streamed(
        "responses", {"type": "response.refusal.delta", "item_id": "ms", "delta": "I won't."}, response(output=[item])
    )
    assert (whole.refusal, whole.text, whole.ended) == ("I won't.", "", Ended("refused", "completed"))
    assert (pieces.refusal, pieces.text) == ("I won't.", "")


def test_response_that_is_incomplete_says_why():
    _, reply = streamed(
        "responses", response("incomplete", output=[MESSAGE], incomplete_details={"reason": "max_output_tokens"})
    )
    assert reply.ended == Ended("limit", "max_output_tokens")


def test_response_that_failed_is_a_failure():
    stream = APIS["responses"].stream()
    failed = response("failed", error={"code": "rate_limit_exceeded", "message": "Try again in 2s."}, output=[])
    (failure,) = stream.feed(b"data: " + write(failed) + b"\n\n")
    assert isinstance(failure, Failure)
    assert (failure.kind, failure.code) == ("rate_limited", "rate_limit_exceeded")


# -- bounds ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 100, 5_000])
@pytest.mark.parametrize("begin", [b"data: ", b"", b"{", b"\n"])
def test_body_without_an_end_is_let_go(begin, size):
    stream = Stream(APIS["chat"].reading(), bytes_max=4_000)
    body = begin + b"x" * 5_000
    deltas = [delta for at in range(0, len(body), size) for delta in stream.feed(body[at : at + size])]
    (failure,) = deltas
    assert isinstance(failure, Failure)
    assert failure.kind == "too_large"
    assert stream.close() == []


def test_what_follows_the_end_of_a_reply_is_not_read():
    end = b"data: " + write(chunk("stop", content="a")) + b"\n\ndata: [DONE]\n\n"
    stream = Stream(APIS["chat"].reading(), bytes_max=len(end))
    deltas = stream.feed(end + b'data: {"error":"late"}\n\n' * 1_000)
    assert deltas == [Text("a"), Ended("end", "stop")]
    assert stream.feed(b"data: x\n\n") == []
    assert isinstance(stream.reply(), Reply)


def test_arguments_of_messages_that_are_no_text_are_left_out():
    begun = b'{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"look"}}'
    piece = b'{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":{"a":1}}}'
    ended = b'{"type":"message_stop"}'
    stream = APIS["messages"].stream()
    stream.feed(b"".join(b"data: " + each + b"\n\n" for each in (begun, piece, ended)))
    reply = stream.reply()
    assert (reply.calls[0].tool, read_any(reply.kept.body)[0]["input"]) == ("look", {})

"""Streams as OpenAI and Anthropic send them, with every field that theirs have: read whole, cut, fast and slowly.

The words are ours; the form is that of recorded answers, which `cassettes.py` reads.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from edgeagent.codec.apis import APIS
from edgeagent.codec.conversation import Reply
from edgeagent.codec.reading import Reading
from edgeagent.codec.stream import Stream
from edgeagent.core.values import Usage
from tests.codec.test_fast import slowly


def read(reading: Reading, pieces: list[bytes]) -> tuple[list[Any], Any]:
    """What comes of it."""
    stream = Stream(reading)
    return [delta for piece in pieces for delta in stream.feed(piece)] + stream.close(), stream.reply()


def sse(*events: dict, named: bool = True) -> bytes:
    names = (f"event: {each['type']}\n" if named else "" for each in events)
    return "".join(f"{name}data: {json.dumps(each)}\n\n" for name, each in zip(names, events, strict=True)).encode()


def delta(index: int, kind: str, **said) -> dict:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **said}}


CACHE = {"cache_creation_input_tokens": 0, "cache_read_input_tokens": 8}
TIERS = {"cache_creation": {"ephemeral_5m_input_tokens": 0}, "service_tier": "standard", "inference_geo": "global"}
MORE = CACHE | TIERS
BEGUN = {"id": "msg_1", "type": "message", "role": "assistant", "content": [], "model": "large", "stop_reason": None}
ANTHROPIC = sse(
    {
        "type": "message_start",
        "message": {**BEGUN, "usage": {"input_tokens": 20, "output_tokens": 1, **CACHE, **TIERS}},
    },
    {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}},
    {"type": "ping"},
    delta(0, "thinking_delta", thinking="Which bed"),
    delta(0, "thinking_delta", thinking=" is dry?"),
    delta(0, "signature_delta", signature="c2lnbmVk"),
    {"type": "content_block_stop", "index": 0},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
    delta(1, "text_delta", text="I look at"),
    delta(1, "text_delta", text=" both 🌱."),
    delta(1, "citations_delta", citation={"type": "char_location", "cited_text": "dry", "document_index": 0}),
    {"type": "content_block_stop", "index": 1},
    {
        "type": "content_block_start",
        "index": 2,
        "content_block": {
            "type": "tool_use",
            "id": "toolu_1",
            "name": "look",
            "input": {},
            "caller": {"type": "direct"},
        },
    },
    delta(2, "input_json_delta", partial_json=""),
    delta(2, "input_json_delta", partial_json='{"bed": "no'),
    delta(2, "input_json_delta", partial_json='rth"}'),
    {"type": "content_block_stop", "index": 2},
    {
        "type": "message_delta",
        "delta": {"stop_reason": "tool_use", "stop_sequence": None, "stop_details": None},
        "usage": {"input_tokens": 20, "output_tokens": 30, **CACHE},
    },
    {"type": "message_stop"},
)


def item(kind: str, place: int, **more) -> dict:
    return {"id": f"{kind}_{place}", "type": kind, "status": "in_progress", **more}


def piece(what: str, place: int, number: int, text: str, **more) -> dict:
    said = {"delta": text, "item_id": f"i_{place}", "output_index": place, "sequence_number": number}
    return {"type": f"response.{what}.delta", **said, "obfuscation": "q" * (number % 5), **more}


MESSAGE = item("message", 1, role="assistant", content=[{"type": "output_text", "text": "I look.", "annotations": []}])
CALL = item("function_call", 2, call_id="call_1", name="look", arguments='{"bed":"north"}')
THOUGHT = item("reasoning", 0, encrypted_content="Z0FB", summary=[{"type": "summary_text", "text": "**Beds**"}])
RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "model": "large",
    "error": None,
    "incomplete_details": None,
    "output": [],
}
COUNTED = {
    "input_tokens": 58,
    "input_tokens_details": {"cached_tokens": 8},
    "output_tokens": 23,
    "output_tokens_details": {"reasoning_tokens": 4},
}
OPENAI = sse(
    {"type": "response.created", "response": {**RESPONSE, "status": "in_progress"}, "sequence_number": 0},
    {"type": "response.in_progress", "response": {**RESPONSE, "status": "in_progress"}, "sequence_number": 1},
    {"type": "response.output_item.added", "item": {**THOUGHT, "summary": []}, "output_index": 0, "sequence_number": 2},
    piece("reasoning_summary_text", 0, 3, "**Be", summary_index=0),
    piece("reasoning_summary_text", 0, 4, "ds**", summary_index=0),
    {"type": "response.output_item.done", "item": THOUGHT, "output_index": 0, "sequence_number": 5},
    {"type": "response.output_item.added", "item": {**MESSAGE, "content": []}, "output_index": 1, "sequence_number": 6},
    piece("output_text", 1, 7, "I ", content_index=0, logprobs=[]),
    piece("output_text", 1, 8, "look.", content_index=0, logprobs=[]),
    {"type": "response.output_text.done", "text": "I look.", "output_index": 1, "logprobs": [], "sequence_number": 9},
    {"type": "response.output_item.done", "item": MESSAGE, "output_index": 1, "sequence_number": 10},
    {"type": "response.output_item.added", "item": {**CALL, "arguments": ""}, "output_index": 2, "sequence_number": 11},
    piece("function_call_arguments", 2, 12, '{"bed":'),
    piece("function_call_arguments", 2, 13, '"north"}'),
    {"type": "response.function_call_arguments.done", "arguments": '{"bed":"north"}', "output_index": 2},
    {"type": "response.output_item.done", "item": CALL, "output_index": 2, "sequence_number": 15},
    {
        "type": "response.completed",
        "response": {**RESPONSE, "status": "completed", "output": [THOUGHT, MESSAGE, CALL], "usage": COUNTED},
    },
)


def chunk(said: dict, finish: str | None = None, **more) -> dict:
    choice = {"index": 0, "delta": said, "logprobs": None, "finish_reason": finish}
    head = {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 0,
        "model": "large",
        "service_tier": "default",
    }
    return {**head, "system_fingerprint": "fp_1", "choices": [choice], "usage": None, "obfuscation": "qq", **more}


def called(**function) -> dict:
    return {"index": 0, "function": function}


CHAT_USAGE = {
    "prompt_tokens": 58,
    "completion_tokens": 23,
    "total_tokens": 81,
    "prompt_tokens_details": {"cached_tokens": 8},
}
CHAT = (
    sse(
        chunk({"role": "assistant", "content": "", "refusal": None}),
        chunk({"content": "I "}),
        chunk({"content": "look."}),
        chunk({"tool_calls": [called(name="look", arguments="") | {"id": "call_1", "type": "function"}]}),
        chunk({"tool_calls": [called(arguments='{"bed":')]}),
        chunk({"tool_calls": [called(arguments='"north"}')]}),
        chunk({}, "tool_calls"),
        {**chunk({}), "choices": [], "usage": CHAT_USAGE},
        named=False,
    )
    + b"data: [DONE]\n\n"
)


@pytest.mark.parametrize(
    ("api", "body", "text", "reasoning"),
    [
        ("messages", ANTHROPIC, "I look at both 🌱.", "Which bed is dry?"),
        ("responses", OPENAI, "I look.", "**Beds**"),
        ("chat", CHAT, "I look.", ""),
    ],
)
@pytest.mark.deep
def test_a_providers_stream_is_read_to_one_reply_however_it_is_cut(api, body, text, reasoning):
    whole = read(APIS[api].reading(), [body])
    reply = whole[1]
    assert isinstance(reply, Reply), reply
    assert (reply.text, reply.reasoning, reply.ended.reason) == (text, reasoning, "calls")
    assert [(each.tool, json.loads(each.arguments)) for each in reply.calls] == [("look", {"bed": "north"})]
    assert read(slowly(APIS[api].reading), [body]) == whole
    for at in range(len(body)):
        assert read(APIS[api].reading(), [body[:at], body[at:]]) == whole
    assert read(APIS[api].reading(), [body[at : at + 1] for at in range(len(body))]) == whole


def test_what_a_provider_counts_is_counted():
    counted = {api: read(APIS[api].reading(), [body])[1].usage for api, body in (("responses", OPENAI), ("chat", CHAT))}
    assert set(counted.values()) == {Usage(58, 50, 23)}
    assert read(APIS["messages"].reading(), [ANTHROPIC])[1].usage == Usage(28, 20, 30)


def test_what_only_the_provider_understands_goes_back_as_it_came():
    kept = json.loads(read(APIS["messages"].reading(), [ANTHROPIC])[1].kept.body)
    assert kept[0] == {"type": "thinking", "thinking": "Which bed is dry?", "signature": "c2lnbmVk"}
    assert kept[1]["citations"][0]["cited_text"] == "dry"
    assert (kept[2]["caller"], kept[2]["input"]) == ({"type": "direct"}, {"bed": "north"})
    assert json.loads(read(APIS["responses"].reading(), [OPENAI])[1].kept.body)[0]["encrypted_content"] == "Z0FB"

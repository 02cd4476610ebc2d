"""What comes most is read fast, and to the same deltas and the same reply as if it were read slowly."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeagent.codec.chat import ChatReading
from edgeagent.codec.messages import MessagesReading
from edgeagent.codec.reading import Reading
from edgeagent.codec.responses import ResponsesReading
from edgeagent.codec.sse import SseReader
from edgeagent.codec.stream import Stream


def slowly(kind: type[Reading]) -> Reading:
    """A reading that knows no usual events."""

    class Slow(kind):
        def take_usual(self, data):
            return False

        def take_run(self, datas):
            return False

    return Slow()


def read(reading: Reading, events: list[bytes]):
    stream = Stream(reading)
    deltas = stream.feed(b"".join(events)) + stream.close()
    return deltas, stream.reply()


def data(*values: bytes) -> list[bytes]:
    return [b"data: " + value + b"\n\n" for value in values]


TEXTS = [b'"a"', b'""', b'"\\u00e9\\n"', b'"\\ud83c\\udf31"', b'"\\ud800"', b'"\xff"', b"null", b"1", b"true", b'["x"]']
TEXTS += [b'"},{"', b'"\t"', '"größer 🌱"'.encode(), b'{"a":1}', b'"' + b"x" * 3000 + b'"']
INDEXES = [
    b"0",
    b"1",
    b"0.0",
    b"true",
    b"-1",
    b"1e0",
    b"null",
    b"9007199254740993",
    b"100000000000000000000000",
    b'"0"',
]
# What is no event alone and could become one beside others, or holds several.
TORN = [b'{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"}', b'{"}}']
TORN += [b"{}", b"{},{}", b"", b" ", b"[", b"]", b"{", b"}", b"[{}", b"{}]", b'"', b"1", b"[]", b"null", b"[DONE]"]


MORE = [b',"new":[{"a":1}]', b',"type":"other"', b',"index":1', b',"error":{"message":"x"}']


def formed(template: bytes) -> st.SearchStrategy[bytes]:
    """A template with texts and indexes in it."""
    return st.builds(
        lambda text, index, more: template.replace(b"TEXT", text).replace(b"INDEX", index).replace(b"MORE", more),
        st.one_of(st.just(b'"a"'), st.sampled_from(TEXTS)),
        st.one_of(st.just(b"0"), st.sampled_from(INDEXES)),
        st.sampled_from(
            [b"", b"", b"", b',"new":[{"a":1}]', b',"type":"other"', b',"index":1', b',"error":{"message":"x"}']
        ),
    )


MESSAGES = [
    b'{"type":"content_block_delta","index":INDEX,"delta":{"type":"text_delta","text":TEXT}MORE}',
    b'{"type":"content_block_delta","index":INDEX,"delta":{"type":"thinking_delta","thinking":TEXT}MORE}',
    b'{"type":"content_block_delta","index":INDEX,"delta":{"type":"input_json_delta","partial_json":TEXT}MORE}',
    b'{"type":"content_block_delta","index":INDEX,"delta":{"type":"text_delta","thinking":TEXT}}',
    b'{"type":"content_block_delta","index":INDEX,"delta":{"text":TEXT,"type":"thinking_delta","thinking":"b"}}',
    b'{"type":"content_block_delta","index":INDEX,"delta":{"type":"text_delta","type":"thinking_delta","text":TEXT}}',
    b'{"type":"content_block_delta","delta":{"type":"text_delta","text":TEXT},"delta":{"type":"text_delta","text":"z"}}',
    b'{"type":"content_block_start","index":INDEX,"content_block":{"type":"text","text":TEXT}}',
    b'{"type":"content_block_start","index":INDEX,"content_block":{"type":"tool_use","id":"t","name":"look","input":{}}}',
    b'{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":12}}',
    b'{"type":"ping"}',
]
RESPONSES = [
    b'{"type":"response.output_text.delta","item_id":"m","output_index":INDEX,"delta":TEXT,"logprobs":[]MORE}',
    b'{"type":"response.output_text.delta","item_id":TEXT,"delta":"b"MORE}',
    b'{"type":"response.output_text.delta","item_id":"m","delta":TEXT,"logprobs":[{"token":"a"}]}',
    b'{"type":"response.function_call_arguments.delta","item_id":"c","output_index":INDEX,"delta":TEXT}',
    b'{"type":"response.reasoning_text.delta","item_id":"r","output_index":INDEX,"delta":TEXT}',
    b'{"type":"response.reasoning_summary_text.delta","item_id":"r","output_index":INDEX,"delta":TEXT}',
    b'{"type":"response.refusal.delta","item_id":"m","output_index":INDEX,"delta":TEXT}',
    b'{"type":"response.output_item.added","output_index":INDEX,"item":{"type":"function_call","call_id":"c","name":"f"}}',
    b'{"type":"response.output_item.done","output_index":INDEX,"item":{"type":"message","content":[{"text":TEXT}]}}',
]
CHAT = [
    b'{"id":"1","choices":[{"index":INDEX,"delta":{"content":TEXT}MORE}]}',
    b'{"id":"1","choices":[{"index":INDEX,"delta":{"reasoning_content":TEXT}MORE}]}',
    b'{"id":"1","choices":[{"index":0,"delta":{"tool_calls":[{"index":INDEX,"function":{"arguments":TEXT}}]}}]}',
    b'{"id":"1","choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}]}',
]
LAST = {
    MessagesReading: data(b'{"type":"message_delta","delta":{"stop_reason":"end_turn"}}', b'{"type":"message_stop"}'),
    ResponsesReading: data(b'{"type":"response.completed","response":{"status":"completed","output":[]}}'),
    ChatReading: data(b'{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}', b"[DONE]"),
}


@pytest.mark.parametrize(
    ("kind", "templates"), [(MessagesReading, MESSAGES), (ResponsesReading, RESPONSES), (ChatReading, CHAT)]
)
@settings(max_examples=200)
@given(chosen=st.data())
@pytest.mark.deep
def test_fast_and_slow_are_the_same(kind, templates, chosen):
    one = st.one_of(*map(formed, templates), st.sampled_from(TORN))
    named = st.sampled_from([b"", b"", b"event: a\n", b"event: error\n"])
    events = chosen.draw(st.lists(st.tuples(named, one), max_size=7))
    sent = [name + event for name, value in events for event in data(value)] + LAST[kind]
    assert read(kind(), sent) == read(slowly(kind), sent)


def test_an_event_that_is_torn_over_two_is_refused_beside_one_that_holds_two():
    begun = b'{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"'
    for torn in ([begun + b"}", b'{"}}'], [b'{"a":[{}', b"{}]}"]):
        sent = data(*torn, begun + b'a"}},' + begun + b'b"}}')
        deltas, reply = read(MessagesReading(), sent + LAST[MessagesReading])
        assert (deltas, reply) == read(slowly(MessagesReading), sent + LAST[MessagesReading])
        assert "no JSON object" in reply.text


PIECES = [
    b"data: a",
    b"data:b",
    b"event: e",
    b"event: ",
    b"event:",
    b"event: data: c",
    b"data: ",
    b"id: 1",
    b"\n",
    b"x",
]
PIECES += [b"\n\n", b": note", b"error: {}", b"\r", b"\r\n", b"data: " + b"l" * 60, b"retry: 5", b"\ndata: d\n\n"]
PIECES += [b"data:b", b"event: f\ndata: g\n\n", b"data: h\n\n"]


@settings(max_examples=500)
@given(st.lists(st.sampled_from(PIECES), max_size=16), st.integers(0, 200))
def test_events_that_come_whole_are_those_that_come_byte_by_byte(pieces, at):
    body = b"".join(pieces)
    whole, bytewise, in_two = SseReader(50), SseReader(50), SseReader(50)
    expected = [event for n in range(len(body)) for event in bytewise.feed(body[n : n + 1])] + bytewise.close()
    assert whole.feed(body) + whole.close() == expected
    assert in_two.feed(body[:at]) + in_two.feed(body[at:]) + in_two.close() == expected
    assert whole.overlong == bytewise.overlong

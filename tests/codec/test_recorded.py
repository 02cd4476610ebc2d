"""What real servers answered (`record.py`), read: whole, streamed, and cut at every byte."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeagent.codec.apis import APIS
from edgeagent.codec.conversation import Call, Conversation, Delta, Ended, Reply
from edgeagent.codec.failures import Failure, failure_of
from edgeagent.codec.json_text import read_any, read_object, write

RECORDED = Path(__file__).parent / "recorded"
FILES = sorted(each for each in RECORDED.glob("*-*-*") if each.name.count(".") == 1)
STREAMS = [each for each in FILES if each.suffix == ".sse"]
ERRORS = sorted(each for each in RECORDED.glob("*-*-*") if each.name.count(".") == 2)


def named(file: Path) -> str:
    return file.name


def read(api: str, pieces: list[bytes]) -> tuple[list[Delta], Reply | Failure]:
    stream = APIS[api].stream()
    deltas = [delta for piece in pieces for delta in stream.feed(piece)]
    return deltas + stream.close(), stream.reply()


def cut(body: bytes, places: list[int]) -> list[bytes]:
    ends = [0, *sorted(places), len(body)]
    return [body[a:b] for a, b in itertools.pairwise(ends)]


def answered(file: Path) -> Reply:
    _, reply = read(file.name.split("-")[1], [file.read_bytes()])
    assert isinstance(reply, Reply), reply
    return reply


WHOLE = [each for each in STREAMS if each.with_suffix(".json").exists() and each.stat().st_size]


@pytest.mark.parametrize("file", WHOLE, ids=named)
def test_streamed_and_whole_it_is_the_same_reply(file):
    streamed, whole = answered(file), answered(file.with_suffix(".json"))
    assert streamed.text == whole.text
    assert streamed.reasoning == whole.reasoning
    assert [each.tool for each in streamed.calls] == [each.tool for each in whole.calls]
    assert [read_object(c.arguments) for c in streamed.calls] == [read_object(c.arguments) for c in whole.calls]
    assert streamed.ended.reason == whole.ended.reason
    assert whole.usage is not None
    if streamed.usage is not None:  # llama-cpp-python's server gives none in a stream.
        assert (streamed.usage.prompt, streamed.usage.completion) == (whole.usage.prompt, whole.usage.completion)


@pytest.mark.parametrize("file", [each for each in FILES if "-text." in each.name], ids=named)
def test_text_comes_as_it_was_written(file):
    reply = answered(file)
    assert (reply.text, reply.ended.reason, reply.model) == ("größer, 水 🌱", "end", "smollm2")
    assert not reply.reasoning and not reply.calls


@pytest.mark.parametrize("file", [each for each in FILES if "-calls." in each.name], ids=named)
def test_calls_that_were_made_together_come_apart(file):
    reply = answered(file)
    arguments = [read_object(call.arguments) for call in reply.calls]
    assert arguments == [{"bed": "north", "litres": 3}, {"bed": "south", "litres": 6}]
    assert [call.tool for call in reply.calls] == ["water", "water"]
    assert len({call.id for call in reply.calls}) == 2
    assert reply.ended.reason == "calls"


@pytest.mark.parametrize("file", [each for each in FILES if "-thoughts." in each.name], ids=named)
def test_thoughts_are_kept_apart_from_the_answer(file):
    reply = answered(file)
    assert "prime" in reply.reasoning
    assert "prime" not in reply.text


@pytest.mark.parametrize("file", [each for each in FILES if "-limit." in each.name], ids=named)
def test_limit_is_told(file):
    # llama.cpp's server calls every response complete.
    expected = "end" if "-responses-" in file.name else "limit"
    reply = answered(file)
    assert reply.ended.reason == expected
    assert reply.text


@pytest.mark.parametrize("file", ERRORS, ids=named)
def test_error_is_a_failure_streamed_or_not(file):
    status = int(file.name.split(".")[1])
    failure = failure_of(status, {"Content-Type": "application/json"}, file.read_bytes())
    assert failure.kind == {400: "too_long", 503: "overloaded"}[status]
    assert failure.status == status
    # The same without its status, in place of events: what comes through some proxies.
    _, reply = read(file.name.split("-")[1], [file.read_bytes()])
    assert isinstance(reply, Failure)
    assert reply.kind == failure.kind


def test_stream_that_ends_before_it_began_is_cut_short():
    """llama-cpp-python's server answers so, with status 200, where the prompt is too long."""
    body = (RECORDED / "llama_cpp_python-chat-too_long.sse").read_bytes()
    assert body == b""
    _, reply = read("chat", [body])
    assert isinstance(reply, Failure)
    assert reply.kind == "cut_short"


@pytest.mark.parametrize("file", STREAMS, ids=named)
def test_byte_by_byte_it_is_the_same(file):
    body, api = file.read_bytes(), file.name.split("-")[1]
    assert read(api, [bytes([each]) for each in body]) == read(api, [body])


@pytest.mark.parametrize("file", STREAMS, ids=named)
@pytest.mark.deep
def test_every_cut_gives_one_result(file):
    body, api = file.read_bytes(), file.name.split("-")[1]
    expected = read(api, [body])
    for place in range(0, len(body) + 1, 1 + len(body) // 4000):
        assert read(api, [body[:place], body[place:]]) == expected, f"cut at {place}"


@pytest.mark.parametrize("ends", [b"\r\n", b"\r"])
@pytest.mark.parametrize("file", STREAMS, ids=named)
def test_other_line_ends_comments_and_no_last_blank_line_change_nothing(file, ends):
    body, api = file.read_bytes(), file.name.split("-")[1]
    other = body.replace(b"data: ", b"data:").replace(b"\n\n", b"\n: still there\nid: 7\n\n").rstrip(b"\n")
    other = b"\xef\xbb\xbf" + other.replace(b"\n", ends)
    assert read(api, [other]) == read(api, [body])
    assert read(api, [bytes([each]) for each in other]) == read(api, [body])


@settings(max_examples=60)
@given(st.data())
def test_any_cuts_give_one_result(data):
    file = data.draw(st.sampled_from(STREAMS))
    body, api = file.read_bytes(), file.name.split("-")[1]
    places = data.draw(st.lists(st.integers(0, len(body)), max_size=12))
    assert read(api, cut(body, places)) == read(api, [body])


@pytest.mark.parametrize("file", STREAMS, ids=named)
@pytest.mark.deep
def test_stream_that_breaks_off_is_a_failure_or_the_whole(file):
    """Never a part of a reply that passes for all of it; llama-cpp-python's and others' ends count without `[DONE]`."""
    body, api = file.read_bytes(), file.name.split("-")[1]
    _, whole = read(api, [body])
    for place in range(0, len(body), 1 + len(body) // 4000):
        deltas, reply = read(api, [body[:place]])
        last = deltas[-1]
        if isinstance(reply, Failure):
            assert isinstance(last, Failure), f"cut at {place}"
        else:
            assert isinstance(last, Ended), f"cut at {place}"
            assert isinstance(whole, Reply)
            assert (reply.text, reply.calls) == (whole.text, whole.calls), f"cut at {place}"
        assert sum(isinstance(each, Ended | Failure) for each in deltas) == 1


def test_chunk_with_a_field_that_nobody_knows_is_read_like_the_usual_one():
    for file in STREAMS:
        if "-chat-" in file.name and (body := file.read_bytes()):
            slow = re.sub(rb'("delta": ?\{)', rb'\1"x":null,', body).replace(b'"x":null,}', b'"x":null}')
            assert slow != body
            assert read("chat", [slow]) == read("chat", [body])


@pytest.mark.parametrize("file", [each for each in FILES if each.suffix == ".json"], ids=named)
def test_what_came_goes_back_as_it_came(file):
    """A whole reply's message, content or items, field by field; vendors' own and empty ones, too."""
    value, api = read_object(file.read_bytes()), file.name.split("-")[1]
    assert value is not None
    reply = answered(file)
    assert reply.kept is not None
    sent = read_any(reply.kept.body)
    match api:
        case "chat":
            message = value["choices"][0]["message"]
            assert sent | {"content": sent["content"] or ""} == message | {"content": message["content"] or ""}
        case "messages":
            assert sent == value["content"]
        case _:
            assert sent == value["output"]


def test_unknown_fields_survive_a_round_trip_in_their_own_api_only():
    body = {
        "choices": [
            {
                "message": {
                    "role": "assistant",
                    "content": "Hm.",
                    "signature": "s" * 40,
                    "tool_calls": [
                        {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}", "x": 1}, "y": [2]}
                    ],
                }
            }
        ]
    }
    reply = APIS["chat"].decode(write(body))
    assert isinstance(reply, Reply)
    turn = reply.turn()
    assert turn.calls == (Call("a", "f", "{}"),)
    again = Conversation(model="m", turns=(turn,), stream=False)
    assert read_object(APIS["chat"].encode(again))["messages"] == [body["choices"][0]["message"]]
    other = read_object(APIS["messages"].encode(msgspec.structs.replace(again, stream=True)))
    assert other["messages"][0]["content"] == [
        {"type": "text", "text": "Hm."},
        {"type": "tool_use", "id": "a", "name": "f", "input": {}},
    ]

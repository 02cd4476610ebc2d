"""JSON-RPC: bytes ↔ messages, however the bytes are cut and whatever stands between them."""

from __future__ import annotations

import itertools
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeagent.codec.frames import HEADER_BYTES_MAX, Lengths, Lines, Skipped
from edgeagent.codec.json_text import read_any, write
from edgeagent.codec.jsonrpc import (
    BATCH_MAX,
    INVALID_REQUEST,
    PARSE_ERROR,
    Batch,
    Fault,
    Incoming,
    Notification,
    Progress,
    Reader,
    Request,
    Result,
    Waiting,
    cancelled,
    cancelled_id,
    encode,
    message_of,
    progress_in,
    refusal_of,
    with_progress,
)

FRAMINGS = {"lines": Lines, "lengths": Lengths}
MESSAGES = (
    Request(1, "initialize", {"größe": "🌱\n", "n": 12345678901234567890123}),
    Request("a", "tools/list"),
    Notification("notifications/initialized"),
    Notification("x", [1, None]),
    Result(1, None),
    Result("a", {"tools": []}),
    Fault(None, -32700, "no JSON"),
    Fault(2, 1, "no", {"why": "so"}),
)


def read(framing: str, *chunks: bytes, most: int = 1 << 16, batches: bool = False) -> list[Incoming]:
    reader = Reader(FRAMINGS[framing](most), batches=batches)
    return [each for chunk in chunks for each in reader.feed(chunk)] + reader.close()


def frame(framing: str, body: bytes) -> bytes:
    return body + b"\n" if framing == "lines" else b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


@pytest.mark.parametrize("framing", FRAMINGS)
def test_messages_come_back_as_they_were_written(framing):
    body = b"".join(encode(each, FRAMINGS[framing]()) for each in MESSAGES)
    assert read(framing, body) == list(MESSAGES)


NOISE = b"".join(
    (
        b"Server is listening \xff\x1b[31m\n",
        b'\xef\xbb\xbf{"jsonrpc": "2.0", "method": "a"}\r\n\r\n\n',
        b'"a text"\n[1]\n',
        b'Content-Type: x\r\ncontent-LENGTH:31\r\n\r\n{"jsonrpc":"2.0","method":"bb"}',
        b"x" * 300,
        b"\nContent-Length: 900\r\n\r\n",
        b"y" * 900,
        b'Content-Length: 32\r\n\r\n{"jsonrpc": "2.0","method":"cc"}',
        b'{"jsonrpc":"2.0","id":7,"result":1}\n{"jsonrpc":"2.0","method":"end"}',
    )
)


@pytest.mark.parametrize("framing", FRAMINGS)
def test_what_is_no_message_is_skipped_and_recorded_and_the_next_is_read(framing):
    found = read(framing, NOISE, most=500)
    messages = [each for each in found if not isinstance(each, Skipped)]
    expected = {"lines": [Notification("a"), Notification("end")], "lengths": [Notification("bb"), Notification("cc")]}
    assert messages[0] == expected[framing][0]
    assert messages[-1] == expected[framing][1]
    first = found[0]
    assert isinstance(first, Skipped)
    assert first.text.startswith("Server is listening")
    assert all(each.text.isprintable() and len(each.text) <= 200 for each in found if isinstance(each, Skipped))


@pytest.mark.parametrize("framing", FRAMINGS)
def test_every_cut_gives_one_result(framing):
    whole = read(framing, NOISE, most=500)
    assert any("longer" in each.why for each in whole if isinstance(each, Skipped))
    for place in range(len(NOISE)):
        assert read(framing, NOISE[:place], NOISE[place:], most=500) == whole, place
    assert read(framing, *(bytes([each]) for each in NOISE), most=500) == whole


TEXTS = [
    b"text\n",
    b"\n",
    b"\r\n",
    b"{",
    b"x" * 60,
    b"[]\n",
    b"\xff",
    b"Content-Length: 3\r\n",
    b"Content-Length: 90\n\n",
]
PIECES = st.sampled_from([*TEXTS, *(frame(each, b'{"jsonrpc":"2.0","method":"m"}') for each in FRAMINGS)])


@given(st.sampled_from(sorted(FRAMINGS)), st.lists(PIECES, max_size=8), st.data())
def test_any_bytes_cut_anywhere_give_one_result(framing, pieces, data):
    body = b"".join(pieces)
    places = [0, *sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=6))), len(body)]
    chunks = [body[a:b] for a, b in itertools.pairwise(places)]
    assert read(framing, *chunks, most=50) == read(framing, body, most=50)


@pytest.mark.parametrize(
    ("framing", "begin"), [("lines", b""), ("lengths", b"Content-Length: 99999999\n\n"), ("lengths", b"x")]
)
def test_message_without_an_end_is_never_held(framing, begin):
    reader = Reader(FRAMINGS[framing](10_000))
    found = reader.feed(begin)
    tracemalloc.start()
    for _ in range(2_000):
        found += reader.feed(b"x" * 100)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 60_000 + 3 * HEADER_BYTES_MAX
    assert len(found) == 1


INVALID = {
    "no object": 1,
    "no version": {"id": 1, "method": "a"},
    "another version": {"jsonrpc": "1.0", "id": 1, "method": "a"},
    "a method that is no text": {"jsonrpc": "2.0", "id": 1, "method": 1},
    "parameters that are a text": {"jsonrpc": "2.0", "id": 1, "method": "a", "params": "x"},
    "parameters that are null": {"jsonrpc": "2.0", "id": 1, "method": "a", "params": None},
    "a request and an answer": {"jsonrpc": "2.0", "id": 1, "method": "a", "result": 1},
    "both answers": {"jsonrpc": "2.0", "id": 1, "result": 1, "error": {"code": 1, "message": ""}},
    "neither": {"jsonrpc": "2.0", "id": 1},
    "an error that is a text": {"jsonrpc": "2.0", "id": 1, "error": "x"},
    "an error without a code": {"jsonrpc": "2.0", "id": 1, "error": {"message": "x"}},
    "an error without an id": {"jsonrpc": "2.0", "error": {"code": 1, "message": "x"}},
    "a result without an id": {"jsonrpc": "2.0", "result": 1},
    "a broken id": {"jsonrpc": "2.0", "id": 1.5, "method": "a"},
    "a true id": {"jsonrpc": "2.0", "id": True, "method": "a"},
    "a null id of a request": {"jsonrpc": "2.0", "id": None, "method": "a"},
    "an id that is a list": {"jsonrpc": "2.0", "id": [1], "result": 1},
}


@pytest.mark.parametrize("value", INVALID.values(), ids=INVALID)
def test_message_that_is_not_as_the_protocol_says_is_refused_with_its_id(value):
    (found,) = read("lines", write(value))
    assert isinstance(found, Skipped)
    told = value.get("id") if isinstance(value, dict) else None
    assert refusal_of(found) == Fault(told if type(told) is int else None, INVALID_REQUEST, found.why)


def test_text_that_is_no_json_is_a_parse_error_if_it_is_told():
    (found,) = read("lines", b"hello\n")
    assert refusal_of(found) == Fault(None, PARSE_ERROR, "it is no JSON")


def test_batch_is_refused_or_read_as_the_owner_says():
    body = write([{"jsonrpc": "2.0", "id": 1, "method": "a"}, 5, {"jsonrpc": "2.0", "method": "b"}])
    (refused,) = read("lines", body)
    assert isinstance(refused, Skipped)
    assert refused.code == INVALID_REQUEST
    (batch,) = read("lines", body, batches=True)
    assert isinstance(batch, Batch)
    assert [type(each) for each in batch.messages] == [Request, Skipped, Notification]
    answers = Batch((Result(1, "x"),))
    assert read("lines", encode(answers, Lines()), batches=True) == [answers]


@pytest.mark.parametrize("size", [0, BATCH_MAX + 1])
def test_batch_of_none_or_too_many_is_refused_whole(size):
    (found,) = read("lines", write([{"jsonrpc": "2.0", "method": "a"}] * size), batches=True)
    assert isinstance(found, Skipped)
    assert found.code == INVALID_REQUEST


def test_answer_finds_its_request_once_and_no_other_does():
    waiting = Waiting()
    one, two = waiting.ask("a", None, "first"), waiting.ask("b", {"x": 1}, "second")
    assert (one, two) == (Request(1, "a"), Request(2, "b", {"x": 1}))
    assert waiting.answered(Result(2, "x")) == "second"
    for other in (Result(2, "x"), Result(3, "x"), Result("1", "x"), Fault(None, 1, "x")):
        assert waiting.answered(other) is None
    waiting.give_up(1)
    assert waiting.answered(Fault(1, 1, "late")) is None
    assert waiting.ask("c").id == 3


def test_requests_that_nobody_answers_are_bounded():
    waiting = Waiting(waiting_max=3)
    for _ in range(10):
        waiting.ask("a")
    assert [waiting.answered(Result(n, 1)) for n in range(11)] == [None] * 8 + [True] * 3


@pytest.mark.parametrize("method", ["notifications/cancelled", "$/cancelRequest", "$/cancel_request"])
def test_cancellation_is_told_and_understood_as_each_protocol_says_it(method):
    (found,) = read("lines", encode(cancelled("r7", "enough", method), Lines()))
    assert isinstance(found, Notification)
    assert cancelled_id(found) == "r7"


def test_other_notifications_cancel_nothing():
    for each in (
        Notification("x", {"id": 1}),
        Notification("$/cancelRequest", [1]),
        Notification("$/cancelRequest", {"id": None}),
    ):
        assert cancelled_id(each) is None


def test_progress_is_asked_for_and_understood():
    assert with_progress({"a": 1, "_meta": {"x": 2}}, "t") == {"a": 1, "_meta": {"x": 2, "progressToken": "t"}}
    params = {"progressToken": "t", "progress": 3, "total": 9.5, "message": "so far"}
    assert progress_in(Notification("notifications/progress", params)) == Progress("t", 3, 9.5, "so far")
    editors = {"token": 4, "value": {"kind": "report", "message": "so far"}}
    assert progress_in(Notification("$/progress", editors)) == Progress(4, None, None, "so far")
    for other in ({}, {"progressToken": None}, {"progressToken": [1]}, [1]):
        assert progress_in(Notification("notifications/progress", other)) is None


def test_beginning_of_a_long_line_is_recorded_the_same_however_it_is_cut():
    body = b"x" * 60
    assert read("lines", body[:51], body[51:], most=50) == read("lines", body, most=50)


NAMES = st.sampled_from(["jsonrpc", "id", "method", "params", "result", "error", "code", "message"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=5),
    max_leaves=10,
)


@given(JSON, st.booleans())
def test_any_json_is_a_message_that_comes_back_or_is_skipped(value, is_likely):
    if is_likely and isinstance(value, dict):
        value["jsonrpc"] = "2.0"
    found = message_of(value)
    if not isinstance(found, Skipped):
        again = read_any(encode(found, Lines()))
        assert message_of(again) == found

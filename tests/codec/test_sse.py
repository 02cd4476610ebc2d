"""Bytes of a stream → events, however the bytes are cut."""

from __future__ import annotations

import itertools
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeagent.codec.sse import SseEvent, SseReader

EVERYTHING = (
    "\ufeffdata: größer 🌱\r\n\r\n: a comment\r\revent: x\ndata:no blank\ndata:  two\nid: 7\n\n"
    "retry: 1500\nnonsense\ndata\n\nevent: nothing\n\nid: a\0b\ndata: kept id\n\nerror: {}\n\ndata: last"
).encode()


def events(*chunks: bytes, most: int = 1000) -> list[SseEvent]:
    reader = SseReader(most)
    found = [event for chunk in chunks for event in reader.feed(chunk)]
    return found + reader.close()


def test_events_are_read_as_the_standard_says():
    assert events(EVERYTHING) == [
        SseEvent("größer 🌱".encode()),
        SseEvent(b"no blank\n two", b"x", b"7"),
        SseEvent(b"", b"", b"7"),
        SseEvent(b"kept id", b"", b"7"),
        SseEvent(b"{}", b"error", b"7"),
        SseEvent(b"last", b"", b"7"),
    ]


def test_two_cuts_anywhere_change_nothing():
    whole = events(EVERYTHING)
    for a in range(len(EVERYTHING)):
        for b in range(a, len(EVERYTHING), 7):
            assert events(EVERYTHING[:a], EVERYTHING[a:b], EVERYTHING[b:]) == whole


LINES = st.sampled_from(
    [
        b"data: a",
        b"data:b",
        b"data",
        b": c",
        b"event: e",
        b"id: 1",
        b"",
        b"",
        b"data: \xff",
        b"x",
        b"data: " + b"l" * 20,
    ]
)


@given(st.lists(st.tuples(LINES, st.sampled_from([b"\n", b"\r\n", b"\r"])), max_size=12), st.data())
def test_any_lines_cut_anywhere_give_one_result(lines, data):
    body = b"".join(line + end for line, end in lines)
    places = [0, *sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=6))), len(body)]
    chunks = [body[a:b] for a, b in itertools.pairwise(places)]
    assert events(*chunks, most=24) == events(body, most=24)
    assert events(*(bytes([each]) for each in body), most=24) == events(body, most=24)


def test_retry_is_told():
    reader = SseReader()
    reader.feed(b"retry: 1500\nretry: soon\n")
    assert reader.retry_ms == 1500


@pytest.mark.parametrize("endless", [b"data: ", b": ", b"nonsense"])
def test_line_without_an_end_stops_the_reader_and_is_let_go(endless):
    reader = SseReader(event_bytes_max=10_000)
    assert reader.feed(b"data: before\n\n" + endless) == [SseEvent(b"before")]
    tracemalloc.start()
    for _ in range(1_000):
        assert reader.feed(b"x" * 100) == []
    kept, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert reader.overlong
    assert most < 50_000
    assert kept < 10_000
    assert reader.feed(b"\n\ndata: after\n\n") == []
    assert reader.close() == []


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_event_of_too_many_lines_stops_the_reader_wherever_it_is_cut(size):
    body = b"data: before\n\n" + b"data: 1234\n" * 400 + b"\ndata: after\n\n"
    reader = SseReader(event_bytes_max=1_000)
    found = [event for at in range(0, len(body), size) for event in reader.feed(body[at : at + size])]
    assert found + reader.close() == [SseEvent(b"before")]
    assert reader.overlong

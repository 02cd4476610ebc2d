"""Records as bytes: whatever is recorded is read back, and whatever is read is judged and never crashes the reader."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import get_args

import cbor2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeagent.core.events import EffectLost, Event, ToolFailed, ToolReturned, UserSaid
from edgeagent.errors import TraceDamaged, TraceError
from edgeagent.trace.file import TraceFile, examine_file
from edgeagent.trace.record import (
    FRAME_BYTES,
    GENESIS,
    Header,
    compact,
    decode_record,
    encode_header,
    encode_payload,
    frame,
    named_fields,
    read_frame,
)
from edgeagent.trace.recover import examine
from edgeagent.trace.upgrade import FORMAT

EVENTS = st.one_of(*(st.from_type(kind) for kind in get_args(Event)))
NONCE = bytes(range(8))
HEADER = encode_header(Header(FORMAT, NONCE))


def whole(*events: Event) -> bytes:
    """A trace of these events."""
    content, before = HEADER, GENESIS
    for seq, event in enumerate(events):
        payload = encode_payload(seq, before, event, bytes(16))
        record = frame(NONCE, len(content), payload)
        before = decode_record(payload, len(content), seq, before).hash
        content += record
    return content


@given(st.lists(EVENTS, max_size=6))
def test_whatever_is_recorded_is_read_back(events: list[Event]) -> None:
    found = examine(whole(*events))
    assert repr([r.event for r in found.records]) == repr(events)  # NaN is not itself.
    assert found.end == len(whole(*events))


@given(st.lists(EVENTS, max_size=3), st.binary(max_size=600))
def test_any_bytes_behind_a_trace_are_judged(events: list[Event], tail: bytes) -> None:
    found = examine(whole(*events) + tail)
    assert repr([r.event for r in found.records]) == repr(events)  # NaN is not itself.


@settings(max_examples=300)
@given(st.binary(max_size=400))
def test_any_bytes_are_judged_or_refused(content: bytes) -> None:
    examine(content)
    examine(HEADER + content)


@given(st.binary(min_size=1, max_size=300))
def test_any_content_in_a_right_frame_is_an_event_or_damage(payload: bytes) -> None:
    content = HEADER + frame(NONCE, len(HEADER), payload)
    assert examine(content).records == ()


@pytest.mark.parametrize(
    "payload",
    [
        cbor2.dumps(cbor2.CBORTag(0, "2026-11-30T00:00:00Z")),
        b"\x9f\x00\xff",  # an array without a length
        b"\x84\x18\x00\x50" + bytes(16) + b"\x82\x02\x01\x50" + bytes(16),  # a number that is longer than needed
        b"\x84\x00\x50" + bytes(16) + b"\x83\x02\x01\x7a\xff\xff\xff\xff\x50" + bytes(16),  # a giant length
        b"\x84\x00\x50" + bytes(16) + b"\x83\x02\x01\x61a\x61b\x50" + bytes(16),  # more than one thing
        b"\x84\x00\x50" + bytes(16) + b"\x81\x18\x63\x50" + bytes(16),  # an event that nobody knows
        b"\x84\x00\x50" + bytes(16) + b"\x83\x02\x61x\x61a\x50" + bytes(16),  # text where a time belongs
    ],
)
def test_cbor_that_we_would_not_write_is_damage(payload: bytes) -> None:
    content = HEADER + frame(NONCE, len(HEADER), payload)
    found = examine(content)
    assert found.records == ()
    assert "Damaged" in type(found.verdict).__name__


def test_a_frame_is_right_in_one_place_only() -> None:
    record = frame(NONCE, 100, b"\x84")
    assert read_frame(bytes(100) + record, 100, NONCE) == b"\x84"
    with pytest.raises(Exception, match="length"):
        read_frame(bytes(101) + record, 101, NONCE)


def test_text_that_is_no_unicode_is_an_error_that_says_so() -> None:
    with pytest.raises(TraceError, match="UserSaid holds text that is not Unicode"):
        encode_payload(0, GENESIS, UserSaid(1, "\ud800"), bytes(16))


def test_an_event_that_cannot_be_decoded_names_record_and_byte() -> None:
    payload = encode_payload(3, GENESIS, EffectLost(1, 2), bytes(16)).replace(b"\x83\x09", b"\x83\x18\x63")
    with pytest.raises(TraceDamaged, match="record 3 at byte 77 holds no event"):
        _ = decode_record(payload, 77, 3, GENESIS).event


def test_the_smallest_record_is_small() -> None:
    with TemporaryDirectory() as folder:
        trace = TraceFile.create(Path(folder) / "t")
        trace.append(EffectLost(1_764_535_118_000, 7), (), sync=False)
        trace.close()
        (record,) = examine_file(Path(folder) / "t").records
    assert record.size <= FRAME_BYTES + 50


def test_a_result_without_notes_is_recorded_as_before_there_were_notes() -> None:
    assert compact(ToolReturned(9, 7, "1", 5)) == [5, 9, 7, "1", 5]
    assert compact(ToolReturned(9, 7, "1", 5, notes=("link lost",))) == [5, 9, 7, "1", 5, "", 0, 0, ["link lost"]]
    assert "notes" not in named_fields(ToolFailed(9, 7, "raised", "no"))

"""SMP frames: vectors from Zephyr 4.4, faults that people reported, and one corrupted byte anywhere."""

from __future__ import annotations

import binascii
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeagent.driver.bus import smp
from edgeagent.errors import PeerMisbehaved

# Heard from Zephyr 4.4: the echo of "hi", an indefinite-length map.
ZEPHYR_REQUEST = b"\x06\tABAKAAAGAAABAKFhZGJoaaWv\n"
ZEPHYR_ANSWER = b"\x06\tABELAAAHAAABAL9hcmJoaf81Gg==\n"
LONG = smp.encode(smp.Message(smp.WRITE, smp.OS, smp.ECHO, 7, {"d": "x" * 120}))


def packets(data: bytes) -> list[bytes]:
    """Return the packets a fresh reader finds."""
    return [heard.data for heard in smp.Reader().feed(data) if isinstance(heard, smp.Packet)]


def test_our_request_is_byte_for_byte_what_zephyr_took() -> None:
    packet = smp.encode(smp.Message(smp.WRITE, smp.OS, smp.ECHO, 1, {"d": "hi"}))
    assert smp.lines(packet) == (ZEPHYR_REQUEST,)


def test_zephyrs_answer_is_read() -> None:
    assert smp.decode(packets(ZEPHYR_ANSWER)[0]) == smp.Message(smp.WRITE_ANSWER, smp.OS, smp.ECHO, 1, {"r": "hi"})


@given(st.text(max_size=300), st.integers(0, 255))
def test_what_is_sent_is_read_again(text: str, sequence: int) -> None:
    message = smp.Message(smp.WRITE, smp.OS, smp.ECHO, sequence, {"d": text})
    lines = smp.lines(smp.encode(message))
    assert all(len(line) <= smp.LINE_BYTES for line in lines)
    assert [smp.decode(packet) for packet in packets(b"".join(lines))] == [message]


@given(st.lists(st.integers(1, 40), max_size=30))
def test_portions_do_not_matter(sizes: list[int]) -> None:
    data, reader, heard, at = b"".join(smp.lines(LONG)) + ZEPHYR_ANSWER, smp.Reader(), [], 0
    for size in [*sizes, 10_000]:
        heard += reader.feed(data[at : at + size])
        at += size
    assert [h.data for h in heard if isinstance(h, smp.Packet)] == packets(data)


@pytest.mark.parametrize("frame", [ZEPHYR_REQUEST, ZEPHYR_ANSWER, b"".join(smp.lines(LONG))])
def test_zephyr_118715_no_single_corrupted_byte_makes_an_accepted_frame(frame: bytes) -> None:
    for at in range(len(frame)):
        for byte in range(256):
            if byte != frame[at]:
                assert packets(frame[:at] + bytes([byte]) + frame[at + 1 :]) == [], (at, byte)


@pytest.mark.parametrize("at", range(len(ZEPHYR_ANSWER)))
def test_the_frame_after_a_corrupted_one_is_found(at: int) -> None:
    broken = ZEPHYR_ANSWER[:at] + bytes([ZEPHYR_ANSWER[at] ^ 0x01]) + ZEPHYR_ANSWER[at + 1 :]
    assert packets(broken + ZEPHYR_ANSWER) == packets(ZEPHYR_ANSWER)


@pytest.mark.parametrize("end", range(len(ZEPHYR_ANSWER)))
def test_the_frame_after_a_cut_one_is_found(end: int) -> None:
    assert packets(ZEPHYR_ANSWER[:end] + ZEPHYR_ANSWER) == packets(ZEPHYR_ANSWER)


def test_mcuboot_1507_a_line_longer_than_127_is_still_read() -> None:
    framed = struct.pack(">H", len(LONG) + 2) + LONG + struct.pack(">H", binascii.crc_hqx(LONG, 0))
    line = smp.FIRST + binascii.b2a_base64(framed)
    assert len(line) > smp.LINE_BYTES
    assert packets(line) == [LONG]


def test_a_line_with_a_return_before_its_newline_is_read() -> None:
    assert packets(ZEPHYR_ANSWER.replace(b"\n", b"\r\n")) == packets(ZEPHYR_ANSWER)


def test_console_text_around_frames_is_kept_aside() -> None:
    text = b"[00:00:01.000,000] <inf> app: hello\r\nuart:~$ "
    heard = smp.Reader().feed(text + ZEPHYR_ANSWER + b"more\n")
    assert heard == (smp.Aside(text), smp.Packet(packets(ZEPHYR_ANSWER)[0]), smp.Aside(b"more\n"))


def test_a_further_line_without_its_first_is_broken() -> None:
    assert packets(b"".join(smp.lines(LONG)[1:])) == []


def test_an_endless_line_is_let_go() -> None:
    reader = smp.Reader()
    for _ in range(100):
        reader.feed(smp.FIRST[:0] + b"\x06\x09"[: 2 * (_ == 0)] + b"A" * 100)
    assert [type(heard) for heard in reader.feed(b"\n" + ZEPHYR_ANSWER)][-1] is smp.Packet


def test_base64_with_left_over_bits_is_refused() -> None:
    assert ZEPHYR_ANSWER.endswith(b"Gg==\n")
    assert packets(ZEPHYR_ANSWER.replace(b"Gg==", b"Gh==")) == []


@pytest.mark.parametrize(
    ("packet", "found"),
    [
        (b"", "header alone"),
        (struct.pack(">BBHHBB", 3, 0, 5, 0, 1, 0) + b"\xa0", "says 5 bytes"),
        (struct.pack(">BBHHBB", 0xE3, 0, 1, 0, 1, 0) + b"\xa0", "no version"),
        (struct.pack(">BBHHBB", 7, 0, 1, 0, 1, 0) + b"\xa0", "no version"),
        (struct.pack(">BBHHBB", 3, 0, 1, 0, 1, 0) + b"\x80", "not a map"),
    ],
)
def test_a_packet_that_breaks_the_format_is_refused(packet: bytes, found: str) -> None:
    with pytest.raises(PeerMisbehaved, match=found):
        smp.decode(packet)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({}, None),
        ({"rc": 0}, None),
        ({"rc": 8}, (3, 8)),
        ({"err": {"group": 2, "rc": 5}}, (2, 5)),
        ({"err": {"group": 2, "rc": 0}}, None),
    ],
)
def test_both_versions_of_a_refusal_are_understood(body: dict[str, object], error: object) -> None:
    assert smp.error_of(smp.Message(smp.READ_ANSWER, 3, 0, 1, body)) == error


@pytest.mark.parametrize("body", [{"rc": "no"}, {"err": 5}, {"err": {"rc": "x"}}])
def test_a_refusal_that_is_none_is_refused(body: dict[str, object]) -> None:
    with pytest.raises(PeerMisbehaved):
        smp.error_of(smp.Message(smp.READ_ANSWER, 3, 0, 1, body))

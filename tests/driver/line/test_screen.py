"""What a console shows: cases that people reported, and the laws of the cutter."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeagent.driver.line.screen import (
    CursorAsked,
    Cutter,
    Moved,
    PasteModeSet,
    Printed,
    Rang,
    Redactor,
    Screen,
    SetAside,
    echo_differs,
    echo_length,
    printed,
    set_aside,
)

KERNEL = [re.compile(r"\[ *\d+\.\d{2,6}\] [^\n]*\n")]

SAMPLES = [
    b"=> version\r\nU-Boot 2023.01\r\n=> ",
    b"\x1b[m\r\n\x1b[1;32muart:~$ \x1b[m",
    b"\x1b[?2004hroot@board:~# echo 'QWGH''TYPLK'\r\n\x1b[?2004l\rQWGHTYPLK\r\n\x1b[?2004hroot@board:~# ",
    b"~ # \x1b[6n",
    b"\x00MicroPython v1.9.2\r\n>>> ",
    "Grüße, 21.5 °C\r\n".encode(),
    b"\x1b]0;root@board: ~\x07root@board:~# ",
    b"\xff\xfe\x80wrong baud\xc3",
    b"progress 10%\rprogress 99%\r\n",
    b"\x1b[13CUsage:\r\n",
    b"abc\x08\x08X\x07\r\n",
]


def shown(data: bytes, columns: int = 80) -> str:
    """Return the text of a screen that was fed with this."""
    screen = Screen(columns)
    screen.show(Cutter().feed(data))
    return screen.text


def joined(events: list[object]) -> list[object]:
    """Join neighbouring text, so that events of different portions compare."""
    result: list[object] = []
    for event in events:
        if isinstance(event, Printed) and result and isinstance(result[-1], Printed):
            result[-1] = Printed(result[-1].raw + event.raw, result[-1].text + event.text)
        else:
            result.append(event)
    return result


@pytest.mark.parametrize("sample", SAMPLES)
def test_a_stream_means_the_same_whole_one_byte_at_a_time_and_with_a_tail(sample: bytes) -> None:
    whole = list(Cutter().feed(sample))
    one_by_one = Cutter()
    assert joined([e for byte in sample for e in one_by_one.feed(bytes([byte]))]) == joined(whole)
    tailed = Cutter()
    first = tailed.feed(sample + b"\r\ntail")
    assert joined(list(first))[: len(whole) - 1] == joined(whole)[: len(whole) - 1]


@given(st.binary(max_size=200), st.integers(0, 200))
def test_nothing_is_ever_thrown_away(data: bytes, at: int) -> None:
    cutter = Cutter()
    events = [*cutter.feed(data[:at]), *cutter.feed(data[at:])]
    assert b"".join(event.raw for event in events) + cutter.held == data


@pytest.mark.parametrize(
    ("data", "event"),
    [
        (b"\x1b[6n", CursorAsked(b"\x1b[6n")),
        (b"\x1b[?2004h", PasteModeSet(b"\x1b[?2004h", True)),
        (b"\x1b[?2004l", PasteModeSet(b"\x1b[?2004l", False)),
        (b"\x07", Rang(b"\x07")),
        (b"\x1b[1;32m", SetAside(b"\x1b[1;32m")),
        (b"\x1b]0;title\x07", SetAside(b"\x1b]0;title\x07")),
        (b"\x00", SetAside(b"\x00")),
        (b"\x1b[13C", Moved(b"\x1b[13C", "C", 13)),
    ],
)
def test_what_is_no_text_is_named(data: bytes, event: object) -> None:
    assert Cutter().feed(data) == (event,)


def test_an_endless_sequence_is_let_go() -> None:
    cutter = Cutter()
    assert cutter.feed(b"\x1b[" + b"0" * 40) == ()
    assert cutter.feed(b"0" * 40)[0] == SetAside(b"\x1b[")


def test_labgrid_969_1397_bracketed_paste_around_every_prompt() -> None:
    assert shown(SAMPLES[2]).split("\n") == ["root@board:~# echo 'QWGH''TYPLK'", "QWGHTYPLK", "root@board:~# "]


def test_a_cursor_query_after_the_prompt_does_not_hide_it() -> None:
    assert shown(b"~ # \x1b[6n") == "~ # "


def test_a_title_before_the_prompt_does_not_hide_it() -> None:
    assert shown(b"\x1b]0;root@board: ~\x07root@board:~# ") == "root@board:~# "


def test_a_progress_line_shows_its_last_state() -> None:
    assert shown(b"progress 10%\rprogress 99%\r\ndone") == "progress 99%\ndone"


def test_columns_made_by_cursor_moves_are_spaces() -> None:
    assert shown(b"\x1b[4CUsage:") == "    Usage:"


def test_a_rubbed_out_line_is_gone() -> None:
    assert shown(b"garbage\r\x1b[K=> ") == "=> "


def test_pexpect_238_a_wrapped_echo_is_one_line() -> None:
    line = "echo " + "x" * 100
    wrapped = line[:80] + " \r" + line[80:]
    assert shown(wrapped.encode()) == line
    assert echo_length(wrapped, line) == len(wrapped)


@pytest.mark.parametrize("wrap", [" \r", "\r\n", "\r\r\n", "\n"])
def test_pexpect_238_225_every_kind_of_wrap_is_the_same_echo(wrap: str) -> None:
    line = "setenv bootargs console=ttyAMA0,115200 " + "a" * 60
    assert echo_length(line[:63] + wrap + line[63:], line) == len(line) + len(wrap)


def test_the_wrap_of_bash_prints_a_character_twice() -> None:
    assert echo_length("echo xxx\rxyz", "echo xxxyz") == len("echo xxx\rxyz")
    assert echo_differs("echo xxx\rzz", "echo xxxyz")


def test_labgrid_1749_a_lost_character_is_seen_in_the_echo() -> None:
    assert echo_length("mesg -n 1", "dmesg -n 1") is None
    assert echo_differs("mesg -n 1", "dmesg -n 1")
    assert echo_length("dmesg -n ", "dmesg -n 1") is None
    assert not echo_differs("dmesg -n ", "dmesg -n 1")


def test_labgrid_1763_kernel_noise_between_marker_and_prompt_is_kept_aside() -> None:
    text = "MARKER\n[  37.36] systemd-journald[123]: Time jumped backwards, rotating.\nroot@user:~# "
    assert set_aside(text, KERNEL) == (
        "MARKER\nroot@user:~# ",
        ("[  37.36] systemd-journald[123]: Time jumped backwards, rotating.",),
    )


def test_noise_in_the_middle_of_a_line_leaves_the_line_whole() -> None:
    assert set_aside("hel[   11.094920] NOISE\nlo\n", KERNEL) == ("hello\n", ("[   11.094920] NOISE",))


def test_a_flood_without_line_ends_has_bounded_memory() -> None:
    screen = Screen()
    for _ in range(200):
        screen.show((Printed(b"x" * 1000, "x" * 1000),))
    assert len(screen.text.rpartition("\n")[2]) <= 16_384


def test_what_an_echo_is_compared_with_has_no_sequences() -> None:
    assert printed(Cutter().feed(b"\x1b[1mab\x1b[m \rc\x1b[6n")) == "ab \rc"


@given(st.integers(0, 11), st.integers(0, 11), st.binary(max_size=5), st.binary(max_size=5))
def test_a_secret_never_comes_through_in_any_portions(one: int, two: int, before: bytes, after: bytes) -> None:
    secret = b"s3cret-word"
    redactor = Redactor(secret)
    data = before + secret + after
    low, high = sorted((one + len(before), two + len(before)))
    out = redactor.feed(data[:low]) + redactor.feed(data[low:high]) + redactor.feed(data[high:]) + redactor.flush()
    assert secret not in out
    assert len(out) == len(data)


def test_the_choice_of_a_character_set_leaves_no_letter_in_the_prompt() -> None:
    """What `tput sgr0` prints at the end of a coloured prompt."""
    assert shown(b"\x1b[1mroot@board\x1b(B\x1b[m:~# \x1b)0") == "root@board:~# "

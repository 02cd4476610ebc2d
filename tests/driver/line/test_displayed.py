"""What of a device's bytes a person's terminal is given: text, a list of harmless sequences, and nothing else."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeagent.driver.line.displayed import Displayed, HexView

HARMLESS = re.compile(
    r"(?:[^\x00-\x1f\x7f-\x9f]|[\r\n\b\t\a\x0e\x0f]"
    r"|\x1b\[[0-9;:]*[A-HJ-MPSTX`adefmrsu@]|\x1b\[4[hl]|\x1b\[\?[0-9;]+[hl]"
    r"|\x1b[78DEM=>]|\x1b[()][0AB])*"
)

PIECES = st.one_of(
    st.binary(max_size=6),
    st.sampled_from(
        [
            *(b"\x1b", b"\x1b[", b"\x1b]", b"\x1bP", b"\x1b(", b"\x1b[?", b"\x9b", b"\xc2\x9b", b"\x07", b"\x1b\\"),
            *(b"0", b"52;c;", b"6n", b"31m", b"3J", b"B", b";", b"1049h", b"?25l", b"c", b"t", b"i", b"\x0e"),
            *("ä".encode(), "\u202e".encode(), b"\r\n", b"root@board:~# "),
        ]
    ),
)


def shown(data: bytes) -> bytes:
    """Return what a terminal is given of it."""
    return Displayed().feed(data)


@given(st.lists(PIECES, max_size=20).map(b"".join))
def test_nothing_but_text_and_harmless_sequences_reaches_a_terminal(data: bytes) -> None:
    given_out = shown(data).decode()
    assert HARMLESS.fullmatch(given_out), given_out


@given(st.lists(PIECES, max_size=12))
def test_how_the_bytes_are_cut_changes_nothing(pieces: list[bytes]) -> None:
    whole, display = b"".join(pieces), Displayed()
    assert b"".join(display.feed(bytes([byte])) for byte in whole) == shown(whole)


@pytest.mark.parametrize(
    "sequence",
    [
        b"\x1b[1;32m",
        b"\x1b[2J",
        b"\x1b[12;40H",
        b"\x1b[K",
        b"\x1b[?1049h",
        b"\x1b[?25l",
        b"\x1b(0",
        b"\x1b[3;20r",
        b"\x1b7",
        b"\x1b[?2004h",
    ],
)
def test_what_colours_prompts_and_editors_need_comes_through(sequence: bytes) -> None:
    assert shown(b"a" + sequence + b"b") == b"a" + sequence + b"b"


@pytest.mark.parametrize(
    "sequence",
    [
        b"\x1b]52;c;cm0gLXJmIC8=\x07",  # writes the clipboard
        b"\x1b]8;;http://evil.example\x07",  # a link
        b"\x1b]4;1;rgb:ff/00/00\x07",  # changes the colours
        b"\x1bP+q544e\x1b\\",  # asks for a capability
        b"\x1b[21t",  # has the title typed back
        b"\x1b[5i",  # starts the printer
        b"\x1b[?1003h",  # has the mouse typed
        b"\x1bc",  # resets everything
        b"\x1b[9999b",  # repeats without end
        b"\x1b[20l",
        b"\x05",  # has the terminal answer
        b"\xc2\x9b31m",  # the same in eight bits
        "\u202e".encode(),  # turns round what follows
    ],
)
def test_whatever_does_more_is_shown_escaped(sequence: bytes) -> None:
    given_out = shown(b"a" + sequence + b"b")
    assert b"\x1b" not in given_out
    assert b"\\" in given_out


@pytest.mark.parametrize(
    "sequence", [b"\x1b[6n", b"\x1b[c", b"\x1b]0;root@board\x07", b"\x1b[3J", b"\x00", b"\x1b[?6n"]
)
def test_questions_and_titles_of_every_prompt_are_left_out(sequence: bytes) -> None:
    assert shown(b"a" + sequence + b"b") == b"ab"


def test_what_a_device_left_changed_is_put_right() -> None:
    display = Displayed()
    display.feed(b"\x1b[31m\x1b[?1049h\x1b[?25l")
    assert display.restoring == b"\x1b[m\x1b[?1049l\x1b[?7h\x1b[?25h"
    display.feed(b"\x1b[?1049l")
    assert b"1049" not in display.restoring


def test_a_device_that_changed_nothing_costs_nothing() -> None:
    display = Displayed()
    display.feed(b"=> version\r\nU-Boot\r\n=> ")
    assert display.restoring == b""


def test_a_stamp_stands_before_each_line_and_is_asked_for_once_a_line() -> None:
    display, stamps = Displayed(), iter(("[1] ", "[2] ", "[3] "))
    parts = (b"one\r\n", b"tw", b"o\r\n", b"3")
    assert b"".join(display.feed(part, lambda: next(stamps)) for part in parts) == b"[1] one\r\n[2] two\r\n[3] 3"


def test_a_stamp_is_drawn_again_where_a_line_is() -> None:
    assert Displayed().feed(b"10%\r99%\r\n", lambda: "> ") == b"> 10%\r> 99%\r\n"


def test_wrong_speed_shows_as_escaped_bytes() -> None:
    assert shown(b"\xff\xfeab\x80!") == rb"\xff\xfeab\x80!"


def test_boxes_are_drawn_only_after_a_set_of_boxes_was_chosen() -> None:
    assert shown(b"\x0eq") == b"\\x0eq"
    assert shown(b"\x1b)0\x0eqq\x0f") == b"\x1b)0\x0eqq\x0f"


def test_hex_shows_rows_with_their_text() -> None:
    view = HexView()
    rows = view.feed(bytes(range(0x3A, 0x4C))).split(b"\r\n")
    assert rows[0] == b"\r00000000  3a 3b 3c 3d 3e 3f 40 41  42 43 44 45 46 47 48 49  |:;<=>?@ABCDEFGHI|"
    assert rows[1] == b"\r00000010  4a 4b                                             |JK|"


def test_hex_draws_the_row_that_is_not_full_again() -> None:
    view = HexView()
    assert view.feed(b"A").startswith(b"\r00000000  41 ")
    assert view.feed(b"B").startswith(b"\r00000000  41 42 ")
    assert view.restoring == b"\r\n"


@given(st.binary(max_size=64))
def test_hex_gives_a_terminal_nothing_but_text(data: bytes) -> None:
    assert set(HexView().feed(data)) <= {0x0D, 0x0A, *range(0x20, 0x7F)}

"""Keys of a person at a line: what is for the device, and what is for us."""

from __future__ import annotations

import pytest

from edgeagent.doors.line.keys import KEYS, KeyReader, Wish, help_lines


def meant(typed: bytes, *, one_by_one: bool) -> list[bytes | Wish]:
    """Return what is meant, neighbouring bytes joined."""
    reader, found = KeyReader(), list[bytes | Wish]()
    for portion in [typed[at : at + 1] for at in range(len(typed))] if one_by_one else [typed]:
        for each in reader.feed(portion):
            if isinstance(each, bytes) and found and isinstance(before := found[-1], bytes):
                found[-1] = before + each
            else:
                found.append(each)
    return found


@pytest.mark.parametrize("one_by_one", [False, True])
def test_what_follows_ctrl_t_is_for_us_and_the_rest_for_the_device(one_by_one: bool) -> None:
    found = meant(b"ls\r\x14b\x14\x14x\x14~y", one_by_one=one_by_one)
    assert found == [
        b"ls\r",
        Wish("break", "b"),
        Wish("type_escape", "\x14"),
        b"x",
        Wish("unknown", "~"),
        b"y",
    ]


@pytest.mark.parametrize("leave", [b"\x1c", b"\x14q", b"\x14\x1c"])
def test_nothing_is_typed_after_a_wish_to_leave(leave: bytes) -> None:
    *before, last = KeyReader().feed(b"abc" + leave + b"reboot\r")
    assert before == [b"abc"]
    assert isinstance(last, Wish) and last.name == "leave"


def test_the_help_lists_every_key_once() -> None:
    assert len({each.key for each in KEYS}) == len(KEYS) == len(help_lines())
    assert any("Ctrl-T Ctrl-T" in line for line in help_lines())

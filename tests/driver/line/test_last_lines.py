"""Last lines of a device: numbered, bounded, and the same however its bytes were cut."""

from __future__ import annotations

import pytest

from edgeagent.driver.line.last_lines import LINE_CHARS_KEPT, LINES_KEPT, WAITING_BYTES_MAX, LastLines
from edgeagent.driver.line.opening import PortSettings
from edgeagent.driver.line.port import Moment, SerialPort


def of(*moments):
    """The lines of a port on which this happened."""
    port = SerialPort(PortSettings("/dev/none"))
    lines = LastLines(port)
    for moment in moments:
        port.watchers[0](moment)
    return lines


def device(data):
    return Moment(0, "device", data)


STREAM = b"10%\r20%\x1b[K\r\nab\bc\r\n\x1b[1mbold\x1b[0m \xc3\xa4\x1b[5i\r\n\x1b]2;x\x07end"


@pytest.mark.parametrize("size", [1, 2, 3, 7, len(STREAM)])
def test_lines_are_those_that_a_terminal_shows_however_the_bytes_were_cut(size):
    lines = of(*(device(STREAM[at : at + size]) for at in range(0, len(STREAM), size)))
    found = lines.since(0)
    assert [line.text for line in found.lines] == ["20%", "ac", r"bold ä\x1b[5i"]
    assert (found.begun, found.next) == ("end", 3)


def test_a_line_is_given_once_and_by_its_number():
    lines = of(device(b"one\ntwo\n"))
    assert [line.number for line in lines.since(0).lines] == [0, 1]
    assert [line.text for line in lines.since(1).lines] == ["two"]
    assert lines.since(2).lines == ()


def test_what_was_typed_is_not_shown_and_what_befell_the_line_is_a_note():
    lines = of(Moment(0, "agent", b"secret"), Moment(0, "person", b"x"), Moment(0, "port", b"", "link lost: gone"))
    (line,) = lines.since(0).lines
    assert (line.text, line.is_note) == ("link lost: gone", True)


def test_a_note_that_names_what_a_device_called_itself_hides_nothing():
    (line,) = of(Moment(0, "port", b"", "opened \x1b[2J\u202e")).since(0).lines
    assert line.text == r"opened \x1b[2J\u202e"


@pytest.mark.parametrize("portion", [b"x" * 4_096, b"\n" * 4_096, b"\x1b[31m" * 800, b"line\r\n" * 700])
def test_a_flood_keeps_so_much_whether_or_not_anybody_looks(portion):
    lines = of(*[device(portion)] * 500)
    assert lines._waiting_bytes <= WAITING_BYTES_MAX
    found = lines.since(0)
    assert len(found.lines) <= LINES_KEPT
    assert all(len(line.text) <= LINE_CHARS_KEPT + 1 for line in found.lines) and len(found.begun) <= LINE_CHARS_KEPT


def test_who_follows_is_told_until_it_leaves():
    port = SerialPort(PortSettings("/dev/none"))
    lines, told = LastLines(port), []

    def changed():
        told.append(len(lines.since(0).lines))

    lines.follow(changed)
    port.watchers[0](device(b"one\n"))
    lines.leave(changed)
    port.watchers[0](device(b"two\n"))
    assert told == [1]

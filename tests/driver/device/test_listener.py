"""Lines that a device prints by itself: which are told, and that a command's own answer never is."""

from __future__ import annotations

import contextlib
import os
import pty
import queue
import threading
import time
import tty
from collections.abc import Iterator
from pathlib import Path
from re import compile as pattern

import pytest

from edgeagent.driver.device.device import Device
from edgeagent.driver.device.listener import LINES_A_MINUTE_MAX, WakeLines
from edgeagent.driver.line.outcome import Done
from edgeagent.errors import ConfigError

pytestmark = pytest.mark.long

pytest.importorskip("serial", reason="pyserial is not installed: pip install edgeagent[serial]")
ALARM = pattern(r"^ALARM \w+")


def told(lines: WakeLines, *portions: bytes, now: float = 0.0) -> list[str]:
    """What is told of these portions."""
    return [line for portion in portions for line in lines.feed(portion, now)]


def test_a_line_that_wakes_is_told_once_it_is_whole() -> None:
    lines = WakeLines((ALARM,))
    assert told(lines, b"sw1# ", b"\r\nALARM pre", b"ssure 12 bar") == []
    assert told(lines, b"\r\nall is well\r\n") == ["ALARM pressure 12 bar"]


@pytest.mark.parametrize("cut", range(1, 24))
def test_where_a_line_is_cut_changes_nothing(cut: int) -> None:
    printed = b"\x1b[31mALARM\x1b[m pressure\r\nok\r\n"
    assert told(WakeLines((ALARM,)), printed[:cut], printed[cut:]) == ["ALARM pressure"]


def test_a_flood_is_counted_and_told_as_one() -> None:
    lines = WakeLines((ALARM,))
    assert len(told(lines, b"ALARM again\r\n" * 100)) == LINES_A_MINUTE_MAX
    later = told(lines, b"", now=61)
    assert later == ["(80 more such lines were printed within a minute and are not shown)"]
    assert told(lines, b"ALARM new\r\n", now=62) == ["ALARM new"]


class Pump:
    """A device on a pseudo-terminal with a prompt; `show` prints an alarm that is only its answer."""

    def __init__(self) -> None:
        self.end, ours = pty.openpty()
        tty.setraw(ours)
        self.place, self._held = os.ttyname(ours), ours
        self._thread = threading.Thread(target=self._live, daemon=True)
        self._thread.start()

    def say(self, text: str) -> None:
        """Print."""
        with contextlib.suppress(OSError):
            os.write(self.end, text.encode())

    def close(self) -> None:
        """Go away, the thread first: the descriptor's number is used again."""
        os.close(self._held)
        self._thread.join(60)
        os.close(self.end)

    def _live(self) -> None:
        line = ""
        with contextlib.suppress(OSError):
            while portion := os.read(self.end, 64):
                for char in portion.decode():
                    line += char
                    if char == "\r":
                        answer = "ALARM list: none\r\n" if "show" in line else ""
                        self.say(f"\r\n{answer}pump# ")
                        line = ""
                    elif char >= " ":
                        self.say(char)


@pytest.fixture
def pump() -> Iterator[Pump]:
    """A pump."""
    pump = Pump()
    yield pump
    pump.close()


def profile_file(folder: Path, wake: str) -> str:
    """A profile of the pump."""
    path = folder / "pump.toml"
    path.write_text(f"name = 'pump'\nextends = 'generic'\n{wake}\n")
    return str(path)


def test_an_alarm_of_a_device_is_told_and_a_commands_own_answer_is_not(pump: Pump, tmp_path: Path) -> None:
    device = Device(pump.place, profile_file(tmp_path, "wake = ['^ALARM ']"), mirrored=False)
    heard: queue.Queue[str] = queue.Queue()
    listener = device.listen(heard.put)
    try:
        while not device.ready:
            time.sleep(0.05)
        assert device.console().run("show alarms") == Done("ALARM list: none")
        pump.say("\r\nALARM pressure 12 bar\r\npump# ")
        assert heard.get(timeout=60) == "ALARM pressure 12 bar"
        assert device.console().run("noop") == Done("")
        pump.say("\r\nALARM empty\r\npump# ")
        assert heard.get(timeout=60) == "ALARM empty"
    finally:
        listener.close()
        device.close()
    assert heard.empty()


def test_listening_without_saying_for_what_is_refused(pump: Pump, tmp_path: Path) -> None:
    device = Device(pump.place, profile_file(tmp_path, ""), mirrored=False)
    with pytest.raises(ConfigError, match="has no wake"):
        device.listen(print)

"""Devices on buses as typed tools: registers in units, instruments, firmware that goes on where it was cut."""

from __future__ import annotations

import contextlib
import hashlib
import os
import pty
import threading
import tty
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pymodbus", reason="pymodbus is not installed: pip install edgeagent[serial]")

from pymodbus.framer.rtu import FramerRTU

from edgeagent.core.agent import Tool
from edgeagent.driver.bus import smp
from edgeagent.driver.device.bus_profile import Register, load_bus_profile
from edgeagent.driver.device.bus_tools import BusDevice
from edgeagent.driver.device.modbus_tools import value_of, words_of
from edgeagent.driver.unknown import CommandFailed, EffectUnknown
from edgeagent.errors import ConfigError, DriverError

METER = """
name = "meter"
bus = "modbus"
device_id = 7
timeout_s = 30
late_s = 0.6
[[registers]]
name = "flow"
help = "Flow."
table = "input"
address = 1
scale = 0.1
unit = "l/min"
[[registers]]
name = "setpoint"
help = "Wanted pressure."
address = 2
kind = "i16"
scale = 0.01
writable = true
minimum = -1
maximum = 10
"""
SUPPLY = """
name = "supply"
bus = "scpi"
error_query = "SYST:ERR?"
[[commands]]
name = "read_voltage"
help = "Measure."
command = "MEAS:VOLT?"
effect = "read"
idempotent = true
answer = { kind = "number" }
[[commands]]
name = "set_voltage"
help = "Set."
command = "VOLT {volts}"
effect = "write"
idempotent = true
[commands.arguments.volts]
type = "number"
minimum = 0
maximum = 30
"""
SENSOR = """
name = "sensor"
bus = "smp"
statistics = ["net"]
images = { folder = ".", files = ["new.bin"] }
"""

Answers = Callable[[bytes], bytes]


class Wire:
    """A device behind a pseudo-terminal that answers what it heard so far."""

    def __init__(self, answers: Answers) -> None:
        self.end, self._held = pty.openpty()
        tty.setraw(self._held)
        self.place = os.ttyname(self._held)
        self._answers = answers
        self._thread = threading.Thread(target=self._live, daemon=True)
        self._thread.start()

    def _live(self) -> None:
        with contextlib.suppress(OSError):
            while portion := os.read(self.end, 4096):
                if answer := self._answers(portion):
                    os.write(self.end, answer)
        os.close(self.end)

    def close(self) -> None:
        """Go away."""
        os.close(self._held)
        self._thread.join(60)


class Bench:
    """Makes devices and their tools, and puts them away."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._open: list[Any] = []

    def tools(self, profile: str, answers: Answers) -> dict[str, Tool]:
        """The tools of a device that answers so."""
        path = self.folder / "device.toml"
        path.write_text(profile)
        wire = Wire(answers)
        device = BusDevice(wire.place, load_bus_profile(str(path)), folder=str(self.folder))
        self._open += [device, wire]
        return {tool.name: tool for tool in device.tools}

    def close(self) -> None:
        """Put everything away, what was taken out last first."""
        for each in self._open:
            each.close()


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """A bench."""
    bench = Bench(tmp_path)
    yield bench
    bench.close()


def registers(held: dict[int, int]) -> Answers:
    """A Modbus device with these registers; a write to 9999 is swallowed."""

    def answer(request: bytes) -> bytes:
        address, value = int.from_bytes(request[2:4], "big"), int.from_bytes(request[4:6], "big")
        if request[1] in (3, 4):
            body = bytes([request[0], request[1], 2]) + held[address].to_bytes(2, "big")
        elif value == 999:
            return b""
        else:
            held[address] = value
            body = request[:6]
        return body + FramerRTU.compute_CRC(body).to_bytes(2, "big")

    return answer


def test_registers_are_read_and_set_in_their_unit(bench: Bench) -> None:
    held = {1: 215, 2: 0xFFCE}
    tools = bench.tools(METER, registers(held))
    assert tools["read_flow"]() == 21.5
    assert tools["read_setpoint"]() == -0.5
    assert tools["set_setpoint"](value=7.25) == "done"
    assert held[2] == 725


def test_a_value_between_two_steps_is_not_sent(bench: Bench) -> None:
    with pytest.raises(DriverError, match=r"goes in steps of 0\.01; nothing was sent"):
        bench.tools(METER, registers({}))["set_setpoint"](value=0.005)


def test_a_write_without_an_answer_is_unknown_and_not_sent_again(bench: Bench) -> None:
    sent: list[bytes] = []
    answer = registers({2: 0})
    quick = METER.replace("timeout_s = 30", "timeout_s = 0.5")  # What is waited for never comes.
    tools = bench.tools(quick, lambda request: sent.append(request) or answer(request))  # type: ignore[func-returns-value]
    with pytest.raises(EffectUnknown, match="effect is unknown"):
        tools["set_setpoint"](value=9.99)
    with pytest.raises(EffectUnknown, match="A person must look"):
        tools["set_setpoint"](value=9.99)
    assert len(sent) == 1


def test_writing_asks_a_person_and_reading_runs(bench: Bench) -> None:
    tools = bench.tools(METER, registers({}))
    assert [(tool.effect, tool.confirm) for tool in tools.values()] == [
        ("read", False),
        ("read", False),
        ("write", True),
    ]
    assert tools["set_setpoint"].parameters.schema["properties"]["value"]["maximum"] == 10


@pytest.mark.parametrize(
    ("register", "words", "value"),
    [
        (Register("a", "A.", 0), (65535,), 65535),
        (Register("a", "A.", 0, kind="i16"), (65535,), -1),
        (Register("a", "A.", 0, kind="u32"), (1, 2), 65538),
        (Register("a", "A.", 0, kind="u32", low_word_first=True), (2, 1), 65538),
        (Register("a", "A.", 0, kind="f32"), (0x41AC, 0), 21.5),
        (Register("a", "A.", 0, scale=0.1), (215,), 21.5),
        (Register("a", "A.", 0, scale=10), (7,), 70),
    ],
)
def test_words_are_a_value_and_a_value_is_words(register: Register, words: tuple[int, ...], value: float) -> None:
    assert value_of(register, words) == value
    assert type(value_of(register, words)) is type(value)
    assert words_of(register, value) == words


class Supply:
    """A power supply that takes at most 20 V."""

    def __init__(self) -> None:
        self.error = "0,none"

    def __call__(self, heard: bytes) -> bytes:
        """Answer each line."""
        return b"".join(self._answered(line) for line in heard.decode().splitlines())

    def _answered(self, line: str) -> bytes:
        if line == "MEAS:VOLT?":
            return b"12.50\n"
        if line == "SYST:ERR?":
            said, self.error = self.error, "0,none"
            return f"{said}\n".encode()
        if float(line.split()[1]) > 20:
            self.error = '-222,"Data out of range"'
        return b""


def test_an_instrument_is_asked_and_told_and_says_what_it_did_not_take(bench: Bench) -> None:
    tools = bench.tools(SUPPLY, Supply())
    assert tools["read_voltage"]() == 12.5
    assert tools["set_voltage"](volts=5) == "done"
    with pytest.raises(CommandFailed, match="Data out of range"):
        tools["set_voltage"](volts=25)


class Loader:
    """An SMP server that takes an image in pieces, drops some answers, and remembers where it stands."""

    def __init__(self, drop: set[int]) -> None:
        self.image, self.sha, self.asked, self.drop = b"", b"", 0, drop
        self.marked: list[dict[str, Any]] = []
        self._reader = smp.Reader()

    def __call__(self, portion: bytes) -> bytes:
        """Answer what is whole."""
        packets = [heard for heard in self._reader.feed(portion) if isinstance(heard, smp.Packet)]
        return b"".join(self._answered(smp.decode(packet.data)) for packet in packets)

    def _answered(self, asked: smp.Message) -> bytes:
        self.asked += 1
        body = self._body(asked)
        if self.asked in self.drop:
            return b""
        answer = smp.Message(asked.op + 1, asked.group, asked.command, asked.sequence, body)
        return b"".join(smp.lines(smp.encode(answer)))

    def _body(self, asked: smp.Message) -> dict[str, Any]:
        if (asked.group, asked.command) == (smp.IMAGE, 1):
            if asked.body["off"] == 0 and asked.body["sha"] != self.sha:
                self.image, self.sha = b"", asked.body["sha"]
            if asked.body["off"] == len(self.image):
                self.image += asked.body["data"]
            return {"off": len(self.image)}
        if (asked.group, asked.command, asked.op) == (smp.IMAGE, 0, smp.READ):
            return {"images": [{"slot": 0, "hash": b"old"}, {"slot": 1, "hash": b"new"}]}
        if (asked.group, asked.command) == (smp.IMAGE, 0):
            self.marked.append(asked.body)
            return {"images": []}
        return {"fields": {"dropped": 3}} if asked.group == smp.STATISTICS else {"buf_size": 512}


@pytest.mark.deep
def test_an_image_is_uploaded_though_answers_are_lost_and_no_piece_is_written_twice(bench: Bench) -> None:
    image = os.urandom(3000)
    (bench.folder / "new.bin").write_bytes(image)
    loader = Loader(drop={3})
    tools = bench.tools(SENSOR, loader)
    assert tools["upload_image"](file="new.bin") == {"file": "new.bin", "bytes": 3000}
    assert loader.image == image
    assert loader.sha == hashlib.sha256(image).digest()


def test_an_upload_that_begins_again_goes_on_where_it_was_cut(bench: Bench) -> None:
    image = os.urandom(2000)
    (bench.folder / "new.bin").write_bytes(image)
    loader = Loader(drop=set())
    loader.image, loader.sha = image[:1500], hashlib.sha256(image).digest()
    bench.tools(SENSOR, loader)["upload_image"](file="new.bin")
    assert loader.image == image
    assert loader.asked < 5


def test_an_image_is_tried_and_then_confirmed(bench: Bench) -> None:
    loader = Loader(drop=set())
    tools = bench.tools(SENSOR, loader)
    assert tools["list_images"]()[1] == {"slot": 1, "hash": b"new".hex()}
    assert tools["try_image"]() == "done"
    assert tools["confirm_image"]() == "done"
    assert loader.marked == [{"hash": b"new", "confirm": False}, {"confirm": True}]
    assert tools["read_statistics"](group="net") == {"dropped": 3}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('bus = "modbus"', 'bus = "canbus"', "bus"),
        ('help = "Flow."', 'help = ""', "help is empty"),
        ("address = 1", "address = 70000", "0 to 65535"),
        ("scale = 0.1", "scale = 0", "scale is 0"),
        ('table = "input"', 'table = "coil"', "a coil is a bit"),
        ('table = "input"', 'table = "input"\nwritable = true', "cannot be written"),
        ("maximum = 10", "maximum = 1000", "does not fit in i16"),
        ("minimum = -1\n", "", "needs a minimum and a maximum"),
        ('name = "setpoint"', 'name = "flow"', "twice"),
        ("timeout_s = 30", "timeout_s = 0", "timeout_s must be above 0"),
        ("late_s = 0.6", 'late_s = 0.6\nstatistics = ["x"]', "statistics is for bus 'smp'"),
    ],
)
def test_a_wrong_profile_is_refused_with_file_and_key(bench: Bench, old: str, new: str, message: str) -> None:
    assert old in METER
    path = bench.folder / "wrong.toml"
    path.write_text(METER.replace(old, new, 1))
    with pytest.raises(ConfigError, match=message):
        load_bus_profile(str(path))

"""A Modbus RTU device by pymodbus, and what a bad bus does."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from edgeagent.driver.bus.modbus import ModbusClient, ModbusDone, ModbusRefused, ModbusUnknown

pytest.importorskip("pymodbus", reason="pymodbus is not installed: run tests/device/setup.sh")
pytestmark = pytest.mark.device
DEVICE = [sys.executable, str(Path(__file__).parent / "modbus_device.py")]


@pytest.fixture
def client(start_target: Callable[..., Any]) -> Iterator[ModbusClient]:
    """A client of a device that has just begun to serve."""
    client = ModbusClient(start_target("Modbus RTU", DEVICE).port(), timeout_s=1.0)
    until = time.monotonic() + 60
    while not isinstance(client.read_holding(7, 0), ModbusDone):
        assert time.monotonic() < until, "the device does not serve"
    client.timeout_s = 60.0
    yield client


def test_registers_and_bits_are_read_and_written(client: ModbusClient) -> None:
    assert client.read_holding(7, 0, 3) == ModbusDone((100, 101, 102))
    assert client.read_input(7, 10) == ModbusDone((110,))
    assert client.read_coils(7, 0, 10) == ModbusDone((1, 0) * 5)
    assert client.read_discrete(7, 1, 3) == ModbusDone((0, 1, 0))
    assert client.write_register(7, 5, 4711) == ModbusDone(())
    assert client.write_registers(7, 6, (1, 2, 3)) == ModbusDone(())
    assert client.write_coil(7, 1, True) == ModbusDone(())
    assert client.read_holding(7, 5, 4) == ModbusDone((4711, 1, 2, 3))
    assert client.read_coils(7, 1) == ModbusDone((1,))


def test_a_refusal_says_why(client: ModbusClient) -> None:
    outcome = client.read_holding(7, 5000)
    assert isinstance(outcome, ModbusRefused)
    assert outcome.code == 2
    assert "no such address" in outcome.because


def test_a_late_answer_is_not_taken_for_the_next_requests(start_target: Callable[..., Any]) -> None:
    target = start_target("Modbus RTU", DEVICE)
    client = ModbusClient(target.port(), timeout_s=1.0)
    until = time.monotonic() + 60
    while client.read_holding(7, 1) != ModbusDone((101,)):
        assert time.monotonic() < until, "the device does not serve"
    os.kill(target.process.pid, signal.SIGSTOP)
    client.timeout_s = 0.3
    assert isinstance(client.read_holding(7, 2), ModbusUnknown)
    os.kill(target.process.pid, signal.SIGCONT)
    client.timeout_s = 60.0
    assert client.read_holding(7, 3) == ModbusDone((103,))


def test_garbage_before_a_request_goes_by(client: ModbusClient) -> None:
    """pymodbus#356: after a frame that was cut, the next good one is found."""
    client.port.write(bytes.fromhex("0703 00"))
    client.timeout_s = 1.0
    first = client.read_holding(7, 2)
    assert first == ModbusDone((102,)) or isinstance(first, ModbusUnknown)
    client.timeout_s = 60.0
    assert client.read_holding(7, 2) == ModbusDone((102,))


def test_the_own_echo_of_a_two_wire_adapter_is_not_an_answer(start_target: Callable[..., Any]) -> None:
    """pymodbus#2592: request and answer glued together."""
    client = ModbusClient(start_target("Modbus RTU", [*DEVICE, "--echo"]).port(), timeout_s=1.0, local_echo=True)
    until = time.monotonic() + 60
    while not isinstance(client.read_holding(7, 0), ModbusDone):
        assert time.monotonic() < until, "the device does not serve"
    client.timeout_s = 60.0
    assert client.write_register(7, 5, 17) == ModbusDone(())
    assert client.read_holding(7, 5) == ModbusDone((17,))


def test_a_bus_full_of_text_ends_at_the_deadline(start_target: Callable[..., Any]) -> None:
    """pymodbus#2960: the sync client never came back."""
    client = ModbusClient(start_target("Modbus RTU", [*DEVICE, "--busy"]).port(), timeout_s=0.5)
    outcome = client.read_holding(7, 0)
    assert isinstance(outcome, ModbusUnknown)


def test_minimalmodbus_agrees_on_the_same_device(start_target: Callable[..., Any]) -> None:
    minimalmodbus = pytest.importorskip("minimalmodbus", reason="run tests/device/setup.sh")
    target = start_target("Modbus RTU", DEVICE)
    client = ModbusClient(target.port(), timeout_s=1.0)
    until = time.monotonic() + 60
    while client.write_register(7, 3, 1234) != ModbusDone(()):
        assert time.monotonic() < until, "the device does not serve"
    client.port.close()
    held = os.open(target.place, os.O_RDWR | os.O_NOCTTY)
    other = minimalmodbus.Instrument(target.place, 7)
    other.serial.baudrate = 115200
    assert other.read_register(3) == 1234
    other.serial.close()
    os.close(held)


def test_pymodbus_538_answers_that_come_after_the_deadline_are_nobody_elses(start_target: Callable[..., Any]) -> None:
    """Every answer takes 0.8 s, and the first limits are shorter."""
    client = ModbusClient(start_target("Modbus RTU", [*DEVICE, "--slow", "0.8"]).port(), timeout_s=3.0)
    until = time.monotonic() + 60
    while client.read_holding(7, 1) != ModbusDone((101,)):
        assert time.monotonic() < until, "the device does not serve"
    for address, limit_s in ((2, 0.3), (3, 0.5), (5, 60.0)):
        client.timeout_s = limit_s
        outcome = client.read_holding(7, address)
        assert outcome == ModbusDone((100 + address,)) or isinstance(outcome, ModbusUnknown), (address, outcome)
    assert outcome == ModbusDone((105,))

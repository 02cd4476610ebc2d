"""Late answers on buses: none becomes another request's. Devices on pseudo-terminals that take their time."""

from __future__ import annotations

import contextlib
import os
import pty
import subprocess
import sys
import threading
import time
import tty
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("pymodbus", reason="pymodbus is not installed: pip install edgeagent[serial]")

from pymodbus.framer.rtu import FramerRTU

from edgeagent.driver.bus import doubt
from edgeagent.driver.bus.doubt import KeptDoubt, Missing
from edgeagent.driver.bus.modbus import Expected, ModbusClient, ModbusDone, ModbusRefused, ModbusUnknown
from edgeagent.driver.bus.scpi import ScpiClient, ScpiDone, ScpiUnknown
from edgeagent.driver.line.port import PortSettings, SerialPort

pytestmark = pytest.mark.long

Device = Callable[[Callable[[bytes], list[tuple[float, bytes]]]], SerialPort]


@pytest.fixture
def device() -> Iterator[Device]:
    """Start a device that answers each portion with (delay, bytes); give the port to it."""
    theirs: list[int] = []
    threads: list[threading.Thread] = []
    ports: list[SerialPort] = []

    def started(answers: Callable[[bytes], list[tuple[float, bytes]]]) -> SerialPort:
        end, ours = pty.openpty()
        tty.setraw(ours)
        theirs.append(ours)

        def live() -> None:
            with contextlib.suppress(OSError):
                while portion := os.read(end, 256):
                    # What was said in one breath is two requests all the same.
                    for request in portion.splitlines(keepends=True) if b"\n" in portion[-1:] else [portion]:
                        for delay_s, data in answers(request):
                            time.sleep(delay_s)
                            os.write(end, data)
            os.close(end)

        threads.append(threading.Thread(target=live, daemon=True))
        threads[-1].start()
        port = SerialPort(PortSettings(os.ttyname(ours)))
        port.open()
        ports.append(port)
        return port

    yield started
    for port in ports:
        port.close()
    for end in theirs:
        os.close(end)
    for thread in threads:
        thread.join(60)


def register(request: bytes, delay_s: float) -> list[tuple[float, bytes]]:
    """Answer a read of one register with 100 and its address, after the delay."""
    body = bytes([request[0], request[1], 2]) + (100 + int.from_bytes(request[2:4], "big")).to_bytes(2, "big")
    return [(delay_s, body + FramerRTU.compute_CRC(body).to_bytes(2, "big"))]


def test_pymodbus_538_a_late_answer_is_not_the_next_registers(device: Device) -> None:
    client = ModbusClient(device(lambda request: register(request, 0.5)), timeout_s=0.3, late_s=3)
    assert isinstance(client.read_holding(7, 1), ModbusUnknown)
    for address in (2, 3, 4):
        assert client.read_holding(7, address) in (
            ModbusDone((100 + address,)),
            ModbusUnknown("no valid answer within 0.3 s; 0 other bytes came"),
        )


def test_after_the_late_answer_came_the_line_is_trusted_again(device: Device) -> None:
    delays = iter((0.5, 0.0, 0.0))
    client = ModbusClient(device(lambda request: register(request, next(delays))), timeout_s=0.3, late_s=60)
    assert isinstance(client.read_holding(7, 1), ModbusUnknown)
    assert client.read_holding(7, 2) == ModbusDone((102,))


def test_a_missing_answer_of_one_unit_does_not_hold_up_another(device: Device) -> None:
    answers = lambda request: register(request, 0) if request[0] == 8 else []  # noqa: E731  # one line a device
    client = ModbusClient(device(answers), timeout_s=0.3, late_s=60)
    assert isinstance(client.read_holding(7, 1), ModbusUnknown)
    assert client.read_holding(8, 2) == ModbusDone((102,))


def instrument(*, echo: bool = False, confirms: bytes = b"", slow_s: float = 0.0) -> Callable[[bytes], list]:  # type: ignore[type-arg]
    """An instrument: its identity, *OPC? that may take long, and commands that it may confirm."""

    def answers(heard: bytes) -> list[tuple[float, bytes]]:
        said = [(0.0, heard)] if echo else []
        if heard == b"*IDN?\n":
            return [*said, (0.0, b"ACME,1\n")]
        if heard == b"*OPC?\n":
            return [*said, (slow_s, b"1\n")]
        return [*said, (0.02, confirms)] if confirms else said

    return answers


@pytest.mark.deep
def test_pyvisa_py_376_the_answer_to_a_long_query_is_not_the_next_ones(device: Device) -> None:
    client = ScpiClient(device(instrument(slow_s=0.6)))
    assert isinstance(client.ask("*OPC?", 0.2), ScpiUnknown)
    assert client.ask("*IDN?") == ScpiDone("ACME,1")


def test_libre_vna_69_an_empty_answer_to_a_command_is_not_the_next_ones(device: Device) -> None:
    client = ScpiClient(device(instrument(confirms=b"\n")))
    assert client.tell("OUTP ON") == ScpiDone("")
    assert client.ask("*IDN?") == ScpiDone("ACME,1")
    assert client.ask("*IDN?") == ScpiDone("ACME,1")


def test_an_instrument_that_answers_every_command_says_what(device: Device) -> None:
    client = ScpiClient(device(instrument(confirms=b"OK\n")), answers_every_command=True)
    assert client.tell("OUTP ON") == ScpiDone("OK")
    assert client.ask("*IDN?") == ScpiDone("ACME,1")


@pytest.mark.parametrize("known", [True, False])
def test_pycqed_81_an_echo_is_not_an_answer(device: Device, known: bool) -> None:
    client = ScpiClient(device(instrument(echo=True)), echo=known)
    assert client.ask("*IDN?") == ScpiDone("ACME,1")
    assert client.ask("*OPC?") == ScpiDone("1")


@pytest.mark.deep
def test_an_answer_to_a_command_that_nobody_waits_for_is_not_the_next_ones(device: Device) -> None:
    """An instrument says OK to every command, and its profile does not know: before, or while, the next is asked."""
    for delay_s in (0.0, 0.1):

        def answers(heard: bytes, delay_s: float = delay_s) -> list[tuple[float, bytes]]:
            return [(0.0, b"ACME,1\n")] if b"?" in heard else [(delay_s, b"OK\n")]

        client = ScpiClient(device(answers))
        client.tell("OUTP ON")
        client.tell("VOLT 5")
        assert client.ask("*IDN?") == ScpiDone("ACME,1")
        assert client.ask("*IDN?") == ScpiDone("ACME,1")


def test_an_answer_to_a_command_that_takes_long_is_not_the_next_ones(device: Device) -> None:
    slow = {b"SWEEP\n": [(0.5, b"READY\n")], b"*OPC?\n": [(0.0, b"1\n")]}
    client = ScpiClient(device(lambda heard: slow[heard]))
    client.tell("SWEEP")
    assert client.ask("*OPC?") == ScpiDone("1")


@pytest.mark.parametrize("confirms", [b"", b"OK\n"])
@pytest.mark.deep
def test_an_echo_or_a_confirmation_is_not_the_late_answer(device: Device, confirms: bytes) -> None:
    """What comes at once ends no doubt about the answer that is missing."""
    client = ScpiClient(device(instrument(echo=True, confirms=confirms, slow_s=1.0)))
    client.tell("OUTP ON")
    assert isinstance(client.ask("*OPC?", 0.2), ScpiUnknown)
    assert client.ask("*IDN?") == ScpiDone("ACME,1")


def test_a_command_whose_echo_is_known_and_answer_is_not_leaves_the_next_one_its_own(device: Device) -> None:
    client = ScpiClient(device(instrument(echo=True, confirms=b"OK\n")), echo=True)
    client.tell("OUTP ON")
    assert client.ask("*IDN?") == ScpiDone("ACME,1")


@pytest.mark.parametrize("code", [5, 11])
def test_a_write_that_is_put_off_or_lost_behind_a_gateway_is_unknown(device: Device, code: int) -> None:
    def refused(request: bytes) -> list[tuple[float, bytes]]:
        body = bytes([request[0], request[1] | 0x80, code])
        return [(0.0, body + FramerRTU.compute_CRC(body).to_bytes(2, "big"))]

    client = ModbusClient(device(refused), timeout_s=2)
    assert isinstance(client.write_register(7, 1, 5), ModbusUnknown)
    assert isinstance(client.read_holding(7, 1), ModbusRefused)


@pytest.mark.deep
def test_late_answers_to_several_registers_go_to_none_of_them(device: Device) -> None:
    delays = iter((0.9, 0.7, 0.5, 0.3, 0.0, 0.0))
    client = ModbusClient(device(lambda request: register(request, next(delays, 0.0))), timeout_s=0.2, late_s=2)
    for address in (1, 2, 3, 4, 5, 6):
        outcome = client.read_holding(7, address)
        assert isinstance(outcome, ModbusUnknown) or outcome == ModbusDone((100 + address,))


def test_a_late_refusal_is_not_the_next_registers(device: Device) -> None:
    def answers(request: bytes) -> list[tuple[float, bytes]]:
        if request[3] != 1:
            return register(request, 0.0)
        body = bytes([request[0], request[1] | 0x80, 4])
        return [(0.5, body + FramerRTU.compute_CRC(body).to_bytes(2, "big"))]

    client = ModbusClient(device(answers), timeout_s=0.3, late_s=3)
    assert isinstance(client.read_holding(7, 1), ModbusUnknown)
    assert client.read_holding(7, 2) == ModbusDone((102,))


def test_an_echo_that_does_not_come_is_no_answer_lost(device: Device) -> None:
    client = ScpiClient(device(instrument()), echo=True, late_s=0.5)
    assert isinstance(client.ask("*IDN?", 0.2), ScpiUnknown)


def test_what_was_not_sent_says_so(device: Device) -> None:
    outcome = ScpiClient(device(instrument())).ask("two\nlines")
    assert outcome == ScpiUnknown("'two\\nlines' is not one line of text; nothing was sent", sent=False)


ASKS_AND_DIES = """
import os, sys, threading
from edgeagent.driver.bus.modbus import ModbusClient
from edgeagent.driver.line.port import PortSettings, SerialPort
port = SerialPort(PortSettings(sys.argv[1]))
port.open()
threading.Thread(target=lambda: ModbusClient(port, timeout_s=60, late_s=60).read_holding(7, 1), daemon=True).start()
sys.stdin.read(1)
os._exit(9)
"""


def test_the_doubt_outlives_a_process_that_was_killed_while_it_asked(
    device: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its answer comes to the next process, and is no answer to what that one asks."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    asked, answer, later = threading.Event(), threading.Event(), []

    def answers(request: bytes) -> list[tuple[float, bytes]]:
        asked.set()
        if not later:
            later.append(True)
            answer.wait(60)
        return register(request, 0.0)

    port = device(answers)
    port.close()
    command = [sys.executable, "-c", ASKS_AND_DIES, port.settings.identity]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        assert asked.wait(60)
        process.communicate(b"x", 60)
    port.open()
    client = ModbusClient(port, timeout_s=60, late_s=60)
    threading.Timer(0.3, answer.set).start()
    assert client.read_holding(7, 2) == ModbusDone((102,))
    assert not asked_in_doubt(tmp_path)


def asked_in_doubt(folder: Path) -> list[str]:
    """The files that still say that something is missing."""
    return [each.name for each in folder.rglob("doubt-*") if b'"request"' in each.read_bytes()]


def test_a_doubt_that_cannot_be_read_leaves_every_answer_in_doubt(
    device: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    port = device(lambda request: register(request, 0.0))
    assert ModbusClient(port, timeout_s=60).read_holding(7, 1) == ModbusDone((101,))
    kept = next(tmp_path.rglob("doubt-*"))
    kept.write_bytes(b"")
    doubtful = KeptDoubt(port.settings.identity, Expected)
    assert doubtful.read() is None
    client = ModbusClient(port, timeout_s=60, late_s=0.2)
    assert client.read_holding(7, 2) == ModbusDone((102,))


def test_the_doubt_of_another_boot_is_over(device: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    port = device(lambda request: register(request, 60.0))
    kept: KeptDoubt[Expected] = KeptDoubt(port.settings.identity, Expected)
    assert kept.read() == ()
    kept.write((Missing(Expected(7, 3, 7, 2), time.monotonic() + 60, 5),))
    assert [each.request for each in kept.read() or ()] == [Expected(7, 3, 7, 2)]
    monkeypatch.setattr(doubt, "BOOT", tmp_path / "another")
    assert kept.read() == ()

"""Registers and bits of a Modbus RTU device. Frames by pymodbus, the line, the deadline and the doubt by us.

Laws: one deadline over the whole transaction, whatever is on the bus. An answer is taken only when unit, function,
size and checksum fit the request. A write without an answer is unknown and is never sent again.
"""

from __future__ import annotations

import struct
import threading
import time
from typing import Any

from msgspec import Struct
from pymodbus.exceptions import ModbusException
from pymodbus.framer.rtu import FramerRTU
from pymodbus.pdu import DecodePDU, ModbusPDU
from pymodbus.pdu import bit_message as bits
from pymodbus.pdu import register_message as registers

from edgeagent.driver.bus.doubt import Doubt
from edgeagent.driver.line.port import LinkLost, SerialPort
from edgeagent.errors import PeerMisbehaved

CHECKSUM_BYTES = 2
QUIET_CHARACTERS = 3.5
QUIET_S_LEAST = 0.002
LATE_S = 5.0
"""How long after its request an answer may still come, unless the profile says so: gateways and sleepy meters."""

FUNCTIONS = (1, 2, 3, 4, 5, 6, 15, 16)
REASONS = {
    1: "the device does not know this function",
    2: "the device has no such address",
    3: "the device does not take this value",
    4: "the device failed while doing it",
    5: "the device needs longer and will do it later",
    6: "the device is busy",
    8: "the device's memory has a parity error",
    10: "the gateway has no path to the device",
    11: "the device behind the gateway does not answer",
}


WRITES = (5, 6, 15, 16)
UNSURE = (5, 11)
"""Reasons after which a write may be done all the same, or is being done."""


class ModbusDone(Struct, frozen=True):
    """The device answered; `values` are the registers or bits read, empty after a write."""

    values: tuple[int, ...]


class ModbusRefused(Struct, frozen=True):
    """The device said no."""

    code: int
    because: str


class ModbusUnknown(Struct, frozen=True):
    """No valid answer came in time. A write may have happened, unless nothing was `sent`."""

    because: str
    sent: bool = True


ModbusOutcome = ModbusDone | ModbusRefused | ModbusUnknown


class Expected(Struct, frozen=True):
    """What the answer to a request must look like."""

    unit: int
    function: int
    size: int
    byte_count: int | None
    begins: bytes = b""


def expected_answer(frame: bytes, count: int) -> Expected:
    """Return what a right answer to this request frame looks like."""
    unit, function = frame[0], frame[1]
    if function in (1, 2):
        return Expected(unit, function, 5 + (count + 7) // 8, (count + 7) // 8)
    if function in (3, 4):
        return Expected(unit, function, 5 + 2 * count, 2 * count)
    return Expected(unit, function, 8, None, frame[2:6])


def find_answer(heard: bytes, wanted: Expected) -> bytes | None:
    """Return the PDU of the first right answer in what was heard, or None; garbage around it does not matter."""
    for at in range(len(heard)):
        if heard[at] != wanted.unit or at + 1 >= len(heard):
            continue
        function = heard[at + 1]
        if function == wanted.function | 0x80:
            size = 5
        elif function == wanted.function:
            size = wanted.size
        else:
            continue
        frame = heard[at : at + size]
        if len(frame) == size and _is_right(frame, wanted):
            return frame[1:-CHECKSUM_BYTES]
    return None


def may_be_taken_for(missing: Expected, wanted: Expected) -> bool:
    """Return whether the answer to one request, or its refusal, could be taken for the answer to another."""
    return (missing.unit, missing.function) == (wanted.unit, wanted.function)


def _is_right(frame: bytes, wanted: Expected) -> bool:
    if FramerRTU.compute_CRC(frame[:-CHECKSUM_BYTES]) != int.from_bytes(frame[-CHECKSUM_BYTES:], "big"):
        return False
    if frame[1] & 0x80:
        return True
    if wanted.byte_count is not None:
        return frame[2] == wanted.byte_count
    return frame[2:6] == wanted.begins


def read_pdu(pdu: bytes) -> ModbusDone | ModbusRefused:
    """Return what an answer's PDU says. Raises PeerMisbehaved."""
    if len(pdu) < 2:
        raise PeerMisbehaved(f"a Modbus answer of {len(pdu)} bytes")
    if pdu[0] & 0x80:
        return ModbusRefused(pdu[1], REASONS.get(pdu[1], f"the device gave the unknown reason {pdu[1]}"))
    if pdu[0] not in FUNCTIONS:
        raise PeerMisbehaved(f"a Modbus answer with function {pdu[0]}, which we never ask for")
    try:
        decoded: Any = DecodePDU(False).decode(pdu)
    except (ModbusException, ValueError, IndexError, struct.error) as error:
        raise PeerMisbehaved(f"a Modbus answer {pdu[:16].hex(' ')} cannot be read: {error}") from None
    if decoded is None:
        raise PeerMisbehaved(f"a Modbus answer with function {pdu[0]}, which is unknown")
    if pdu[0] in (3, 4):
        return ModbusDone(tuple(decoded.registers))
    if pdu[0] in (1, 2):
        return ModbusDone(tuple(int(bit) for bit in decoded.bits))
    return ModbusDone(())


def without_echo(heard: bytes, sent: bytes) -> bytes:
    """Drop our own request, which a two-wire adapter echoes; only when it is equal to the last byte (pymodbus#2592)."""
    return heard[len(sent) :] if heard.startswith(sent) else heard


class ModbusClient:
    """Speaks with the units on one line; one transaction at a time. `local_echo`: the adapter hears itself."""

    def __init__(
        self, port: SerialPort, *, timeout_s: float = 1.0, local_echo: bool = False, late_s: float = LATE_S
    ) -> None:
        self.port = port
        self.timeout_s = timeout_s
        self.local_echo = local_echo
        self._doubt = Doubt(port, late_s, lambda heard, missing: find_answer(heard, missing) is not None, Expected)
        self._turn = threading.Lock()

    def read_holding(self, unit: int, address: int, count: int = 1) -> ModbusOutcome:
        """Read holding registers."""
        return self._ask(registers.ReadHoldingRegistersRequest(address=address, count=count, dev_id=unit), count)

    def read_input(self, unit: int, address: int, count: int = 1) -> ModbusOutcome:
        """Read input registers."""
        return self._ask(registers.ReadInputRegistersRequest(address=address, count=count, dev_id=unit), count)

    def read_coils(self, unit: int, address: int, count: int = 1) -> ModbusOutcome:
        """Read coils."""
        return _only(count, self._ask(bits.ReadCoilsRequest(address=address, count=count, dev_id=unit), count))

    def read_discrete(self, unit: int, address: int, count: int = 1) -> ModbusOutcome:
        """Read discrete inputs."""
        request = bits.ReadDiscreteInputsRequest(address=address, count=count, dev_id=unit)
        return _only(count, self._ask(request, count))

    def write_register(self, unit: int, address: int, value: int) -> ModbusOutcome:
        """Write one holding register."""
        return self._ask(registers.WriteSingleRegisterRequest(address=address, registers=[value], dev_id=unit), 1)

    def write_registers(self, unit: int, address: int, values: tuple[int, ...]) -> ModbusOutcome:
        """Write several holding registers at once."""
        request = registers.WriteMultipleRegistersRequest(address=address, registers=list(values), dev_id=unit)
        return self._ask(request, len(values))

    def write_coil(self, unit: int, address: int, value: bool) -> ModbusOutcome:
        """Write one coil."""
        return self._ask(bits.WriteSingleCoilRequest(address=address, bits=[value], dev_id=unit), 1)

    def _ask(self, request: ModbusPDU, count: int) -> ModbusOutcome:
        with self._turn:
            frame = FramerRTU(DecodePDU(False)).buildFrame(request)
            wanted = expected_answer(frame, count)
            try:
                # RTU has no sequence numbers: the answer that did not come must not become the next request's.
                self._doubt.drain(lambda missing: may_be_taken_for(missing, wanted))
                until = time.monotonic() + self.timeout_s
                if not self._quiet(until):
                    return ModbusUnknown("the bus was never quiet; nothing was sent", sent=False)
                return self._sent(frame, wanted, until)
            except LinkLost as lost:
                return ModbusUnknown(str(lost))

    def _sent(self, frame: bytes, wanted: Expected, until: float) -> ModbusOutcome:
        since = self.port.offset
        self._doubt.asked(wanted, since + len(frame) * self.local_echo)
        if self.port.write(frame, timeout_s=max(0.0, until - time.monotonic())) < len(frame):
            return ModbusUnknown("the request was not taken whole")
        outcome = self._answer(frame, wanted, since, until)
        if not isinstance(outcome, ModbusUnknown):
            self._doubt.answered()
        return outcome

    def _quiet(self, until: float) -> bool:
        """Wait for the silence that a frame needs before it."""
        silence_s = max(QUIET_S_LEAST, QUIET_CHARACTERS * 11 / self.port.settings.baud)
        while time.monotonic() < until:
            if not self.port.wait(self.port.offset, silence_s)[0]:
                return True
        return False

    def _answer(self, frame: bytes, wanted: Expected, since: int, until: float) -> ModbusOutcome:
        heard = b""
        while (left := until - time.monotonic()) > 0:
            portion, since = self.port.wait(since, left)
            heard += portion
            answer = find_answer(without_echo(heard, frame) if self.local_echo else heard, wanted)
            if answer is not None:
                return _outcome(answer, wanted)
        return ModbusUnknown(f"no valid answer within {self.timeout_s:g} s; {len(heard)} other bytes came")


def _outcome(answer: bytes, wanted: Expected) -> ModbusOutcome:
    try:
        outcome = read_pdu(answer)
    except PeerMisbehaved as error:
        return ModbusUnknown(str(error))
    if isinstance(outcome, ModbusRefused) and outcome.code in UNSURE and wanted.function in WRITES:
        return ModbusUnknown(outcome.because)
    return outcome


def _only(count: int, outcome: ModbusOutcome) -> ModbusOutcome:
    """Bits come in whole bytes; those beyond the asked ones mean nothing."""
    return ModbusDone(outcome.values[:count]) if isinstance(outcome, ModbusDone) else outcome

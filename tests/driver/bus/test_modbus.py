"""Modbus RTU frames: what is taken for an answer."""

from __future__ import annotations

import pytest

pytest.importorskip("pymodbus", reason="pymodbus is not installed: pip install edgeagent[serial]")

from pymodbus.framer.rtu import FramerRTU
from pymodbus.pdu import DecodePDU
from pymodbus.pdu import register_message as registers

from edgeagent.driver.bus.modbus import (
    ModbusDone,
    ModbusRefused,
    expected_answer,
    find_answer,
    read_pdu,
    without_echo,
)


def with_checksum(body: bytes) -> bytes:
    """Return the frame."""
    return body + FramerRTU.compute_CRC(body).to_bytes(2, "big")


READ = FramerRTU(DecodePDU(False)).buildFrame(registers.ReadHoldingRegistersRequest(address=0, count=2, dev_id=7))
READ_ANSWER = with_checksum(bytes.fromhex("07 03 04 0064 0065"))
WRITE = FramerRTU(DecodePDU(False)).buildFrame(registers.WriteSingleRegisterRequest(address=5, registers=[9], dev_id=7))
REFUSAL = with_checksum(bytes.fromhex("07 83 02"))


def test_a_right_answer_is_found_and_read() -> None:
    pdu = find_answer(READ_ANSWER, expected_answer(READ, 2))
    assert pdu is not None
    assert read_pdu(pdu) == ModbusDone((100, 101))


def test_a_refusal_is_found_and_read() -> None:
    pdu = find_answer(REFUSAL, expected_answer(READ, 2))
    assert pdu is not None
    assert read_pdu(pdu) == ModbusRefused(2, "the device has no such address")


@pytest.mark.parametrize("frame", [READ_ANSWER, REFUSAL])
def test_no_single_corrupted_byte_makes_an_accepted_frame(frame: bytes) -> None:
    for at in range(len(frame)):
        for byte in range(256):
            if byte != frame[at]:
                corrupted = frame[:at] + bytes([byte]) + frame[at + 1 :]
                assert find_answer(corrupted, expected_answer(READ, 2)) is None, (at, byte)


def test_no_single_corrupted_byte_makes_an_accepted_write() -> None:
    for at in range(len(WRITE)):
        for byte in range(256):
            if byte != WRITE[at]:
                corrupted = WRITE[:at] + bytes([byte]) + WRITE[at + 1 :]
                assert find_answer(corrupted, expected_answer(WRITE, 1)) is None, (at, byte)


def test_pymodbus_356_the_good_frame_after_a_cut_one_is_found() -> None:
    for end in range(len(READ_ANSWER)):
        assert find_answer(READ_ANSWER[:end] + READ_ANSWER, expected_answer(READ, 2)) == READ_ANSWER[1:-2]


def test_pymodbus_2960_text_on_the_bus_is_no_answer() -> None:
    assert find_answer(b" Busy " * 1000, expected_answer(READ, 2)) is None


def test_pymodbus_2592_epics_39_the_own_request_is_not_the_answer() -> None:
    assert find_answer(READ, expected_answer(READ, 2)) is None
    assert without_echo(WRITE + WRITE, WRITE) == WRITE
    assert without_echo(WRITE[:-1] + b"x" + WRITE, WRITE) == WRITE[:-1] + b"x" + WRITE


def test_an_answer_of_another_size_is_not_ours() -> None:
    assert find_answer(with_checksum(bytes.fromhex("07 03 02 0064")), expected_answer(READ, 2)) is None


def test_an_answer_of_another_unit_is_not_ours() -> None:
    assert find_answer(with_checksum(bytes.fromhex("08 03 04 0064 0065")), expected_answer(READ, 2)) is None


def test_a_write_is_answered_only_by_its_own_address_and_value() -> None:
    assert find_answer(WRITE, expected_answer(WRITE, 1)) is not None
    assert find_answer(with_checksum(bytes.fromhex("07 06 0005 0008")), expected_answer(WRITE, 1)) is None

"""Optiboot, the boot loader of an Arduino, on an emulated ATmega328P."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.device
SYNC, OK = b"\x14", b"\x10"


def ask(port: Any, command: bytes, size: int) -> bytes:
    """Send an STK500 command; return its answer."""
    since = port.offset
    port.write(command + b"\x20")
    answer = b""
    while len(answer) < size:
        portion, since = port.wait(since, 3)
        assert portion, answer
        answer += portion
    return answer


def test_optiboot_synchronises_and_tells_the_chips_signature(
    start_target: Callable[..., Any], free_port: int, device_cache: Path
) -> None:
    node, library = shutil.which("node"), device_cache / "node_modules" / "avr8js"
    hexes = sorted(device_cache.glob("arduino/**/optiboot_atmega328.hex"))
    if not (node and library.exists() and hexes):
        pytest.skip("node, avr8js or Optiboot is not here: run tests/device/setup.sh --optiboot")
    command = [node, str(Path(__file__).parent / "optiboot_device.mjs"), str(library), str(hexes[0]), str(free_port)]
    target = start_target("Optiboot", command, place=f"socket://127.0.0.1:{free_port}")
    port = target.port(wait_s=10)
    assert ask(port, b"\x30", 2) == SYNC + OK
    assert ask(port, b"\x75", 5) == SYNC + bytes.fromhex("1e950f") + OK

"""A SCPI instrument by pyvisa-sim."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from edgeagent.driver.bus.scpi import ScpiClient, ScpiDone, ScpiUnknown

pytest.importorskip("pyvisa_sim", reason="pyvisa-sim is not installed: run tests/device/setup.sh")
pytestmark = pytest.mark.device


def test_the_identity_is_read_and_a_setting_kept(start_target: Callable[..., Any]) -> None:
    target = start_target("SCPI", [sys.executable, str(Path(__file__).parent / "scpi_device.py")])
    client = ScpiClient(target.port())
    assert client.ask("?IDN") == ScpiDone("LSG Serial #1234")
    assert client.ask("!AMP 2.50") == ScpiDone("OK")
    assert client.ask("?AMP") == ScpiDone("2.50")
    assert isinstance(client.ask("two\nlines?"), ScpiUnknown)


def test_the_late_answer_of_a_slow_instrument_is_not_the_next_querys(start_target: Callable[..., Any]) -> None:
    target = start_target("SCPI", [sys.executable, str(Path(__file__).parent / "scpi_device.py"), "0.8"])
    client = ScpiClient(target.port())
    assert isinstance(client.ask("?IDN", 0.2), ScpiUnknown)
    assert client.ask("!AMP 2.50", 5) == ScpiDone("OK")
    assert isinstance(client.ask("?AMP", 0.2), ScpiUnknown)
    assert client.ask("?IDN", 5) == ScpiDone("LSG Serial #1234")

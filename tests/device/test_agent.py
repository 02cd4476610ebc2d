"""An agent drives a board over its console, as a person starts it: the whole program, a real U-Boot."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from edgeagent.driver.line.mirror import attach
from edgeagent.errors import DriverUnavailable

pytestmark = pytest.mark.device
ROOT = Path(__file__).parents[2]
VERSION = {"name": "boot_loader_version", "arguments": {}}
COUNT = {"name": "count_up", "arguments": {}}


def environment(target: Any, tmp_path: Path) -> dict[str, str]:
    """Return the environment that the agent runs in."""
    return {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "EDGEAGENT_STATE": str(tmp_path),
        "EDGEAGENT_BOARD": target.place,
        "XDG_RUNTIME_DIR": str(tmp_path),
        "NO_COLOR": "1",
    }


def ask(target: Any, tmp_path: Path, prompt: str, script: list[object]) -> subprocess.CompletedProcess[str]:
    """Run the board's agent once, with a scripted model."""
    (tmp_path / "script.json").write_text(json.dumps([s if isinstance(s, str) else json.dumps(s) for s in script]))
    command = [sys.executable, "-m", "edgeagent", "run", str(ROOT / "examples" / "board.py"), prompt]
    command += ["--model", f"script:{tmp_path / 'script.json'}"]
    return subprocess.run(
        command, capture_output=True, text=True, input="", timeout=60, env=environment(target, tmp_path), check=False
    )


def test_the_agent_reads_the_version_and_its_trace_replays(u_boot: Any, tmp_path: Path) -> None:
    done = ask(u_boot, tmp_path, "Which version?", [VERSION, "It runs 2023.01."])
    assert done.returncode == 0, done.stderr
    assert done.stdout == "It runs 2023.01.\n"
    assert '"version":"2023.01"' in done.stderr
    trace = next(tmp_path.glob("sessions/*/trace.cbor"))
    replayed = subprocess.run(
        [sys.executable, "-m", "edgeagent", "replay", str(trace)],
        capture_output=True,
        text=True,
        env=environment(u_boot, tmp_path),
        check=False,
    )
    assert replayed.returncode == 0, replayed.stderr


def test_a_command_that_writes_is_not_run_without_a_person(u_boot: Any, tmp_path: Path) -> None:
    done = ask(u_boot, tmp_path, "Count.", [COUNT, "It was not counted."])
    assert "setexpr" not in done.stderr
    console = u_boot.console("u-boot")
    outcome = console.run("printenv visits")
    console.port.close()
    assert "not defined" in outcome.output


def read_until(descriptor: int, words: bytes) -> bytes:
    """Return what is read up to these words, or to the end."""
    read = b""
    while words not in read and (portion := os.read(descriptor, 4_096)):
        read += portion
    return read


def test_a_person_looks_over_the_agents_shoulder(u_boot: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the agent owns the line, `edgeagent console` attaches to it."""
    from edgeagent.driver.device.device import Device

    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    device = Device(u_boot.place, str(ROOT / "examples" / "board.toml"))
    assert device.tools[0]()["version"] == "2023.01"
    viewer = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "from edgeagent.doors.cli.console import console; console()",
            u_boot.place,
            "--for",
            "60",
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(u_boot, tmp_path),
    )
    assert viewer.stdout and viewer.stderr
    said = read_until(viewer.stderr.fileno(), b"attached to the agent")
    assert device.tools[1](name="bootdelay") == "bootdelay=2"
    shown = read_until(viewer.stdout.fileno(), b"bootdelay=2")
    device.close()
    viewer.communicate(timeout=60)  # Its line has ended, and so does the viewer.
    assert b"attached to the agent" in said
    assert b"bootdelay=2" in shown
    with pytest.raises(DriverUnavailable):
        attach(u_boot.place)


def test_a_board_that_restarts_between_two_calls_is_found_again(u_boot: Any) -> None:
    from edgeagent.driver.device.device import Device

    device = Device(u_boot.place, str(ROOT / "examples" / "board.toml"), mirrored=False)
    assert device.tools[1](name="bootdelay") == "bootdelay=2"
    device.console().run("reset", 3)
    until = time.monotonic() + 60
    while device.console().enter(60) != "boot_loader":
        assert time.monotonic() < until
    assert device.tools[0]()["version"] == "2023.01"
    device.close()


def test_the_kind_of_console_is_identified(u_boot: Any, micropython: Any, zephyr_shell: Any) -> None:
    from edgeagent.doors.cli.device import _identified
    from edgeagent.driver.line.port import PortSettings, SerialPort

    found: dict[str, tuple[str, ...]] = {}
    for target in (u_boot, micropython, zephyr_shell):
        port = SerialPort(PortSettings(target.place))
        port.open()
        found[target.name] = _identified(port, 4)[:2]
        port.close()
    assert found == {
        "U-Boot": ("u-boot", "boot_loader"),
        "MicroPython": ("micropython", "repl"),
        "Zephyr shell": ("zephyr", "shell"),
    }

"""`edgeagent device` and `edgeagent console` as a person uses them, on pseudo-terminals."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import subprocess
import sys
import threading
import tty
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

pytest.importorskip("serial", reason="pyserial is not installed: pip install edgeagent[serial]")

from edgeagent.doors.cli.console import console
from edgeagent.doors.cli.device import device
from edgeagent.errors import ConfigError, ExitCode

pytestmark = pytest.mark.long  # Seconds of CPU: `make test` runs it, `make quick` does not.

ROOT = Path(__file__).parents[3]
PROFILE = """
name = "pump"
extends = "generic"

[[commands]]
name = "read_pressure"
help = "Read the pressure."
command = "show pressure {place}"
effect = "read"
idempotent = true
answer = { kind = "number" }
[commands.arguments.place]
type = "choice"
choices = ["inlet", "outlet"]

[[commands]]
name = "stop_pump"
help = "Stop the pump."
command = "stop"
effect = "write"
idempotent = true
"""


def run(command: Any, *arguments: str) -> Result:
    """Run a command in this process."""
    return CliRunner().invoke(command, arguments, standalone_mode=False)


@pytest.fixture
def pump() -> Iterator[str]:
    """A device with a prompt that answers each line; gives its path."""
    end, ours = pty.openpty()
    tty.setraw(ours)

    def live() -> None:
        line = b""
        with contextlib.suppress(OSError):
            while portion := os.read(end, 256):
                for byte in portion:
                    if byte == 0x15:
                        line = b""
                    elif byte == 0x0D:
                        answer = b"2.25 bar\r\n" if line.startswith(b"show pressure") else b""
                        os.write(end, b"\r\n" + answer + b"pump> ")
                        line = b""
                    else:
                        line += bytes([byte])
                        os.write(end, bytes([byte]))

    threading.Thread(target=live, daemon=True).start()
    yield os.ttyname(ours)
    os.close(ours)
    with contextlib.suppress(OSError):
        os.close(end)


@pytest.fixture
def profile(tmp_path: Path) -> str:
    """The pump's profile."""
    path = tmp_path / "pump.toml"
    path.write_text(PROFILE)
    return str(path)


def test_list_shows_ports_or_says_that_none_is_here() -> None:
    result = run(device, "list")
    assert result.return_value == ExitCode.DONE


def test_a_profile_check_shows_keys_as_bytes_and_commands_as_tools(profile: str) -> None:
    result = run(device, "profile", "check", profile)
    assert "key interrupt     03 (1 byte)" in result.output
    assert "tool read_pressure(place)  read, runs" in result.output
    assert "tool stop_pump()  write, asks a person" in result.output


def test_a_profile_check_as_json_holds_the_schemas(profile: str) -> None:
    checked = json.loads(run(device, "profile", "check", profile, "--json").output)
    assert checked["tools"][0]["parameters"]["properties"]["place"]["enum"] == ["inlet", "outlet"]


def test_a_wrong_profile_is_a_usage_error_that_names_the_key(tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text(PROFILE.replace('"read"', '"harmless"', 1))
    error = run(device, "profile", "check", str(tmp_path / "bad.toml")).exception
    assert isinstance(error, ConfigError)
    assert error.exit_code == ExitCode.USAGE
    assert "effect" in str(error)


def test_the_shipped_profiles_are_listed() -> None:
    assert "micropython" in run(device, "profile", "list").output


def test_a_command_is_called_as_the_agent_would(pump: str, profile: str) -> None:
    result = run(device, "call", pump, profile, "read_pressure", "place=inlet")
    assert result.output == "2.25\n"


def test_a_command_that_writes_wants_a_yes(pump: str, profile: str) -> None:
    assert "--yes" in str(run(device, "call", pump, profile, "stop_pump").exception)
    assert run(device, "call", pump, profile, "stop_pump", "--yes").return_value == ExitCode.DONE


def test_a_wrong_argument_is_refused_before_anything_is_sent(pump: str, profile: str) -> None:
    assert run(device, "call", pump, profile, "read_pressure", "place=cellar").exception is not None


def test_an_unknown_console_is_identified_as_generic(pump: str) -> None:
    result = run(device, "identify", pump, "--timeout", "2", "--json")
    assert json.loads(result.output)["profile"] == "generic"


def test_a_console_as_json_prints_what_happens_on_the_line(pump: str) -> None:
    result = run(console, pump, "--json", "--for", "0.3")
    assert json.loads(result.output.splitlines()[0])["note"] == f"opened {pump}"


def test_a_person_types_at_the_console_through_a_pipe(pump: str) -> None:
    code = "from edgeagent.doors.cli.console import console; console()"
    command = [sys.executable, "-c", code, pump, "--for", "1.5"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, input=b"show pressure inlet\r", capture_output=True, timeout=60, env=environment, check=False
    )
    assert b"2.25 bar" in done.stdout, done.stderr
    assert done.returncode == 0


def test_a_mirror_that_is_none_is_refused(pump: str) -> None:
    assert "give pty" in str(run(console, pump, "--mirror", "udp").exception)


@pytest.fixture
def deaf() -> Iterator[str]:
    """A device that never reads; gives its path."""
    end, ours = pty.openpty()
    tty.setraw(ours)
    yield os.ttyname(ours)
    os.close(ours)
    os.close(end)


@pytest.mark.parametrize(("leave", "options"), [(b"\x1c", []), (b"", ["--for", "1"])])
@pytest.mark.deep
def test_tio_178_a_device_that_does_not_read_can_be_left(deaf: str, leave: bytes, options: list[str]) -> None:
    code = "from edgeagent.doors.cli.console import console; console()"
    command = [sys.executable, "-c", code, deaf, *options]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    pasted = b"x" * 300_000 + leave
    done = subprocess.run(command, input=pasted, capture_output=True, timeout=60, env=environment, check=False)
    assert done.returncode == 0, done.stderr


def test_a_person_interrupts_what_runs(pump: str) -> None:
    result = run(device, "interrupt", pump)
    assert "state" in result.output


def test_a_person_answers_a_question(pump: str) -> None:
    result = run(device, "answer", pump, "show pressure inlet")
    assert "2.25 bar" in result.output


def test_an_answer_goes_through_the_agent_that_owns_the_line(pump: str, profile: str) -> None:
    from edgeagent.driver.device.device import Device

    owner = Device(pump, profile)
    try:
        owner.console()
        assert "2.25 bar" in run(device, "answer", pump, "show pressure inlet").output
        assert not owner.console().person_has_it
    finally:
        owner.close()


def test_an_answer_to_a_password_prompt_is_refused() -> None:
    end, ours = pty.openpty()
    tty.setraw(ours)
    try:
        os.write(end, b"\r\nPassword: ")
        assert "only through a log-in" in str(run(device, "answer", os.ttyname(ours), "s3cret").exception)
    finally:
        os.close(ours)
        os.close(end)


def test_a_profile_is_learnt_from_a_person(pump: str) -> None:
    code = "from edgeagent.doors.cli.device import device; device()"
    command = [sys.executable, "-c", code, "learn", pump, "--name", "pump", "--for", "2"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    typed = b"\rshow pressure inlet\r"
    done = subprocess.run(command, input=typed, capture_output=True, timeout=60, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert b'name = "pump"' in done.stdout

"""U-Boot in QEMU: a boot loader that nobody wrote for us."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from edgeagent.driver.device.device_tools import DeviceTools
from edgeagent.driver.line.console import Console
from edgeagent.driver.line.outcome import UNKNOWN, DeviceReset, Done, Failed, NotSent, TimedOut
from edgeagent.driver.line.profile import load_profile
from edgeagent.driver.unknown import CommandFailed, EffectUnknown
from tests.device.conftest import until

pytestmark = pytest.mark.device
HERE = Path(__file__).parent
COUNT = "setexpr n ${n} + 1"


@pytest.fixture(scope="module")
def console(u_boot: object) -> Iterator[Console]:
    """A console at the prompt, with the counter at 0."""
    console = u_boot.console("u-boot")  # type: ignore[attr-defined]  # the fixture's Target
    assert console.run("setexpr n 0") == Done("")
    yield console
    console.port.close()


def counted(console: Console) -> int:
    """Read the counter."""
    until = time.monotonic() + 60
    while not isinstance(outcome := console.run("printenv n"), Done):
        assert time.monotonic() < until, outcome
    return int(outcome.output.removeprefix("n="), 16)


def timed_out(console: Console, command: str) -> TimedOut:
    """Send a command that outlasts its time; on a busy machine the time may be over before it is sent."""
    for timeout_s in (1.0, 2.0, 4.0, 8.0):
        outcome = console.run(command, timeout_s)
        if not isinstance(outcome, NotSent):
            assert isinstance(outcome, TimedOut), outcome
            return outcome
    raise AssertionError("it was never sent")


def test_autoboot_is_held_and_the_prompt_is_confirmed(console: Console) -> None:
    assert console.confirm() == "boot_loader"


def test_version_and_environment_are_read(console: Console) -> None:
    version = console.run("version")
    assert isinstance(version, Done)
    assert version.output.startswith("U-Boot 2023.01")
    assert console.run("printenv bootdelay") == Done("bootdelay=2")


def test_a_failing_command_carries_its_status(console: Console) -> None:
    assert console.run("nosuch") == Failed("Unknown command 'nosuch' - try 'help'", 1)


def test_saveenv_is_reported_as_failed(console: Console) -> None:
    outcome = console.run("saveenv", 20)
    assert isinstance(outcome, Failed)
    assert outcome.status == 1
    assert "Failed (1)" in outcome.output


def test_a_line_beyond_the_devices_buffer_is_refused(console: Console) -> None:
    assert isinstance(console.run("echo " + "x" * 300), NotSent)


def test_a_long_line_survives_its_echo(console: Console) -> None:
    assert console.run("echo " + "x" * 150) == Done("x" * 150)


def test_garbage_on_the_line_is_cleared_before_a_command(console: Console) -> None:
    console.port.write(b"garbage that nobody entered")
    assert console.run("echo clean") == Done("clean")


def test_a_half_typed_command_is_never_completed(console: Console) -> None:
    before = counted(console)
    console.port.write(COUNT.encode())
    fresh = Console(console.port, console.profile)
    assert fresh.enter(60) == "boot_loader"
    assert counted(fresh) == before


def test_finding_the_prompt_never_repeats_the_last_command(console: Console) -> None:
    """Enter on an empty line repeats the last command in U-Boot; md shows it by going on to the next address."""
    began = console.port.offset
    console.port.write(b"md.b 40000000 1\r")
    until(lambda: console.port.heard(began).rstrip().endswith(b"=>"), "no prompt came")
    since = console.port.offset
    fresh = Console(console.port, console.profile)
    assert fresh.enter(60) == "boot_loader"
    assert b"40000001:" not in console.port.heard(since)


def test_every_call_counts_exactly_once(console: Console) -> None:
    before = counted(console)
    assert [console.run(COUNT) for _ in range(20)] == [Done("")] * 20
    assert counted(console) == before + 20


def test_time_outs_at_every_point_run_a_command_at_most_once(console: Console) -> None:
    seen: dict[str, int] = {}
    for timeout_ms in (*range(0, 120, 4), 10_000):
        before = counted(console)
        outcome = console.run(COUNT, timeout_ms / 1000)
        ran = counted(console) - before
        seen[type(outcome).__name__] = seen.get(type(outcome).__name__, 0) + 1
        if isinstance(outcome, Done):
            assert ran == 1, (timeout_ms, outcome)
        elif isinstance(outcome, NotSent):
            assert ran == 0, (timeout_ms, outcome)
        else:
            assert isinstance(outcome, TimedOut)
            assert ran in (0, 1), (timeout_ms, outcome)
    assert seen.get("NotSent")
    assert seen.get("Done")


def test_a_command_that_still_runs_gets_nothing_typed_into_it(console: Console) -> None:
    timed_out(console, "sleep 9; setexpr n ${n} + 1")
    said = console.run("echo into it", 0.5)
    assert isinstance(said, NotSent)
    assert "sleep 9" in said.because
    assert console.interrupt(20) == "boot_loader"
    assert console.run("echo free again", 20) == Done("free again")


def test_interrupting_frees_the_console(console: Console) -> None:
    timed_out(console, "sleep 60")
    assert console.interrupt(20) == "boot_loader"
    assert console.run("echo back", 20) == Done("back")


def test_a_person_who_breaks_in_stops_the_agent(console: Console) -> None:
    console.break_in()
    refused = console.run("echo agent")
    began = console.port.offset
    console.person_types(b"echo person\r")
    until(lambda: b"person\r\nperson\r\n" in console.port.heard(began), "nothing is echoed")
    console.hand_back()
    assert isinstance(refused, NotSent)
    assert console.run("echo agent") == Done("agent")
    assert {"agent", "person", "device"} <= {moment.who for moment in console.port.timeline()}


def test_typed_tools_of_a_profile_read_and_refuse(console: Console, tmp_path: Path) -> None:
    profile = load_profile(str(HERE / "u-boot-tools.toml"))
    device = DeviceTools(profile, lambda: console)
    tools = {tool.name: tool for tool in device.tools}
    assert tools["boot_loader_version"]() == {"version": "2023.01", "built": "Jun 22 2026"}
    assert tools["read_variable"](name="bootdelay") == "bootdelay=2"
    assert tools["set_variable"](name="greeting", value="hello from the agent") == ""
    assert tools["read_variable"](name="greeting") == "greeting=hello from the agent"
    with pytest.raises(CommandFailed, match="not defined"):
        tools["read_variable"](name="nowhere")
    assert (tools["read_variable"].confirm, tools["set_variable"].confirm) == (False, True)


def test_a_call_with_an_unknown_effect_is_not_made_again(console: Console) -> None:
    profile = load_profile(str(HERE / "u-boot-tools.toml"))
    device = DeviceTools(profile, lambda: console)
    wait = next(tool for tool in device.tools if tool.name == "wait_and_count")
    with pytest.raises(EffectUnknown, match="unknown"):
        wait(seconds=60)
    assert console.interrupt(20) == "boot_loader"
    before = counted(console)
    with pytest.raises(EffectUnknown, match="person"):
        wait(seconds=60)
    assert counted(console) == before
    assert len(device.looked()) == 1


def test_a_reset_in_a_command_is_noticed_and_the_prompt_found_again(console: Console) -> None:
    outcome = console.run("reset", 10)
    assert isinstance(outcome, DeviceReset)
    assert isinstance(outcome, UNKNOWN)
    assert console.enter(60) == "boot_loader"
    assert isinstance(console.run("printenv n"), Failed)


def test_kills_at_every_point_run_a_command_at_most_once(u_boot: object, console: Console) -> None:
    assert console.run("setexpr n 0") == Done("")
    console.port.close()
    points = [(how, number) for number in range(1, 7) for how in ("before", "amid", "after")]
    command = [sys.executable, str(HERE / "u_boot_kills.py"), u_boot.place, json.dumps(points)]  # type: ignore[attr-defined]
    environment = {**os.environ, "PYTHONPATH": str(HERE.parent.parent)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment, check=False)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(rows) == len(points), done.stderr[-2000:]
    for row in rows:
        assert row["ran"] == 1 if row["said"] == "Done" else row["ran"] in (0, 1), row
    assert {row["ran"] for row in rows} == {0, 1}
    assert any(row["said"] == "Done" for row in rows), "some point lies beyond the last write"

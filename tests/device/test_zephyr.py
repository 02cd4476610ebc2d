"""Zephyr 4.4: its shell, and its SMP server natively and on an emulated Cortex-M0 with MCUboot."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from edgeagent.driver.bus import smp
from edgeagent.driver.bus.smp_client import SmpClient, SmpDone, SmpNotSent, SmpRefused, SmpUnknown
from edgeagent.driver.line.console import Console
from edgeagent.driver.line.outcome import Done, Failed
from tests.device.conftest import until

pytestmark = pytest.mark.device


@pytest.fixture(scope="module")
def console(zephyr_shell: Any) -> Iterator[Console]:
    """A console at the shell's prompt."""
    console = zephyr_shell.console("zephyr")
    assert console.state == "shell"
    yield console


@pytest.fixture
def client(start_target: Callable[..., Any], smp_fixture: Callable[[str], Any]) -> SmpClient:
    """A client that knows how much the server takes."""
    target = start_target("Zephyr SMP", [str(smp_fixture("native_sim_serial.exe")), "-flash_in_ram"])
    client = SmpClient(target.port())
    assert isinstance(client.greet(60.0), SmpDone)
    return client


def test_the_shell_answers_between_its_coloured_prompts(console: Console) -> None:
    assert console.run("kernel version") == Done("Zephyr version 4.4.0")


def test_a_failing_shell_command_carries_its_return_value(console: Console) -> None:
    assert console.run("nosuch") == Failed("nosuch: command not found", -8)


def test_columns_made_by_cursor_moves_are_kept(console: Console) -> None:
    outcome = console.run("help")
    assert isinstance(outcome, Done)
    assert "\n             Usage:\n" in outcome.output


def test_a_hundred_echoes_of_every_size_come_back(client: SmpClient) -> None:
    most = client.buffer_bytes - len(smp.encode(smp.Message(smp.WRITE, 0, 0, 0, {"d": "x" * 300}))) + 300
    for number in range(100):
        text = chr(97 + number % 26) * (1 + number * (most - 1) // 99)
        assert client.echo(text) == SmpDone({"r": text}), len(text)
    assert isinstance(client.echo("x" * (most + 1)), SmpNotSent)


def test_zephyr_34891_a_burst_that_the_device_loses_is_unknown_and_not_sent_again(client: SmpClient) -> None:
    """Several fragments arrive before one poll."""
    client.fragment_ms = 0
    before = len(client.port.timeline())
    outcomes = [client.echo("x" * 300, 0.3) for _ in range(5)]
    sent = [m for m in client.port.timeline()[before:] if m.who == "agent" and m.data.startswith(smp.FIRST)]
    assert len(sent) == 5
    assert all(outcome == SmpDone({"r": "x" * 300}) or isinstance(outcome, SmpUnknown) for outcome in outcomes)
    client.fragment_ms = 30
    until(lambda: client.echo("after that") == SmpDone({"r": "after that"}), "it does not answer any more")


def test_a_late_answer_is_not_taken_for_another_requests(
    start_target: Callable[..., Any], smp_fixture: Callable[[str], Any]
) -> None:
    """The server stands still for the first request, and answers it while the second waits."""
    target = start_target("Zephyr SMP", [str(smp_fixture("native_sim_serial.exe")), "-flash_in_ram"])
    client = SmpClient(target.port())
    assert isinstance(client.greet(60.0), SmpDone)
    os.kill(target.process.pid, signal.SIGSTOP)
    assert isinstance(client.echo("first", 0.2), SmpUnknown)
    os.kill(target.process.pid, signal.SIGCONT)
    assert client.echo("second", 60.0) == SmpDone({"r": "second"})


def test_garbage_before_a_request_does_not_hinder(client: SmpClient) -> None:
    for line in (b"\x06\x09garbage\n", b"\x04\x14????\n", b"console text\n"):
        client.port.write(line)
        time.sleep(0.05)  # Apart, as they would come; the answer waits for nothing.
    assert client.echo("still here", 60.0) == SmpDone({"r": "still here"})


def test_the_standard_groups_answer(client: SmpClient) -> None:
    assert client.shell(("kernel", "version")) == SmpDone({"o": "\r\nZephyr version 4.4.0\r\n", "ret": 0})
    groups = client.statistics_groups()
    assert isinstance(groups, SmpDone)
    assert "smp_svr_stats" in groups.body["stat_list"]
    counters = client.statistics("smp_svr_stats")
    assert isinstance(counters, SmpDone)
    assert counters.body["fields"]["ticks"] >= 0
    assert isinstance(client.read_setting("no/such"), SmpRefused)
    assert isinstance(client.request(smp.READ, 99, 0, {}, 2), SmpRefused)


def test_mcuboot_on_a_cortex_m0_tells_its_image(
    start_target: Callable[..., Any], smp_fixture: Callable[[str], Any], qemu: str, free_port: int
) -> None:
    image = smp_fixture("qemu_cortex_m0_serial.merged.hex")
    chardev = f"socket,id=con,host=127.0.0.1,port={free_port},server=on,wait=on"
    command = [qemu, "-cpu", "cortex-m0", "-machine", "microbit", "-nographic", "-monitor", "none"]
    command += ["-chardev", chardev, "-serial", "chardev:con", "-device", f"loader,file={image}"]
    target = start_target("Zephyr on Cortex-M0", command, place=f"socket://127.0.0.1:{free_port}")
    client = SmpClient(target.port(wait_s=60))
    wait_for_boot(client, 0)
    until(lambda: client.echo("up") == SmpDone({"r": "up"}), "it does not answer")
    images = client.images(60.0)
    assert isinstance(images, SmpDone)
    assert images.body["images"][0]["slot"] == 0
    since = client.port.offset
    assert isinstance(client.reset(60.0), SmpDone)
    wait_for_boot(client, since)
    until(lambda: client.echo("back") == SmpDone({"r": "back"}), "it does not answer")


def wait_for_boot(client: SmpClient, since: int) -> None:
    """Wait for the last line of its start: what is sent before is lost, and its server with it."""
    until(lambda: b"build time" in client.port.heard(since), "it did not start")
    client.port.wait(client.port.offset, 0.3)

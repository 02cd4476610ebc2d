"""Linux 6.1 for ARM with busybox ash: boot messages, a prompt with a cursor query, a kernel that talks in between."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from edgeagent.driver.line.console import Console
from edgeagent.driver.line.outcome import Done, Failed

pytestmark = [pytest.mark.device, pytest.mark.slow]


@pytest.fixture(scope="module")
def console(start_module_target: Callable[..., Any], device_cache: Path, qemu_module: str) -> Iterator[Console]:
    """A console at the shell of the initial RAM disk."""
    images = device_cache / "linux-armhf" / "usr/lib/debian-installer/images/12/armhf/text/debian-installer/armhf"
    if not (images / "vmlinuz").exists():
        pytest.skip("Linux for armhf is not here: run tests/device/setup.sh --linux")
    command = [
        qemu_module,
        "-M",
        "virt",
        "-m",
        "512",
        "-nographic",
        "-nic",
        "none",
        "-monitor",
        "none",
        "-serial",
        "pty",
    ]
    command += ["-kernel", str(images / "vmlinuz"), "-initrd", str(images / "initrd.gz")]
    command += ["-append", "console=ttyAMA0 rdinit=/bin/sh"]
    target = start_module_target("Linux armhf", command)
    console = target.console("linux", enter_s=90)
    assert console.state == "shell"
    for line in ("mount -t devtmpfs none /dev", "mount -t proc none /proc"):
        assert isinstance(console.run(line, 20), Done)
    yield console


def test_the_kernel_is_named(console: Console) -> None:
    outcome = console.run("uname -sr")
    assert isinstance(outcome, Done)
    assert outcome.output.startswith("Linux 6.1.0")


def test_kernel_noise_in_the_middle_of_an_answer_is_kept_aside(console: Console) -> None:
    outcome = console.run("echo -n before; echo '<1>NOISE' >/dev/kmsg; echo -after", 20)
    assert isinstance(outcome, Done)
    assert outcome.output == "before-after"
    assert len(outcome.noise) == 1
    assert outcome.noise[0].endswith("] NOISE")


def test_noise_after_the_end_does_not_hide_the_prompt(console: Console) -> None:
    assert isinstance(console.run("(sleep 1; echo '<1>LATE' >/dev/kmsg) & true", 20), Done)
    assert console.run("sleep 2; echo still here", 20).output == "still here"  # type: ignore[union-attr]  # Done


def test_labgrid_1749_the_console_level_is_set_and_read_back(console: Console) -> None:
    assert console.run("dmesg -n 1", 20) == Done("")
    assert console.run("cut -c1 /proc/sys/kernel/printk", 20) == Done("1")


def test_a_line_that_the_shell_refuses_is_a_failure(console: Console) -> None:
    outcome = console.run("true &; false", 20)
    assert isinstance(outcome, Failed)
    assert "syntax error" in outcome.output


def test_a_long_command_and_a_failing_one(console: Console) -> None:
    assert console.run("echo " + "x" * 150, 20) == Done("x" * 150)
    assert console.run("false", 20) == Failed("", 1)

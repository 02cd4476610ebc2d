"""The real things that the device tests speak with: each started here, each ended by its own process id."""

from __future__ import annotations

import contextlib
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from edgeagent.driver.line.console import Console
from edgeagent.driver.line.port import PortSettings, SerialPort
from edgeagent.driver.line.profile import load_profile

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "edgeagent" / "device-targets"
U_BOOT = Path("/usr/lib/u-boot/qemu_arm/u-boot.bin")
MICROBIT = Path("/usr/share/firmware-microbit-micropython/firmware.hex")
SETUP = "run tests/device/setup.sh"

TARGETS_SEEN: set[str] = set()
CHECKS = {"passed": 0, "failed": 0}


@dataclass
class Target:
    """A running device: where its line is, and how to end it."""

    name: str
    process: subprocess.Popen[bytes]
    place: str
    printed: bytes = b""
    ports: list[SerialPort] = field(default_factory=list)

    def port(self, wait_s: float = 0) -> SerialPort:
        """Open its line, which may take a while to be there."""
        port = SerialPort(PortSettings(self.place))
        port.reopen(wait_s)
        self.ports.append(port)
        return port

    def console(self, profile: str, *, enter_s: float = 60.0) -> Console:
        """Open its line and get to a prompt."""
        console = Console(self.port(), load_profile(profile))
        console.enter(enter_s)
        return console

    def end(self) -> None:
        """Close what was opened and end the process, by its own id."""
        for port in self.ports:
            port.close()
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()
        if self.process.stdout:
            self.process.stdout.close()


def start(
    name: str, command: list[str], *, where: str = r"(/dev/pts/\d+)", place: str = "", wait_s: float = 60
) -> Target:
    """Start a program and find out where its line is: from what it prints, or `place` when that is known."""
    TARGETS_SEEN.add(name)
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert process.stdout is not None
    printed, until = b"", time.monotonic() + wait_s
    while not place and time.monotonic() < until:
        if not select.select([process.stdout], [], [], 0.1)[0]:
            continue
        portion = os.read(process.stdout.fileno(), 4096)
        if not portion:
            break
        printed += portion
        found = re.search(where.encode(), printed)
        place = found.group(1).decode() if found else ""
    if not place:
        process.kill()
        process.wait()
        process.stdout.close()
        pytest.fail(f"{name} did not say where its line is: {printed[-300:]!r}")
    return Target(name, process, place, printed)


def until(condition: Callable[[], object], what: str, within_s: float = 60.0) -> None:
    """Wait until this is so; how long that takes is the machine's matter."""
    limit = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < limit, what
        time.sleep(0.02)


def need(path: Path, what: str) -> None:
    """Skip, and say how to get it, when a thing is not installed."""
    if not path.exists():
        pytest.skip(f"{what} is not here ({path}): {SETUP}")


def emulator() -> str:
    """Return QEMU's path, or skip."""
    found = shutil.which("qemu-system-arm")
    if not found:
        pytest.skip(f"qemu-system-arm is not installed: {SETUP}")
    return found


def loopback_port() -> int:
    """Return a TCP port of the loopback that is free now."""
    with socket.socket() as asked:
        asked.bind(("127.0.0.1", 0))
        return int(asked.getsockname()[1])


def zephyr_program(kind: str) -> Path:
    """Return the prebuilt Zephyr program of this kind."""
    found = sorted(CACHE.glob(f"smpclient-*/tests/fixtures/smp-server/zephyr_4.4.0_*_{kind}"))
    if not found:
        pytest.skip(f"Zephyr's {kind} is not here ({CACHE}): {SETUP}")
    return found[0]


@pytest.fixture
def qemu() -> str:
    """QEMU's path."""
    return emulator()


@pytest.fixture(scope="module")
def qemu_module() -> str:
    """QEMU's path, for a whole module."""
    return emulator()


@pytest.fixture(scope="session")
def device_cache() -> Path:
    """Where tests/device/setup.sh puts things."""
    return CACHE


@pytest.fixture
def free_port() -> int:
    """A TCP port of the loopback."""
    return loopback_port()


@pytest.fixture
def smp_fixture() -> Callable[[str], Path]:
    """Find a prebuilt Zephyr program by its kind."""
    return zephyr_program


@pytest.fixture(scope="module")
def u_boot() -> Iterator[Target]:
    """U-Boot 2023.01 on an emulated ARM board."""
    need(U_BOOT, "U-Boot for QEMU")
    command = f"{emulator()} -M virt -nographic -nic none -monitor none -serial pty -bios {U_BOOT}"
    target = start("U-Boot", command.split())
    yield target
    target.end()


@pytest.fixture(scope="module")
def micropython() -> Iterator[Target]:
    """MicroPython on an emulated micro:bit."""
    need(MICROBIT, "MicroPython for the micro:bit")
    loader = f"loader,file={MICROBIT}"
    command = f"{emulator()} -M microbit -nographic -monitor none -serial pty -device {loader}"
    target = start("MicroPython", command.split())
    yield target
    target.end()


@pytest.fixture(scope="module")
def zephyr_shell() -> Iterator[Target]:
    """The Zephyr 4.4 shell, built for this machine."""
    target = start("Zephyr shell", [str(zephyr_program("native_sim_shell.exe"))])
    yield target
    target.end()


def starting() -> Iterator[Callable[..., Target]]:
    """Give a way to start targets; end them afterwards."""
    begun: list[Target] = []

    def begin(*args: object, **kwargs: object) -> Target:
        begun.append(start(*args, **kwargs))  # type: ignore[arg-type]  # handed through
        return begun[-1]

    yield begin
    for target in begun:
        target.end()


start_target = pytest.fixture(starting)
start_module_target = pytest.fixture(scope="module")(starting)


def pytest_configure(config: pytest.Config) -> None:
    """Name our marker."""
    config.addinivalue_line("markers", "device: speaks with a real target that it starts (`make device-test`)")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave these tests to `-m device`: they start emulators and take a minute."""
    if "device" in str(config.getoption("-m")):
        return
    ours = [item for item in items if item.get_closest_marker("device")]
    if ours:
        config.hook.pytest_deselected(items=ours)
        items[:] = [item for item in items if item not in ours]


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Count the checks of this folder for the last line."""
    if "tests/device/" in report.nodeid and (report.when == "call" or report.outcome == "failed"):
        CHECKS[report.outcome if report.outcome in CHECKS else "failed"] += report.outcome != "skipped"


@pytest.hookimpl(trylast=True)
def pytest_unconfigure() -> None:
    """Say what was spoken with and how it went: the very last line."""
    if TARGETS_SEEN:
        names = ", ".join(sorted(TARGETS_SEEN))
        checks = CHECKS["passed"] + CHECKS["failed"]
        print(f"targets {len(TARGETS_SEEN)} ({names}), checks {checks}, failures {CHECKS['failed']}", flush=True)

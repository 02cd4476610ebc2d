"""Kill a client of U-Boot at every point of one transaction, and say what the device counted. Run by test_u_boot.py.

    python u_boot_kills.py PTY POINTS     prints one JSON line for each point

A point is "before", "amid" or "after" the n-th write; the client really dies there, by SIGKILL to itself.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Any

from edgeagent.driver.line.console import Console
from edgeagent.driver.line.outcome import Done
from edgeagent.driver.line.port import PortSettings, SerialPort
from edgeagent.driver.line.profile import load_profile

COUNT = "setexpr n ${n} + 1"


class DyingPort(SerialPort):
    """A real port whose process ends at the n-th write."""

    point: tuple[str, int] = ("never", 0)
    writes = 0

    def write(self, data: bytes, **options: Any) -> int:
        """Write, or die before, amid or after it."""
        self.writes += 1
        how, number = self.point
        if self.writes == number and how == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.writes == number and how == "amid":
            super().write(data[: max(1, len(data) // 2)], **options)
            os.kill(os.getpid(), signal.SIGKILL)
        accepted = super().write(data, **options)
        if self.writes == number and how == "after":
            os.kill(os.getpid(), signal.SIGKILL)
        return accepted


def in_a_child(work: Any) -> str:
    """Run `work` in a forked child; return what it wrote, as far as it lived."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        os.write(writing, str(work()).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as said:
        text = said.read().decode()
    os.waitpid(child, 0)
    return text


def count_once(place: str, point: tuple[str, int]) -> str:
    """Open the line, count once, and die at the point."""
    port = DyingPort(PortSettings(place))
    port.open()
    console = Console(port, load_profile("u-boot"))
    console.enter(5)
    port.point, port.writes = point, 0
    return type(console.run(COUNT, 5)).__name__


def counted(place: str) -> str:
    """Read the counter with a fresh client, as after a restart."""
    port = SerialPort(PortSettings(place))
    port.open()
    console = Console(port, load_profile("u-boot"))
    console.enter(10)
    outcome = console.run("printenv n", 5)
    return outcome.output.removeprefix("n=") if isinstance(outcome, Done) else f"unread: {outcome}"


def main() -> None:
    """Try every point."""
    place, points = sys.argv[1], json.loads(sys.argv[2])
    # QEMU looks only once a second whether a closed pty was opened again; a real UART has no such pause.
    held = os.open(place, os.O_RDWR | os.O_NOCTTY)
    before = int(in_a_child(lambda: counted(place)), 16)
    for how, number in points:
        said = in_a_child(lambda point=(how, number): count_once(place, point))
        after = int(in_a_child(lambda: counted(place)), 16)
        print(json.dumps({"point": [how, number], "said": said, "ran": after - before}), flush=True)
        before = after
    os.close(held)


if __name__ == "__main__":
    main()

"""What it costs to watch a line on which nothing happens: `python -m bench.idle [--seconds 20]`.

A session waits, and its device's console is listened to on a real terminal line. Measured are the processor time of all
our threads as a share of one core, how often they are woken, and what an hour leaves in memory: the hour of a silent
line, and that of a line that says something every second once all that is kept of it (`KEPT_BYTES_MAX`) is full. The
hours are simulated: the same code is given the bytes and the time.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import os
import pty
import re
import resource
import tempfile
import threading
import time
import tracemalloc
import tty
from collections.abc import Iterator
from pathlib import Path

from edgeagent.core.agent import Agent
from edgeagent.driver.device.device import Device
from edgeagent.driver.device.listener import WakeLines
from edgeagent.driver.line.console import Console
from edgeagent.driver.line.port import KEPT_BYTES_MAX, PortSettings, SerialPort
from edgeagent.driver.line.profile import load_profile
from edgeagent.runtime.door import QuietDoor
from edgeagent.runtime.model import Script
from edgeagent.runtime.open import OpenRequest, open_session

HOUR_S = 3_600
PROFILE = "name = 'pump'\nextends = 'generic'\nwake = ['^ALARM ']\n"
LINE = b"pump: pressure 3.21 bar, flow 12 l/min, motor 41 C\r\n"
WATCHER = Agent("watcher", "You watch a pump.", hears=("pump",))


def cpu_percent(seconds: float) -> tuple[float, float]:
    """Processor time in percent of a core, and wake-ups a second, of a session that watches a silent line."""
    with tempfile.TemporaryDirectory() as folder, _watching(Path(folder)):
        time.sleep(1.5)  # What opening costs is not watching.
        began, used, woken = time.perf_counter(), time.process_time(), _wakes()
        time.sleep(seconds)
        spent = time.perf_counter() - began
        return 100 * (time.process_time() - used) / spent, (_wakes() - woken) / spent


def kilobytes_an_hour(line: bytes = b"") -> float:
    """What one simulated hour leaves in memory: of a silent line, or of one that says `line` every second."""
    with tempfile.TemporaryDirectory() as folder:
        profile = Path(folder) / "pump.toml"
        profile.write_text(PROFILE)
        port = SerialPort(PortSettings("nowhere"))
        console = Console(port, load_profile(str(profile)))
    lines, seen = WakeLines(console.profile.wake_patterns), 0

    def live(since_s: int, seconds: int) -> None:
        nonlocal seen
        for now in range(since_s, since_s + seconds):
            if line:
                port._take_in(line)
            unasked, seen = console.unasked(seen, port.offset)
            for _ in lines.feed(unasked, float(now)):
                pass

    warm_s = 5 * KEPT_BYTES_MAX // (4 * len(line)) if line else 60
    tracemalloc.start()  # Before anything is kept: what takes the place of what is not traced would look like growth.
    try:
        live(0, warm_s)
        before = _traced()
        live(warm_s, HOUR_S)
        return (_traced() - before) / 1_000
    finally:
        tracemalloc.stop()


def _traced() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


@contextlib.contextmanager
def _watching(folder: Path) -> Iterator[None]:
    outer, inner = pty.openpty()
    tty.setraw(inner)
    threading.Thread(target=_pump, args=(outer,), daemon=True).start()
    (folder / "pump.toml").write_text(PROFILE)
    device = Device(os.ttyname(inner), str(folder / "pump.toml"), mirrored=False)
    session = open_session(OpenRequest(agent=WATCHER, state=folder / "state"), QuietDoor(), Script([]))
    serving = threading.Thread(target=session.serve, daemon=True)
    serving.start()
    listener = device.listen(lambda text: session.post_heard("pump", text))
    try:
        until = time.monotonic() + 60
        while not device.ready and time.monotonic() < until:
            time.sleep(0.1)
        assert device.ready, "the pump was not identified"
        yield
    finally:
        listener.close()
        device.close()
        session.close()
        serving.join()
        os.close(outer)
        os.close(inner)


def _pump(outer: int) -> None:
    """A console that echoes, answers our probe and then says nothing more."""
    line = b""
    with contextlib.suppress(OSError):
        while portion := os.read(outer, 256):
            for byte in portion:
                if byte != 0x0D:
                    line += bytes([byte]) if byte >= 0x20 else b""
                    os.write(outer, bytes([byte]) if byte >= 0x20 else b"")
                    continue
                words = re.findall(rb'echo "(\w+)""(\w+)"( \$\?)?', line)
                said = b"".join(a + b + (b" 0" if status else b"") + b"\r\n" for a, b, status in words)
                os.write(outer, b"\r\n" + said + b"pump# ")
                line = b""


def _wakes() -> int:
    """How often this process was put on a processor again after it had waited."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw


def main() -> None:
    """Measure and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20.0)
    given = parser.parse_args()
    percent, wakes = cpu_percent(given.seconds)
    found = {"cpu_percent": round(percent, 3), "wakes_a_second": round(wakes, 1)}
    found |= {
        "silent_kb_an_hour": round(kilobytes_an_hour(), 1),
        "talking_kb_an_hour": round(kilobytes_an_hour(LINE), 1),
    }
    found["rss_mb"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1_000, 1)
    print(json.dumps(found))


if __name__ == "__main__":
    main()

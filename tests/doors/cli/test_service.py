"""The chat as a service: words from a FIFO, systemd's protocol on a socket."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
GREENHOUSE = ROOT / "examples" / "greenhouse.py"


def test_a_service_says_that_it_is_ready_feeds_the_watchdog_and_says_goodbye(tmp_path, script):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(60)
        words = tmp_path / "ask"
        os.mkfifo(words)
        environment = {
            **os.environ,
            "NOTIFY_SOCKET": str(tmp_path / "notify"),
            "WATCHDOG_USEC": "500000",
            "EDGEAGENT_STATE": str(tmp_path / "state"),
            "EDGEAGENT_GREENHOUSE": str(tmp_path),
            "PYTHONPATH": str(ROOT),
        }
        command = [
            sys.executable,
            "-m",
            "edgeagent",
            "chat",
            str(GREENHOUSE),
            "--json",
            "--model",
            script("Good morning."),
        ]
        descriptor = os.open(words, os.O_RDWR)  # as systemd opens a FIFO: it never ends
        with subprocess.Popen(command, stdin=descriptor, stdout=subprocess.PIPE, text=True, env=environment) as service:
            heard = [manager.recv(4096).decode()]
            while not heard[-1].startswith("READY=1"):
                heard.append(manager.recv(4096).decode())
            assert manager.recv(4096) == b"WATCHDOG=1"  # at rest, by the clock
            os.write(descriptor, b"Hello.\n/quit\n")
            out, _ = service.communicate(timeout=60)
            os.close(descriptor)
            manager.settimeout(60)
            while heard[-1] != "STOPPING=1":
                heard.append(manager.recv(4096).decode())
        assert service.returncode == 0
        assert "Good morning." in out

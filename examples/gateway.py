"""Read-only facts of the machine itself: uptime, disk, temperature, services, the end of a log.

    edgeagent run examples/gateway.py "How full is the disk?"

Nothing here can change the machine. Log lines come from outside, so the log's output stays untrusted.
"""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta

from edgeagent import Agent, Budget, tool

LOGS = {"system": "/var/log/syslog", "packages": "/var/log/dpkg.log", "kernel": "/var/log/kern.log"}


@tool(idempotent=True, effect="read", trusted=True, examples=["How long has this box been up?"])
def uptime() -> dict[str, Any]:
    """Tell how long this machine has been running and how busy it is."""
    seconds = float(Path("/proc/uptime").read_text().split()[0])
    load = Path("/proc/loadavg").read_text().split()[0]
    return {"days": int(seconds // 86400), "hours": int(seconds % 86400 // 3600), "load": float(load)}


@tool(idempotent=True, effect="read", trusted=True, examples=["How full is the disk?"])
def disk(path: Literal["/", "/home", "/var", "/tmp"] = "/") -> dict[str, Any]:
    """Tell how much space is used and free on the disk that holds a folder."""
    total, used, free = shutil.disk_usage(path if Path(path).exists() else "/")
    return {"path": path, "used_percent": round(100 * used / total), "free_gb": round(free / 1e9, 1)}


@tool(idempotent=True, effect="read", trusted=True, examples=["Is the processor hot?"])
def temperature() -> dict[str, Any]:
    """Tell the temperature of the machine's sensors in degrees Celsius."""
    zones = {}
    for zone in sorted(Path("/sys/class/thermal").glob("thermal_zone*")):
        zones[(zone / "type").read_text().strip()] = int((zone / "temp").read_text()) / 1000
    return {"celsius": zones} if zones else {"celsius": None, "why": "this machine shows no temperature sensor"}


@tool(idempotent=True, effect="read", trusted=True, examples=["Is ssh running?"])
def service(name: Annotated[str, Meta(pattern="^[A-Za-z0-9@._-]{1,40}$")]) -> dict[str, Any]:
    """Tell whether a service is running."""
    running = [p.name for p in Path("/proc").glob("[0-9]*") if _command_of(p).startswith(name)]
    if shutil.which("systemctl") and Path("/run/systemd/system").exists():
        done = subprocess.run(
            ["systemctl", "is-active", "--", name], capture_output=True, text=True, timeout=10, check=False
        )
        return {"service": name, "state": done.stdout.strip() or "unknown", "processes": len(running)}
    return {"service": name, "state": "running" if running else "not running", "processes": len(running)}


@tool(idempotent=True, effect="read", examples=["Show the last lines of the system log."])
def log_tail(
    log: Literal["system", "packages", "kernel"], lines: Annotated[int, Meta(ge=1, le=20)] = 5
) -> dict[str, Any]:
    """Show the last lines of a log file."""
    file = Path(LOGS[log])
    if not file.exists():
        return {"log": log, "lines": [], "why": f"there is no {file} on this machine"}
    with file.open("rb") as stream:
        stream.seek(max(0, file.stat().st_size - 16_384))
        last = stream.read().decode(errors="replace").splitlines()[-lines:]
    return {"log": log, "lines": [line[:160] for line in last], "read_at": time.strftime("%H:%M:%S")}


def _command_of(process: Path) -> str:
    try:
        return (process / "comm").read_text().strip()
    except OSError:
        return ""  # It ended while we looked.


agent = Agent(
    name="gateway",
    system="You tell an operator facts about this machine.",
    tools=[uptime, disk, temperature, service, log_tail],
    budget=Budget(steps=4, tool_calls=3, completion_tokens=256, seconds=120),
)

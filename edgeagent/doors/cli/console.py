"""`edgeagent console DEVICE`: the line as the agent sees it, live; a person may break in and hand back."""

from __future__ import annotations

import contextlib
import socket
import time
from pathlib import Path
from typing import Any

import click

from edgeagent.doors.cli.terminal import tell
from edgeagent.doors.line.ends import AgentsLine, OwnLine
from edgeagent.doors.line.loop import LineLoop, Wanted
from edgeagent.doors.line.shows import STAMPS
from edgeagent.driver.device.device import port_settings
from edgeagent.driver.line.console import Console
from edgeagent.driver.line.file_sending import WAYS
from edgeagent.driver.line.mirror import Mirror, attach
from edgeagent.driver.line.port import SerialPort
from edgeagent.driver.line.profile import load_profile
from edgeagent.errors import ConfigError, DriverUnavailable, ExitCode


@click.command()
@click.argument("device")
@click.option("--profile", default="generic", show_default=True, help="A shipped profile, or a .toml file.")
@click.option("--baud", type=click.IntRange(min=50), help="Default: what the profile says.")
@click.option("--mirror", metavar="pty|tcp[:PORT]", help="Also offer the view to a terminal program.")
@click.option("--for", "seconds", type=click.FloatRange(min=0), metavar="SECONDS", help="Leave after this time.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line: time, who, text.")
@click.option("--hex", "as_hex", is_flag=True, help="Show the bytes in hex.")
@click.option("--timestamps", type=click.Choice(STAMPS), default="none", show_default=True, help="Before each line.")
@click.option("--log", type=click.Path(path_type=Path, dir_okay=False), help="Add what the device says to this file.")
@click.option("--log-text", is_flag=True, help="Log text with a time before each line, instead of the bytes.")
@click.option("--send", type=(click.Choice(WAYS), click.Path(path_type=Path)), help="Send a file once it is open.")
@click.option("--no-reconnect", is_flag=True, help="Leave when the line is gone, instead of waiting for it.")
def console(device: str, profile: str, baud: int | None, mirror: str | None, **options: Any) -> ExitCode:
    """Show what the agent sees on DEVICE, live.

    Attaches to the agent that owns the line, where Ctrl-] breaks in and hands back; without one, opens the line itself,
    and you have it. Ctrl-T ? lists the keys; Ctrl-\\ leaves.

    Example: edgeagent console usb:1a86:7523
    """
    as_json, seconds = options["as_json"], options["seconds"]
    until = time.monotonic() + seconds if seconds is not None else None
    wanted = Wanted(
        until=until,
        stamps=options["timestamps"],
        as_hex=options["as_hex"],
        as_json=as_json,
        log=options["log"],
        log_as_text=options["log_text"],
        send=options["send"],
    )
    if mirror is None and not as_json and (view := _agents_view(device)) is not None:
        return LineLoop(AgentsLine(view, device), wanted).run()
    loaded = load_profile(profile)
    port = SerialPort(port_settings(device, loaded, baud))
    with contextlib.closing(OwnLine(port, loaded.pacing, comes_back=not (as_json or options["no_reconnect"]))) as line:
        port.open()
        if mirror is None:
            return LineLoop(line, wanted).run()
        with contextlib.closing(Mirror(Console(port, loaded))) as offered:
            _offer(offered, mirror)
            return LineLoop(line, wanted).run()


def _agents_view(device: str) -> socket.socket | None:
    try:
        return attach(device)
    except DriverUnavailable:
        return None


def _offer(mirror: Mirror, wanted: str) -> None:
    mirror.console.break_in()  # There is no agent here: who types there has the line as well.
    if wanted == "pty":
        tell(f"mirror: {mirror.serve_pty()}", err=True)
    elif wanted == "tcp" or (wanted.startswith("tcp:") and wanted[4:].isdigit()):
        tell(f"mirror: 127.0.0.1:{mirror.serve_tcp(int(wanted[4:] or 0))}", err=True)
    else:
        raise ConfigError(f"--mirror is {wanted!r}; give pty, tcp or tcp:PORT")

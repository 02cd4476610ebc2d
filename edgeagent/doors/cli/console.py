"""`edgeagent console DEVICE`: the line as the agent sees it, live; a person may break in and hand back."""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import sys
import termios
import time
import tty
from collections.abc import Iterator

import click

from edgeagent.doors.cli.terminal import tell, tell_row
from edgeagent.driver.device.device import port_settings
from edgeagent.driver.line.console import Console
from edgeagent.driver.line.mirror import Mirror, attach
from edgeagent.driver.line.port import LinkLost, Moment, SerialPort
from edgeagent.driver.line.profile import load_profile
from edgeagent.errors import ConfigError, DriverUnavailable, ExitCode

LEAVE = b"\x1c"  # Ctrl-\
PASTED_MAX = 1 << 20
"""What may wait to be typed; a device that does not read must not keep a person from leaving."""

HELP = "Ctrl-] breaks in and hands back, Ctrl-\\ leaves"


@click.command()
@click.argument("device")
@click.option("--profile", default="generic", show_default=True, help="A shipped profile, or a .toml file.")
@click.option("--baud", type=click.IntRange(min=50), help="Default: what the profile says.")
@click.option("--mirror", metavar="pty|tcp[:PORT]", help="Also offer the view to a terminal program.")
@click.option("--for", "seconds", type=click.FloatRange(min=0), metavar="SECONDS", help="Leave after this time.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line: time, who, text.")
def console(
    device: str, profile: str, baud: int | None, mirror: str | None, seconds: float | None, as_json: bool
) -> ExitCode:
    """Show what the agent sees on DEVICE, live.

    Attaches to the agent that owns the line; without one, opens the line itself, and you have it.

    Example: edgeagent console usb:1a86:7523
    """
    until = time.monotonic() + seconds if seconds is not None else None
    with contextlib.suppress(DriverUnavailable):
        if mirror is None and not as_json:
            view = attach(device)
            tell(f"attached to the agent that owns {device}; {HELP}", err=True)
            return look_at(view, until)
    port = SerialPort(port_settings(device, load_profile(profile), baud))
    if as_json:
        port.watchers.append(_print_json)
    port.open()
    try:
        return _own(Console(port, load_profile(profile)), mirror, until, as_json)
    finally:
        port.close()


def _own(console: Console, wanted: str | None, until: float | None, as_json: bool) -> ExitCode:
    """Hold the line ourselves: the person has it from the start."""
    mirror = Mirror(console)
    try:
        _offer(mirror, wanted)
        if as_json:
            return _wait(console, until)
        console.break_in()
        tell(f"{console.port.settings.identity} is open and yours; Ctrl-\\ leaves", err=True)
        return look_at(own_view(mirror), until)
    finally:
        mirror.close()


def _offer(mirror: Mirror, wanted: str | None) -> None:
    if wanted is None:
        return
    if wanted == "pty":
        tell(f"mirror: {mirror.serve_pty()}", err=True)
    elif wanted == "tcp" or (wanted.startswith("tcp:") and wanted[4:].isdigit()):
        tell(f"mirror: 127.0.0.1:{mirror.serve_tcp(int(wanted[4:] or 0))}", err=True)
    else:
        raise ConfigError(f"--mirror is {wanted!r}; give pty, tcp or tcp:PORT")


def own_view(mirror: Mirror) -> socket.socket:
    """Return our end of a view of the line that we hold ourselves."""
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    mirror.add_view(theirs)
    return ours


def _wait(console: Console, until: float | None) -> ExitCode:
    """Let the moments be printed until the time is over or the line is gone."""
    while until is None or time.monotonic() < until:
        left = 1.0 if until is None else max(0.0, until - time.monotonic())
        try:
            console.port.wait(console.port.offset, min(1.0, left))
        except LinkLost as lost:
            tell(f"edgeagent: {lost}", err=True)
            return ExitCode.ERROR
    return ExitCode.DONE


def look_at(view: socket.socket, until: float | None, shown_on: str = "stdout") -> ExitCode:
    """Carry bytes between this terminal and the view until one of them ends. Keys are always read, so one may leave."""
    view.setblocking(False)
    waiting = b""
    with _raw_terminal() as keys, view, selectors.SelectSelector() as selector:
        if keys is not None:
            selector.register(keys, selectors.EVENT_READ)
        while until is None or time.monotonic() < until:
            _select_view(selector, view, bool(waiting))
            left = None if until is None else max(0.0, until - time.monotonic())
            for key, events in selector.select(left):
                if key.fileobj is view:
                    if events & selectors.EVENT_READ and not _shown(view, shown_on):
                        return ExitCode.DONE
                    if events & selectors.EVENT_WRITE and waiting:
                        waiting = waiting[view.send(waiting) :]
                    continue
                assert keys is not None
                typed = os.read(keys, 4_096)
                if not typed:
                    selector.unregister(keys)
                if LEAVE in typed:
                    with contextlib.suppress(BlockingIOError):
                        view.send(waiting + typed.partition(LEAVE)[0])
                    return ExitCode.DONE
                waiting = (waiting + typed)[:PASTED_MAX]
    return ExitCode.DONE


def _select_view(selector: selectors.BaseSelector, view: socket.socket, writes: bool) -> None:
    wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if writes else 0)
    known = selector.get_map().get(view)
    if known is None:
        selector.register(view, wanted)
    elif known.events != wanted:
        selector.modify(view, wanted)


def _shown(view: socket.socket, shown_on: str) -> bool:
    """Print what the view gives; return whether it is still there."""
    portion = view.recv(4_096)
    out = sys.stderr.buffer if shown_on == "stderr" else sys.stdout.buffer
    out.write(portion)
    out.flush()
    return bool(portion)


@contextlib.contextmanager
def _raw_terminal() -> Iterator[int | None]:
    """Give the keys as they are pressed; put the terminal back afterwards. A pipe is read as it is."""
    try:
        keys = sys.stdin.fileno()
    except (OSError, ValueError):
        yield None
        return
    if not os.isatty(keys):
        yield keys
        return
    before = termios.tcgetattr(keys)
    try:
        tty.setraw(keys)
        yield keys
    finally:
        termios.tcsetattr(keys, termios.TCSADRAIN, before)


def _print_json(moment: Moment) -> None:
    line = {
        "at_ms": moment.at_ns // 1_000_000,
        "who": moment.who,
        "text": moment.data.decode("utf-8", "backslashreplace"),
        "note": moment.note,
    }
    tell_row(line)

"""`edgeagent device interrupt`, `answer` and `learn`: a person helps with a console that is stuck, or not known."""

from __future__ import annotations

import contextlib
import select
import socket
import time

import click

from edgeagent.doors.cli.terminal import pass_on, tell
from edgeagent.doors.line.ends import OwnLine
from edgeagent.doors.line.loop import LineLoop, Wanted
from edgeagent.driver.device.device import port_settings
from edgeagent.driver.device.learn import proposed
from edgeagent.driver.line.console import READY, Console
from edgeagent.driver.line.mirror import BREAK_IN, attach
from edgeagent.driver.line.port import SerialPort
from edgeagent.driver.line.profile import Profile, load_profile
from edgeagent.driver.line.view import View
from edgeagent.errors import ConfigError, DriverUnavailable, ExitCode

LISTEN_S = 3.0
"""How long is listened to what comes of it."""

profile_option = click.option(
    "--profile", default="generic", show_default=True, help="A known profile, or a .toml file."
)


@click.command()
@click.argument("where")
@profile_option
def interrupt(where: str, profile: str) -> ExitCode:
    """Break off what runs at WHERE and show what is there then. What the command did stays unknown.

    Through the agent that owns the line, if one does. Example: edgeagent device interrupt usb:1a86:7523
    """
    loaded = load_profile(profile)
    with contextlib.suppress(DriverUnavailable):
        return _through_owner(attach(where), loaded.keys.interrupt)
    port = SerialPort(port_settings(where, loaded))
    port.open()
    try:
        console = Console(port, loaded)
        state = console.interrupt(LISTEN_S)
        tell(f"{where}: state {state}\n{console.last_heard}", lines=True)
        return ExitCode.DONE if state in READY else ExitCode.CHECK_FAILED
    finally:
        port.close()


@click.command()
@click.argument("where")
@click.argument("text")
@profile_option
def answer(where: str, text: str, profile: str) -> ExitCode:
    """Type TEXT and Enter to the question that stands at WHERE, and show what comes of it. Never a password.

    Through the agent that owns the line, if one does. Example: edgeagent device answer usb:1a86:7523 no
    """
    loaded = load_profile(profile)
    if any(c < " " for c in text):
        raise ConfigError(f"{text!r} is not one line of text")
    with contextlib.suppress(DriverUnavailable):
        return _through_owner(attach(where), text + loaded.keys.enter, loaded)
    port = SerialPort(port_settings(where, loaded))
    port.open()
    try:
        console = Console(port, loaded)
        port.wait(port.offset, 0.3)
        _refuse_password(port.heard(0), loaded)
        console.break_in()
        since = port.offset
        console.person_types((text + loaded.keys.enter).encode())
        port.wait(since + len(text) + 2, LISTEN_S)
        console.look()
        tell(console.last_heard, lines=True)
        return ExitCode.DONE
    finally:
        port.close()


def _through_owner(view: socket.socket, keys: str, profile: Profile | None = None) -> ExitCode:
    """Break in at the agent that owns the line, press the keys, hand back."""
    turn = bytes([BREAK_IN])
    with view:
        recent = _heard(view, 0.3)
        if profile is not None:
            _refuse_password(recent, profile)
        view.sendall(turn + keys.encode("latin-1"))
        tell(_heard(view, LISTEN_S).decode("utf-8", "replace").strip(), lines=True)
        view.sendall(turn)
        _heard(view, 0.3)
    return ExitCode.DONE


def _refuse_password(heard: bytes, profile: Profile) -> None:
    view = View(profile)
    view.feed(heard)
    if view.prompt == "password" or "password" in view.question.lower():
        raise ConfigError(f"{view.last_line.strip()!r} asks for a password; it goes there only through a log-in")


def _heard(view: socket.socket, seconds: float) -> bytes:
    heard, until = b"", time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0 and select.select([view], [], [], left)[0]:
        portion = view.recv(4_096)
        if not portion:
            break
        heard += portion
    return heard


@click.command()
@click.argument("where")
@click.option("--name", default="device", show_default=True, help="The name of the proposed profile.")
@click.option("--baud", type=click.IntRange(min=50), help="Default: 115200.")
@click.option("--for", "seconds", type=click.FloatRange(min=0), metavar="SECONDS", help="Stop after this time.")
def learn(where: str, name: str, baud: int | None, seconds: float | None) -> ExitCode:
    """Watch you use the console at WHERE once, and print the profile that this proposes. Ctrl-\\ ends.

    Passwords are left out. Example: edgeagent device learn usb:1a86:7523 > board.toml
    """
    generic = load_profile("generic")
    port = SerialPort(port_settings(where, generic, baud))
    with contextlib.closing(OwnLine(port, generic.pacing)) as line:
        port.open()
        tell("use it as you would; Ctrl-\\ ends, and the profile is printed", err=True)
        until = None if seconds is None else time.monotonic() + seconds
        LineLoop(line, Wanted(until, shown_on="stderr")).run()
    pass_on(proposed(name, port.timeline()))
    return ExitCode.DONE

"""`edgeagent device`: ports of this machine, what stands behind one, and profiles."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import click
import msgspec

from edgeagent.core.agent import Tool
from edgeagent.doors.cli.device_help import answer, interrupt, learn
from edgeagent.doors.cli.terminal import pass_on, tell, tell_row
from edgeagent.driver.device.bus_profile import is_bus_profile, load_bus_profile
from edgeagent.driver.device.bus_tools import BusDevice
from edgeagent.driver.device.device import device_of, port_settings
from edgeagent.driver.device.device_tools import DeviceTools
from edgeagent.driver.line.console import Console
from edgeagent.driver.line.consoles import identified, kinds
from edgeagent.driver.line.identity import BY_ID, holder_of, in_container, ports_here
from edgeagent.driver.line.port import SerialPort
from edgeagent.driver.line.profile import Profile, load_profile, shipped_profiles
from edgeagent.driver.line.view import View
from edgeagent.errors import ConfigError, ExitCode, ShapeError

TRIED = ("u-boot", "micropython", "zephyr", "linux")
"""Profiles whose prompts cannot be mistaken for each other's; the generic one fits anything."""


@click.group()
def device() -> None:
    """List serial ports, identify what is behind one, check a profile.

    Example: edgeagent device list
    """


for each in (interrupt, answer, learn):
    device.add_command(each)


@device.command("list")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
def list_ports(as_json: bool) -> ExitCode:
    """List the serial ports of this machine by the names that do not change.

    Example: edgeagent device list
    """
    found = ports_here()
    for port in found:
        row = {**msgspec.to_builtins(port), "holder": holder_of(port.device)}
        if as_json:
            tell_row(row)
        else:
            held = f"   in use by {row['holder']}" if row["holder"] else ""
            tell(f"{port.identity:<36} {port.device:<16} {port.description}{held}")
    if not found and not as_json:
        tell("no serial port is here; a pty (/dev/pts/N) or a URL (socket://host:port) works too", err=True)
    if not as_json and in_container() and not BY_ID.exists():
        tell(
            "inside a container: its by-id names are outside. Start it with -v /dev/serial:/dev/serial:ro, and "
            "--device for the port, or --device-cgroup-rule for one that comes and goes",
            err=True,
        )
    return ExitCode.DONE


@device.command()
@click.argument("where")
@click.option("--baud", type=click.IntRange(min=50), help="Default: 115200.")
@click.option("--timeout", type=click.FloatRange(min=0), default=10.0, show_default=True, metavar="SECONDS")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def identify(where: str, baud: int | None, timeout: float, as_json: bool) -> ExitCode:
    """Find out what kind of console is at WHERE. Types nothing but a comment, an empty line and an echo.

    Example: edgeagent device identify usb:1a86:7523
    """
    port = SerialPort(port_settings(where, load_profile("generic"), baud))
    port.open()
    try:
        name, state, heard = _identified(port, timeout)
    finally:
        port.close()
    if as_json:
        tell_row({"where": where, "profile": name, "state": state, "heard": heard})
    elif name:
        tell(f"{where}: {load_profile(name).about}, state {state} (profile {name})")
    else:
        tell(f"{where}: nothing that a known profile fits ({state}); is it on, is the baud rate right?")
    if not as_json:
        tell("last heard:\n" + textwrap.indent(heard or "(nothing)", "  "), lines=True)
    return ExitCode.DONE if name else ExitCode.CHECK_FAILED


def _identified(port: SerialPort, timeout_s: float) -> tuple[str, str, str]:
    """Try the profiles in turn; then what was heard names the kind of console. Returns profile, state, last lines."""
    state, since, heard = "off", port.offset, ""
    port.wait(port.offset, 0.3)
    for name in (*TRIED, "generic"):
        console = Console(port, load_profile(name))
        state = console.enter(timeout_s / len(TRIED))
        heard = console.last_heard or heard
        if state not in ("off", "unknown", "booting"):
            view = View(load_profile(name))
            view.feed(port.heard(since))
            kind = identified(f"{view.text}\n{heard}")
            fits = kind and (name == "generic" or kinds()[kind].extends == name)
            return kind if fits else name, state, heard
    return "", state, heard


@device.command()
@click.argument("where")
@click.argument("profile")
@click.argument("command")
@click.argument("arguments", nargs=-1, metavar="[NAME=VALUE]...")
@click.option("--yes", is_flag=True, help="You have looked; a command that writes may run.")
def call(where: str, profile: str, command: str, arguments: tuple[str, ...], yes: bool) -> ExitCode:
    """Run one command of PROFILE on the device at WHERE, as the agent would.

    Example: edgeagent device call socket://127.0.0.1:5555 board.toml read_variable name=bootdelay
    """
    chosen = device_of(where, profile, mirrored=False)
    tool = next((each for each in chosen.tools if each.name == command), None)
    if tool is None:
        raise ConfigError(f"profile {profile} has no command {command}: {', '.join(t.name for t in chosen.tools)}")
    if tool.confirm and not yes:
        raise ConfigError(f"{command} is a command that writes ({tool.effect}); add --yes when you mean it")
    try:
        result = tool.function(**tool.parameters.decode(_arguments_of(arguments)))
    finally:
        for note in chosen.port.take_notes():
            tell(f"note: {note}", err=True)
        chosen.close()
    pass_on((result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)) + "\n")
    return ExitCode.DONE


def _arguments_of(written: tuple[str, ...]) -> dict[str, Any]:
    """Read NAME=VALUE: a value that is JSON (a number, true) is that, anything else is text."""
    result: dict[str, Any] = {}
    for each in written:
        name, equals, value = each.partition("=")
        if not equals:
            raise ConfigError(f"{each!r} is not NAME=VALUE")
        try:
            result[name] = json.loads(value, parse_float=_float)
        except ValueError:
            result[name] = value
    return result


def _float(written: str) -> float | str:
    """The number; one that is too near to 0 to be kept stays a text, which is refused as none."""
    number = float(written)
    return number if number or not Decimal(written) else written


@device.group()
def profile() -> None:
    """Work with device profiles.

    Example: edgeagent device profile check board.toml
    """


@profile.command()
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def check(name: str, as_json: bool) -> ExitCode:
    """Check a profile and print what it says: keys as bytes, commands as tools.

    Example: edgeagent device profile check u-boot
    """
    if is_bus_profile(name):
        return _check_bus(name, as_json)
    loaded = load_profile(name)
    tools = _made(name, lambda: DeviceTools(loaded, _no_console).tools)
    described = [tool.described() for tool in tools]
    if as_json:
        tell_row({"name": loaded.name, "keys": _keys(loaded), "tools": described})
        return ExitCode.DONE
    tell(f"{loaded.name}: {loaded.about or 'a device'}; {loaded.wire.baud} baud, {loaded.transaction.style}")
    for key, shown in _keys(loaded).items():
        tell(f"  key {key:<13} {shown}")
    for state, pattern in loaded.prompt_patterns:
        tell(f"  prompt {state:<10} {pattern.pattern.removesuffix(chr(92) + 'Z')}")
    return _say_tools(name, tools)


def _check_bus(name: str, as_json: bool) -> ExitCode:
    loaded = load_bus_profile(name)
    tools = _made(name, lambda: BusDevice("/dev/null", loaded).tools)
    if as_json:
        described = [tool.described() for tool in tools]
        tell_row({"name": loaded.name, "bus": loaded.bus, "tools": described})
        return ExitCode.DONE
    tell(f"{loaded.name}: {loaded.about or 'a device'}; {loaded.wire.baud} baud, {loaded.bus}")
    return _say_tools(name, tools)


def _made(name: str, make: Callable[[], tuple[Tool, ...]]) -> tuple[Tool, ...]:
    try:
        return make()
    except ShapeError as error:
        raise ConfigError(f"{name}: {error}") from None


def _say_tools(name: str, tools: tuple[Tool, ...]) -> ExitCode:
    for tool in tools:
        asks = "asks a person" if tool.confirm else "runs"
        arguments = ", ".join(tool.parameters.schema.get("properties", {}))
        tell(f"  tool {tool.name}({arguments})  {tool.effect}, {asks}")
    tell(f"{name} is right")
    return ExitCode.DONE


@profile.command("list")
def list_profiles() -> ExitCode:
    """List the profiles that come with the package.

    Example: edgeagent device profile list
    """
    for name in shipped_profiles():
        tell(f"{name:<12} {load_profile(name).about}")
    return ExitCode.DONE


def _keys(loaded: Profile) -> dict[str, str]:
    """Each key as bytes: "03 (1 byte)"."""
    keys = {**msgspec.structs.asdict(loaded.keys), "autoboot_key": loaded.boot.autoboot_key}
    return {
        name: f"{value.encode('latin-1').hex(' ')} ({len(value)} byte{'s' if len(value) != 1 else ''})"
        for name, value in keys.items()
    }


def _no_console() -> Console:
    raise AssertionError("a check opens nothing")

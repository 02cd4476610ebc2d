"""The tools that a device's profile makes: typed, guarded, and with answers read as the profile says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from edgeagent.core.agent import Agent
from edgeagent.driver.device.device_tools import DeviceTools, read_answer
from edgeagent.driver.line.command import Reading
from edgeagent.driver.line.profile import load_profile
from edgeagent.errors import DriverError, PeerMisbehaved

PROFILE = """
name = "pump"
extends = "generic"

[[commands]]
name = "read_pressure"
help = "Read the pressure."
command = "show pressure {place}"
effect = "read"
idempotent = true
answer = { kind = "number" }
[commands.arguments.place]
type = "choice"
choices = ["inlet", "outlet"]
help = "where it is measured"

[[commands]]
name = "set_speed"
help = "Set the pump's speed."
command = "speed {percent} {ramp}"
effect = "write"
idempotent = true
timeout_s = 4
[commands.arguments.percent]
type = "integer"
minimum = 0
maximum = 100
unit = "%"
[commands.arguments.ramp]
type = "number"
minimum = 0
maximum = 60
unit = "s"
default = 2.5

[[commands]]
name = "erase_log"
help = "Erase the log."
command = "log erase"
effect = "irreversible"
idempotent = false
"""


def no_console() -> Any:
    """Fail: nothing may be opened to declare tools."""
    raise AssertionError("the console was opened")


@pytest.fixture
def device(tmp_path: Path) -> DeviceTools:
    """The tools of the pump."""
    path = tmp_path / "pump.toml"
    path.write_text(PROFILE)
    return DeviceTools(load_profile(str(path)), no_console)


def test_each_command_is_a_tool_of_an_agent(device: DeviceTools) -> None:
    assert Agent("operator", tools=device.tools).tool_names == ("read_pressure", "set_speed", "erase_log")


def test_types_bounds_and_defaults_reach_the_schema(device: DeviceTools) -> None:
    schema = device.tools[1].parameters.schema
    assert schema["required"] == ["percent"]
    assert (schema["properties"]["percent"]["minimum"], schema["properties"]["percent"]["maximum"]) == (0, 100)
    assert schema["properties"]["ramp"]["default"] == 2.5
    assert device.tools[0].parameters.schema["properties"]["place"]["enum"] == ["inlet", "outlet"]


def test_reading_runs_and_writing_needs_a_person(device: DeviceTools) -> None:
    assert [(tool.effect, tool.confirm) for tool in device.tools] == [
        ("read", False),
        ("write", True),
        ("irreversible", True),
    ]


def test_writing_needs_no_person_where_a_rule_guards_it(device: DeviceTools) -> None:
    guarded = DeviceTools(device.profile, no_console, ruled=("set_speed",))
    assert [tool.confirm for tool in guarded.tools] == [False, False, True]


def test_a_rule_for_a_command_that_is_not_there_is_refused(device: DeviceTools) -> None:
    with pytest.raises(DriverError, match="set_sped"):
        DeviceTools(device.profile, no_console, ruled=("set_sped",))


def test_what_a_device_answers_is_untrusted(device: DeviceTools) -> None:
    assert not any(tool.trusted for tool in device.tools)


def test_a_word_cannot_hold_a_second_command(tmp_path: Path) -> None:
    path = tmp_path / "word.toml"
    path.write_text(
        "name = 'w'\nextends = 'u-boot'\n[[commands]]\nname = 'get'\nhelp = 'Get.'\ncommand = 'printenv {name}'\n"
        "effect = 'read'\nidempotent = true\n[commands.arguments.name]\ntype = 'word'\n"
    )
    tool = DeviceTools(load_profile(str(path)), no_console).tools[0]
    assert tool.parameters.schema["properties"]["name"]["pattern"].startswith("^")
    for attack in ("a; reset", "a\nreset", "$(reset)", "-f", "a b"):
        with pytest.raises(DriverError, match="nothing was sent"):
            tool(name=attack)


@pytest.mark.parametrize(
    ("reading", "text", "value"),
    [
        (Reading(), "two\nlines", "two\nlines"),
        (Reading("lines"), "two\n\nlines", ["two", "lines"]),
        (Reading("integer"), "n=0x1f", 31),
        (Reading("integer", r"Uptime: (\d+) ms"), "Uptime: 1180 ms", 1180),
        (Reading("number"), "pressure 2.25 bar", 2.25),
        (
            Reading("match", r"(?P<name>\w+) (?P<version>[\d.]+)"),
            "Zephyr 4.4.0",
            {"name": "Zephyr", "version": "4.4.0"},
        ),
    ],
)
def test_an_answer_is_read_as_the_profile_says(reading: Reading, text: str, value: object) -> None:
    assert read_answer(text, reading, "tool") == value


@pytest.mark.parametrize("reading", [Reading("integer"), Reading("number"), Reading("match", r"(?P<v>\d+)")])
def test_an_answer_that_does_not_fit_is_the_devices_fault(reading: Reading) -> None:
    with pytest.raises(PeerMisbehaved, match="tool answered"):
        read_answer("no figure here", reading, "tool")


def test_a_giant_answer_is_cut_and_that_is_said() -> None:
    text = read_answer("x" * 10_000, Reading(), "tool")
    assert len(text) < 4_100
    assert text.endswith("6000 characters more were cut]")

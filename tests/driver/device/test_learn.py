"""A profile that is proposed from watching a person: it loads, it makes tools, and it holds no password."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgeagent.driver.device.device_tools import DeviceTools
from edgeagent.driver.device.learn import proposed
from edgeagent.driver.line.port import Moment
from edgeagent.driver.line.profile import load_profile


def moments(*said: tuple[str, str]) -> list[Moment]:
    """What came over the line, in order."""
    return [Moment(n, who, text.encode()) for n, (who, text) in enumerate(said)]  # type: ignore[arg-type]


WATCHED = moments(
    ("device", "\r\nUser Access Verification\r\n\r\nUsername: "),
    ("person", "admin\r"),
    ("device", "admin\r\nPassword: "),
    ("person", "s3cret\r"),
    ("device", "\r\nsw1#"),
    ("person", "show versoin\x08\x08\x08ion\r"),
    ("device", "show version\r\nCisco IOS 15\r\nsw1#"),
    ("person", "reload\r"),
    ("device", "reload\r\nProceed with reload? [confirm]"),
    ("person", "n\r"),
    ("device", "\r\nsw1#"),
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The proposal, as a file."""
    path = tmp_path / "sw1.toml"
    path.write_text(proposed("sw1", WATCHED))
    return path


def test_the_proposal_is_a_profile_of_the_kind_that_was_seen(path: Path) -> None:
    profile = load_profile(str(path))
    assert (profile.name, profile.extends) == ("sw1", "ios")
    assert [(command.command, command.effect) for command in profile.commands] == [
        ("show version", "read"),
        ("reload", "write"),
    ]


def test_its_tools_ask_before_they_write(path: Path) -> None:
    tools = DeviceTools(load_profile(str(path)), lambda: pytest.fail("nothing is opened")).tools
    assert [tool.confirm for tool in tools] == [False, True]


def test_no_password_and_no_user_is_in_it(path: Path) -> None:
    assert "s3cret" not in path.read_text()
    assert "admin" not in path.read_text()


def test_what_was_asked_is_said(path: Path) -> None:
    assert "# It asked 'Proceed with reload? [confirm]' and was answered 'n'" in path.read_text()


def test_an_unknown_prompt_becomes_the_profiles_own(tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    path.write_text(proposed("p", moments(("device", "\r\nplc-7> "), ("person", "list\r"), ("device", "\r\nplc-7> "))))
    assert load_profile(str(path)).prompts.shell == r"^(?:plc\-7> )"

"""A device as its operator describes it: what is taken, and what is refused with file and key."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgeagent.driver.line.profile import key_bytes, load_profile, shipped_profiles
from edgeagent.errors import ConfigError

COMMAND = """
[[commands]]
name = "read_it"
help = "Read it."
command = "get {what}"
effect = "read"
idempotent = true
[commands.arguments.what]
type = "word"
"""


def profile_file(tmp_path: Path, text: str) -> str:
    """Write a profile; return its path."""
    path = tmp_path / "board.toml"
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize("name", shipped_profiles())
def test_every_shipped_profile_loads(name: str) -> None:
    assert load_profile(name).name == name


def test_the_shipped_profiles_are_the_five_of_the_page() -> None:
    assert shipped_profiles() == ("generic", "linux", "micropython", "u-boot", "zephyr")


@pytest.mark.parametrize("written", ["\\x03", "^C", "\x03"])
def test_labgrid_1622_a_key_is_one_byte_however_it_is_written(written: str) -> None:
    assert key_bytes(written) == "\x03"


def test_labgrid_1622_a_literal_string_in_toml_is_one_byte_too(tmp_path: Path) -> None:
    path = profile_file(tmp_path, "name = 'b'\nextends = 'generic'\n[keys]\ninterrupt = '\\x03'\n")
    assert load_profile(path).keys.interrupt == "\x03"


def test_a_profile_builds_on_another(tmp_path: Path) -> None:
    profile = load_profile(profile_file(tmp_path, f"name = 'b'\nextends = 'u-boot'\n{COMMAND}"))
    assert profile.prompts.boot_loader
    assert [command.name for command in profile.commands] == ["read_it"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name = ", "not TOML"),
        ("name = 'b'\nextends = 'nothing'", "no profile 'nothing'"),
        ("name = 'b'\nextends = 'board.toml'", "circle"),
        ("name = 'b'\nextends = 'u-boot'\nspeed = 9", "speed"),
        ("name = 'b'\nextends = 'u-boot'\n[wire]\nbaud = 'fast'", r"at wire\.baud"),
        ("name = 'b'", "no command could ever be sent"),
        ("name = 'b'\n[prompts]\nshell = '.*'", "fits an empty line"),
        ("name = 'b'\n[prompts]\nshell = '(['", "no regular expression"),
        ("name = 'b'\n[prompts]\nshell = '\\$ '\n[transaction]\nstyle = 'marker'", r"transaction\.probe lacks"),
        (
            "name = 'b'\nextends = 'u-boot'\n[transaction]\nprobe = 'echo {left}{right}'",
            "its echo looks like the answer",
        ),
    ],
)
def test_a_wrong_profile_is_refused_with_file_and_key(tmp_path: Path, text: str, message: str) -> None:
    path = profile_file(tmp_path, text)
    with pytest.raises(ConfigError, match=message):
        load_profile(path)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('effect = "read"', 'effect = "harmless"', "effect"),
        ("idempotent = true", "", "idempotent"),
        ('help = "Read it."', 'help = ""', "help is empty"),
        ("get {what}", "get {who}", "uses {who}"),
        ("get {what}", "get it", "not used in the command"),
        ("get {what}", "get '{what}'", "leave them out"),
        ('type = "word"', 'type = "text"', "without a pattern"),
        ('type = "word"', 'type = "text"\npattern = ".*"', "lets"),
        ('type = "word"', 'type = "integer"', "no minimum and maximum"),
        ('type = "word"', 'type = "integer"\nminimum = 3\nmaximum = 1', "above maximum"),
        ('type = "word"', 'type = "choice"', "without choices"),
        ('type = "word"', 'type = "choice"\nchoices = ["a;b"]', "could take for a command"),
        ('name = "read_it"', 'name = "read it"', "a name is a letter"),
    ],
)
def test_a_wrong_command_is_refused_with_its_name(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in COMMAND
    path = profile_file(tmp_path, f"name = 'b'\nextends = 'u-boot'\n{COMMAND.replace(old, new, 1)}")
    with pytest.raises(ConfigError, match=message):
        load_profile(path)


def test_two_commands_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="twice"):
        load_profile(profile_file(tmp_path, f"name = 'b'\nextends = 'u-boot'\n{COMMAND}{COMMAND}"))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"gone\.toml cannot be read"):
        load_profile(str(tmp_path / "gone.toml"))

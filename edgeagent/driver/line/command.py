"""Command of a device as its operator declares it: arguments, how its answer is read, and what is refused."""

from __future__ import annotations

import re
from typing import Literal

from msgspec import Struct

from edgeagent.driver.line.template import Quoting, check_template, check_text_argument, places, written
from edgeagent.errors import ConfigError

ToolEffect = Literal["read", "write", "irreversible"]


class Argument(Struct, frozen=True, forbid_unknown_fields=True):
    """One argument of a device's command."""

    type: Literal["integer", "number", "boolean", "choice", "word", "text"]
    help: str = ""
    unit: str = ""
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()
    pattern: str = ""
    length_max: int = 64
    default: bool | int | float | str | None = None


class Reading(Struct, frozen=True, forbid_unknown_fields=True):
    """How the answer is read: as text, as lines, as one number, or by a pattern whose named groups are fields."""

    kind: Literal["text", "lines", "integer", "number", "match"] = "text"
    pattern: str = ""
    keep_noise: bool = False


class Command(Struct, frozen=True, forbid_unknown_fields=True):
    """One command that the agent may use on this device; it becomes a tool."""

    name: str
    help: str
    command: str
    effect: ToolEffect
    idempotent: bool
    arguments: dict[str, Argument] = {}
    answer: Reading = Reading()
    timeout_s: float = 10.0
    state: Literal["", "boot_loader", "shell", "repl"] = ""
    examples: tuple[str, ...] = ()
    sensitive: bool = False


def compiled(text: str, where: str) -> re.Pattern[str]:
    """Return the regular expression that stands there. Raises ConfigError naming the key."""
    try:
        return re.compile(f"(?:{text})")  # As it is used: inside a group, so a flag must be written as (?i:...).
    except re.error as error:
        raise ConfigError(f"{where} {text!r} is no regular expression: {error}") from None


def check_command(command: Command, quoting: Quoting, where: str) -> None:
    """Refuse a command that no tool can be made of. Raises ConfigError naming the key."""
    if not command.help.strip():
        raise ConfigError(f"{where}.help is empty: the model needs one sentence on what it does")
    if command.timeout_s <= 0:
        raise ConfigError(f"{where}.timeout_s is {command.timeout_s:g}; it must be above 0")
    check_template(command.command, where)
    used = places(command.command)
    for name in used:
        if name not in command.arguments:
            raise ConfigError(f"{where}.command uses {{{name}}}, which arguments does not declare")
    for name, argument in command.arguments.items():
        if name not in used:
            raise ConfigError(f"{where}.arguments.{name} is not used in the command: remove it, or write {{{name}}}")
        _check_argument(argument, quoting, f"{where}.arguments.{name}")
    _check_answer(command.answer, where)


def _check_argument(argument: Argument, quoting: Quoting, where: str) -> None:
    match argument.type:
        case "integer" | "number":
            if argument.minimum is None or argument.maximum is None:
                raise ConfigError(f"{where} has no minimum and maximum: say what the device can take")
            if argument.minimum > argument.maximum:
                raise ConfigError(f"{where}: minimum {argument.minimum:g} is above maximum {argument.maximum:g}")
        case "choice":
            if not argument.choices:
                raise ConfigError(f"{where} is a choice without choices")
            for each in argument.choices:
                _check_written(each, quoting, f"{where}.choices")
        case "text":
            check_text_argument(argument.pattern, quoting, where)
        case "word":
            if argument.pattern:
                check_text_argument(argument.pattern, "none", where)
        case "boolean":
            pass


def _check_written(text: str, quoting: Quoting, where: str) -> None:
    try:
        written(text, quoting, "it")
    except ValueError as error:
        raise ConfigError(f"{where} has {text!r}: {error}") from None


def _check_answer(answer: Reading, where: str) -> None:
    pattern = compiled(answer.pattern, f"{where}.answer.pattern")
    if answer.kind == "match" and not pattern.groupindex:
        raise ConfigError(f"{where}.answer.pattern needs named groups, as in (?P<version>.+): they become the fields")

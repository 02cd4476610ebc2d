"""Tools that a device gives the agent: one for each command its operator wrote, typed and guarded.

Laws: what a device answers is untrusted. Reading runs; writing needs a rule or a person. A call whose effect is unknown
is never made again with the same arguments until a person has looked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Any, assert_never

from edgeagent.core.agent import Tool
from edgeagent.core.lines import Lines
from edgeagent.driver.device.interrupt import interrupt_tool
from edgeagent.driver.line.command import Argument, Command, Reading
from edgeagent.driver.line.console import Console
from edgeagent.driver.line.console_machine import ROUND_TRIPS
from edgeagent.driver.line.outcome import (
    DeviceReset,
    Done,
    Failed,
    LinkWasLost,
    NotSent,
    Outcome,
    TimedOut,
    WaitingForInput,
)
from edgeagent.driver.line.profile import Profile
from edgeagent.driver.line.template import Quoting, anchored, filled, written
from edgeagent.driver.unknown import CommandFailed, EffectUnknown, UnknownEffects
from edgeagent.errors import DriverError, DriverUnavailable, PeerMisbehaved
from edgeagent.shape.near_zero import why_not_held

WORD_PATTERN = r"[A-Za-z0-9_./:@+=][A-Za-z0-9_./:@+=-]*"
"""What a `word` may be unless the profile says more: no character with a meaning, and no leading minus."""

ANSWER_CHARS_MAX = 4_000
"""About 1,300 tokens: what a small model can hold of one answer. The rest is cut, and that is said."""

LAST_CHARS = 200
EXTRA_S = 5.0
"""The tool's own limit is above the console's, so that the console can say what is known."""


class DeviceTools:
    """The tools of one device, and what is known of their effects."""

    def __init__(
        self,
        profile: Profile,
        console: Callable[[], Console],
        *,
        ruled: Collection[str] = (),
        notes: Callable[[], tuple[str, ...]] | None = None,
        lines: Lines | None = None,
    ) -> None:
        """`console` gives the open console, when it is first needed; `ruled` names tools that a rule guards already.

        `notes` gives what befell the line since it was last asked, `lines` what the device prints.
        """
        self.profile = profile
        self._notes, self._lines = notes, lines
        self._console = console
        self._unknown = UnknownEffects()
        unheard = sorted(set(ruled) - {command.name for command in profile.commands})
        if unheard:
            raise DriverError(f"profile {profile.name} has no command {unheard[0]}, which a rule is said to guard")
        self.tools = tuple(self._tool(command, command.name in ruled) for command in profile.commands)
        if profile.may_interrupt:
            tool = interrupt_tool(profile, console, notes)
            if any(tool.name == each.name for each in profile.commands):
                raise DriverError(f"profile {profile.name} has a command {tool.name}: rename it, or drop may_interrupt")
            self.tools += (tool,)

    def looked(self) -> tuple[str, ...]:
        """A person has looked at the device: calls with an unknown effect may be made again. Returns what was held."""
        return self._unknown.looked()

    def _tool(self, command: Command, ruled: bool) -> Tool:
        arguments = {name: argument_schema(each) for name, each in command.arguments.items()}
        return Tool.of_schema(
            command.name,
            _description(command),
            schema_of(arguments),
            lambda given: self._call(command, given),
            idempotent=command.idempotent,
            effect=command.effect,
            sensitive=command.sensitive,
            confirm=command.effect != "read" and not ruled,
            timeout_s=command.timeout_s + EXTRA_S + ROUND_TRIPS * self.profile.round_trip_s,
            examples=command.examples,
            notes=self._notes,
            lines=self._lines,
        )

    def _call(self, command: Command, arguments: dict[str, Any]) -> Any:
        line = command_line(command, self.profile.quoting, arguments)
        key = (command.name, line)
        self._unknown.check(key)
        console = self._console()
        if command.state and console.confirm() != command.state:
            raise DriverUnavailable(f"{command.name} needs state {command.state}; the console is in {console.state}")
        outcome = console.run(line, command.timeout_s)
        harmless = command.idempotent and command.effect == "read"
        return self._unknown.noted(key, lambda: _result(outcome, command), harmless=harmless)


def _with_defaults(command: Command, given: dict[str, Any]) -> dict[str, Any]:
    """What was given, and what the profile says of the rest; more than it declares is refused. Raises DriverError."""
    unheard = sorted(set(given) - set(command.arguments))
    whole = {name: given.get(name, each.default) for name, each in command.arguments.items()}
    missing = [name for name, value in whole.items() if value is None]
    if unheard or missing:
        raise DriverError(f"{command.name} takes {', '.join(command.arguments)}; {(unheard + missing)[0]} is wrong")
    return whole


def command_line(command: Command, quoting: Quoting, given: dict[str, Any]) -> str:
    """Return the command with its arguments, and defaults, in place. Raises DriverError; then nothing was sent."""
    arguments = _with_defaults(command, given)
    try:
        for name, argument in command.arguments.items():
            if argument.type == "word":
                written(arguments[name], "none", name)  # One word, also where quotes could hold more.
        return filled(command.command, arguments, quoting)
    except ValueError as error:
        raise DriverError(f"{command.name}: {error}; nothing was sent") from None


def _result(outcome: Outcome, command: Command) -> Any:
    """Turn the outcome into the tool's result, or into an error that says what is known of the effect."""
    name = command.name
    match outcome:
        case Done(status=None) if command.effect != "read":
            raise EffectUnknown(f"{name} ended, and the device told no status: {_cut(outcome.output)[:200]!r}")
        case Done():
            text = "\n".join([outcome.output, *outcome.noise]) if command.answer.keep_noise else outcome.output
            return read_answer(text, command.answer, name)
        case Failed():
            status = "" if outcome.status is None else f" with status {outcome.status}"
            raise CommandFailed(f"{name} failed{status}: {_cut(outcome.output)}")
        case NotSent():
            raise DriverUnavailable(f"{name} was not sent: {outcome.because}{_heard(outcome.output)}")
        case TimedOut():
            raise EffectUnknown(
                f"{name} did not end within {outcome.after_ms} ms; its effect is unknown{_heard(outcome.output)}"
            )
        case DeviceReset():
            raise EffectUnknown(f"the device started again during {name} ({outcome.banner}); its effect is unknown")
        case LinkWasLost():
            raise EffectUnknown(f"the line was lost during {name} ({outcome.because}); its effect is unknown")
        case WaitingForInput():
            raise EffectUnknown(
                f"{name} asks {outcome.question!r} and still runs; a person must answer or interrupt it"
                f" (edgeagent device answer, edgeagent device interrupt){_heard(outcome.output)}"
            )
        case _:
            assert_never(outcome)


def _heard(output: str) -> str:
    """The last lines heard, as the end of a message."""
    return f". Last heard: {output.strip()[-LAST_CHARS:]!r}" if output.strip() else ". Nothing was heard"


def read_answer(text: str, reading: Reading, name: str) -> Any:
    """Read an answer as the profile says. Raises PeerMisbehaved when it does not look like that."""
    match reading.kind:
        case "text":
            return _cut(text)
        case "lines":
            return [line for line in _cut(text).split("\n") if line]
        case "integer" | "number":
            found = re.search(reading.pattern or r"(-?(?:0x[0-9a-fA-F]+|\d+(?:\.\d+)?))", text)
            return _number(found, reading.kind, text, name)
        case "match":
            found = re.search(reading.pattern, text, re.MULTILINE)
            if found is None:
                raise PeerMisbehaved(f"{name} answered {_cut(text)[:200]!r}, which does not fit its pattern")
            return {key: value or "" for key, value in found.groupdict().items()}
        case _:
            assert_never(reading.kind)


def _number(found: re.Match[str] | None, kind: str, text: str, name: str) -> int | float:
    if found is None:
        raise PeerMisbehaved(f"{name} answered {_cut(text)[:200]!r}, which holds no number")
    digits = found.group(1) if found.re.groups else found.group()
    if kind != "integer" and (why := why_not_held(digits)):
        raise PeerMisbehaved(f"{name} answered a number that cannot be told: {why}")
    try:
        return int(digits, 0) if kind == "integer" else float(digits)
    except ValueError:
        raise PeerMisbehaved(f"{name} answered {digits[:40]!r}, which is no {kind}") from None


def _cut(text: str) -> str:
    if len(text) <= ANSWER_CHARS_MAX:
        return text
    return f"{text[:ANSWER_CHARS_MAX]}\n[{len(text) - ANSWER_CHARS_MAX} characters more were cut]"


def schema_of(properties: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the JSON Schema of arguments; those without a default must be given."""
    required = [name for name, each in properties.items() if "default" not in each]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def argument_schema(argument: Argument) -> dict[str, Any]:
    """Return the JSON Schema of a declared argument."""
    about = " ".join(part for part in (argument.help, f"[{argument.unit}]" if argument.unit else "") if part)
    words: dict[str, Any] = {"description": about} if about else {}
    words |= {} if argument.default is None else {"default": argument.default}
    low, high = argument.minimum, argument.maximum
    match argument.type:
        case "integer":
            return words | {"type": "integer", "minimum": int(low or 0), "maximum": int(high or 0)}
        case "number":
            return words | {"type": "number", "minimum": low, "maximum": high}
        case "boolean":
            return words | {"type": "boolean"}
        case "choice":
            return words | {"type": "string", "enum": list(argument.choices)}
        case "word" | "text":
            pattern = anchored(argument.pattern or WORD_PATTERN)
            return words | {"type": "string", "pattern": pattern, "minLength": 1, "maxLength": argument.length_max}
        case _:
            assert_never(argument.type)


def _description(command: Command) -> str:
    """The help, with the arguments' own words: what the model and the chooser read."""
    lines = [command.help.strip()]
    for name, argument in command.arguments.items():
        if argument.help or argument.unit:
            lines.append(f"{name}: {argument.help}{f' [{argument.unit}]' if argument.unit else ''}")
    return "\n".join(lines)

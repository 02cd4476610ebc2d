"""Tools of a board that describes itself: typed and guarded, over SMP.

Laws: what a board answers is untrusted, and must be as the board described it. Reading runs; writing needs a rule or a
person. A call whose answer does not come is unknown: it is never sent again, and not made again until a person has
looked. A board that describes other tools than before is not spoken with.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection
from decimal import Decimal
from typing import Any, assert_never

from edgeagent.core.agent import Tool
from edgeagent.core.values import canonical_json
from edgeagent.driver.bus import smp
from edgeagent.driver.bus.smp_client import SmpClient, SmpDone, SmpNotSent, SmpOutcome, SmpRefused, SmpUnknown
from edgeagent.driver.device import description as described
from edgeagent.driver.device.description import CALL, DESCRIBE, GROUP, LIST, DescribedTool, Description, Field
from edgeagent.driver.device.device_tools import EXTRA_S, schema_of
from edgeagent.driver.line.port import PortSettings, SerialPort
from edgeagent.driver.unknown import CommandFailed, EffectUnknown, UnknownEffects
from edgeagent.errors import ConfigError, DriverError, DriverUnavailable, PeerMisbehaved

OPEN_S = 2.0
DESCRIBE_S = 20.0
"""For the whole description: 33 questions of a few lines each, at 115200 baud and 30 ms a line."""

LINE_S = 1.0
"""What the line itself may add to the time a tool may take."""

NO_SUCH_TOOL, WRONG_ARGUMENTS, TOOL_FAILED, DONE_BUT_TOO_LONG = 1, 2, 3, 4


class BoardTools:
    """The tools of one board, and what is known of their effects."""

    def __init__(
        self,
        description: Description,
        client: Callable[[], SmpClient],
        *,
        ruled: Collection[str] = (),
        confirm_reads: bool = False,
        notes: Callable[[], tuple[str, ...]] | None = None,
    ) -> None:
        """`client` gives the open client when it is needed; `ruled` names tools that a rule guards already.

        `confirm_reads`: a person is asked before every call; for a board whose word on what only reads is not enough.
        `notes` gives what befell the line since it was last asked.
        """
        self._notes = notes
        self.description = description
        self._client = client
        self._unknown = UnknownEffects(PeerMisbehaved)
        unheard = sorted(set(ruled) - {tool.name for tool in description.tools})
        if unheard:
            raise ConfigError(f"board {description.board} has no tool {unheard[0]}, which a rule is said to guard")
        self.tools = tuple(self._tool(each, each.name in ruled, confirm_reads) for each in description.tools)

    def looked(self) -> tuple[str, ...]:
        """A person has looked at the board: calls with an unknown effect may be made again. Returns what was held."""
        return self._unknown.looked()

    def _tool(self, each: DescribedTool, ruled: bool, confirm_reads: bool) -> Tool:
        return Tool.of_schema(
            each.name,
            _description(each),
            schema_of({field.name: _schema_of_field(field) for field in each.arguments}),
            lambda arguments: self._call(each, arguments),
            idempotent=each.idempotent,
            effect=each.effect,
            confirm=not ruled and (confirm_reads or each.effect != "read"),
            timeout_s=each.timeout_ms / 1000 + LINE_S + EXTRA_S,
            pre=_in_steps(each) if any(field.type == "number" for field in each.arguments) else None,
            notes=self._notes,
        )

    def _call(self, tool: DescribedTool, arguments: dict[str, Any]) -> Any:
        wire = {field.name: _wire(field, arguments[field.name], tool.name) for field in tool.arguments}
        key = (tool.name, canonical_json(wire))
        self._unknown.check(key)
        client = self._client()
        body = {"tool": tool.name, "args": wire}
        outcome = client.request(smp.WRITE, GROUP, CALL, body, tool.timeout_ms / 1000 + LINE_S)
        harmless = tool.idempotent and tool.effect == "read"
        return self._unknown.noted(key, lambda: _result(tool, outcome), harmless=harmless)


class Board:
    """A board that describes its tools, on a serial line. `close` lets it go."""

    def __init__(
        self,
        where: str,
        *,
        description: Description | None = None,
        ruled: Collection[str] = (),
        baud: int = 115_200,
        confirm_reads: bool = False,
    ) -> None:
        """`where` names the port as in `edgeagent device list`.

        Without `description` the board is asked now. With one nothing is opened before the first call, and a board
        that then describes itself otherwise is refused. Raises DriverUnavailable, PeerMisbehaved.
        """
        self.where = where
        self.port = SerialPort(PortSettings(where, baud))
        self._opened: SmpClient | None = None
        self._opening = threading.Lock()
        self._known = description
        if description is None:
            self.client()
        self._guarded = BoardTools(
            self.description, self.client, ruled=ruled, confirm_reads=confirm_reads, notes=self.port.take_notes
        )

    @property
    def description(self) -> Description:
        """What the board says of itself, or what was saved of it."""
        assert self._known is not None, "there is no board without a description"
        return self._known

    @property
    def tools(self) -> tuple[Tool, ...]:
        """One tool for each that the board describes."""
        return self._guarded.tools

    def looked(self) -> tuple[str, ...]:
        """A person has looked at the board; calls with an unknown effect may be made again."""
        return self._guarded.looked()

    def client(self) -> SmpClient:
        """Return the open client; open the line, or find it again after it was lost, and ask the board who it is.

        Raises DriverUnavailable when it is not there or describes other tools than before, PeerMisbehaved.
        """
        with self._opening:
            if self._opened is not None and self.port.is_open:
                return self._opened
            self.port.reopen(OPEN_S)
            try:
                client = SmpClient(self.port)
                found = describe(client)
                if self._known is not None and found != self._known:
                    raise DriverUnavailable(f"{self.where}: {_difference(self._known, found)}")
            except DriverError:
                self.port.close()
                raise
            self._known, self._opened = found, client
            return client

    def close(self) -> None:
        """Let the line go."""
        self.port.close()


def describe(client: SmpClient, timeout_s: float = DESCRIBE_S) -> Description:
    """Ask a board for everything it can do. Raises DriverUnavailable, PeerMisbehaved."""
    until = time.monotonic() + timeout_s

    def ask(command: int, body: dict[str, Any], what: str) -> dict[Any, Any]:
        left = min(3.0, until - time.monotonic())
        return _answered(client.request(smp.READ, GROUP, command, body, left), what)

    greeted = client.greet(min(3.0, timeout_s))
    if not isinstance(greeted, SmpRefused):  # A board need not know the question; it must answer.
        _answered(greeted, "how much it takes in")
    board, count = described.read_listing(ask(LIST, {}, "which tools it has"))
    tools = (described.read_tool(ask(DESCRIBE, {"tool": n}, f"what its tool {n} does"), n) for n in range(count))
    return described.description_of(board, tuple(tools))


def _answered(outcome: SmpOutcome, what: str) -> dict[Any, Any]:
    match outcome:
        case SmpDone():
            return outcome.body
        case SmpRefused():
            raise DriverUnavailable(
                f"the board does not say {what} (error {outcome.code}): can it describe tools (group {GROUP})?"
            )
        case SmpNotSent() | SmpUnknown():
            raise DriverUnavailable(f"the board did not say {what}: {outcome.because}")
        case _:
            assert_never(outcome)


def _difference(before: Description, found: Description) -> str:
    old, new = ({tool.name: tool for tool in each.tools} for each in (before, found))
    changed = sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))
    names = ", ".join(changed) or "only their order"
    return (
        f"board {found.board} describes its tools otherwise than before ({names}): look, then save the new description"
    )


def _result(tool: DescribedTool, outcome: SmpOutcome) -> Any:
    """Turn the outcome into the tool's result, or into an error that says what is known of the effect."""
    match outcome:
        case SmpDone():
            return _read_results(tool, outcome.body)
        case SmpRefused():
            raise _refusal(tool.name, outcome)
        case SmpNotSent():
            raise DriverUnavailable(f"{tool.name} was not sent: {outcome.because}")
        case SmpUnknown():
            raise EffectUnknown(f"{tool.name} was sent and its effect is unknown: {outcome.because}")
        case _:
            assert_never(outcome)


def _refusal(name: str, refused: SmpRefused) -> DriverError:
    said, about = (str(refused.body.get(key, ""))[:200] for key in ("rsn", "arg"))
    if refused.group == GROUP and refused.code == DONE_BUT_TOO_LONG:
        return EffectUnknown(f"{name} was done, and what came of it is unknown: its results do not fit an answer")
    if refused.group == GROUP and refused.code == TOOL_FAILED:
        return CommandFailed(f"{name} failed: {said!r}")
    if refused.group == GROUP and refused.code == WRONG_ARGUMENTS:
        return CommandFailed(f"{name} was not done: the board does not take {about or 'the arguments'!r} ({said!r})")
    if refused.group == GROUP and refused.code == NO_SUCH_TOOL:
        return DriverUnavailable(f"{name} was not done: the board has no such tool any more")
    return CommandFailed(f"{name} was refused with error {refused.code} of group {refused.group}: {said!r}")


def _read_results(tool: DescribedTool, body: dict[Any, Any]) -> Any:
    """Return the results in the units the board described. Raises PeerMisbehaved."""
    given = body.get("results")
    names = [field.name for field in tool.results]
    if not isinstance(given, dict) or set(given) != set(names):
        raise PeerMisbehaved(f"{tool.name} was done, but answers {str(body)[:200]} instead of the results {names}")
    return {field.name: _read(field, given[field.name], tool.name) for field in tool.results} or "done"


def _read(field: Field, value: Any, name: str) -> Any:
    low, high = field.bounds
    match field.type:
        case "integer" | "number" if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
            return value if field.type == "integer" else value / 10**field.decimals
        case "boolean" if isinstance(value, bool):
            return value
        case "choice" if value in field.choices:
            return value
        case "text" if isinstance(value, str) and low <= len(value) <= high and value.isprintable():
            return value
        case _:
            raise PeerMisbehaved(f"{name} was done, but its {field.name} is {str(value)[:100]!r}, other than described")


def _wire(field: Field, value: Any, name: str) -> Any:
    """Return the value as it goes over the line."""
    if field.type != "number":
        return value
    steps = _steps(field, value)
    if steps != int(steps):
        raise DriverError(f"{name}: {_not_in_steps(field, value)}; nothing was sent")
    return int(steps)


def _steps(field: Field, value: Any) -> Decimal:
    return Decimal(str(value)).scaleb(field.decimals)


def _not_in_steps(field: Field, value: Any) -> str:
    return f"{field.name} is {value}, and goes in steps of {Decimal(1).scaleb(-field.decimals)}"


def _in_steps(tool: DescribedTool) -> Callable[..., bool | str]:
    numbers = {field.name: field for field in tool.arguments if field.type == "number"}

    def numbers_in_steps(**arguments: Any) -> bool | str:
        """Numbers in the steps that the board counts in."""
        for name, field in numbers.items():
            steps = _steps(field, arguments[name])
            if steps != int(steps):
                return _not_in_steps(field, arguments[name])
        return True

    return numbers_in_steps


def _schema_of_field(field: Field) -> dict[str, Any]:
    """The JSON Schema of a described argument."""
    low, high = field.bounds
    words: dict[str, Any] = {"description": about} if (about := _about(field)) else {}
    match field.type:
        case "integer":
            return words | {"type": "integer", "minimum": low, "maximum": high}
        case "number":
            unit = 10**field.decimals
            return words | {"type": "number", "minimum": low / unit, "maximum": high / unit}
        case "boolean":
            return words | {"type": "boolean"}
        case "choice":
            return words | {"type": "string", "enum": list(field.choices)}
        case "text":
            return words | {"type": "string", "pattern": "^[ -~]*$", "minLength": low, "maxLength": high}
        case _:
            assert_never(field.type)


def _about(field: Field) -> str:
    return " ".join(part for part in (field.help, f"[{field.unit}]" if field.unit else "") if part)


def _description(tool: DescribedTool) -> str:
    """The help, with the arguments' own words: what the model and the chooser read."""
    lines = [f"{field.name}: {_about(field)}" for field in tool.arguments if _about(field)]
    return "\n".join([tool.help.strip(), *lines])

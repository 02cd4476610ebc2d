"""Messages beside ACP's, each under a name that begins with `_edgeagent/`: what is sent, what is answered, as values.

`schema` is made of them, so a host in any language can have its types from it.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from edgeagent.doors.acp.messages import OfSession

PREFIX = "_edgeagent/"
TOOLS_MAX = 64


class Plain(msgspec.Struct, frozen=True, rename="camel"):
    """What all are written like."""


class HostTool(Plain, frozen=True, kw_only=True):
    """A tool that runs in the host. `idempotent` must be said: whether running it twice does no more than once."""

    name: str
    description: str
    input_schema: dict[str, Any]
    idempotent: bool
    effect: Literal["read", "write", "irreversible"] = "write"
    confirm: bool = False
    sensitive: bool = False
    trusted: bool = False
    timeout_seconds: float = 30.0


class Declare(Plain, frozen=True):
    """The tools of sessions that are begun or loaded from now on, in place of those declared before."""

    tools: tuple[HostTool, ...]


class Declared(Plain, frozen=True):
    """The names that rules and traces know them by."""

    tools: tuple[str, ...]


class CallTool(Plain, frozen=True):
    """Asked of the host: run a tool. The answer is its result, any JSON; an error is the tool's failure."""

    session_id: str
    tool: str
    arguments: dict[str, Any]


class Events(Plain, frozen=True, kw_only=True):
    """The records of a session from `since` on; with `follow` those to come are told as they are written."""

    session_id: str
    since: int = 0
    follow: bool = False


class Recorded(Plain, frozen=True):
    """Some records, and the number of the one behind them; `more` says that there are such already."""

    records: tuple[dict[str, Any], ...]
    next: int
    more: bool = False


class Record(Plain, frozen=True):
    """Told to the host: one record that was written, its event, its effects, and where the session stands."""

    session_id: str
    record: dict[str, Any]


class State(Plain, frozen=True):
    """Where a session stands."""

    state: dict[str, Any]
    records: int


class Budgets(Plain, frozen=True):
    """The limits of a turn and of the session, null where it has none, and what is spent of each."""

    turn: dict[str, Any]
    session: dict[str, Any] | None
    spent: dict[str, Any]
    spent_in_session: dict[str, Any]


class Replayed(Plain, frozen=True):
    """Whether the trace, folded again, came to the effects that were recorded; else at which record it did not."""

    records: int
    agrees: bool
    differs_at: int | None = None
    because: str = ""


ASKED: dict[str, tuple[type, type]] = {
    f"{PREFIX}declare_tools": (Declare, Declared),
    f"{PREFIX}events": (Events, Recorded),
    f"{PREFIX}state": (OfSession, State),
    f"{PREFIX}budgets": (OfSession, Budgets),
    f"{PREFIX}replay": (OfSession, Replayed),
}
"""What a host may ask, with what it sends and what it is answered."""

CALL_TOOL, RECORD = f"{PREFIX}call_tool", f"{PREFIX}record"
"""What a host is asked, and what it is told."""


def schema() -> dict[str, Any]:
    """The JSON Schema of every message of ours: `$defs` by name, and which method sends and answers which."""
    kinds = [CallTool, Record, *(kind for pair in ASKED.values() for kind in pair)]
    unique = tuple(dict.fromkeys(kinds))
    refs, definitions = msgspec.json.schema_components(unique, ref_template="#/$defs/{name}")
    ref_of = dict(zip(unique, refs, strict=True))
    asked = {name: {"params": ref_of[sent], "result": ref_of[answered]} for name, (sent, answered) in ASKED.items()}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Messages of `edgeagent host` beside those of ACP",
        "x-asked-by-host": asked,
        "x-asked-of-host": {CALL_TOOL: {"params": ref_of[CallTool], "result": True}},
        "x-told-to-host": {RECORD: {"params": ref_of[Record]}},
        "$defs": definitions,
    }

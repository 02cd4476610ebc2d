"""Pieces of a reply, joined: what all three APIs collect while a reply streams."""

from __future__ import annotations

from typing import Any

from edgeagent.codec.conversation import Call, CallArguments, CallBegun, Delta, Reasoning, Refusal, Text
from edgeagent.core.text import readable

CALLS_MAX = 128
"""Calls in one reply that are read; a model in a loop writes more."""

_FIXED = frozenset({"type", "id", "index", "format", "role", "name"})
"""Vendors' fields that every piece repeats; other texts are joined."""


class CallPieces:
    """A call as far as it has come."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.id = ""
        self.tool = ""
        self.arguments: list[str] = []
        self.begun = False
        self.fields: dict[str, Any] = {}

    def call(self) -> Call:
        """The whole call. No arguments at all are those of a tool that takes none."""
        return Call(self.id or f"call_{self.index}", self.tool, "".join(self.arguments) or "{}")


class Pieces:
    """What a reply consists of so far."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.thoughts: list[str] = []
        self.refusals: list[str] = []
        self.calls: list[CallPieces] = []

    def say(self, text: Any, out: list[Delta]) -> None:
        """Add to the answer."""
        if isinstance(text, str) and text:
            self.texts.append(text)
            out.append(Text(text))

    def think(self, text: Any, out: list[Delta]) -> None:
        """Add to the reasoning."""
        if isinstance(text, str) and text:
            self.thoughts.append(text)
            out.append(Reasoning(text))

    def refuse(self, text: Any, out: list[Delta]) -> None:
        """Add to a refusal."""
        if isinstance(text, str) and text:
            self.refusals.append(text)
            out.append(Refusal(text))

    def new_call(self) -> CallPieces | None:
        """Begin another call; None where there are too many."""
        if len(self.calls) >= CALLS_MAX:
            return None
        self.calls.append(CallPieces(len(self.calls)))
        return self.calls[-1]

    def name(self, call: CallPieces, call_id: Any, tool: Any, out: list[Delta]) -> None:
        """Take a call's id and name where they come first; the arguments that came before them follow."""
        if isinstance(call_id, str) and not call.id:
            call.id = call_id
        if isinstance(tool, str) and tool and not call.begun:
            call.tool, call.begun = tool, True
            call.id = call.id or f"call_{call.index}"
            out.append(CallBegun(call.index, call.id, tool))
            out.extend(CallArguments(call.index, piece) for piece in call.arguments)

    def argue(self, call: CallPieces, text: Any, out: list[Delta]) -> None:
        """Add to a call's arguments."""
        if isinstance(text, str) and text:
            call.arguments.append(text)
            if call.begun:
                out.append(CallArguments(call.index, text))

    def end(self, out: list[Delta]) -> None:
        """Begin the calls that never got a name: whoever reads them refuses them, for all to see."""
        for call in self.calls:
            if not call.begun:
                call.begun = True
                out.append(CallBegun(call.index, call.call().id, ""))
                out.extend(CallArguments(call.index, piece) for piece in call.arguments)


def number(value: Any) -> int:
    """A count that a server gives, or 0."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 53 else 0


def word(value: Any) -> str:
    """A short text that a server gives, or an empty one."""
    return readable(value)[:200] if isinstance(value, str) else ""


def fields(value: Any) -> dict[str, Any]:
    """An object that a server gives, or an empty one."""
    return value if isinstance(value, dict) else {}


def objects(value: Any) -> list[dict[str, Any]]:
    """The objects of a list that a server gives."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def merge(into: dict[str, Any], piece: dict[str, Any], depth: int = 8) -> None:
    """Add a piece of fields that nobody here knows: texts and lists grow, objects are merged, the rest is replaced."""
    for name, new in piece.items():
        match into.get(name), new:
            case _, None:
                into.setdefault(name, None)
            case str(old), str() if name not in _FIXED:
                into[name] = old + new
            case list(old), list():
                into[name] = [*old, *new]
            case dict(old), dict() if depth:
                into[name] = dict(old)
                merge(into[name], new, depth - 1)
            case _:
                into[name] = new

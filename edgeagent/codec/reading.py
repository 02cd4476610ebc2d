"""Reading of one reply, as far as it has come: what all three APIs share. Each of them says what its events mean.

Whatever is read adds deltas to `out`; the last one is Ended or Failure, and after it nothing is read.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from operator import attrgetter
from typing import Any, TypeVar

from edgeagent.codec.conversation import (
    ApiName,
    Call,
    CallArguments,
    CallBegun,
    Delta,
    Ended,
    Kept,
    Reason,
    Reasoning,
    Refusal,
    Reply,
    Text,
)
from edgeagent.codec.failures import CUT_SHORT, Failure, error_in, failure_in, malformed
from edgeagent.codec.json_text import read_object, write, write_text
from edgeagent.codec.sse import SseEvent
from edgeagent.core.text import readable
from edgeagent.core.values import Usage

P = TypeVar("P")

CALLS_MAX = 128
"""Calls in one reply that are read; a model in a loop writes more."""

DONE = b"[DONE]"
"""The end of chat completions; some servers send it behind the other APIs' own ends, too."""

REASONS: dict[str, Reason] = {
    "stop": "end",
    "end_turn": "end",
    "stop_sequence": "end",
    "completed": "end",
    "tool_calls": "calls",
    "function_call": "calls",
    "tool_use": "calls",
    "length": "limit",
    "max_tokens": "limit",
    "max_output_tokens": "limit",
    "model_context_window_exceeded": "limit",
    "content_filter": "filtered",
    "refusal": "refused",
}
"""The three APIs' words for why a reply ended."""


class Broken(Exception):
    """The reply cannot be read any further; caught by the stream."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.text)
        self.failure = failure


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


_name = attrgetter("name")


class Reading:
    """One reply. An API's own reading says what an event (`take_value`) and a whole body (`take_body`) mean."""

    api: ApiName

    def __init__(self) -> None:
        self.done = False
        self.failure: Failure | None = None
        self.out: list[Delta] = []
        self.texts: list[str] = []
        self.thoughts: list[str] = []
        self.refusals: list[str] = []
        self.calls: list[CallPieces] = []
        self.usage: Usage | None = None
        self.finish = ""
        self.model = self.id = ""

    # -- what an API adds ------------------------------------------------------------------------------------------

    def take_usual(self, data: bytes) -> bool:
        """Read the event that most often comes, fast. False: nothing was read, it is another one."""
        return False

    def take_run(self, datas: list[bytes]) -> bool:
        """Read many of these at once, faster still. False: nothing was read, not all of them are such."""
        return False

    def take_value(self, value: dict[str, Any]) -> None:
        """Read one event."""
        raise NotImplementedError

    def take_body(self, value: dict[str, Any]) -> None:
        """Read a reply that was not streamed."""
        raise NotImplementedError

    def kept(self) -> Any:
        """Return the reply as this API wants it back."""
        raise NotImplementedError

    # -- reading ---------------------------------------------------------------------------------------------------

    def take(self, events: list[SseEvent]) -> None:
        """Read events, up to the one that ends the reply. Raises Broken."""
        for run in runs_of(events, _name) if events else ():
            datas = [event.data for event in run]
            if self.done or (len(run) > 1 and run[0].name != b"error" and self.take_run(datas)):
                continue
            for event in run:
                if self.done:
                    return
                if event.name == b"error" or not self.take_usual(event.data):
                    self._take(event)

    def _take(self, event: SseEvent) -> None:
        if event.data.strip() == DONE:
            self.finish = self.finish or ("stop" if self.api == "chat" else "")
            self.finished()
            return
        value = read_object(event.data)
        is_error = event.name == b"error"
        if value is None:
            failure = failure_in({"message": readable(event.data)})
            raise Broken(failure if is_error else malformed("has an event that is no JSON object", event.data))
        error = error_in(value) or (value if is_error else None)
        if error is not None:
            raise Broken(failure_in(error))
        self.take_value(value)

    def fail(self, failure: Failure) -> None:
        """End without a reply."""
        self.done, self.failure = True, failure
        self.out.append(failure)

    def finished(self) -> None:
        """End with a reply, if its reason has come: not every server sends a last event. Raises Broken.

        A call that never got a name begins without one: whoever reads it refuses it, for all to see.
        """
        if not self.finish:
            raise Broken(CUT_SHORT)
        self.done = True
        for call in self.calls:
            if not call.begun:
                self._begin(call)
        if self.usage is not None:
            self.out.append(self.usage)
        self.out.append(self.ended())

    # -- pieces ----------------------------------------------------------------------------------------------------

    def say(self, text: Any) -> None:
        """Add to the answer."""
        if isinstance(text, str) and text:
            self.texts.append(text)
            self.out.append(Text(text))

    def think(self, text: Any) -> None:
        """Add to the reasoning."""
        if isinstance(text, str) and text:
            self.thoughts.append(text)
            self.out.append(Reasoning(text))

    def refuse(self, text: Any) -> None:
        """Add to a refusal."""
        if isinstance(text, str) and text:
            self.refusals.append(text)
            self.out.append(Refusal(text))

    def say_all(self, texts: list[str]) -> None:
        """Add pieces to the answer, none of which is empty."""
        self.texts += texts
        self.out += map(Text, texts)

    def think_all(self, texts: list[str]) -> None:
        """Add pieces to the reasoning, none of which is empty."""
        self.thoughts += texts
        self.out += map(Reasoning, texts)

    def argue_all(self, call: CallPieces, texts: list[str]) -> None:
        """Add pieces to a call's arguments, none of which is empty."""
        call.arguments += texts
        if call.begun:
            self.out += [CallArguments(call.index, text) for text in texts]

    def new_call(self) -> CallPieces:
        """Begin another call."""
        if len(self.calls) >= CALLS_MAX:
            raise Broken(Failure("too_large", f"the answer calls more than {CALLS_MAX} tools at once"))
        self.calls.append(CallPieces(len(self.calls)))
        return self.calls[-1]

    def name(self, call: CallPieces, call_id: Any, tool: Any) -> None:
        """Take a call's id and name where they come first; the arguments that came before them follow."""
        if isinstance(call_id, str) and not call.id:
            call.id = call_id
        if isinstance(tool, str) and tool and not call.begun:
            call.tool = tool
            self._begin(call)

    def argue(self, call: CallPieces, arguments: Any) -> None:
        """Add to a call's arguments; some servers write them as an object."""
        text = write_text(arguments) if isinstance(arguments, dict) else arguments
        if isinstance(text, str) and text:
            call.arguments.append(text)
            if call.begun:
                self.out.append(CallArguments(call.index, text))

    def _begin(self, call: CallPieces) -> None:
        call.begun = True
        call.id = call.id or f"call_{call.index}"
        self.out.append(CallBegun(call.index, call.id, call.tool))
        self.out.extend(CallArguments(call.index, piece) for piece in call.arguments)

    # -- the reply -------------------------------------------------------------------------------------------------

    def ended(self) -> Ended:
        """Return why it ended. Not every server says so when it wants calls made, or refuses."""
        reason = REASONS.get(self.finish, "other")
        if reason == "end" and self.calls:
            reason = "calls"
        if reason == "end" and self.refusals:
            reason = "refused"
        return Ended(reason, self.finish)

    def reply(self) -> Reply:
        """Return what has come so far, as a reply."""
        return Reply(
            text="".join(self.texts),
            reasoning="".join(self.thoughts),
            refusal="".join(self.refusals),
            calls=tuple(call.call() for call in self.calls),
            usage=self.usage,
            ended=self.ended(),
            model=self.model,
            id=self.id,
            kept=Kept(self.api, write_text(self.kept())),
        )


def lacking(what: str, value: dict[str, Any]) -> Broken:
    """Return what is raised where a body lacks what its API promises."""
    return Broken(malformed(f"has no {what}", write(value)))


def usage_of(usage: dict[str, Any]) -> Usage:
    """Return what a reply cost. OpenAI's prompt includes what the server remembered; Anthropic counts it beside."""
    written = number(usage.get("completion_tokens", usage.get("output_tokens")))
    if "prompt_tokens" in usage or "input_tokens_details" in usage:
        prompt = number(usage.get("prompt_tokens", usage.get("input_tokens")))
        details = fields(usage.get("prompt_tokens_details") or usage.get("input_tokens_details"))
        return Usage(prompt, max(prompt - number(details.get("cached_tokens")), 0), written)
    fresh = number(usage.get("input_tokens")) + number(usage.get("cache_creation_input_tokens"))
    return Usage(fresh + number(usage.get("cache_read_input_tokens")), fresh, written)


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


class _Texts(list[str]):
    """A text that grows: joined once, at the end."""


def grow(into: dict[str, Any], name: str, texts: list[str]) -> None:
    """Add pieces to a text, as `merge` would one by one."""
    for place, text in enumerate(texts):
        if isinstance(old := into.get(name), _Texts):
            old += texts[place:]
            return
        merge(into, {name: text})


def array_of(datas: list[bytes]) -> bytes:
    """One JSON array of the values of many events.

    What is no JSON alone is none in the array: a line feed between two values can stand in no text, and in an object
    only where a text follows. What holds several values, or part of one in a list, must be told by whoever decodes:
    there must be as many values as events, and in them no list that may hold anything.
    """
    return b"[" + b"\n,\n".join(datas) + b"]"


def runs_of(pieces: list[P], kind: Callable[[P], object]) -> list[list[P]]:
    """The pieces, those together that follow each other and are of a kind: mostly all of them."""
    if len({kind(piece) for piece in pieces}) == 1:
        return [pieces]
    return [[*run] for _, run in groupby(pieces, kind)]


_FIXED = frozenset({"type", "id", "index", "format", "role", "name"})
"""Vendors' fields that every piece repeats; other texts are joined."""


def merge(into: dict[str, Any], piece: dict[str, Any], depth: int = 8) -> None:
    """Add a piece of fields that nobody here knows: texts and lists grow, objects are merged, the rest is replaced."""
    for name, new in piece.items():
        match into.get(name), new:
            case _, None:
                into.setdefault(name, None)
            case _Texts() as old, str():
                old.append(new)
            case str(old), str() if name not in _FIXED:
                into[name] = _Texts((old, new))
            case list(old), list():
                old.extend(new)
            case dict(old), dict() if depth:
                merge(old, new, depth - 1)
            case _:
                into[name] = new


def joined(value: Any) -> Any:
    """Return what was merged, with every text in one piece."""
    match value:
        case _Texts():
            return "".join(value)
        case dict():
            return {name: joined(each) for name, each in value.items()}
        case _:
            return value

"""Run tools: each call in a thread of its own, with a time-out, answered exactly once.

A Python thread cannot be ended from outside. A tool that does not return in time is answered with a time-out
and left behind; its effect is unknown, and what it returns later is not heard.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Protocol

import msgspec

from edgeagent.core.agent import RESULT_MORE, Tool
from edgeagent.core.condition import why_not_after
from edgeagent.core.effects import CallTool, Effect
from edgeagent.core.events import ToolFailed, ToolReturned
from edgeagent.core.results import NOTE_BYTES
from edgeagent.core.text import error_text
from edgeagent.core.values import canonical_json, read_json
from edgeagent.driver.base import Post
from edgeagent.driver.result import CannotShow, told_of
from edgeagent.errors import ShapeError

RESULT_BYTES_MAX = 64 * 1024
"""The most of a result that is recorded; of more it is the beginning, and how much there was."""

NOT_KEPT = "the rest of it is not kept any more"

NOTES_MAX = 16
"""Notes of one result; a line that comes and goes leaves more, and the last ones tell enough."""

BLOBS_MAX = 8
"""Pieces of bytes of one result that are kept; a picture or two is what a tool returns."""

LEFT_BEHIND_MAX = 16
"""Calls that may be left behind before no new one is started: something outside hangs, and threads are not free."""


class Rests(Protocol):
    """Keeps results for being read on. A result is its text, as `core.state.Kept` says."""

    def keep(self, effect_id: int, text: str) -> int:
        """Keep a result that is longer than what is recorded; return of how many characters that was done."""

    def keep_bytes(self, effect_id: int, number: int, content: bytes) -> str:
        """Keep bytes of a result, the how many-th of it; return under which name, nothing where there is no room."""

    def part(self, effect_id: int, at: int) -> str:
        """Return some of a result from this place on, whether kept or recorded whole; nothing if it is not there."""


class Returned(NamedTuple):
    """What a call came to; `text` is the whole result where only its beginning is in the event, `blobs` its bytes."""

    event: ToolReturned | ToolFailed
    text: str = ""
    blobs: tuple[bytes, ...] = ()


class ToolDriver:
    """Owns the threads that tools run in."""

    rests: Rests | None = None
    """Where results are kept; without it none can be read on."""

    def __init__(self, tools: Mapping[str, Tool]) -> None:
        self._tools = tools
        self._open: dict[int, threading.Timer] = {}
        self._left_behind = 0
        self._lock = threading.Lock()

    def submit(self, effect: Effect, post: Post) -> None:
        """Start the call; ToolReturned or ToolFailed follows."""
        assert isinstance(effect, CallTool), "the wiring sends only calls here"
        if self._left_behind >= LEFT_BEHIND_MAX:
            post(ToolFailed(0, effect.effect_id, "unavailable", f"{LEFT_BEHIND_MAX} earlier calls still hang"))
            return
        timer = threading.Timer(effect.timeout_ms / 1000, self._time_out, (effect, post))
        timer.daemon = True
        with self._lock:
            self._open[effect.effect_id] = timer
        timer.start()
        name = f"tool {effect.tool} {effect.effect_id}"
        threading.Thread(target=self._run, args=(effect, post), name=name, daemon=True).start()

    def cancel(self, effect_id: int) -> None:
        """Nothing can be stopped halfway; the call ends or times out on its own."""

    def close(self) -> None:
        """Stop listening to calls that are still running."""
        with self._lock:
            timers = list(self._open.values())
            self._open.clear()
        for timer in timers:
            timer.cancel()

    def _run(self, effect: CallTool, post: Post) -> None:
        started = time.perf_counter_ns()
        tool = self._tools[effect.tool]
        with _heard(tool.name):
            returned = Returned(self._part(effect)) if tool is RESULT_MORE else result_of(tool, effect)
            _flush()
        micros = (time.perf_counter_ns() - started) // 1000
        if self._is_first_answer(effect.effect_id):
            notes = (*_notes_of(tool), *self._places(returned))
            post(msgspec.structs.replace(self._kept(returned), micros=micros, notes=notes))
        else:
            self._left_behind -= 1

    def _part(self, effect: CallTool) -> ToolReturned:
        """What `result_more` reads."""
        wanted = read_json(effect.arguments)
        piece = self.rests.part(wanted["result"], wanted["at"]) if self.rests is not None else ""
        if not piece:
            return ToolReturned(0, effect.effect_id, "null", unshown=NOT_KEPT)
        return ToolReturned(0, effect.effect_id, canonical_json(piece), kept=len(piece))

    def _kept(self, returned: Returned) -> ToolReturned | ToolFailed:
        """The event, saying how much of the result can be read on. Keeping it is no time of the tool's."""
        event = returned.event
        if self.rests is None or isinstance(event, ToolFailed) or event.kept or event.unshown:
            return event
        kept = self.rests.keep(event.effect_id, returned.text) if returned.text else 0
        if not kept and len(event.value) > NOTE_BYTES:  # What is recorded can be had from there.
            is_text, is_cut = event.value.startswith('"'), event.total > 0
            kept = len(read_json(event.value)) if is_text else len(event.value) - is_cut
        return msgspec.structs.replace(event, kept=kept) if kept else event

    def _places(self, returned: Returned) -> Iterator[str]:
        """Keep the bytes of a result, and yield for people where they are. The model was told what they are."""
        for number, content in enumerate(returned.blobs if self.rests is not None else (), start=1):
            assert self.rests is not None, "without it there are none"
            name = self.rests.keep_bytes(returned.event.effect_id, number, content) if number <= BLOBS_MAX else ""
            yield f"its {len(content)} bytes are {f'kept in {name}' if name else 'not kept'}"
            if number > BLOBS_MAX:
                return

    def _time_out(self, effect: CallTool, post: Post) -> None:
        if self._is_first_answer(effect.effect_id):
            self._left_behind += 1
            because = f"no result after {effect.timeout_ms / 1000:g} s; its effect is unknown"
            notes = _notes_of(self._tools[effect.tool])
            post(ToolFailed(0, effect.effect_id, "time_out", because, notes=notes))

    def _is_first_answer(self, effect_id: int) -> bool:
        with self._lock:
            timer = self._open.pop(effect_id, None)
        if timer is not None:
            timer.cancel()
        return timer is not None


def _heard(tool: str) -> contextlib.AbstractContextManager[None]:
    """What stands in for stdout may want to hear what a call's programs write past it."""
    around = getattr(sys.stdout, "around_call", None)
    return around(tool) if around is not None else contextlib.nullcontext()


def _flush() -> None:
    """Let out what the tool has printed, as its last line may not have ended."""
    with contextlib.suppress(OSError, ValueError, AttributeError):  # It may have closed or taken away the stream.
        print(end="", flush=True)


def _notes_of(tool: Tool) -> tuple[str, ...]:
    """What befell the way to the tool's device since the last call."""
    try:
        return tuple(map(str, tool.notes()))[-NOTES_MAX:] if tool.notes is not None else ()
    # It is outside code, as the tool is; the result stands without it.
    except BaseException as error:
        return (error_text(error),)


def result_of(tool: Tool, effect: CallTool) -> Returned:
    """Call the tool here and now."""
    try:
        arguments = tool.parameters.decode(read_json(effect.arguments))
    except ShapeError as error:
        return Returned(ToolFailed(0, effect.effect_id, "rejected", str(error)))
    try:
        returned = tool.function(**arguments)
        if inspect.iscoroutine(returned):
            returned = asyncio.run(returned)
        wrong = why_not_after(tool, arguments, returned)
        if wrong:
            return Returned(ToolFailed(0, effect.effect_id, "rejected", wrong))
        return _returned(effect.effect_id, returned)
    # The tool is the user's own code and may raise anything, SystemExit included; it must not end the agent.
    except BaseException as error:
        return Returned(ToolFailed(0, effect.effect_id, "raised", error_text(error)[:RESULT_BYTES_MAX]))


def _returned(effect_id: int, value: Any) -> Returned:
    """The tool did its work: that is what is said of it, even where nobody can show what it returned."""
    try:
        plain, text, blobs = told_of(value)
    except CannotShow as reason:
        return Returned(ToolReturned(0, effect_id, "null", unshown=str(reason)))
    if len(text) <= RESULT_BYTES_MAX and len(text.encode()) <= RESULT_BYTES_MAX:
        return Returned(ToolReturned(0, effect_id, text), blobs=blobs)
    if isinstance(plain, list) and (elements := _first_elements(plain)):
        return Returned(ToolReturned(0, effect_id, canonical_json(elements), total=len(plain)), text, blobs)
    whole = plain if isinstance(plain, str) else text
    beginning = canonical_json(whole[: RESULT_BYTES_MAX // 8])
    return Returned(ToolReturned(0, effect_id, beginning, total=len(whole)), whole, blobs)


def _first_elements(whole: list[Any]) -> list[Any]:
    kept, room = 0, RESULT_BYTES_MAX // 2
    while room >= 0 and kept < len(whole):
        room -= len(canonical_json(whole[kept]).encode()) + 1
        kept += room >= 0
    return whole[:kept]

"""Bare model: one answer to a conversation that somebody else keeps, with that one's tools; no session, no rules.

What it writes is held to the tools' schemas as an agent's calls are. The tools are not run here.
"""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from edgeagent.codec.dialect import Family, dialect_called
from edgeagent.core.agent import Agent, Tool
from edgeagent.core.effects import AskModel
from edgeagent.core.events import Event, ModelAnswered, ModelFailed
from edgeagent.core.names import writable
from edgeagent.core.reading import Answer, Calls, Unreadable
from edgeagent.core.values import Choice, Message, Stop, ToolCall, Usage, canonical_json
from edgeagent.driver.model import NO_ROOM
from edgeagent.errors import ShapeError
from edgeagent.request.verbs import acts_of
from edgeagent.runtime.attached import Attached
from edgeagent.runtime.door import Door
from edgeagent.runtime.model import Manner, Model
from edgeagent.runtime.tiers import embedder_of
from edgeagent.runtime.wiring import with_dialect
from edgeagent.shape.parse import parse

KEPT_MAX = 4
"""Conversations whose place in the model's memory is kept for the next ask: each client has one, and there are few."""

LEAST_MAX = 100
"""Characters, items or members that a client's schema may demand."""

_LEAST = frozenset({"minLength", "minItems", "minProperties", "minContains"})

FORM = "answer"
"""The name of the call that stands for an answer in a given form."""


class Offered(msgspec.Struct, frozen=True):
    """A tool that somebody else runs, by the JSON Schema of its arguments."""

    name: str
    about: str
    schema: dict[str, Any]


class BareAsk(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be answered. `allowed` are the names of the tools that may be called now; `form` is a schema that the
    answer must fit, in place of tools."""

    messages: tuple[Message, ...]
    system: str = ""
    tools: tuple[Offered, ...] = ()
    choice: Choice = "either"
    allowed: tuple[str, ...] = ()
    form: Offered | None = None
    max_tokens: int = 512
    seed: int = 0
    manner: Manner = Manner()


class Written(msgspec.Struct, frozen=True):
    """The text that was written, and what was read in it: words or calls, or neither where it was cut off."""

    text: str
    words: str
    calls: tuple[ToolCall, ...]
    stop: Stop
    usage: Usage


class BareFailed(Exception):
    """Nothing usable was written; `reason` is the model's, or `unreadable`, or `no_room`."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Place:
    """A driver, the agent that it serves, and who is told what it writes."""

    def __init__(self, key: str, agent: Agent, model: Model, root: Path, manner: Manner) -> None:
        self.key, self.agent, self.model, self.doors = key, agent, model, Attached()
        self.driver = model.driver(agent, self.doors, root, 0, manner)


class Running:
    """An answer that is being written. `event` ends when it is."""

    def __init__(self, place: Place, ask: AskModel, door: Door, leave: Callable[[Place], None]) -> None:
        self.event: Future[Event] = Future()
        self._place, self._number, self._door, self._leave = place, ask.effect_id, door, leave
        place.doors.add(door, None)
        place.driver.submit(ask, self._post)

    def _post(self, event: Event) -> None:
        if not self.event.done():
            self.event.set_result(event)

    def release(self) -> None:
        """Let go of it; what is still being written ends within a token. From any thread, at once."""
        if not self.event.done():
            self._place.driver.cancel(self._number)
        self.event.add_done_callback(self._left)

    def _left(self, _: Future[Event]) -> None:
        self._place.doors.remove(self._door)
        self._leave(self._place)

    def cancel(self) -> None:
        """Write no more than is written."""
        self._place.driver.cancel(self._number)

    def written(self) -> Written:
        """What was written, once it is. Raises BareFailed."""
        event = self.event.result()
        match event:
            case ModelAnswered(text=text, stop=stop, usage=usage, closed_early=closed):
                return self._read(text, "limit" if closed else stop, usage)
            case ModelFailed(reason=reason, message=message):
                raise BareFailed("no_room" if message.startswith(NO_ROOM) else reason, message)
            case _:
                raise AssertionError("a model driver answers with these two")

    def _read(self, text: str, stop: Stop, usage: Usage) -> Written:
        agent = self._place.agent
        assert agent.dialect is not None, "it was given one"
        match agent.dialect.read(text):
            case Calls(calls=calls):
                return Written(text, "", tuple(self._checked(call) for call in calls), stop, usage)
            case Answer(text=words):
                return Written(text, words, (), stop, usage)
            case Unreadable(because=because):
                if stop in ("limit", "time", "cancelled"):
                    return Written(text, "", (), stop, usage)
                raise BareFailed("unreadable", f"the model wrote a call that is none: {because}")

    def _checked(self, call: ToolCall) -> ToolCall:
        agent = self._place.agent
        named = agent.as_declared(call)
        tool = agent.by_name.get(named.tool)
        if tool is None:
            raise BareFailed("unreadable", f"the model called {named.tool[:80]!r}, which is no tool here")
        try:
            tool.parameters.decode(named.arguments)
        except ShapeError as error:
            raise BareFailed("unreadable", f"the model's arguments are not what the schema asks for: {error}") from None
        return named


class Bare:
    """Answers asks of one loaded model. Any thread may call it."""

    def __init__(self, model: Model, root: Path) -> None:
        self._model, self._root = model, root
        self._idle: list[Place] = []
        """Those that were used last at the end."""
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)

    @property
    def kept(self) -> int:
        """How many places are kept."""
        return len(self._idle)

    @property
    def embedder(self) -> str:
        """The embedder that the model's settings name, if they name one."""
        return embedder_of(self._model.settings)

    @property
    def family(self) -> Family:
        """How the model writes."""
        return dialect_called(self._model.dialect)

    def exchange(self, model: Model) -> None:
        """Ask another model from now on."""
        with self._lock:
            self._model, gone, self._idle = model, self._idle, []
        for each in gone:
            each.driver.close()

    def calls_text(self, calls: Sequence[tuple[str, dict[str, Any]]]) -> str:
        """Calls as the model would have written them."""
        texts = [_call_text(self.family, name, arguments) for name, arguments in calls]
        return f"[{', '.join(texts)}]" if len(texts) > 1 and not self.family.decides else "\n".join(texts)

    def around_form(self) -> tuple[str, str]:
        """What stands before and behind an answer in a given form; twice nothing where it is not written as JSON."""
        frame = self.family.frame
        return ("", "") if frame.string_mark else (f"{frame.before}{FORM}{frame.between}", frame.after)

    def begin(self, ask: BareAsk, door: Door) -> Running:
        """Have an answer written; `door` is streamed its words. Waits for the model to be free where tools are new.

        Raises ConfigError, ShapeError and GrammarError for what the tools are, and ModelError where they do not fit.
        """
        place = self._place(ask)
        tools, choice = (ask.allowed, ask.choice) if ask.form is None else ((FORM,), "call")
        names = tools if choice != "answer" else ()
        effect = AskModel(next(self._numbers), ask.messages, names, choice, ask.max_tokens, 0, ask.seed)
        return Running(place, effect, door, self._back)

    def _place(self, ask: BareAsk) -> Place:
        """The place that such an ask had last, or a new one."""
        offered = ask.tools if ask.form is None else (msgspec.structs.replace(ask.form, name=FORM),)
        try:
            key = canonical_json([ask.system, [msgspec.to_builtins(each) for each in offered], repr(ask.manner)])
        except TypeError:
            raise ShapeError("a schema is nested too deep to be held") from None
        with self._lock:
            found = next((each for each in reversed(self._idle) if each.key == key), None)
            if found is not None:
                self._idle.remove(found)
            gone, self._idle = self._idle[:-KEPT_MAX], self._idle[-KEPT_MAX:]
        for each in gone:
            each.driver.close()
        if found is not None:
            return found
        tools = tuple(map(_declared, offered))
        agent = with_dialect(Agent("bare", ask.system, tools, prose=True), self._model.dialect)
        # A form is filled in by the model alone: no word of the request says which of its fields is meant.
        manner = ask.manner if ask.form is None else msgspec.structs.replace(ask.manner, chooses=False)
        return Place(key, agent, self._model, self._root, manner)

    def _back(self, place: Place) -> None:
        with self._lock:
            is_kept = place.model is self._model
            if is_kept:
                self._idle.append(place)
        if not is_kept:
            place.driver.close()

    def close(self) -> None:
        """Let go of what is kept."""
        with self._lock:
            gone, self._idle = self._idle, []
        for each in gone:
            each.driver.close()


def _declared(offered: Offered) -> Tool:
    """The tool; that it changes nothing is told by its own words, since nobody else says so."""
    about = offered.about or offered.name
    _check_least(offered.name, offered.schema)
    made = Tool.of_schema(offered.name, about, offered.schema, _not_here, idempotent=True)
    return replace(made, effect="read") if acts_of(made) == {"read"} else made


def _check_least(name: str, schema: Any) -> None:
    """Refuse what must be long: its grammar would take minutes to be made. Raises ShapeError."""
    for key, value in schema.items() if isinstance(schema, dict) else ():
        if key in _LEAST and isinstance(value, int | float) and value > LEAST_MAX:
            raise ShapeError(f"tool {name}: {key} is {value}, and {LEAST_MAX} is the most that can be asked for here")
    inner = schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ()
    for value in inner:
        _check_least(name, value)


def arguments_in(text: str) -> dict[str, Any]:
    """The arguments that a client says were written. Raises ShapeError."""
    value = parse(text)
    if not isinstance(value, dict):
        raise ShapeError("it is none")
    return value


def _not_here(arguments: dict[str, Any]) -> str:
    raise AssertionError("who asks a bare model runs the tools")


def _call_text(family: Family, name: str, arguments: dict[str, Any]) -> str:
    """A call as the model would have written it."""
    frame = family.frame
    if frame.string_mark:
        inside = _marked(arguments, frame.string_mark)
    else:
        inside = json.dumps(arguments, ensure_ascii=False, separators=(frame.item_separator, frame.key_separator))
    return f"{frame.before}{writable(name)}{frame.between}{inside}{frame.after}"


def _marked(value: Any, mark: str) -> str:
    match value:
        case dict():
            return "{" + ",".join(f"{key}:{_marked(each, mark)}" for key, each in value.items()) + "}"
        case list():
            return "[" + ",".join(_marked(each, mark) for each in value) + "]"
        case str():
            return f"{mark}{value}{mark}"
        case _:
            return json.dumps(value)

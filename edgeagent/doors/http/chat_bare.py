"""Chat with the bare model: the client's own messages, tools and form of answer, as one ask of the model."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any, NamedTuple

from msgspec.structs import replace

from edgeagent.core.events import Event
from edgeagent.core.values import Choice, Message, Usage
from edgeagent.doors.http.chat import TOKENS_DEFAULT, ChatMessage, ChatRequest, NamedTool, cannot
from edgeagent.doors.http.cut import Cut, Inside, Words
from edgeagent.doors.http.message import Refused
from edgeagent.doors.http.told import Result, Told, usage_row
from edgeagent.errors import ConfigError, GrammarError, ModelError, ShapeError
from edgeagent.runtime.bare import Bare, BareAsk, BareFailed, Offered, Running, Written, arguments_in
from edgeagent.runtime.door import QuietDoor
from edgeagent.runtime.model import Manner

ANY_OBJECT = {"type": "object"}


class BareServes(NamedTuple):
    """What serves bare chats: the model, the threads in which it is waited for, and who counts what it took."""

    bare: Bare
    threads: Executor
    counted: Callable[[Usage], None]


class _Content(NamedTuple):
    """What an answer holds, by the protocol's terms."""

    text: str
    calls: tuple[dict[str, Any], ...]
    finish: str


class BareChat(QuietDoor):
    """One answer of the bare model."""

    def __init__(self, asked: ChatRequest, ask: BareAsk, serves: BareServes) -> None:
        """Nothing is begun yet."""
        self._asked, self._ask, self._serves = asked, ask, serves
        self._bare = serves.bare
        self._running: Running | None = None
        self._told: Told | None = None
        self._shown, self._sent = self._reader(), ""

    def _reader(self) -> Words | Inside:
        """What takes the content out of the text as it is written."""
        family = self._bare.family
        if self._ask.form is not None:
            return Inside(*self._bare.around_form())
        return Words(family.frame.trigger, self._asked.stops)

    def headers(self) -> tuple[tuple[str, str], ...]:
        """Nothing is said beside the answer."""
        return ()

    async def begin(self, told: Told) -> None:
        """Have it written. Raises Refused."""
        self._told = told
        beginning = self._serves.threads.submit(self._bare.begin, self._ask, self)
        try:
            self._running = await asyncio.shield(asyncio.wrap_future(beginning))
        except asyncio.CancelledError:
            beginning.add_done_callback(_released)
            raise
        except ModelError as error:
            raise _does_not_fit(str(error)) from None
        except (ConfigError, ShapeError, GrammarError) as error:
            raise cannot("tools" if self._ask.form is None else "response_format", str(error)) from None
        self._running.event.add_done_callback(self._ended)

    def stream(self, text: str) -> None:
        """Take text as it is written; in the model's thread."""
        if self._told is None:
            return
        self._send(self._shown.feed(text))
        if isinstance(self._shown, Words) and self._shown.is_stopped:
            self._stop()

    def _stop(self) -> None:
        if self._running is not None:  # Else what follows is cut off at the end.
            self._running.cancel()

    def _send(self, piece: str) -> None:
        assert self._told is not None, "it was begun"
        self._sent += piece
        self._told.put(piece)

    def _ended(self, event: Future[Event]) -> None:
        """Give on what is left, in the thread that wrote."""
        assert self._running is not None and self._told is not None, "it was begun"
        try:
            written = self._running.written()
            self._serves.counted(written.usage)
            text = self._content(written).text
            if text.startswith(self._sent):
                self._send(text[len(self._sent) :])
        except BareFailed:
            pass  # Said by `settled`.
        finally:
            self._told.end()

    async def settled(self) -> Result:
        """What it came to, once everything was told. Raises Refused."""
        assert self._running is not None, "it was begun"
        try:
            written = self._running.written()
        except BareFailed as failed:
            return _failed(failed)
        text, calls, finish = self._content(written)
        if self._asked.stream and text != self._sent:
            raise Refused(503, "begun_anew", "the limit left no room for what was begun; ask again with more tokens")
        used = written.usage
        usage = usage_row(used.prompt, used.evaluated, used.completion)
        return Result(text=text, calls=calls, finish=finish, usage=usage)

    def _content(self, written: Written) -> _Content:
        finish = "length" if written.stop in ("limit", "time") else "stop"
        reader = self._reader()
        text = reader.feed(written.text) + reader.end()
        if isinstance(reader, Inside):
            given = written.calls[0].arguments if written.calls else None
            return _Content(text or ("" if given is None else json.dumps(given, ensure_ascii=False)), (), finish)
        if reader.is_stopped:
            return _Content(text, (), "stop")
        calls = written.calls[:1] if self._asked.parallel_tool_calls is False else written.calls
        if calls:
            rows = tuple(_call_row(place, call.tool, call.arguments) for place, call in enumerate(calls))
            return _Content(text, rows, "tool_calls")
        if text or not written.words:
            return _Content(text, (), finish)
        cut = Cut(self._asked.stops)  # It began like a call, or with thoughts.
        text = cut.feed(written.words) + cut.end()
        return _Content(text.strip(), (), "stop" if cut.mark else finish)

    def leave(self) -> None:
        """Let go of it; what is still being written ends."""
        if self._running is not None:
            self._running.release()


class CallOrForm:
    """A call, or an answer in a given form: what begins as words is written anew, in the form."""

    def __init__(self, call: BareChat, form: BareChat) -> None:
        """Both may be asked."""
        self._call, self._form, self._chosen = call, form, call

    def headers(self) -> tuple[tuple[str, str], ...]:
        """Nothing is said beside the answer."""
        return ()

    async def begin(self, told: Told) -> None:
        """Have it written. Raises Refused."""
        first = Told()
        await self._call.begin(first)
        if await first.next() is None and (await self._call.settled()).calls:
            told.end()
            return
        self._call.leave()
        self._chosen = self._form
        await self._form.begin(told)

    async def settled(self) -> Result:
        """What it came to, once everything was told. Raises Refused."""
        return await self._chosen.settled()

    def leave(self) -> None:
        """Let go of it; what is still being written ends."""
        self._chosen.leave()


def _released(beginning: Future[Running]) -> None:
    """Let go of an answer that was begun for a client that has gone."""
    if beginning.exception() is None:
        beginning.result().release()


def _failed(failed: BareFailed) -> Result:
    match failed.reason:
        case "no_room":
            return Result(text="", finish="length", usage=usage_row(0, 0, 0))
        case "context_full":
            raise _does_not_fit(str(failed))
        case "unavailable":
            raise Refused(429, "queue_full", str(failed), (("Retry-After", "10"),))
        case reason:
            raise Refused(503, reason, f"the model gave no answer: {failed}")


def _does_not_fit(why: str) -> Refused:
    refused = Refused(400, "context_length_exceeded", why)
    refused.param = "messages"
    return refused


def _call_row(place: int, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)}
    return {"index": place, "id": f"call_{secrets.token_hex(12)}", "type": "function", "function": function}


# -- what is asked -------------------------------------------------------------------------------------------------


def bare_chat(asked: ChatRequest, serves: BareServes) -> BareChat | CallOrForm:
    """The chat that is asked for. Raises Refused."""
    ask = _ask_of(asked, serves.bare)
    if ask.form is None or not ask.tools or ask.choice == "answer":
        return BareChat(asked, ask, serves)
    call = BareChat(asked, replace(ask, form=None), serves)
    return call if ask.choice == "call" else CallOrForm(call, BareChat(asked, ask, serves))


def _ask_of(asked: ChatRequest, bare: Bare) -> BareAsk:
    """The ask. Raises Refused."""
    front = next((n for n, each in enumerate(asked.messages) if each.role not in ("system", "developer")), 0)
    tools = tuple(
        Offered(each.function.name, each.function.description or "", each.function.parameters or ANY_OBJECT)
        for each in asked.tools or ()
    )
    choice, allowed = _choice(asked, tuple(each.name for each in tools))
    drawn = asked.seed if asked.seed is not None else secrets.randbits(63) if asked.temperature else 0
    form = _form(asked)
    if form is not None and asked.stops:
        raise cannot("stop", "an answer in a given form ends where the form does: leave stop out")
    return BareAsk(
        messages=tuple(_messages(asked.messages[front:], front, bare.calls_text)),
        system="\n\n".join(each.text for each in asked.messages[:front]),
        tools=tools,
        choice=choice,
        allowed=allowed,
        form=form,
        max_tokens=asked.tokens_max or TOKENS_DEFAULT,
        seed=drawn,
        manner=Manner(temperature=asked.temperature, top_p=asked.top_p),
    )


def _choice(asked: ChatRequest, names: tuple[str, ...]) -> tuple[Choice, tuple[str, ...]]:
    wanted = asked.tool_choice
    if isinstance(wanted, NamedTool):
        if wanted.function.name not in names:
            raise cannot("tool_choice", f"tool_choice names {wanted.function.name!r}, which is not among tools")
        return "call", (wanted.function.name,)
    if wanted not in (None, "none") and not names:
        raise cannot("tool_choice", f"tool_choice is {wanted}, and there are no tools")
    match wanted:
        case "none":
            return "answer", ()
        case "required":
            return "call", names
        case _:
            return "either", names


def _form(asked: ChatRequest) -> Offered | None:
    form = asked.response_format
    if form is None or form.type == "text":
        return None
    if form.type == "json_object":
        return Offered("json", "Answer the user with one JSON object.", ANY_OBJECT)
    if form.json_schema is None:
        raise cannot("response_format", "response_format of type json_schema needs json_schema")
    about = form.json_schema.description or f"Answer the user with {form.json_schema.name}."
    return Offered(form.json_schema.name, about, form.json_schema.schema or ANY_OBJECT)


def _messages(
    messages: list[ChatMessage], front: int, written: Callable[[list[tuple[str, dict[str, Any]]]], str]
) -> list[Message]:
    """The conversation as the model has it. Raises Refused."""
    found: list[Message] = []
    called: dict[str, str] = {}
    for place, each in enumerate(messages, front):
        match each.role:
            case "system" | "developer":
                raise cannot(f"messages[{place}].role", f"messages of the {each.role} stand in front of all others")
            case "tool":
                name = called.get(each.tool_call_id or "")
                if name is None:
                    raise cannot(f"messages[{place}].tool_call_id", "no call before it has this id")
                found.append(Message("tool", each.text, tool=name))
            case "assistant" if each.tool_calls:
                calls = [(c.function.name, _arguments(c.function.arguments, place)) for c in each.tool_calls]
                called |= {call.id: call.function.name for call in each.tool_calls}
                found.append(Message("assistant", written(calls)))
            case "assistant":
                found.append(Message("assistant", each.text))
            case "user":
                found.append(Message("user", each.text))
    return found


def _arguments(text: str, place: int) -> dict[str, Any]:
    try:
        return arguments_in(text or "{}")
    except ShapeError as error:
        raise cannot(f"messages[{place}].tool_calls", f"arguments are not the text of a JSON object: {error}") from None

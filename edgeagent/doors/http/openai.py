"""OpenAI's protocol: models, chat completions. `NAME` is an agent, `NAME:model` its model with the client's tools."""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncGenerator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any, Protocol

import msgspec

from edgeagent.doors.http.chat import ChatRequest, cannot, refuse_what_cannot_be
from edgeagent.doors.http.chat_agent import AgentChat
from edgeagent.doors.http.chat_bare import BareServes, bare_chat
from edgeagent.doors.http.embeddings import Embeddings, EmbeddingsRequest
from edgeagent.doors.http.feed import count_tokens
from edgeagent.doors.http.message import EVENTS, JSON, Refused, Reply, as_json
from edgeagent.doors.http.metrics import Metrics
from edgeagent.doors.http.queue import WAITING_MAX, Places
from edgeagent.doors.http.routes import Call, Route
from edgeagent.doors.http.sessions import Sessions
from edgeagent.doors.http.told import Result, Told
from edgeagent.runtime.bare import Bare
from edgeagent.runtime.embedding import Embedding

BARE = ":model"
ALIVE_S = 10.0
"""A stream that has nothing to tell says so this often; its head is sent after as long at the latest."""


class Chat(Protocol):
    """One answer that is being written."""

    def headers(self) -> tuple[tuple[str, str], ...]:
        """What is said beside it."""

    async def begin(self, told: Told) -> None:
        """Have it written, and told. Raises Refused."""

    async def settled(self) -> Result:
        """What it came to, once everything was told. Raises Refused."""

    def leave(self) -> None:
        """Let go of it, ended or not."""


class OpenAi:
    """The routes of OpenAI's protocol."""

    def __init__(self, sessions: Sessions, bare: Bare, places: Places, metrics: Metrics, temperature: float) -> None:
        """`temperature` is that of the agents."""
        self._sessions, self._bare, self._places, self._temperature = sessions, bare, places, temperature
        self._embeddings = Embeddings(Embedding(bare.embedder), places)
        self._began = int(time.time())
        self._threads = ThreadPoolExecutor(WAITING_MAX, "bare")
        self._serves = BareServes(bare, self._threads, lambda usage: count_tokens(metrics, usage))

    def table(self) -> tuple[Route, ...]:
        """Every route."""
        model, chat = "/v1/models/{model}", "/v1/chat/completions"
        return (
            Route("GET", "/v1/models", "v1_models", "The names that may be asked.", self._models),
            Route("GET", model, "v1_model", "One of them.", self._model, refusals=(404,)),
            Route(
                "POST", chat, "v1_chat", "The next message of a conversation.", self._chat, ChatRequest,
                gives=(JSON, EVENTS), refusals=(404, 409, 503),
            ),
            Route(
                "POST", "/v1/embeddings", "v1_embeddings", "Vectors of texts, where there is an embedder.",
                self._embeddings.answer, EmbeddingsRequest,
            ),
        )  # fmt: skip

    def close(self) -> None:
        """Let go of the model's places."""
        self._threads.shutdown(cancel_futures=True)
        self._bare.close()

    def _names(self) -> list[str]:
        agents = [each for name in self._sessions.agents for each in (name, f"{name}{BARE}")]
        return [*agents, *self._embeddings.names]

    def _row(self, name: str) -> dict[str, Any]:
        return {"id": name, "object": "model", "created": self._began, "owned_by": "edgeagent"}

    async def _models(self, call: Call) -> Reply:
        return as_json({"object": "list", "data": [self._row(name) for name in self._names()]})

    async def _model(self, call: Call) -> Reply:
        self._check_name(call.parts["model"])
        return as_json(self._row(call.parts["model"]))

    def _check_name(self, name: str) -> None:
        if name not in self._names():
            refused = Refused(404, "model_not_found", f"no model {name[:80]!r}; there are: {', '.join(self._names())}")
            refused.param = "model"
            raise refused

    async def _chat(self, call: Call) -> Reply:
        asked = call.request.as_json(ChatRequest)
        self._check_name(asked.model)
        if asked.model in self._embeddings.names:
            raise cannot("model", f"{asked.model} embeds texts and writes none")
        refuse_what_cannot_be(asked)
        chat = self._chat_of(asked, call)
        with ExitStack() as held:
            held.enter_context(self._places.one())
            held.callback(chat.leave)
            told, shape = Told(), _Shape(asked.model)
            await chat.begin(told)
            if not asked.stream:
                await told.rest()
                result = await chat.settled()
                return as_json(shape.whole(result), headers=chat.headers())
            first = await told.next_within(ALIVE_S)
            if first is None:
                await chat.settled()  # Raises what went wrong while that can still be a status.
            has_usage = asked.stream_options is not None and asked.stream_options.include_usage
            pieces = _streamed(shape, chat, told, first, has_usage=has_usage)
            return Reply(200, kind=EVENTS, headers=chat.headers(), pieces=pieces, after=held.pop_all().close)

    def _chat_of(self, asked: ChatRequest, call: Call) -> Chat:
        if asked.model.endswith(BARE):
            return bare_chat(asked, self._serves)
        session = call.request.headers.get("x-session", "")
        return AgentChat(asked, self._sessions, self._places, call.who, session, self._temperature)


async def _streamed(
    shape: _Shape, chat: Chat, told: Told, first: str | None, *, has_usage: bool
) -> AsyncGenerator[bytes, None]:
    """The chunks of an answer, from its first piece on."""
    piece = first
    yield shape.chunk({"role": "assistant", "content": ""})
    while piece is not None:
        yield shape.chunk({"content": piece}) if piece else b": alive\n\n"
        piece = await told.next_within(ALIVE_S)
    try:
        result = await chat.settled()
    except Refused as refused:
        yield b"data: " + refused.reply().body + b"\n\n"
        return
    for each in result.calls:
        yield shape.chunk({"tool_calls": [each]})
    yield shape.chunk({}, result.finish, result.more)
    if has_usage:
        yield shape.chunk(None, None, {"usage": result.usage})
    yield b"data: [DONE]\n\n"


class _Shape:
    """The JSON around an answer."""

    def __init__(self, model: str) -> None:
        self._common = {"id": f"chatcmpl-{secrets.token_hex(12)}", "created": int(time.time()), "model": model}

    def whole(self, result: Result) -> dict[str, Any]:
        """The one reply of an answer that is not streamed."""
        content = None if result.calls and not result.text else result.text
        message: dict[str, Any] = {"role": "assistant", "content": content, "refusal": None}
        if result.calls:
            message["tool_calls"] = [{k: v for k, v in each.items() if k != "index"} for each in result.calls]
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": result.finish}
        whole = {**self._common, "object": "chat.completion", "choices": [choice], "usage": result.usage}
        return whole | result.more

    def chunk(
        self, delta: dict[str, Any] | None, finish: str | None = None, more: dict[str, Any] | None = None
    ) -> bytes:
        """One event of a stream."""
        choices = [] if delta is None else [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]
        row = {**self._common, "object": "chat.completion.chunk", "choices": choices} | (more or {})
        return b"data: " + msgspec.json.encode(row) + b"\n\n"

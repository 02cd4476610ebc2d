"""Remote model as a driver: AskModel in, exactly one ModelAnswered or ModelFailed out, whatever the server does.

What it answers is as untrusted as any model's text: it goes through the same dialect, decoder and guard. What a rule
keeps on this device (`AskModel.stays`) is refused here before anything is sent to an endpoint elsewhere.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import msgspec

from edgeagent.codec.apis import api_called
from edgeagent.codec.conversation import Conversation, Reply
from edgeagent.codec.dialects.family import Family
from edgeagent.core.agent import Agent
from edgeagent.core.effects import AskModel, Effect
from edgeagent.core.events import Event, ModelAnswered, ModelFailed, ModelFailure
from edgeagent.core.values import Stop, Usage
from edgeagent.driver.base import Post
from edgeagent.driver.model import Lender, Sampling, Warm, Weighing
from edgeagent.driver.remote.endpoint import Endpoint
from edgeagent.driver.remote.exchange import Asked, Exchange, Result
from edgeagent.driver.remote.planned import Planner, as_called, planned_conversation
from edgeagent.driver.remote.schemas import Held, Ladder, is_refusal
from edgeagent.driver.remote.secret import prepare
from edgeagent.driver.remote.talk import conversation_of, without_strict_nulls, written
from edgeagent.driver.remote.transport import Transport
from edgeagent.errors import EdgeAgentError
from edgeagent.request.meaning import Meaning
from edgeagent.request.planned import Plan

TOTAL_S = 600.0
"""The most an ask takes where the turn has no limit of time."""

BYTES_A_TOKEN = 3
"""What a token is taken for, to be paid, where a server counts none."""

SENT_BYTES_A_TOKEN = 5
"""What a token is taken for before a request is sent: no server counts fewer, so none is refused that would fit."""

LIKELIEST = Sampling()

OnText = Callable[[str], None]


class Price(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Of a million tokens, in whatever unit `Budget.money` is in: so one token costs this many millionths."""

    input: float = 0.0
    output: float = 0.0

    def of(self, prompt: int, completion: int) -> int:
        """What one call has cost, in millionths; never less than it was."""
        return -int(-(prompt * self.input + completion * self.output) // 1)


@dataclass(frozen=True, eq=False)
class Begun:
    """An ask that was taken up: who is told, since when, and until when it must have ended."""

    ask: AskModel
    post: Post
    began_ns: int
    until: float

    def micros(self) -> int:
        """How long it has taken."""
        return (time.perf_counter_ns() - self.began_ns) // 1000


@dataclass(frozen=True, eq=False)
class Sent:
    """What was sent for an ask: how much, how it holds the model, and why the server has refused it before."""

    begun: Begun
    planned: Plan
    size: int
    held: Held
    has_schemas: bool
    refused: tuple[str, ...]


class RemoteModel:
    """One endpoint for all sessions of a process. Close it after them."""

    def __init__(
        self,
        endpoint: Endpoint,
        price: Price | None = None,
        meaning: Meaning | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`meaning` is what requests are compared by where this device decides about calls."""
        prepare(endpoint.credential)
        self.endpoint, self.price, self.meaning = endpoint, price or Price(), meaning
        self.ladder = Ladder(endpoint)
        self.transport = Transport(clock)
        self._sessions, self._is_retired, self._changing = 0, False, threading.Lock()

    def driver(
        self,
        agent: Agent,
        on_text: OnText | None = None,
        sampling: Sampling = LIKELIEST,
        *,
        plans: bool = True,
        is_last: bool = True,
        judge: Lender | None = None,
    ) -> RemoteDriver:
        """A driver for one session. Without `plans` the model decides alone, whatever the endpoint's settings are.

        One that is not the last of several does not try a server twice. `judge` weighs what is planned here.
        """
        planner = Planner(agent, self.meaning) if plans and self.endpoint.calls != "own" else None
        with self._changing:
            self._sessions += 1
        return RemoteDriver(self, agent, on_text, sampling, planner, is_last, judge)

    def close(self) -> None:
        """Stop everything."""
        self.transport.close()

    def retire(self) -> None:
        """Close with the last of its sessions."""
        self._left(0, is_retired=True)

    def leave(self) -> None:
        """A session has been closed."""
        self._left(1)

    def _left(self, sessions: int, *, is_retired: bool = False) -> None:
        with self._changing:
            self._sessions -= sessions
            self._is_retired |= is_retired
            is_over = self._is_retired and not self._sessions
        if is_over:
            self.close()


class RemoteDriver:
    """Answers the asks of one session."""

    def __init__(
        self,
        model: RemoteModel,
        agent: Agent,
        on_text: OnText | None,
        sampling: Sampling,
        planner: Planner | None,
        is_last: bool,
        judge: Lender | None = None,
    ) -> None:
        self._model, self._agent, self._on_text, self._is_last = model, agent, on_text, is_last
        self._sampling, self._planner, self._judge = sampling, planner, judge
        self._open: dict[int, Exchange | Begun] = {}
        self._lock = threading.Lock()
        self._is_closed = False

    @property
    def warm(self) -> Warm | None:
        """Nothing of it is in memory."""
        return None

    def describe(self) -> str:
        """What was loaded, in a sentence."""
        endpoint = self._model.endpoint
        return f"{endpoint.model} at {endpoint.origin} answers, by {endpoint.api}; no model is loaded"

    def submit(self, effect: Effect, post: Post) -> None:
        """Send the ask; its one event follows."""
        assert isinstance(effect, AskModel), "the wiring sends only model calls here"
        ask, endpoint = effect, self._model.endpoint
        if ask.stays and not endpoint.is_here:
            post(ModelFailed(0, ask.effect_id, "unavailable", f"{endpoint.origin} was not asked: {ask.stays}"))
            return
        until = self._model.transport.clock() + (ask.timeout_ms / 1000 or TOTAL_S)
        begun = Begun(ask, post, time.perf_counter_ns(), until)
        if self._judge is None or self._planner is None or not self._planner.weighs(ask):
            self._go(begun, None)
            return
        with self._lock:
            self._open[ask.effect_id] = begun
        self._judge.lend(ask, partial(self._weighed, begun))

    def _weighed(self, begun: Begun, weighing: Weighing | None) -> None:
        """Go on where the judge may be asked, in whoever's thread that is."""
        with self._lock:
            waits = self._open.pop(begun.ask.effect_id, None) is begun
            if self._is_closed:
                return
        if not waits:
            begun.post(ModelAnswered(0, begun.ask.effect_id, "", "cancelled", Usage(micros=begun.micros())))
            return
        try:
            self._go(begun, weighing)
        # The thread is the judge's: whatever is wrong ends this ask alone.
        except Exception as error:
            begun.post(ModelFailed(0, begun.ask.effect_id, "engine", f"{type(error).__name__}: {error}"))

    def _go(self, begun: Begun, weighing: Weighing | None) -> None:
        """Send what is planned, or answer without."""
        planned = Plan() if self._planner is None else self._planner.planned(begun.ask, weighing)
        if planned.text:
            begun.post(self._said(begun, planned))
            return
        self._send(begun, planned, self._model.ladder.held, ())

    def _send(self, begun: Begun, planned: Plan, held: Held, refused: tuple[str, ...]) -> None:
        """Send it with schemas as this server takes them, as far as it has said."""
        ask, post, endpoint = begun.ask, begun.post, self._model.endpoint
        api = api_called(endpoint.api)
        try:
            conversation = self._conversation(ask, planned, held)
            body = api.encode(conversation)
        except EdgeAgentError as error:
            post(ModelFailed(0, ask.effect_id, "engine", str(error)))
            return
        if full := self._too_long(ask, len(body)):
            post(full)
            return
        asked = Asked(endpoint, api, body, begun.until, ask.seed, self._is_last)
        sent = Sent(begun, planned, len(body), held, bool(planned.calls or conversation.tools), refused)
        exchange = Exchange(asked, self._model.transport, self._on_text, partial(self._done, sent))
        with self._lock:
            before = self._open.get(ask.effect_id)
            self._open[ask.effect_id] = exchange
        exchange.start()
        if isinstance(before, Exchange) and before.is_cancelled:
            exchange.cancel()

    def cancel(self, effect_id: int) -> None:
        """Stop it on the way."""
        with self._lock:
            found = self._open.get(effect_id)
            if isinstance(found, Begun):
                del self._open[effect_id]
        if isinstance(found, Exchange):
            found.cancel()
        elif found is not None and self._judge is not None:
            self._judge.cancel(effect_id)

    def close(self) -> None:
        """Let go of the session. Nothing is posted afterwards."""
        with self._lock:
            was_closed, self._is_closed, left = self._is_closed, True, list(self._open.values())
        for each in left:
            if isinstance(each, Exchange):
                each.cancel()
        if not was_closed:
            self._model.leave()

    def _conversation(self, ask: AskModel, planned: Plan, held: Held) -> Conversation:
        agent = self._agent.by_path[ask.agent]
        plain = conversation_of(ask, agent, self._model.endpoint, self._sampling, held.subset)
        return plain if self._planner is None else planned_conversation(plain, ask, agent, planned, held)

    def _said(self, begun: Begun, planned: Plan) -> Event:
        """The answer that needs no model."""
        if self._on_text is not None:
            self._on_text(planned.text)
        usage = Usage(micros=begun.micros())
        return ModelAnswered(0, begun.ask.effect_id, planned.text, "end", usage, scores=planned.scores)

    def _done(self, sent: Sent, result: Result) -> None:
        begun = sent.begun
        lower = self._model.ladder.lower(sent.held) if sent.has_schemas and is_refusal(result) else None
        if lower is not None and not self._is_closed:
            refused = f"{result.why} ({sent.held.told()}; sent again as {lower.told()})"
            self._send(begun, sent.planned, lower, (*sent.refused, refused))
            return
        event = self._event(sent, begun.micros(), result)
        with self._lock:
            self._open.pop(begun.ask.effect_id, None)
            if self._is_closed:
                return
        begun.post(event)

    def _event(self, sent: Sent, micros: int, result: Result) -> Event:
        reply, ask, planned = result.reply, sent.begun.ask, sent.planned
        if reply is None:
            return self._failed(ask, sent.size, micros, result)
        text = self._text(sent, as_called(reply) if planned.calls else reply)
        usage = self._usage(reply.usage, sent.size, len(text), micros)
        if not text.strip():
            why = {"filtered": "its server's filter kept it back", "limit": "its limit of tokens left no room"}
            said = f"the model answered nothing: {why.get(reply.ended.reason, reply.ended.said or 'it ended')}"
            return ModelFailed(0, ask.effect_id, "engine", said, spent=usage)
        stop: Stop = "limit" if reply.ended.reason == "limit" else "end"
        name = self._model.endpoint.model
        asked = (*((name, why) for why in sent.refused), (name, "")) if sent.refused else ()
        return ModelAnswered(
            0, ask.effect_id, text, stop, usage, scores=planned.scores, evidence=planned.why, asked=asked
        )

    def _text(self, sent: Sent, reply: Reply) -> str:
        """The reply as the session's dialect writes it."""
        ask = sent.begun.ask
        agent = self._agent.by_path[ask.agent]
        dialect = agent.dialect or self._agent.dialect
        reply = without_strict_nulls(reply, agent) if sent.held.subset == "strict" else reply
        assert isinstance(dialect, Family), "the wiring gives every running agent its dialect"
        return written(reply, dialect, is_answer=ask.choice == "answer" or not ask.tools)

    def _failed(self, ask: AskModel, sent: int, micros: int, result: Result) -> Event:
        usage = self._usage(None, sent, len(result.partial), micros)
        if result.how == "cancelled":
            return ModelAnswered(0, ask.effect_id, "", "cancelled", usage if result.has_begun else Usage(micros=micros))
        if result.how == "out of time" and result.partial.strip():
            return ModelAnswered(0, ask.effect_id, result.partial, "time", usage)
        spent = usage if result.has_begun else None
        return ModelFailed(0, ask.effect_id, _reason(result), result.why, spent=spent)

    def _too_long(self, ask: AskModel, sent: int) -> ModelFailed | None:
        """Why so long a prompt is not paid for, if the budget has less left."""
        count = sent // SENT_BYTES_A_TOKEN
        if not ask.prompt_tokens_max or count <= ask.prompt_tokens_max:
            return None
        said = f"the prompt takes some {count} tokens, and the budget has {ask.prompt_tokens_max} left"
        return ModelFailed(0, ask.effect_id, "context_full", said, count)

    def _usage(self, told: Usage | None, sent: int, written_chars: int, micros: int) -> Usage:
        """What it took, and costs; what a server does not count is taken from the bytes."""
        prompt = told.prompt if told is not None and told.prompt else sent // BYTES_A_TOKEN
        completion = told.completion if told is not None and told.completion else -(-written_chars // BYTES_A_TOKEN)
        evaluated = told.evaluated if told is not None and told.evaluated else prompt
        cost = self._model.price.of(prompt, completion)
        return Usage(prompt=prompt, evaluated=evaluated, completion=completion, micros=micros, cost=cost)


def _reason(result: Result) -> ModelFailure:
    if result.how == "too_long":
        return "context_full"
    if result.how == "out of time":
        return "time"
    return "engine" if result.has_begun else "unavailable"  # After that another model may be asked.

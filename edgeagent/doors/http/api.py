"""API of sessions: list, show, open, say, watch, decide, cancel; beside it health, metrics and the OpenAPI file."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import msgspec

from edgeagent.core.values import call_digest
from edgeagent.doors.http.devices import Devices
from edgeagent.doors.http.feed import Feed, fields_of, questions_in, state_row
from edgeagent.doors.http.message import EVENTS, Refused, Reply, as_json
from edgeagent.doors.http.metrics import CONTENT_TYPE, Metrics
from edgeagent.doors.http.queue import Places
from edgeagent.doors.http.routes import Call, Route, openapi
from edgeagent.doors.http.sessions import Sessions
from edgeagent.errors import ConfigError, EdgeAgentError
from edgeagent.runtime.answer import TOO_MANY, Answer

DOOR = "http"
"""The name of this door in the words that come through it."""

SEQ_MAX = 1 << 53
ASKED_S = 30.0
"""A record is on the disk by then, also on a slow card of a busy machine."""


class NewSession(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which agent; where one alone is served it need not be said."""

    agent: str = ""
    seed: int = 0


class Words(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is said; with `wait` the reply comes when it is answered, else when it is recorded."""

    text: str
    wait: bool = True


class Decided(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An answer to a question; `digest` is that of the question as it was shown."""

    approved: bool
    digest: str
    text: str = ""


class Reason(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Why a turn is to be stopped."""

    reason: str = "cancelled over HTTP"


class Api:
    """The routes that are ours. `why_not_ready` says what is wrong with the machine, nothing where all is well."""

    def __init__(
        self,
        sessions: Sessions,
        metrics: Metrics,
        places: Places,
        why_not_ready: Callable[[], list[str]],
        devices: Devices,
        others: tuple[Route, ...] = (),
    ) -> None:
        """`others` are routes beside these, which the document lists too."""
        self._devices = devices
        self._sessions, self._metrics, self._places, self._why_not = sessions, metrics, places, why_not_ready
        self.routes = self._table() + devices.routes + others

    def _table(self) -> tuple[Route, ...]:
        # In the order in which the documents list them.
        one, busy = "/api/sessions/{session}", (404, 409)
        return (
            Route("GET", "/health", "health", "Whether words would be answered now.", self._health, needs_key=False),
            Route("GET", "/metrics", "metrics", "Figures for Prometheus.", self._figures, gives=(CONTENT_TYPE,)),
            Route("GET", "/openapi.json", "openapi", "This document.", self._document, needs_key=False),
            Route("GET", "/api/agents", "list_agents", "The agents that are served, with tools.", self._agents),
            Route("GET", "/api/sessions", "list_sessions", "Your sessions, the newest first.", self._list),
            Route("POST", "/api/sessions", "open_session", "Begin a session.", self._open, NewSession, refusals=busy),
            Route("GET", one, "show_session", "Where a session stands.", self._show, refusals=busy),
            Route("POST", f"{one}/words", "say", "Say something to it.", self._say, Words, refusals=(*busy, 503)),
            Route(
                "GET", f"{one}/events", "watch", "Its records from `since` on, and what comes, as server-sent events.",
                self._events, gives=(EVENTS,), query=("since",), refusals=busy,
            ),
            Route("POST", f"{one}/questions/{{question}}", "decide", "Answer.", self._decide, Decided, refusals=busy),
            Route("POST", f"{one}/cancel", "cancel", "Stop the running turn.", self._cancel, Reason, refusals=busy),
        )  # fmt: skip

    async def _health(self, call: Call) -> Reply:
        wrong = await asyncio.to_thread(self._why_not)
        row = {"ready": not wrong, "wrong": wrong, "devices": self._devices.counted()}
        return as_json(row, 503 if wrong else 200)

    async def _figures(self, call: Call) -> Reply:
        return Reply(200, (await asyncio.to_thread(self._metrics.text)).encode(), CONTENT_TYPE)

    async def _document(self, call: Call) -> Reply:
        return as_json(openapi(self.routes))

    async def _agents(self, call: Call) -> Reply:
        rows = []
        for served in self._sessions.agents.values():
            tools = [
                {"name": t.name, "description": t.description, "effect": t.effect, "confirm": t.confirm}
                for t in served.agent.tools
            ]
            rows.append({"name": served.name, "tools": tools, "rules": list(served.rules)})
        return as_json({"agents": rows})

    async def _list(self, call: Call) -> Reply:
        return as_json({"sessions": self._sessions.rows(call.who)})

    async def _open(self, call: Call) -> Reply:
        asked = call.request.as_json(NewSession)
        only = next(iter(self._sessions.agents)) if len(self._sessions.agents) == 1 else ""
        feed = await self._sessions.begin(call.who, asked.agent or only, seed=asked.seed)
        return as_json(self._shown(feed), 201)

    async def _show(self, call: Call) -> Reply:
        return as_json(self._shown(await self._feed(call)))

    async def _say(self, call: Call) -> Reply:
        said = call.request.as_json(Words)
        if not said.text.strip():
            raise Refused(400, "no_words", "text is empty")
        feed = await self._feed(call)
        assert feed.session is not None, "a feed that is given out has its session"
        with self._places.one() as place:
            try:
                word = feed.session.post_words(said.text, by=call.who, door=DOOR)
                await self._sessions.titled(feed.session.id, said.text)
                if not said.wait:
                    return as_json({"record": await asyncio.wrap_future(word.recorded)}, 202)
                answer = await asyncio.wrap_future(word.answered)
            except ConfigError as error:
                raise Refused(413, "too_long", str(error)) from None
            except EdgeAgentError as error:
                raise Refused(503, "not_answered", str(error)) from None
            if answer.outcome is TOO_MANY:
                raise place.full(TOO_MANY.detail)
        return as_json(answer_row(answer))

    async def _events(self, call: Call) -> Reply:
        last = call.request.headers.get("last-event-id", "")
        since = call.request.query.get("since", "0")
        for given in (last, since):
            if given and not (given.isascii() and given.isdecimal() and int(given) < SEQ_MAX):
                raise Refused(400, "bad_number", "since and Last-Event-ID are numbers of records")
        feed = await self._feed(call)
        return Reply(200, kind=EVENTS, pieces=feed.events(int(last) + 1 if last else int(since)))

    async def _decide(self, call: Call) -> Reply:
        decided, number = call.request.as_json(Decided), call.parts["question"]
        feed = await self._feed(call)
        assert feed.session is not None, "a feed that is given out has its session"
        open_now = {str(each.question_id): each for each in questions_in(feed.session.state)}
        question = open_now.get(number)
        if question is None:
            raise Refused(409, "not_open", "this question is not open any more")
        if decided.digest != call_digest(question.tool, question.arguments):
            raise Refused(409, "other_question", "the digest is not that of this question: look at it again")
        said = decided.text or f"by {call.who or 'this machine'} over HTTP"
        # The state names a question before the record is safe, and only then can it be answered.
        until = time.monotonic() + ASKED_S
        while not feed.session.decide(question.question_id, decided.approved, decided.digest, said):
            still = {each.question_id for each in questions_in(feed.session.state)}
            if question.question_id not in still:
                raise Refused(409, "not_open", "this question is not open any more")
            if time.monotonic() > until:
                raise Refused(409, "not_open", "this question is not open yet, its record is not safe: decide again")
            await asyncio.sleep(0.01)
        return as_json({"taken": True})

    async def _cancel(self, call: Call) -> Reply:
        reason = call.request.as_json(Reason) if call.request.body else Reason()
        feed = await self._feed(call)
        assert feed.session is not None, "a feed that is given out has its session"
        feed.session.cancel(reason.reason[:200])
        return as_json({"taken": True})

    async def _feed(self, call: Call) -> Feed:
        return await self._sessions.feed(call.who, call.parts["session"])

    def _shown(self, feed: Feed) -> dict[str, Any]:
        session = feed.session
        assert session is not None, "a feed that is given out has its session"
        owner = self._sessions.owner_of(feed.key, session.id)
        own = session.agent.budget, session.agent.session_budget
        budget = {
            name: None if each is None else fields_of(each) for name, each in zip(("turn", "session"), own, strict=True)
        }
        row = self._sessions.row(session.id, owner)
        return row | {"state": state_row(session.state), "records": session.seq, "budget": budget}


def answer_row(answer: Answer) -> dict[str, Any]:
    """What a word came to."""
    calls = [{"tool": c.tool, "arguments": c.arguments, "result": c.result, "error": c.error} for c in answer.calls]
    return {"text": answer.text, "outcome": fields_of(answer.outcome), "calls": calls}

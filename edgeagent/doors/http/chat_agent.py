"""Chat with an agent: a conversation is a session, found again by its history or its id; its tools run here.

What needs a person's decision is said in the answer, with where to decide it; the turn waits for that in its session,
and what came of it is told with the next answer.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

from edgeagent.core.effects import AskUser, Effect, Say
from edgeagent.core.events import Event, ModelAnswered
from edgeagent.core.state import State, is_resting
from edgeagent.core.values import canonical_json
from edgeagent.doors.http.chat import ChatMessage, ChatRequest, cannot
from edgeagent.doors.http.feed import Feed, fields_of, question_row, questions_in
from edgeagent.doors.http.message import Refused
from edgeagent.doors.http.queue import Places
from edgeagent.doors.http.sessions import Sessions
from edgeagent.doors.http.told import Result, Told, usage_row
from edgeagent.errors import ConfigError, EdgeAgentError
from edgeagent.runtime.answer import TOO_MANY, Answer, Word
from edgeagent.runtime.door import QuietDoor

DOOR = "chat"
"""The name of this door in the words that come through it."""

NOTICE = "[A person must decide before this runs: "
"""How an answer begins that asks for a decision."""

OWN = ("tools", "tool_choice", "parallel_tool_calls", "response_format", "stop", "max_tokens", "max_completion_tokens")
"""What an agent has of its own, so that a client cannot say it."""


def digest_of(messages: Sequence[tuple[str, str]]) -> str:
    """What a conversation is found by."""
    return hashlib.sha256(canonical_json([[role, text.strip()] for role, text in messages]).encode()).hexdigest()[:32]


class AgentChat(QuietDoor):
    """One answer of an agent."""

    def __init__(
        self, asked: ChatRequest, sessions: Sessions, places: Places, who: str, session: str, temperature: float
    ) -> None:
        """`session` is its id, or '' where the history tells. Raises Refused for what cannot be asked."""
        _check(asked, temperature)
        self._asked, self._sessions, self._places, self._who, self._id = asked, sessions, places, who, session
        self._history = [(each.role, each.text) for each in asked.messages[:-1]]
        self._words = asked.messages[-1].text
        self._feed: Feed | None = None
        self._word: Word | None = None
        self._told: Told | None = None
        self._parts: list[str] = []
        self._questions: list[dict[str, Any]] = []
        self._used, self._is_over = [0, 0, 0], False

    def headers(self) -> tuple[tuple[str, str], ...]:
        """Which session it is."""
        return (("X-Session", self._feed.session.id),) if self._feed and self._feed.session else ()

    async def begin(self, told: Told) -> None:
        """Say the words to the session. Raises Refused."""
        self._told = told
        feed = self._feed = await self._found()
        feed.askers += 1
        session = feed.session
        assert session is not None, "a feed that is given out has its session"
        self._refuse_while_undecided(session.state)
        if self._history and self._history[-1][1].startswith(NOTICE):
            self._give(await asyncio.to_thread(self._said_meanwhile))
        await asyncio.to_thread(session.attach, self)
        try:
            self._word = session.begin(self._words, by=self._who, door=DOOR, on_text=self._give)
            self._word.answered.add_done_callback(self._answered)
            await self._sessions.titled(session.id, self._words)
        except ConfigError as error:
            raise Refused(413, "too_long", str(error)) from None

    async def _found(self) -> Feed:
        """The session of the conversation. Raises Refused."""
        asked, sessions, known = self._asked, self._sessions, digest_of(self._history)
        if not self._id and not self._history:
            return await sessions.begin(self._who, asked.model, seed=asked.seed or 0)
        name = self._id or sessions.talked(self._who, asked.model, known)
        if not name:
            raise Refused(
                409,
                "unknown_conversation",
                "no session has this history: send it as it was answered, or the session's id in the header x-session, "
                "or begin a new one with a single message",
            )
        owner = sessions.owner_of(self._who, name)
        if owner.agent != asked.model:
            raise Refused(409, "other_agent", f"the session {name} is one of the agent {owner.agent}")
        if self._history and owner.history != known:
            raise Refused(
                409, "other_history", f"the session {name} has another history; with x-session none is needed"
            )
        feed = await sessions.feed(self._who, name)
        assert feed.session is not None, "a feed that is given out has its session"
        if asked.seed is not None and asked.seed != feed.session.state.seed:
            raise cannot("seed", f"this conversation has the seed {feed.session.state.seed} from its beginning on")
        return feed

    def _refuse_while_undecided(self, state: State) -> None:
        questions = [question_row(call) for call in questions_in(state)]
        if questions:
            raise Refused(409, "question_open", self._notice(questions))
        if self._history and self._history[-1][1].startswith(NOTICE) and not is_resting(state):
            raise Refused(409, "still_at_work", "what was decided is being done; ask again", (("Retry-After", "1"),))

    def _said_meanwhile(self) -> str:
        """What the session said last, since that was not told here."""
        assert self._feed is not None and self._feed.session is not None, "it was found"
        said = ""
        for each in self._feed.session.records(0):
            said = "\n".join(effect.text for effect in each.effects if isinstance(effect, Say)) or said
        return f"{said}\n\n" if said else ""

    # -- the door --------------------------------------------------------------------------------------------------

    def watch(self, event: Event, state: State, effects: tuple[Effect, ...]) -> None:
        """Count what the model took, and tell what a person must decide."""
        if isinstance(event, ModelAnswered):
            used = event.usage
            self._used = [
                a + b for a, b in zip(self._used, (used.prompt, used.evaluated, used.completion), strict=True)
            ]
        if any(isinstance(effect, AskUser) for effect in effects) and self._told is not None and not self._questions:
            self._questions = [question_row(call) for call in questions_in(state)]
            if self._questions:
                self._give(self._notice(self._questions))
                self._is_over = True  # What follows a decision is told with the next answer.
                self._told.end()

    def _give(self, text: str) -> None:
        assert self._told is not None, "it was begun"
        if not self._is_over:
            self._parts.append(text)
            self._told.put(text)

    def _answered(self, _: Future[Answer]) -> None:
        assert self._told is not None, "it was begun"
        self._told.end()

    def _notice(self, questions: list[dict[str, Any]]) -> str:
        assert self._feed is not None and self._feed.session is not None, "it was found"
        place = f"/api/sessions/{self._feed.session.id}/questions"
        lines = []
        for each in questions:
            call = f"{each['tool']} {canonical_json(each['arguments'])} ({each['because']})"
            body = canonical_json({"approved": True, "digest": each["digest"]})
            lines.append(f"{NOTICE}{call}. POST {body}, or false, to {place}/{each['id']}, then write again.]")
        return "\n".join(lines)

    # -- the end ---------------------------------------------------------------------------------------------------

    async def settled(self) -> Result:
        """What it came to, once everything was told. Raises Refused."""
        assert self._feed is not None and self._feed.session is not None and self._word is not None, "it was begun"
        session, usage = self._feed.session, usage_row(*self._used)
        if self._questions:
            outcome, finish = {"kind": "undecided", "detail": ""}, "stop"
        else:
            try:
                answer = self._word.answered.result()
            except EdgeAgentError as error:
                raise Refused(503, "not_answered", str(error)) from None
            if answer.outcome is TOO_MANY:
                raise self._places.full(TOO_MANY.detail)
            outcome, finish = fields_of(answer.outcome), "length" if answer.outcome.kind == "budget" else "stop"
        text = "".join(self._parts)
        history = digest_of([*self._history, ("user", self._words), ("assistant", text)])
        await self._sessions.noted(session.id, history)
        more = {"session": session.id, "outcome": outcome, "questions": self._questions}
        return Result(text=text, finish=finish, usage=usage, more={"edgeagent": more})

    def leave(self) -> None:
        """Let go of it: a client that went before it was answered wants its turn no more."""
        feed, word = self._feed, self._word
        if feed is None or feed.session is None:
            return
        feed.askers -= 1
        feed.session.detach(self)
        if word is not None and word.begun.is_set() and not word.answered.done() and not self._questions:
            feed.session.cancel("the client has gone")


def _check(asked: ChatRequest, temperature: float) -> None:
    """Raises Refused for what an agent has of its own."""
    for name in OWN:
        if getattr(asked, name) is not None:
            raise cannot(
                name, f"the agent has its own {name.replace('_', ' ')}: leave it out, or ask {asked.model}:model"
            )
    if asked.temperature not in (None, temperature):
        raise cannot("temperature", f"this agent writes at temperature {temperature:g}: leave it out")
    if asked.top_p not in (None, 1):
        raise cannot("top_p", "top_p is the agent's own: leave it out")
    for place, each in enumerate(asked.messages):
        _check_message(f"messages[{place}]", each, asked.model)


def _check_message(param: str, message: ChatMessage, model: str) -> None:
    if message.role in ("system", "developer"):
        why = f"the agent has its own system text: leave messages of the {message.role} out, or ask {model}:model"
        raise cannot(f"{param}.role", why)
    if message.role == "tool" or message.tool_calls:
        raise cannot(
            f"{param}.role", f"the agent's tools run here, so none are told: leave them out, or ask {model}:model"
        )
    if message.role == "user" and not message.text.strip():
        raise cannot(f"{param}.content", "content is empty")

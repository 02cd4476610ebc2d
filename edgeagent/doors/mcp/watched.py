"""A client's end of a session: what happens for its call is told as progress and as a log, what is asked is put to its
user. Silence, and nobody to be asked, is a no.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from edgeagent.core.effects import AskUser, Effect
from edgeagent.core.events import Event, ToolReturned
from edgeagent.core.state import State
from edgeagent.core.text import shown
from edgeagent.doors.mcp.client import LEVELS, Client
from edgeagent.driver.peer import Asked, Call, Refused
from edgeagent.errors import DriverUnavailable
from edgeagent.runtime.door import Decision, QuietDoor

ASKED_S = 300.0
"""Who is asked has so long; then it is a no, and the session goes on."""


class Watched(QuietDoor):
    """The end of one session, for one call after another. `call` is the one that is served now."""

    def __init__(self) -> None:
        self._client, self._steps = Client(), 0
        self._call: Call | None = None
        self._asked: Asked | None = None
        self.returned = 0
        """The effect whose result came last."""
        self.left_open: AskUser | None = None
        """A question that the client's user is asked later."""

    @contextlib.contextmanager
    def serving(self, call: Call, client: Client) -> Iterator[None]:
        """Have what happens told to whoever made this call."""
        self._call, self._client = call, client
        self._steps, self.returned, self.left_open = 0, 0, None
        try:
            yield
        finally:
            self._call = None

    def give_up(self) -> None:
        """Wait for nobody's word any more: the call was cancelled. From any thread."""
        if (asked := self._asked) is not None:
            asked.give_up("the call was cancelled")

    def watch(self, event: Event, state: State, effects: tuple[Effect, ...]) -> None:
        """Tell one transition."""
        if isinstance(event, ToolReturned):
            self.returned = event.effect_id
        leads_to = [type(each).__name__ for each in effects]
        self._step(f"{type(event).__name__} -> {', '.join(leads_to) or 'nothing'}")
        self._log("debug", {"event": type(event).__name__, "effects": leads_to})

    def progress(self, done: int, total: int) -> None:
        """Tell how far a prompt is."""
        self._step(f"{done} of {total} tokens of the prompt are read")

    def activity(self, text: str) -> None:
        """Tell a sentence about what goes on."""
        self._log("info", text)

    def decide(self, question: AskUser) -> Decision:
        """Put the question as it is recorded; only a yes to exactly it is one."""
        client, says_yes = self._client, False
        if client.decided is not None and client.decided[0] == question.digest:
            says_yes = client.decided[1]
        elif client.asks and client.is_asked_later:
            self.left_open = question
            return Decision(False, "the client's user is asked; the call comes again with the answer", question.digest)
        elif client.asks and self._call is not None:
            says_yes = self._says_yes(self._call, question)
        return Decision(says_yes, "decided by the client's user", question.digest)

    def _says_yes(self, call: Call, question: AskUser) -> bool:
        try:
            self._asked = call.ask("elicitation/create", form_of(question))
            if call.is_cancelled:
                self.give_up()
            return is_yes(self._asked.wait(ASKED_S))
        except (DriverUnavailable, Refused):
            return False
        finally:
            self._asked = None

    def _step(self, message: str) -> None:
        """Tell one step more; how many there will be nobody knows."""
        token = None if self._call is None else _progress_token(self._call)
        if self._call is not None and token is not None:
            self._steps += 1
            told = {"progressToken": token, "progress": self._steps, "message": shown(message)}
            self._call.tell("notifications/progress", told)

    def _log(self, level: str, data: Any) -> None:
        if self._call is not None and LEVELS.index(level) >= self._client.level:
            self._call.tell("notifications/message", {"level": level, "logger": "edgeagent", "data": data})


def form_of(question: AskUser) -> dict[str, Any]:
    """A question as a form with one box."""
    schema = {"type": "object", "properties": {"run": {"type": "boolean", "title": "Run exactly this"}}}
    text = f"{shown(question.because)}\n{question.tool}({shown(question.arguments)})"
    return {"message": text, "requestedSchema": {**schema, "required": ["run"]}}


def is_yes(said: Any) -> bool:
    """Whether a form came back with a yes."""
    content = said.get("content") if isinstance(said, dict) and said.get("action") == "accept" else None
    return isinstance(content, dict) and content.get("run") is True


def _progress_token(call: Call) -> int | str | None:
    meta = call.params.get("_meta") if isinstance(call.params, dict) else None
    token = meta.get("progressToken") if isinstance(meta, dict) else None
    return token if isinstance(token, int | str) and not isinstance(token, bool) else None

"""One session as an editor has it: what happens is shown in updates, what must be decided is asked as its mode says."""

from __future__ import annotations

import threading
from typing import Any

from edgeagent.core.agent import Agent
from edgeagent.core.effects import AskModel, AskUser, Effect
from edgeagent.core.events import Cancelled, Event, UserSaid
from edgeagent.core.state import State, calls_out, is_held
from edgeagent.core.text import shown
from edgeagent.core.values import canonical_json
from edgeagent.doors.acp.client import COMMAND, Client
from edgeagent.doors.acp.messages import Permission, Selected, read
from edgeagent.doors.acp.updates import Update, Updates, question_meta
from edgeagent.driver.peer import Asked, Peer, Refused
from edgeagent.errors import DriverUnavailable
from edgeagent.runtime.door import Decision, QuietDoor
from edgeagent.runtime.session import Session

DOOR = "acp"
"""The name of this door, in the words that come through it and of its place in the trace."""

ASK, REFUSE = "ask", "refuse"
MODES = (
    {"id": ASK, "name": "Ask", "description": "A call that needs a decision is put to you, with its arguments."},
    {"id": REFUSE, "name": "Refuse", "description": "A call that needs a decision is refused; you are not asked."},
)
"""Neither lets anything run that the agent's rules would not."""


class EditorDoor(QuietDoor):
    """The door of a session that an editor has."""

    def __init__(self, peer: Peer, client: Client, agent: Agent, name: str, *, shows: bool) -> None:
        """`name` is the session's id, '' of a new one; with `shows` what its door has not had yet is shown at once."""
        self.name, self.mode, self.client, self.agent = name, ASK, client, agent
        self.session: Session | None = None
        self._peer, self._shows = peer, shows
        self._updates = Updates(agent, self._give)
        self._asked: dict[int, Asked] = {}
        self._asking = threading.Lock()
        client.on_terminal = self._show_terminal

    def serves(self, session: Session, *, replays: bool) -> None:
        """Know the session, before anything is served; with `replays` show all that has happened in it."""
        self.session, self.name, self._shows = session, session.id, True
        for each in session.records(0) if replays else ():
            self._updates.take(each.event, each.state, each.effects, echo=True)

    @property
    def modes(self) -> dict[str, Any]:
        """Which modes there are, and which holds."""
        return {"currentModeId": self.mode, "availableModes": list(MODES)}

    @property
    def is_watched(self) -> bool:
        """Whether somebody wants to be told of it while it rests."""
        return False

    def cancel(self) -> None:
        """Stop the turn that runs, and what the editor does for it."""
        if self.session is not None:
            self.session.cancel("cancelled in the editor")
            self.client.stop()

    def let_go(self) -> None:
        """Take back what is asked of the editor: its session is put down."""
        self._take_back(set())
        self.client.stop()

    # -- the door --------------------------------------------------------------------------------------------------

    def watch(self, event: Event, state: State, effects: tuple[Effect, ...]) -> None:
        """Show a transition; ask no more what is not open any more."""
        if self._shows:
            is_own = isinstance(event, UserSaid) and event.door == DOOR
            self._updates.take(event, state, effects, echo=not is_own)
        if isinstance(event, Cancelled):  # Calls may have been handed out since it was asked for.
            self.client.stop()
        if any(isinstance(each, AskModel) for each in effects):
            self.client.begin()
        if self._asked:
            self._take_back({call.question_id for call in calls_out(state) if is_held(call)})

    def decide(self, question: AskUser) -> Decision | None:
        """Ask the editor; only the very option of this question is a yes."""
        if self.mode == REFUSE:
            return Decision(False, "refused by the editor's mode", question.digest)
        allow, reject = f"allow-{question.digest}", f"reject-{question.digest}"
        call = self._updates.described(question.tool, question.arguments)
        row = {"toolCallId": self._updates.call_id(question.effect_id), "status": "pending", **call}
        why = {"type": "content", "content": {"type": "text", "text": shown(question.because)}}
        row["content"] = [why, *row.get("content", ())]
        options = [
            {"optionId": allow, "name": "Allow once", "kind": "allow_once"},
            {"optionId": reject, "name": "Reject", "kind": "reject_once"},
        ]
        params = {"sessionId": self.name, "toolCall": row, "options": options}
        params["_meta"] = question_meta(question.tool, question.arguments, question.because)
        with self._asking:
            asked = self._asked[question.effect_id] = self._peer.ask("session/request_permission", params)
        try:
            answer = read(Permission, asked.wait())
        except DriverUnavailable:
            return (
                None  # The editor has gone, or the question has lapsed. It is asked again when the session is loaded.
            )
        except Refused as error:
            return Decision(False, f"the editor could not ask: {error}", question.digest)
        finally:
            with self._asking:
                self._asked.pop(question.effect_id, None)
        if not isinstance(answer.outcome, Selected):
            return Decision(False, "the editor took the question back", question.digest)
        return Decision(answer.outcome.option_id == allow, "decided in the editor", question.digest)

    def stream(self, text: str) -> None:
        """Show words as they are written."""
        if self._shows:
            self._updates.stream(text)

    def activity(self, text: str) -> None:
        """Show a sentence about what goes on."""
        if self._shows:
            self._updates.think(text)

    def _take_back(self, still_open: set[int]) -> None:
        with self._asking:
            lapsed = [asked for question, asked in self._asked.items() if question not in still_open]
        for asked in lapsed:
            asked.give_up("the question is not open any more")

    def _show_terminal(self, arguments: dict[str, Any], terminal: str) -> None:
        running = self._updates.running(COMMAND, canonical_json(arguments))
        if running:
            content = [{"type": "terminal", "terminalId": terminal}]
            self._give({"sessionUpdate": "tool_call_update", "toolCallId": running, "content": content})

    def _give(self, update: Update) -> None:
        self._peer.tell("session/update", {"sessionId": self.name, "update": update})

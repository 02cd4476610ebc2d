"""Pending questions and calls, as one end of a session sees them: what is open, and whose fate is unknown."""

from __future__ import annotations

from edgeagent.core.effects import AskUser, CallTool, Effect
from edgeagent.core.events import Cancelled, EffectLost, Event, UserDecided
from edgeagent.core.state import PendingCall, State, calls_out


class Pending:
    """What is out in one session. `unknown` are the calls of which nobody can tell whether they happened."""

    def __init__(self) -> None:
        self.questions: frozenset[int] = frozenset()
        self.unknown: list[PendingCall] = []
        self._calls: dict[int, PendingCall] = {}

    def begin(self, state: State) -> None:
        """Take what is out from the state of a session that is resumed."""
        self._calls = {call.effect_id: call for call in calls_out(state)}

    def follow(self, event: Event, effects: tuple[Effect, ...]) -> PendingCall | None:
        """Follow one transition; return the call that was lost in it and is not made again."""
        lost = None
        match event:
            case UserDecided(effect_id=effect_id):
                self.questions -= {effect_id}
            case Cancelled():
                self.questions = frozenset()
            case EffectLost(effect_id=effect_id, tool=tool, arguments=arguments):
                named = PendingCall(effect_id, tool, arguments) if tool else None
                lost = self._calls.get(effect_id) or named
            case _:
                pass
        self.questions |= {each.effect_id for each in effects if isinstance(each, AskUser)}
        again = {(e.tool, e.arguments) for e in effects if isinstance(e, CallTool | AskUser)}
        if lost is None or (lost.tool, lost.arguments) in again:
            return None
        self.unknown.append(lost)
        return lost

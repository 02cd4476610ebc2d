"""Several guards as one: the strictest verdict wins, and each keeps its own memory.

They come together in two ways: an agent may have rules over the past and a rule over where values come from, and what
a sub-agent does is judged by its own guard and by those of all agents above it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from edgeagent.core.agent import Agent
from edgeagent.core.effects import Effect
from edgeagent.core.events import Event, UserSaid
from edgeagent.core.state import State
from edgeagent.policy.guard import ALLOW, AllowAll, Ask, Guard, Halt, Refuse, RuleGuard, Verdict
from edgeagent.policy.origin_guard import OriginGuard, ValuesFromUser
from edgeagent.policy.stays import StaysGuard, StaysHere


class AllGuards:
    """Asks every guard. One question covers all that wanted to ask, and gives all their reasons.

    `turns` are given in a sub-agent's session: the turn in which each guard's own agent is, None for the sub-agent's.
    """

    def __init__(self, guards: Sequence[Guard], turns: Sequence[int | None] = ()) -> None:
        self._guards, self._turns = tuple(guards), tuple(turns)

    def observe(self, memory: Any, state: State, event: Event) -> Any:
        """Return each guard's memory after this event."""
        if self._turns and isinstance(event, UserSaid):
            return memory  # The agent above wrote it; no person said anything.
        return tuple(guard.observe(m, view, event) for guard, m, view in self._each(memory, state))

    def judge(self, memory: Any, state: State, effect: Effect) -> Verdict:
        """Return the strictest verdict."""
        verdicts = [guard.judge(m, view, effect) for guard, m, view in self._each(memory, state)]
        for kind in (Halt, Refuse):
            for verdict in verdicts:
                if isinstance(verdict, kind):
                    return verdict
        asks = [verdict.because for verdict in verdicts if isinstance(verdict, Ask)]
        return Ask("; ".join(dict.fromkeys(asks))) if asks else ALLOW

    def admit(self, memory: Any, state: State, effect: Effect) -> Any:
        """Return each guard's memory after an effect has been allowed."""
        return tuple(guard.admit(m, view, effect) for guard, m, view in self._each(memory, state))

    def narrow(self, memory: Any, state: State, effect: Effect) -> Effect:
        """Let each guard take out what it would refuse."""
        for guard, m, view in self._each(memory, state):
            effect = guard.narrow(m, view, effect)
        return effect

    def _each(self, memory: Any, state: State) -> Iterator[tuple[Guard, Any, State]]:
        """Yield each guard with its memory and the state as it must see it: in its own agent's turn."""
        memories = memory or (None,) * len(self._guards)
        turns = self._turns or (None,) * len(self._guards)
        for guard, m, turn in zip(self._guards, memories, turns, strict=True):
            yield guard, m, state if turn is None else replace(state, turn=turn)


def guard_for(agent: Agent) -> Guard:
    """Return the guard that enforces all of the agent's policies. Raises ConfigError for one that cannot hold."""
    origins = [p for p in agent.policies if isinstance(p, ValuesFromUser)]
    stays = [p for p in agent.policies if isinstance(p, StaysHere)]
    rules = [p for p in agent.policies if not isinstance(p, ValuesFromUser | StaysHere)]
    guards: list[Guard] = [RuleGuard(rules, agent)] if rules else []
    guards.extend(OriginGuard(rule, agent) for rule in origins)
    guards.extend(StaysGuard(rule, agent) for rule in stays)
    if len(guards) > 1:
        return AllGuards(guards)
    return guards[0] if guards else AllowAll()

"""Several guards as one: the strictest verdict wins, and each keeps its own memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from edgeagent.core.agent import Agent
from edgeagent.core.effects import Effect
from edgeagent.core.events import Event
from edgeagent.core.state import State
from edgeagent.policy.guard import ALLOW, AllowAll, Ask, Guard, Halt, Refuse, RuleGuard, Verdict
from edgeagent.policy.origin_guard import OriginGuard, ValuesFromUser


class JointGuard:
    """Asks every guard. One question covers all that wanted to ask, and gives all their reasons."""

    def __init__(self, guards: Sequence[Guard]) -> None:
        self.guards = tuple(guards)

    def observe(self, memory: Any, state: State, event: Event) -> tuple[Any, ...]:
        """Return each guard's memory after this event."""
        parts = memory or (None,) * len(self.guards)
        return tuple(g.observe(m, state, event) for g, m in zip(self.guards, parts, strict=True))

    def judge(self, memory: Any, state: State, effect: Effect) -> Verdict:
        """Return the strictest verdict."""
        verdicts = [g.judge(m, state, effect) for g, m in zip(self.guards, memory, strict=True)]
        for kind in (Halt, Refuse):
            for verdict in verdicts:
                if isinstance(verdict, kind):
                    return verdict
        asks = [v.because for v in verdicts if isinstance(v, Ask)]
        return Ask("; ".join(dict.fromkeys(asks))) if asks else ALLOW

    def admit(self, memory: Any, state: State, effect: Effect) -> tuple[Any, ...]:
        """Return each guard's memory after an effect has been allowed."""
        return tuple(g.admit(m, state, effect) for g, m in zip(self.guards, memory, strict=True))

    def narrow(self, memory: Any, state: State, effect: Effect) -> Effect:
        """Let each guard take out what it would refuse."""
        for guard, part in zip(self.guards, memory, strict=True):
            effect = guard.narrow(part, state, effect)
        return effect


def guard_for(agent: Agent) -> Guard:
    """Return the guard that enforces all of the agent's policies. Raises ConfigError for one that cannot hold."""
    origins = [p for p in agent.policies if isinstance(p, ValuesFromUser)]
    rules = [p for p in agent.policies if not isinstance(p, ValuesFromUser)]
    guards: list[Guard] = [RuleGuard(rules, agent)] if rules else []
    guards.extend(OriginGuard(rule, agent) for rule in origins)
    if len(guards) > 1:
        return JointGuard(guards)
    return guards[0] if guards else AllowAll()

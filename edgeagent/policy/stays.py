"""Values that never leave this device: once one is in a session, no model elsewhere is asked in it any more.

    stays_here()                                  tainted and sensitive values
    stays_here(of="sensitive", tools=["read_pin"])

No text is compared: a value that was quoted, split, encoded or summarised by a tool or a model is still what it was
made from. So the whole session stays from the first such value on, and what is asked of a model says so
(`AskModel.stays`). Sensitive are what tools with `sensitive=True`, or labelled confidential, are given and return;
tainted is what untrusted tools return and what is heard. The user's own words are theirs to send.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, get_args

from msgspec.structs import replace

from edgeagent.core.agent import Agent, Tool, family_of
from edgeagent.core.effects import AskModel, CallTool, Effect
from edgeagent.core.events import Event, Heard
from edgeagent.core.state import State
from edgeagent.errors import ConfigError
from edgeagent.policy.fact import TOOLS_WORDS, what_happened
from edgeagent.policy.guard import ALLOW, Verdict
from edgeagent.policy.origin_guard import ValuesFromUser

Of = Literal["sensitive", "tainted"]

OUTSIDE = "what was heard"


@dataclass(frozen=True)
class StaysHere:
    """The rule as an author writes it."""

    of: tuple[Of, ...]
    tools: tuple[str, ...] = ()
    because: str = ""

    @property
    def name(self) -> str:
        """The rule's name, as in a table."""
        return "stays_here"

    def explain(self) -> str:
        """Return the rule as one sentence."""
        values = " and ".join((*(f"{each} values" for each in self.of), *(f"those of {each}" for each in self.tools)))
        return f"stays_here: {values} never leave this device: once one is there, only a model on it is asked"

    def memory_sentence(self) -> str:
        """Say how much the rule remembers at most."""
        return "the first reason"


def stays_here(
    *, of: str | Iterable[str] = ("sensitive", "tainted"), tools: Iterable[str] = (), because: str = ""
) -> StaysHere:
    """Keep values on this device: those of these kinds, and of these tools. Raises ConfigError."""
    kinds = (of,) if isinstance(of, str) else tuple(of)
    wrong = [each for each in kinds if each not in get_args(Of)]
    if wrong or not (kinds or tuple(tools)):
        raise ConfigError(f"stays_here(of={of!r}): name 'sensitive', 'tainted' or both, or tools")
    return StaysHere(kinds, tuple(tools), because)  # type: ignore[arg-type] # compared above


class StaysGuard:
    """Remembers why the session stays here, once it does. It refuses nothing: it says so where a model is asked."""

    def __init__(self, rule: StaysHere, agent: Agent) -> None:
        self._rule, self._tools = rule, family_of(agent).by_name
        for name in rule.tools:
            if name not in self._tools:
                known = ", ".join(self._tools) or "none"
                raise ConfigError(f"agent {agent.name}: stays_here names the tool {name}; its tools are: {known}")
        labels = [p.labels for each in agent.by_path.values() for p in each.policies if isinstance(p, ValuesFromUser)]
        self._confidential = frozenset(tool for each in labels for tool in each.confidential)

    def observe(self, memory: Any, state: State, event: Event) -> Any:
        """Remember the first value that stays; what comes from a call that nobody waits for is nobody's."""
        if memory:
            return memory
        kind, call = what_happened(state, event)
        if kind in ("returned", "failed") and call is not None:
            return self._why(call.tool, came_in=True)
        if isinstance(event, Heard) and event.source == TOOLS_WORDS:
            return ""  # They are in every prompt; what is to stay here is what comes in through tools.
        return OUTSIDE if kind == "heard" and "tainted" in self._rule.of else ""

    def judge(self, memory: Any, state: State, effect: Effect) -> Verdict:
        """Allow everything."""
        return ALLOW

    def admit(self, memory: Any, state: State, effect: Effect) -> Any:
        """Remember what a sensitive tool is given."""
        return memory or (self._why(effect.tool, came_in=False) if isinstance(effect, CallTool) else memory)

    def narrow(self, memory: Any, state: State, effect: Effect) -> Effect:
        """Say that what is asked stays here, and why."""
        if not memory or not isinstance(effect, AskModel) or effect.stays:
            return effect
        return replace(
            effect, stays=f"{memory} stays on this device" + f" ({self._rule.because})" * bool(self._rule.because)
        )

    def _why(self, name: str, *, came_in: bool) -> str:
        tool = self._tools.get(name)
        if name in self._rule.tools or ("sensitive" in self._rule.of and self._is_sensitive(name, tool)):
            return f"what {name} was given or gave"
        tainted = came_in and "tainted" in self._rule.of and not (tool is not None and tool.trusted)
        return f"what {name or 'the agent above'} returned" if tainted else ""

    def _is_sensitive(self, name: str, tool: Tool | None) -> bool:
        """Whether the tool says so, or a label; a tool that is not known might."""
        return tool is None or tool.sensitive or name in self._confidential

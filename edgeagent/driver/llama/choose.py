"""Which of the admissible tools does a request ask for? The driver's choice, in place of a small model's spelling.

Law: only tools of the ask are ever chosen. Where nothing speaks for one tool above the others, all of them
stay, and the model spells the name as it likes.
"""

from __future__ import annotations

from dataclasses import dataclass

from edgeagent.core.agent import Agent
from edgeagent.core.effects import AskModel
from edgeagent.grammar.lexical import Lexicon, Scores


@dataclass(frozen=True)
class Chosen:
    """The tools that the call may name, and how each of the ask's tools was judged, if they were compared."""

    tools: tuple[str, ...]
    scores: Scores = ()


class Chooser:
    """Chooses for one agent and its sub-agents."""

    def __init__(self, agent: Agent) -> None:
        self._lexicons = {path: Lexicon.of(each.tools) for path, each in agent.by_path.items()}

    def choose(self, ask: AskModel) -> Chosen:
        """The tools that fit the request best: one, or several that fit alike."""
        scores = self._lexicons[ask.agent].scores(request_in(ask), ask.tools)
        rounded = tuple((name, round(score, 3)) for name, score in scores)
        best = max(score for _, score in rounded)
        return Chosen(tuple(name for name, score in rounded if score == best), rounded)


def request_in(ask: AskModel) -> str:
    """What the user said last."""
    return next((m.text for m in reversed(ask.messages) if m.role == "user"), "")

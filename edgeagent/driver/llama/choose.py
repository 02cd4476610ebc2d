"""Which of the admissible tools does a request ask for? The driver's choice, in place of a small model's spelling.

The request's words decide where they clearly speak of one tool; that costs nothing. Where they do not, the model is
asked how likely the request is behind each tool's text, which is a far better question than which name it would write.

Law: only tools of the ask are ever chosen. Where nothing can tell them apart, all of those stay, and the model spells
the name as it likes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from edgeagent.core.agent import Agent, Tool
from edgeagent.core.effects import AskModel
from edgeagent.driver.llama.engine import Engine, Halt
from edgeagent.driver.llama.template import Template
from edgeagent.grammar.lexical import Lexicon, Scores

LEXICAL_WEIGHT = 3.0
"""Nats that a point of the lexical score is worth. In trials with BFCL 2 to 4 were best."""

DECISIVE_MARGIN = 1.5
"""Points by which a tool must lead for its words alone to decide."""

COMPARED_MAX = 12
"""The most tools that the model compares for one request: some 0.05 to 0.1 s each on a small CPU."""

REQUEST_TOKENS_MAX = 48
"""A request's first tokens say what is wanted; the logits of each take 200 kB while they are compared."""

DESCRIPTION_CHARS_MAX = 200

ODDS_NAMED, ODDS_LIKELY, ODDS_UNNAMED = -8.0, -6.0, -4.0
"""Log-odds of beginning a call, by the model's reckoning, from which on a call is what is meant.

A request of which a tool has a good part (`NAMED_SHARE`) needs less of them, one that shares no word with any needs
more. Set by the gateway's list and 17 rows of BFCL's fitting half with SmolLM2-135M-Instruct (bench/accuracy): requests
that a tool has words of and that want a call had -6.7 and up, those of no shared word that want none -4.2 and less.
"""

NAMED_SHARE = 0.25

_SEQUENCE = 1  # Of the engine's memory: beside the conversation, and emptied after every choice.


@dataclass(frozen=True)
class Chosen:
    """The tools that the call may name, and how each of the ask's tools was judged, if they were compared."""

    tools: tuple[str, ...]
    scores: Scores = ()


class Chooser:
    """Chooses for one agent and its sub-agents."""

    def __init__(self, agent: Agent, engine: Engine, template: Template) -> None:
        self._agent, self._engine, self._template = agent, engine, template
        self._lexicons = {path: Lexicon.of(each.tools) for path, each in agent.by_path.items()}

    def spoken_of(self, ask: AskModel) -> Scores:
        """How much the words of the request speak of each tool."""
        return self._lexicons[ask.agent].scores(request_in(ask), ask.tools)

    def odds_needed(self, ask: AskModel, spoken: Scores) -> float:
        """The log-odds of a call that the model must come to, after what the words of the request say."""
        name, score = max(spoken, key=lambda each: each[1])
        if score <= 0:
            return ODDS_UNNAMED
        share = self._lexicons[ask.agent].share(request_in(ask), name)
        return ODDS_NAMED if share >= NAMED_SHARE else ODDS_LIKELY

    def choose(self, ask: AskModel, spoken: Scores, halt: Halt | None = None) -> Chosen:
        """The tools that fit the request best: one, or several that fit alike."""
        rivals = _rivals(spoken)
        likely = self._likely(rivals, request_in(ask), halt) if 1 < len(rivals) <= COMPARED_MAX else {}
        scores = tuple((name, round(LEXICAL_WEIGHT * s + likely.get(name, 0.0), 3)) for name, s in spoken)
        best = max(score for name, score in scores if name in rivals)
        return Chosen(tuple(name for name, score in scores if score == best and name in rivals), scores)

    def _likely(self, names: Sequence[str], request: str, halt: Halt | None) -> dict[str, float]:
        """The log-probability of the request behind each tool's text, over the best; empty if it could not be told."""
        engine, told = self._engine, {}
        asked = engine.tokenize(" " + request.strip(), special=False, bos=False)[:REQUEST_TOKENS_MAX]
        if engine.sequences <= _SEQUENCE or not request.strip():
            return {}
        try:
            for name in names:
                score = None if halt is not None and halt() else self._score(self._agent.family[name], asked)
                if score is None:
                    return {}
                told[name] = score
        finally:
            engine.align((), sequence=_SEQUENCE, keep_last=False)
        best = max(told.values())
        return {name: score - best for name, score in told.items()}

    def _score(self, tool: Tool, asked: Sequence[int]) -> float | None:
        text = f"Tool: {tool.name} - {' '.join(tool.description.split())[:DESCRIPTION_CHARS_MAX]}\nExample request:"
        prefix = [*self._opening, *self._engine.tokenize(text, special=False, bos=False)]
        return self._engine.score(prefix, asked, sequence=_SEQUENCE)

    @cached_property
    def _opening(self) -> list[int]:
        """The markup that opens a user's message, as this model's template has it behind a system message."""
        engine, chat = self._engine, [{"role": "system", "content": "S?"}, {"role": "user", "content": "U?"}]
        options: dict[str, Any] = {"bos_token": engine.bos_token, "eos_token": engine.eos_token}
        rendered = self._template.render(chat, add_generation_prompt=False, **options)
        between = rendered[rendered.rfind("S?") + 2 : rendered.rfind("U?")]
        for token in engine.stop_ids:
            between = between.rpartition(engine.detokenize([token]).decode("utf-8", "replace"))[2]
        return engine.tokenize(between.lstrip("\n"), special=True, bos=engine.adds_bos)


def request_in(ask: AskModel) -> str:
    """What the user said last."""
    return next((m.text for m in reversed(ask.messages) if m.role == "user"), "")


def _rivals(spoken: Scores) -> list[str]:
    """The tools that the words of the request leave, best first."""
    best = max(score for _, score in spoken)
    return [name for name, score in sorted(spoken, key=lambda each: -each[1]) if best - score < DECISIVE_MARGIN]

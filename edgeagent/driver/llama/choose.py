"""Which of the admissible tools does a request ask for, if for any? The driver's choice, not a small model's spelling.

Which: the words of the request decide where they clearly speak of one tool. Where they do not, the model is asked how
likely the request is behind each tool's text, which is a far better question than which name it would write.

If any: no tool is a class of its own. For the tool that fits best it is weighed how much likelier the request is behind
its text than behind one that says nothing, and what words the two share (`grammar/meant.py`, weights in `fitted.py`).

Laws: only tools of the ask are ever chosen. Where nothing can tell them apart, all of those stay, and the model spells
the name as it likes. What the model could not be asked, for want of room or time, says nothing either way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from edgeagent.core.agent import Agent, Tool
from edgeagent.core.effects import AskModel
from edgeagent.driver.llama.engine import Engine, Halt
from edgeagent.driver.llama.scoring_slots import Shelf, Text
from edgeagent.driver.llama.template import Template
from edgeagent.request.call_odds import words_shared
from edgeagent.request.lexical import Lexicon, Scores, purpose, stems
from edgeagent.request.verbs import Act, act_of, acts_of, excludes

LEXICAL_WEIGHT = 3.0
"""Nats that a point of the lexical score is worth. In trials with BFCL 2 to 4 were best."""

DECISIVE_MARGIN = 1.5
"""Points by which a tool must lead for its words alone to decide."""

ACT_FITS = 1.0
"""Points of the lexical score for a tool that does what the request's verb asks for."""

ACT_EXCLUDED = 4.0
"""Points against one that excludes it: more than words hardly ever speak for a tool."""

COMPARED_MAX = 12
"""The most tools that the model compares for one request: those of which its words speak most."""

SEQUENCES = 1 + COMPARED_MAX + 1
"""Of the engine's memory: the conversation, a tool's text each, and one that says nothing."""

HELD_PART = 4
"""Tools' texts may take one in so many tokens of the window before a conversation begins."""

REQUEST_TOKENS_MAX = 48
"""A request's first tokens say what is wanted; the logits of each take 200 kB while they are compared."""

DESCRIPTION_CHARS_MAX = 200
EXAMPLES_MAX = 2

WRITER = "(writer)"
SAYS_NOTHING = {WRITER: "A user writes:"}
"""The text beside those of the tools, behind which any request is as likely; no tool can have such a name."""


@dataclass(frozen=True)
class Chosen:
    """The tools that the call may name; how each of the ask's tools was judged; and what says that one is meant."""

    tools: tuple[str, ...]
    scores: Scores = ()
    evidence: Mapping[str, float] = field(default_factory=dict)


class Chooser:
    """Chooses for one agent and its sub-agents."""

    def __init__(self, agent: Agent, engine: Engine, template: Template) -> None:
        self._agent, self._engine, self._template = agent, engine, template
        self._acts = {name: acts_of(each) for name, each in agent.family.items()}
        self._lexicons = {path: Lexicon.of(each.tools) for path, each in agent.by_path.items()}
        self.shelf = Shelf(engine)
        """Where the tools' texts wait."""
        self._has_held = False

    @cached_property
    def held(self) -> dict[str, list[int]]:
        """What requests are judged behind, in tokens: of all tools, or nothing if these are too many to wait in memory.

        What is held takes a quarter of the memory at most.
        """
        family = self._agent.family
        texts = {name: _text_of(each, "") for name, each in family.items()} | SAYS_NOTHING
        tokens = {name: self._prefix(text) for name, text in texts.items()}
        is_little = sum(map(len, tokens.values())) <= self._engine.n_ctx // HELD_PART
        return tokens if len(family) <= COMPARED_MAX and is_little else {}

    def hold(self, halt: Halt | None = None) -> None:
        """Have the tools' texts in memory before anything else is; once, for a conversation may need their room."""
        if self.held and not self._has_held:
            self.shelf.hold(self.held, halt)
        self._has_held = True

    def spoken_of(self, ask: AskModel, request: str) -> Scores:
        """How much the words of the request speak of each tool of the ask."""
        act, told = act_of(request), self._lexicons[ask.agent].scores(request, ask.tools)
        return tuple((name, score + _fit(act, self._acts[name])) for name, score in told)

    def excludes(self, name: str, request: str) -> bool:
        """Whether the tool only does what does not serve the request."""
        return excludes(act_of(request), self._acts[name])

    def begins_with(self, ask: AskModel, request: str, name: str) -> bool:
        """Whether the first word that says something, as a command does, is one of the tool's."""
        return self._lexicons[ask.agent].has(name, next(iter(stems(request)), ""))

    def choose(self, ask: AskModel, request: str, halt: Halt | None = None, *, is_open: bool = False) -> Chosen:
        """The tools of the ask that fit the request best: one, or several that fit alike.

        `is_open` when it is not settled that a call follows: then there is evidence for and against it.
        """
        spoken = self.spoken_of(ask, request)
        rivals = _rivals(spoken)
        likely = self._likely(rivals, request, halt) if is_open or len(rivals) > 1 else {}
        best_likely = max((likely[name] for name in rivals if name in likely), default=0.0)
        scores = tuple((n, round(LEXICAL_WEIGHT * s + likely.get(n, best_likely) - best_likely, 3)) for n, s in spoken)
        best = max(score for name, score in scores if name in rivals)
        tools = tuple(name for name, score in scores if score == best and name in rivals)
        return Chosen(tools, scores, self._evidence(tools[0], request, likely) if is_open else {})

    def _evidence(self, name: str, request: str, likely: Mapping[str, float]) -> dict[str, float]:
        """What says that the request asks for this tool, and not for none."""
        found = words_shared(self._agent.family[name], request)
        if name in likely:
            found["writer"] = likely[name] - likely[WRITER]
        return {piece: round(value, 3) for piece, value in found.items()}

    def _likely(self, names: Sequence[str], request: str, halt: Halt | None) -> dict[str, float]:
        """The log-probability of the request behind each text; empty if it could not be told."""
        if not request.strip():
            return {}
        asked = self._tokens(" " + request.strip())[:REQUEST_TOKENS_MAX]
        texts = {name: _text_of(self._agent.family[name], request) for name in names} | SAYS_NOTHING
        return self.shelf.judge({key: Text(self._prefix(text), asked) for key, text in texts.items()}, halt) or {}

    def _prefix(self, text: str) -> list[int]:
        return [*self._opening, *self._tokens(text)]

    def _tokens(self, text: str) -> list[int]:
        return self._engine.tokenize(text, special=False, bos=False)

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
    """What the user said last, or what came from outside after that."""
    return next((m.text for m in reversed(ask.messages) if m.role in ("user", "heard", "note")), "")


def _fit(act: Act | None, acts: frozenset[Act]) -> float:
    """Points for a tool that does what is to be done, and against one that cannot serve it."""
    return ACT_FITS if act in acts else -ACT_EXCLUDED * excludes(act, acts)


def _text_of(tool: Tool, request: str) -> str:
    """What a tool is for, and its first examples; but never the request itself, or it would explain itself."""
    examples = [each for each in tool.examples if each != request][:EXAMPLES_MAX]
    return "\nExample request:".join(
        [f"Tool: {tool.written} - {_described(tool)}", *(f" {each}" for each in examples), ""]
    )


def _described(tool: Tool) -> str:
    return " ".join(purpose(tool).split())[:DESCRIPTION_CHARS_MAX]


def _rivals(spoken: Scores) -> list[str]:
    """The tools that the words of the request leave, best first; of many that fit alike, the first declared."""
    best = max(score for _, score in spoken)
    left = [name for name, score in sorted(spoken, key=lambda each: -each[1]) if best - score < DECISIVE_MARGIN]
    return left[:COMPARED_MAX]

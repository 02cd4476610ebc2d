"""Judge texts with the model: how likely is a request behind each of some texts, a value behind its argument's name?

Laws: the conversation's memory holds afterwards what it held before, or less. What the model could not be asked, for
want of room or time, is told as None.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from edgeagent.driver.llama.batch import BATCH_TOKENS
from edgeagent.driver.llama.engine import Engine, Halt
from edgeagent.driver.llama.scoring_slots import Shelf, Text
from edgeagent.driver.llama.template import Template
from edgeagent.errors import ModelError
from edgeagent.grammar.frame import Frame
from edgeagent.request.choose import COMPARED_MAX

SEQUENCES = 1 + COMPARED_MAX + 1
"""Of the engine's memory: the conversation, a tool's text each, and one that says nothing."""

HELD_PART = 4
"""Tools' texts may take one in so many tokens of the window before a conversation begins."""

REQUEST_TOKENS_MAX = 48
"""A request's first tokens say what is wanted; the logits of each take 200 kB while they are compared."""


class TextScorer:
    """Scores for one engine; what requests are mostly judged behind waits in its memory."""

    def __init__(self, engine: Engine, template: Template, frame: Frame, texts: Mapping[str, str]) -> None:
        """`texts` are those of all tools, and `frame` what the model's calls are written within."""
        self.engine, self.frame = engine, frame
        self._template, self._texts = template, texts
        self.shelf = Shelf(engine)
        """Where the tools' texts wait."""
        self._has_held = False

    @cached_property
    def held(self) -> dict[str, list[int]]:
        """What requests are judged behind, in tokens: of all tools, or nothing if these are too many to wait in memory.

        What is held takes a quarter of the memory at most.
        """
        tokens = {name: self._prefix(text) for name, text in self._texts.items()}
        is_little = sum(map(len, tokens.values())) <= self.engine.n_ctx // HELD_PART
        return tokens if len(tokens) < SEQUENCES and is_little else {}

    def hold(self, halt: Halt | None = None) -> None:
        """Have the tools' texts in memory before anything else is; once, for a conversation may need their room."""
        if self.held and not self._has_held:
            self.shelf.hold(self.held, halt)
        self._has_held = True

    def stands(self, places: Mapping[str, int]) -> None:
        """Say which of the texts stand where in memory; the others are held again before the next conversation."""
        self.shelf.give_back(places)
        self._has_held = False

    def behind(self, request: str, texts: Mapping[str, str], halt: Halt | None) -> Mapping[str, float] | None:
        """The log-probability of the request behind each text."""
        asked = self.tokens(" " + request.strip())[:REQUEST_TOKENS_MAX]
        return self.shelf.judge({name: Text(self._prefix(text), asked) for name, text in texts.items()}, halt)

    def tokens(self, text: str) -> list[int]:
        """A text in tokens, its markup as plain text."""
        return self.engine.tokenize(text, special=False, bos=False)

    def _prefix(self, text: str) -> list[int]:
        return [*self._opening, *self.tokens(text)]

    @cached_property
    def _opening(self) -> list[int]:
        """The markup that opens a user's message, as this model's template has it behind a system message."""
        engine, chat = self.engine, [{"role": "system", "content": "S?"}, {"role": "user", "content": "U?"}]
        options: dict[str, Any] = {"bos_token": engine.bos_token, "eos_token": engine.eos_token}
        try:
            rendered = self._template.render(chat, add_generation_prompt=False, **options)
        except ModelError:  # It has no system messages.
            rendered = self._template.render(chat[1:], add_generation_prompt=False, **options)
        between = rendered[: rendered.rfind("U?")].rpartition("S?")[2]
        for token in engine.stop_ids:
            between = between.rpartition(engine.detokenize([token]).decode("utf-8", "replace"))[2]
        return engine.tokenize(between.lstrip("\n"), special=True, bos=engine.adds_bos)


@dataclass(frozen=True)
class ModelJudge:
    """The judge of one ask (`request.judge.Judge`): behind this prompt, and until `halt`."""

    scorer: TextScorer
    prompt: Sequence[int] = ()
    halt: Halt | None = None

    def request_behind(self, request: str, texts: Mapping[str, str]) -> Mapping[str, float] | None:
        """The log-probability of the request behind each text, as a user's words."""
        return self.scorer.behind(request, texts, self.halt)

    def values_of(self, tool: str, argument: str, values: Sequence[str]) -> Sequence[float] | None:
        """The log-probability of each value as the argument's, as if it were the first one to be written."""
        engine, frame, tokens = self.scorer.engine, self.scorer.frame, self.scorer.tokens
        if engine.sequences == 1:
            return None
        head = f"{frame.before}{tool}{frame.between}{{{json.dumps(argument)}{frame.key_separator.rstrip()}"
        written = [tokens(f" {json.dumps(value, ensure_ascii=False)},")[:BATCH_TOKENS] for value in values]
        return engine.score_each([*self.prompt, *tokens(head)], written, halt=self.halt)

"""Compare the values that a request has for an argument: how likely is each behind its name, by the model?

Law: the conversation's memory is used and not changed: it holds the prompt afterwards, or less.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from edgeagent.driver.llama.engine import BATCH_TOKENS, Engine, Halt
from edgeagent.grammar.calls import Frame
from edgeagent.request.evidence import Evidence, Open, settled


class Comparer:
    """Compares for one engine, in calls that are written within one frame."""

    def __init__(self, engine: Engine, frame: Frame) -> None:
        self._engine, self._frame = engine, frame

    def settle(self, evidence: Evidence, tool: str, prompt: Sequence[int], halt: Halt | None = None) -> Evidence:
        """The evidence with each open argument held to one value; by the words alone where there is no time or room."""
        likelihoods: dict[str, Sequence[float]] = {}
        for each in evidence.open:
            told = self._likelihoods(each, tool, prompt, halt) if self._engine.sequences > 1 else None
            if told is None:
                return settled(evidence, {})
            likelihoods[each.argument] = told
        return settled(evidence, likelihoods)

    def _likelihoods(
        self, question: Open, tool: str, prompt: Sequence[int], halt: Halt | None
    ) -> Sequence[float] | None:
        """The log-probability of each candidate as the argument's value, as if it were the first one to be written."""
        frame, engine = self._frame, self._engine
        head = f"{frame.before}{tool}{frame.between}{{{json.dumps(question.argument)}{frame.key_separator.rstrip()}"
        prefix = [*prompt, *engine.tokenize(head, special=False, bos=False)]
        values = [json.dumps(each.value, ensure_ascii=False) for each in question.candidates]
        tokens = [engine.tokenize(f" {value},", special=False, bos=False)[:BATCH_TOKENS] for value in values]
        return engine.score_each(prefix, tokens, halt=halt)

"""Which numbers of the request will the model copy? Guessed, and evaluated in the same pass as what is certain.

Law: a guess changes how many passes a text takes, and never the text. Each guessed token is still sampled where it
stands, from its own logits; with the first one that the model does not want, the rest is cut off its memory.

Guessing from the prompt is known as prompt lookup decoding. On a small CPU only numbers are worth it: a wrong token
costs half of the pass that a right one saves, and a name or an option brings all that it forces behind it.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from edgeagent.driver.llama.constraint import Constraint

NUMBERS_MAX = 8
"""The most numbers that are remembered, the first ones: a long list is not copied one by one into arguments."""

FAILURES_MAX = 2
"""So many more refused guesses than tokens met, and no more is guessed under a grammar: this model does not copy."""

_NUMBER = re.compile(r"(?<![\w.])-?\d{1,9}(?:\.\d{1,9})?(?!\w)")


class Luck:
    """How guesses fared under one grammar. It decides only whether more are made."""

    def __init__(self) -> None:
        self._failures = 0

    def lasts(self) -> bool:
        """Whether it is worth guessing on."""
        return self._failures < FAILURES_MAX

    def note(self, met: bool) -> None:
        """The model wanted the token that was guessed, or another one."""
        self._failures += -1 if met else 1


class Draft:
    """The guesses for one text: the numbers that its model may copy, each once, in their order."""

    def __init__(self, luck: Luck, text: str, tokenize: Callable[[str], list[int]]) -> None:
        found = [match.group() for _, match in zip(range(NUMBERS_MAX), _NUMBER.finditer(text), strict=False)]
        # The space before a number may be forced already, or be a part of its first token.
        self._numbers = [(tuple(tokenize(f" {number}")), tuple(tokenize(number))) for number in found]
        self._luck = luck

    def guess(self, constraint: Constraint) -> tuple[int, ...]:
        """The next number that may follow as a whole; nothing in free text, where a number is nothing special."""
        if not self._luck.lasts():
            return ()
        for place, spellings in enumerate(self._numbers):
            for tokens in spellings:
                if constraint.accepted(tokens, end=False) == len(tokens):
                    if constraint.in_text():
                        return ()
                    del self._numbers[place]
                    return tokens
        return ()

"""What may come next: a grammar at work over one model's vocabulary. The promise that every grammar engine keeps.

Law: a constraint is only ever fed tokens it has accepted, so it cannot fall into an error state by our doing; when an
engine fails nevertheless, that is a GrammarError and never "anything goes". The candidate is tested first; the whole
vocabulary is masked only when it was rejected.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]

CHOICES_MAX = 16  # how many ways out of a state are worth trying when the shortest end is searched

# Two letters that only free text allows side by side: that is how we know that we are inside a string.
ODD_LETTERS = ("q", "Z")


class Constraint(Protocol):
    """What may come next."""

    def closed(self) -> bool:
        """Nothing more may be written."""

    def complete(self) -> bool:
        """The text may end here."""

    def forced(self) -> list[int]:
        """The tokens that must come next, where the grammar leaves no choice."""

    def accepted(self, tokens: Sequence[int], *, end: bool) -> int:
        """How many of the tokens, and then (with `end`) the end of the text, may follow in this order."""

    def clumsy(self, token: int) -> bool:
        """Whether longer tokens that may come next begin every text that this one can begin.

        ` ` before `true` and `n` before `orth` are such: a model has hardly ever read them so, and they cost a token.
        """

    def in_text(self) -> bool:
        """Whether free text may follow: any letter fits."""

    def take(self, token: int) -> bool:
        """Move on if the token may come next: one question instead of two."""

    def consume(self, tokens: Sequence[int]) -> None:
        """Move on. The tokens must be accepted; raises GrammarError if the engine fails."""

    def allowed(self, logits: NDArray[np.float32]) -> Ids:
        """The tokens that may come next; at least the likeliest one of them. Stop tokens are among them."""

    def choices(self) -> list[int]:
        """A few tokens that may come next, those first that bring the end nearer."""

    def respelled(self, tokens: list[int]) -> list[int]:
        """The same text in fewer tokens, if this engine's choices were not the vocabulary's own."""

    def copy(self) -> Constraint:
        """An independent one in the same state."""

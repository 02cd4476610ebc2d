"""Meaning of texts as an embedder has it, if there is one: how alike are a request and other texts?

A driver may offer it. Without one the words decide, and a model's judgement.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class Meaning(Protocol):
    """Likeness of texts, from -1 to 1; it says more about which of two is nearer than about how near one is."""

    @property
    def digest(self) -> str:
        """What tells this embedder from another."""

    def alike(self, request: str, texts: Mapping[str, str]) -> Mapping[str, float]:
        """How alike in meaning the request is to each of the texts, by their names."""

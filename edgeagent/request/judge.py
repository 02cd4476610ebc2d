"""Judgement of a model, if there is one: how likely is a text after another? Strings in, log-probabilities out.

A model's driver may offer it. Without one, and where it has no room or no time (None), the words decide alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol


class Judge(Protocol):
    """Log-probabilities of texts, in nats."""

    def request_behind(self, request: str, texts: Mapping[str, str]) -> Mapping[str, float] | None:
        """How likely a user's request is behind each of the texts, by their names."""

    def values_of(self, tool: str, argument: str, values: Sequence[str]) -> Sequence[float] | None:
        """How likely each value is as this argument of a call of the tool, in the conversation as it stands."""

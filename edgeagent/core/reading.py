"""What a model wrote, once it is read: calls, an answer, or nothing that can be read."""

from __future__ import annotations

import msgspec

from edgeagent.core.values import ToolCall


class Calls(msgspec.Struct, frozen=True):
    """What the model wrote was one or more calls."""

    calls: tuple[ToolCall, ...]


class Answer(msgspec.Struct, frozen=True):
    """What the model wrote was an answer in words."""

    text: str


class Unreadable(msgspec.Struct, frozen=True):
    """What the model wrote was meant as a call and is none; `because` says what is wrong with it."""

    because: str


Reading = Calls | Answer | Unreadable

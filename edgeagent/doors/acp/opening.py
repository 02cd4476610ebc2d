"""Opening of the door of editors: which agent is served, with what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

CLIENT_TOOLS = ("read", "write", "terminal")
"""What of a client can be made tools: its files to read, its files to write, its terminal."""


@dataclass(frozen=True)
class Opening:
    """What is served. `offers` says what of the client is made tools; `options` are those of `OpenRequest`."""

    agent: str
    offers: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)

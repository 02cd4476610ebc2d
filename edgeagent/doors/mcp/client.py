"""What is known of a client, and of what it is offered, before anything is loaded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from edgeagent.runtime.model import Model
    from edgeagent.runtime.open import OpenRequest

LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
"""How much a line of the log matters, as syslog has it."""


class Client:
    """What a client has said of itself."""

    def __init__(self) -> None:
        self.asks = False
        """Whether its user can be asked."""
        self.level = LEVELS.index("warning")
        """The least that it wants to be told."""
        self.is_asked_later = False
        """Whether its user is asked between two requests: the second has the answer."""
        self.decided: tuple[str, bool] | None = None
        """What its user has said to the question of this digest, in the second of them."""


@dataclass(frozen=True)
class Source:
    """An agent, and how sessions of it are opened. A `model` that is given is loaded already, and stays so.

    `ask_name` is the tool by which something is said to it. `others` gives the sessions, besides a client's own, that
    it may read: rows with an `id` and a `title`. Any thread calls it, and `request`.
    """

    ask_name: str
    request: Callable[[], OpenRequest]
    model: Model | None = None
    root: Path | None = None
    others: Callable[[], list[dict[str, Any]]] = list

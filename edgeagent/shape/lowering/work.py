"""One schema on its way to an engine: the report so far, and what every kind needs of the others."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from msgspec import Struct

from edgeagent.errors import GrammarError
from edgeagent.shape.pointer import Document

NEVER: Any = False
# Lengths from which on nobody writes so much, and which engines do not count.
COUNT_MAX = 2**31 - 1


class Relaxation(Struct, frozen=True, order=True):
    """Where the lowered schema accepts more than the original."""

    path: str
    keyword: str
    reason: str


class Restriction(Struct, frozen=True, order=True):
    """Where the lowered schema accepts less than the original."""

    path: str
    keyword: str
    reason: str


class Work(ABC):
    """A schema being lowered: its document, its definitions, and how the result differs from the original."""

    def __init__(self, root: Any, string_max: int | None) -> None:
        self.document = Document(root)
        self.string_max = string_max
        self.path = ""  # Where an error is, should one come.
        self.definitions: dict[str, Any] = {}
        self.relaxations: dict[Relaxation, None] = {}
        self.restrictions: dict[Restriction, None] = {}

    @abstractmethod
    def place(self, schema: Any, path: str) -> Any:
        """Return the lowered schema of one place, or NEVER."""

    def relax(self, path: str, keyword: str, reason: str) -> None:
        """Note where the grammar accepts more."""
        self.relaxations[Relaxation(path, keyword, reason)] = None

    def restrict(self, path: str, keyword: str, reason: str) -> None:
        """Note where the grammar accepts less."""
        self.restrictions[Restriction(path, keyword, reason)] = None

    def refuse(self, path: str, reason: str) -> GrammarError:
        """Return the error of a place."""
        self.path = path
        return GrammarError(reason)


def length_keywords(least: int, most: int | None, what: str) -> dict[str, int]:
    """Return the keywords of a length, such as `maxItems`. Raises GrammarError for more than anybody writes."""
    if least > COUNT_MAX:
        raise GrammarError(f"min{what} is {least}; {COUNT_MAX} is the most that can be held")
    limits = {f"min{what}": int(least)} if least else {}
    return limits if most is None or most > COUNT_MAX else {**limits, f"max{what}": int(most)}

"""Embedding: the vectors of texts, by the embedder of the catalogue where it was pulled."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from edgeagent.errors import ModelError
from edgeagent.models.catalogue import EMBEDDER
from edgeagent.models.store import stored_model
from edgeagent.runtime.wiring import embedder

if TYPE_CHECKING:
    from edgeagent.driver.meaning.embedder import Embedder

PREFIXES = ("query: ", "passage: ")
"""One of these stands in front of every text; what a client sends without it is a query."""

HOW_TO = f"edgeagent model pull {EMBEDDER}"


class Embedding:
    """The embedder, loaded when it is first asked. Any thread may ask it; one at a time is answered."""

    def __init__(self, named: str = "") -> None:
        """`named` is the embedder of the settings; without it, it is that of the catalogue."""
        self._named = named
        self._lock = threading.Lock()
        self._loaded: Embedder | None = None

    @property
    def name(self) -> str:
        """What it is called; '' where it was not pulled."""
        name = self._named or EMBEDDER
        return name if stored_model(name) is not None else ""

    def vectors(self, texts: Sequence[str]) -> tuple[list[bytes], int]:
        """A vector for each text, as numbers in single precision, little-endian; and the pieces of all of them.

        Raises ModelError for a text that is too long, and where there is no embedder any more.
        """
        with self._lock:
            self._loaded = self._loaded or embedder(self._named)
            if self._loaded is None:
                raise ModelError(f"{EMBEDDER} is not there any more: {HOW_TO}")
            told = [self._loaded.vector(each if each.startswith(PREFIXES) else PREFIXES[0] + each) for each in texts]
        return [vector.astype("<f4").tobytes() for vector, _ in told], sum(count for _, count in told)

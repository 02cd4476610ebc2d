"""Embeddings of OpenAI's protocol: the vectors of texts, where there is an embedder."""

from __future__ import annotations

import asyncio
import base64
import struct
from typing import Any, Literal

import msgspec

from edgeagent.doors.http.chat import cannot
from edgeagent.doors.http.message import Reply, as_json
from edgeagent.doors.http.queue import Places
from edgeagent.doors.http.routes import Call
from edgeagent.errors import ModelError
from edgeagent.runtime.embedding import HOW_TO, Embedding

TEXTS_MAX = 32
"""Texts of one request: on a small board half a minute of it."""


class EmbeddingsRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is to be embedded; `user` is a client's note."""

    model: str
    input: str | list[str | int | list[int]]
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: int | None = None
    user: str | None = None


class Embeddings:
    """Answers requests for vectors."""

    def __init__(self, embedding: Embedding, places: Places) -> None:
        self._embedding, self._places = embedding, places

    @property
    def names(self) -> tuple[str, ...]:
        """The embedder, if there is one."""
        return (self._embedding.name,) if self._embedding.name else ()

    async def answer(self, call: Call) -> Reply:
        """The vectors. Raises Refused."""
        asked = call.request.as_json(EmbeddingsRequest)
        name = self._embedding.name
        if asked.model != name:
            how = f"ask {name}" if name else f"on this machine say: {HOW_TO}"
            raise cannot("model", f"{asked.model[:80]!r} embeds nothing; {how}")
        texts = _texts(asked)
        with self._places.one():
            try:
                vectors, pieces = await asyncio.to_thread(self._embedding.vectors, texts)
            except ModelError as error:
                raise cannot("input", str(error)) from None
        shown = _in_base64 if asked.encoding_format == "base64" else _in_numbers
        rows = [{"object": "embedding", "index": n, "embedding": shown(each)} for n, each in enumerate(vectors)]
        usage = {"prompt_tokens": pieces, "total_tokens": pieces}
        return as_json({"object": "list", "data": rows, "model": name, "usage": usage})


def _texts(asked: EmbeddingsRequest) -> list[str]:
    if asked.dimensions is not None:
        raise cannot("dimensions", "the vectors have the length that they have: leave dimensions out")
    given = [asked.input] if isinstance(asked.input, str) else asked.input
    texts = [each for each in given if isinstance(each, str) and each]
    if len(texts) < len(given):
        raise cannot("input", "input is a text or a list of texts, none of them empty; numbers of tokens are not read")
    if not 0 < len(texts) <= TEXTS_MAX:
        raise cannot("input", f"there must be 1 to {TEXTS_MAX} texts")
    return texts


def _in_base64(vector: bytes) -> Any:
    return base64.b64encode(vector).decode()


def _in_numbers(vector: bytes) -> Any:
    return struct.unpack(f"<{len(vector) // 4}f", vector)

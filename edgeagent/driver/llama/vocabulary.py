"""Which bytes does each token stand for? One table per model, kept on disk because asking llama.cpp is slow.

Reading 262,144 tokens out of llama.cpp takes a second, out of the table 10 ms. The file is a cache: it carries a
checksum, is keyed by the model's digest, and whatever is wrong with it, the table is made anew.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import llama_cpp
import numpy as np
from numpy.typing import NDArray

MAGIC = b"edgeagent-vocabulary-1\n"
PIECE_BYTES_MAX = 16 * 1024  # llama.cpp's longest token is far below; a longer one is refused, not cut.

ENDS_TURN = 1
CONTROL = 2


class Vocabulary:
    """The bytes of every token, and which tokens end a turn or are markup that no text can spell."""

    def __init__(self, blob: bytes, ends: NDArray[np.uint32], marks: NDArray[np.uint8]) -> None:
        self._blob = blob
        self._ends = ends
        self._marks = marks

    def __len__(self) -> int:
        return len(self._ends)

    def piece(self, token: int) -> bytes:
        """The bytes that the token adds to a text."""
        return self._blob[int(self._ends[token - 1]) if token else 0 : int(self._ends[token])]

    def join(self, tokens: Sequence[int]) -> bytes:
        """The text, as bytes, that the tokens spell."""
        return b"".join(map(self.piece, tokens))

    def pieces(self) -> list[bytes]:
        """All of them, by token id."""
        ends = self._ends.tolist()
        return [self._blob[begin:end] for begin, end in zip([0, *ends[:-1]], ends, strict=True)]

    def turn_ends(self) -> frozenset[int]:
        """The ids that end the model's turn: end of text, end of turn, and what the family uses besides."""
        return frozenset(np.flatnonzero(self._marks & ENDS_TURN).tolist())

    def control(self) -> frozenset[int]:
        """The ids that are markup, not text."""
        return frozenset(np.flatnonzero(self._marks & CONTROL).tolist())

    def to_bytes(self) -> bytes:
        """The cache file's content."""
        body = len(self).to_bytes(4, "little") + self._ends.astype("<u4").tobytes() + self._marks.tobytes() + self._blob
        return MAGIC + hashlib.blake2b(body, digest_size=32).digest() + body

    @classmethod
    def from_bytes(cls, content: bytes) -> Vocabulary | None:
        """The vocabulary, or None when the content is not exactly what was written."""
        head, body = content[: len(MAGIC) + 32], content[len(MAGIC) + 32 :]
        if head != MAGIC + hashlib.blake2b(body, digest_size=32).digest():
            return None
        count = int.from_bytes(body[:4], "little")
        marks_at, blob_at = 4 + 4 * count, 4 + 5 * count
        ends = np.frombuffer(body[4:marks_at], dtype="<u4").astype(np.uint32)
        return cls(body[blob_at:], ends, np.frombuffer(body[marks_at:blob_at], dtype=np.uint8))


def load_vocabulary(vocab: Any, count: int, cache: Path | None) -> Vocabulary:
    """The vocabulary from the cache file, or from llama.cpp (and then into the cache file)."""
    if cache is not None:
        with contextlib.suppress(OSError):
            found = Vocabulary.from_bytes(cache.read_bytes())
            if found is not None and len(found) == count:
                return found
    made = read_vocabulary(vocab, count)
    if cache is not None:
        with contextlib.suppress(OSError):  # A read-only or full disk costs only the time.
            _write(cache, made.to_bytes())
    return made


def read_vocabulary(vocab: Any, count: int) -> Vocabulary:
    """Ask llama.cpp for every token."""
    buffer = ctypes.create_string_buffer(PIECE_BYTES_MAX)
    to_piece, attributes, ends_turn = (
        llama_cpp.llama_token_to_piece,
        llama_cpp.llama_vocab_get_attr,
        llama_cpp.llama_vocab_is_eog,
    )
    pieces: list[bytes] = []
    marks = np.zeros(count, dtype=np.uint8)
    for token in range(count):
        size = to_piece(vocab, token, buffer, PIECE_BYTES_MAX, 0, True)
        piece = ctypes.string_at(buffer, max(0, size))
        pieces.append(piece)
        marks[token] = ENDS_TURN * bool(ends_turn(vocab, token)) | CONTROL * _is_control(
            attributes(vocab, token), piece
        )
    return Vocabulary(b"".join(pieces), np.cumsum([len(piece) for piece in pieces], dtype=np.uint32), marks)


def _is_control(attributes: int, piece: bytes) -> bool:
    if attributes & llama_cpp.LLAMA_TOKEN_ATTR_CONTROL:
        return True
    # Qwen's `<tool_call>` is "user defined": no text is tokenised to it either.
    return bool(attributes & llama_cpp.LLAMA_TOKEN_ATTR_USER_DEFINED) and piece[:1] == b"<" and piece[-1:] == b">"


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        Path(name).replace(path)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise


def cache_directory() -> Path:
    """Where derived tables are kept: `$XDG_CACHE_HOME/edgeagent`."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "edgeagent"

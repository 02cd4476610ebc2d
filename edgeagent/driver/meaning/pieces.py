"""Text → pieces of words: the likeliest way to cut it (a unigram model, as SentencePiece has it).

Pieces are looked up by a 64-bit sum of their bytes, all of a text's at once: a dict of 250,000 texts would take 35 MB.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from edgeagent.driver.meaning.weights import Vocabulary

SPACE = "\u2581"
UNKNOWN_NATS = 10.0
"""By how much a character that is in no piece is less likely than the rarest piece."""

_FACTOR, _MASK = 0x100000001B3, (1 << 64) - 1


class Pieces:
    """The pieces of one vocabulary."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._known = vocabulary
        lengths = np.diff(vocabulary.offsets)
        self._longest = int(lengths.max())
        sums = _sums(vocabulary)
        self._order = np.argsort(sums, kind="stable").astype(np.int32)
        self._sums = sums[self._order]
        self._unknown_score = float(vocabulary.scores.min()) - UNKNOWN_NATS

    def of(self, text: str) -> list[int]:
        """The numbers of a text's pieces, between those that begin and end every text."""
        folded = "".join(self._known.folded.get(char, char) for char in text)
        marked = " " + re.sub(" {2,}", " ", folded).removeprefix(" ")
        return [self._known.begin, *self._cut([char.encode() for char in marked.replace(" ", SPACE)]), self._known.end]

    def _cut(self, chars: Sequence[bytes]) -> list[int]:
        """The likeliest pieces, by dynamic programming from the front."""
        ways: dict[int, list[tuple[int, int, float]]] = {}
        for begin, end, piece in self._found(chars):
            ways.setdefault(begin, []).append((end, piece, float(self._known.scores[piece])))
        best = [(-np.inf, 0, 0)] * (len(chars) + 1)
        best[0] = (0.0, 0, 0)
        for begin in range(len(chars)):
            score, unknown = best[begin][0], (begin + 1, self._known.unknown, self._unknown_score)
            for end, piece, more in (*ways.get(begin, ()), unknown):
                if score + more > best[end][0]:
                    best[end] = (score + more, begin, piece)
        found, end = [], len(chars)
        while end:
            _, end, piece = best[end]
            found.append(piece)
        return found[::-1]

    def _found(self, chars: Sequence[bytes]) -> list[tuple[int, int, int]]:
        """Every piece in the text: from where, to where, and its number."""
        places, sums = [], []
        for begin in range(len(chars)):
            total, size = 0, 0
            for end in range(begin, len(chars)):
                size += len(chars[end])
                if size > self._longest:
                    break
                for byte in chars[end]:
                    total = ((total ^ byte) * _FACTOR) & _MASK
                places.append((begin, end + 1))
                sums.append(total)
        if not sums:
            return []
        asked = np.array(sums, np.uint64)
        at = np.minimum(np.searchsorted(self._sums, asked), len(self._sums) - 1)
        return [
            (*place, piece)
            for place, piece, same in zip(places, self._order[at].tolist(), self._sums[at] == asked, strict=True)
            if same and piece != self._known.unknown and self._bytes(piece) == b"".join(chars[place[0] : place[1]])
        ]

    def _bytes(self, piece: int) -> bytes:
        begin, end = self._known.offsets[piece : piece + 2]
        return self._known.blob[begin:end]


def _sums(vocabulary: Vocabulary) -> NDArray[np.uint64]:
    """The sum of each piece's bytes, as `_found` counts it (FNV-1a from 0); a byte of every piece at a time."""
    begins, lengths = vocabulary.offsets[:-1].astype(np.int64), np.diff(vocabulary.offsets)
    blob = np.frombuffer(vocabulary.blob, np.uint8)
    sums = np.zeros(len(lengths), np.uint64)
    for place in range(int(lengths.max())):
        longer = np.flatnonzero(lengths > place)
        sums[longer] = (sums[longer] ^ blob[begins[longer] + place]) * np.uint64(_FACTOR)
    return sums

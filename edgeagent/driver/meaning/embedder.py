"""Embedder: how alike in meaning are a request and other texts, in any of its hundred languages?

A BERT of twelve layers (multilingual E5), in single precision, by numpy; some 25 ms a sentence on a small x86-64 core.
Vectors of texts that come again, which are those of tools, are kept: in memory, and in a folder by digest.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from edgeagent.driver.meaning.pieces import Pieces
from edgeagent.driver.meaning.weights import Floats, WeightsFile
from edgeagent.errors import ModelError

KEPT_MAX = 4096
"""Vectors that are kept in memory, and in the folder: 1.5 kB each."""

ASKED, TOLD = "query: ", "passage: "
"""What it was trained with before what is asked and before what is compared with that."""

TEXT_CHARS_MAX = 600

_SQUARE = ("q", "k", "v", "ao")


class Embedder:
    """One loaded embedder (`request.meaning.Meaning`). Not for two threads at once."""

    def __init__(self, path: Path, *, digest: str = "", folder: Path | None = None) -> None:
        """`digest` names its vectors in the folder where they are kept. Raises ModelError."""
        self._file, self.digest, self._folder = WeightsFile(path), digest, folder
        self._kept: dict[str, Floats] = {}

    def alike(self, request: str, texts: Mapping[str, str]) -> Mapping[str, float]:
        """The cosine between the request and each of the texts, by their names."""
        asked = self._once(ASKED + request, self._vector)
        told = {name: self._once(TOLD + text, self._on_disk) for name, text in texts.items()}
        return {name: float(asked @ vector) for name, vector in told.items()}

    def vector(self, text: str) -> tuple[Floats, int]:
        """The vector of a text as it is, and of how many pieces. Raises ModelError for one that is too long.

        It was trained with `query: ` or `passage: ` in front of every text.
        """
        pieces, most = self._pieces.of(text), self._file.sizes.tokens_max
        if len(pieces) > most:
            raise ModelError(f"the text has {len(pieces)} pieces, and {most} are the most: cut it in parts")
        return self._of_pieces(pieces), len(pieces)

    def _once(self, text: str, vector_of: Callable[[str], Floats]) -> Floats:
        """The vector of a text, from memory if it was there before."""
        if text not in self._kept:
            if len(self._kept) >= KEPT_MAX:
                self._kept.clear()
            self._kept[text] = vector_of(text)
        return self._kept[text]

    def _on_disk(self, text: str) -> Floats:
        """The vector of a text from the folder, or computed and left there. A folder that fails costs time alone."""
        if self._folder is None:
            return self._vector(text)
        file = self._folder / f"{hashlib.sha256(f'{self.digest} {text}'.encode()).hexdigest()[:32]}.f32"
        with suppress(OSError):
            found = np.frombuffer(file.read_bytes(), "<f4")
            if len(found) == self._file.sizes.width and abs(float(found @ found) - 1) < 1e-3:
                return found
        found = self._vector(text)
        with suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            if sum(1 for _ in self._folder.iterdir()) < KEPT_MAX:
                part = file.with_suffix(".part")
                part.write_bytes(found.astype("<f4").tobytes())
                part.replace(file)
        return found

    # -- the network -----------------------------------------------------------------------------------------------

    @cached_property
    def _pieces(self) -> Pieces:
        return Pieces(self._file.vocabulary)

    @cached_property
    def _layers(self) -> list[dict[str, Floats]]:
        return [self._layer(place) for place in range(self._file.sizes.layers)]

    def _layer(self, place: int) -> dict[str, Floats]:
        width, inner = self._file.sizes.width, self._file.sizes.inner
        found = {f"{name}.w": self._file.tensor(f"l{place}.{name}.w", width) for name in (*_SQUARE, "fi")}
        found["fo.w"] = self._file.tensor(f"l{place}.fo.w", inner)
        plain = [f"{name}.b" for name in (*_SQUARE, "fi", "fo")] + ["aln.w", "aln.b", "oln.w", "oln.b"]
        return found | {name: self._file.tensor(f"l{place}.{name}") for name in plain}

    def _vector(self, text: str) -> Floats:
        """The vector of a text's beginning."""
        return self._of_pieces(self._pieces.of(text[:TEXT_CHARS_MAX])[: self._file.sizes.tokens_max])

    def _of_pieces(self, pieces: Sequence[int]) -> Floats:
        """The mean of what the last layer says of a text's pieces, of length one."""
        told = self._begun(pieces)
        for layer in self._layers:
            told = self._through(layer, told)
        mean: Floats = told.mean(axis=0)
        found: Floats = mean / np.float32(np.linalg.norm(mean))
        return found

    def _begun(self, pieces: Sequence[int]) -> Floats:
        """What stands before the first layer: the pieces and their places."""
        file, width = self._file, self._file.sizes.width
        told = file.rows("emb.word", width, pieces) + self._places[: len(pieces)]
        return self._even(told, file.tensor("emb.ln.w"), file.tensor("emb.ln.b"))

    @cached_property
    def _places(self) -> Floats:
        width = self._file.sizes.width
        found: Floats = self._file.tensor("emb.pos", width) + self._file.tensor("emb.type", width)[0]
        return found

    def _through(self, layer: Mapping[str, Floats], told: Floats) -> Floats:
        """One layer: each piece looks at all others, and is thought over."""
        heads = self._file.sizes.heads
        asked, keys, values = (
            (told @ layer[f"{name}.w"].T + layer[f"{name}.b"]).reshape(len(told), heads, -1).swapaxes(0, 1)
            for name in ("q", "k", "v")
        )
        looks = asked @ keys.swapaxes(1, 2) / np.float32(math.sqrt(asked.shape[-1]))
        looks = np.exp(looks - looks.max(axis=-1, keepdims=True))
        looks /= looks.sum(axis=-1, keepdims=True)
        seen = (looks @ values).swapaxes(0, 1).reshape(told.shape)
        told = self._even(told + seen @ layer["ao.w"].T + layer["ao.b"], layer["aln.w"], layer["aln.b"])
        thought = _gelu(told @ layer["fi.w"].T + layer["fi.b"]) @ layer["fo.w"].T + layer["fo.b"]
        return self._even(told + thought, layer["oln.w"], layer["oln.b"])

    def _even(self, told: Floats, weights: Floats, bias: Floats) -> Floats:
        """Each row with the mean 0 and the spread 1, weighed."""
        told = told - told.mean(axis=-1, keepdims=True)
        spread = np.sqrt((told * told).mean(axis=-1, keepdims=True) + np.float32(self._file.sizes.epsilon))
        found: Floats = told / spread * weights + bias
        return found


def _gelu(values: Floats) -> Floats:
    """x Φ(x), with the error function to seven digits (Abramowitz and Stegun, 7.1.26)."""
    size = np.abs(values) * np.float32(math.sqrt(0.5))
    step = 1 / (1 + np.float32(0.3275911) * size)
    series = np.zeros_like(step)
    for each in (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592):
        series = (series + np.float32(each)) * step
    found: NDArray[np.float32] = values * (1 + np.sign(values) * (1 - series * np.exp(-size * size))) / 2
    return found

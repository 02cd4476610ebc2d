"""Constraints by llama.cpp's own grammars (GBNF): where llguidance cannot be had."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import llama_cpp
import numpy as np
from numpy.typing import NDArray

from edgeagent.driver.llama.constraint import CHOICES_MAX, ODD_LETTERS, Ids
from edgeagent.driver.llama.engine import Engine
from edgeagent.driver.llama.native import last_words
from edgeagent.errors import GrammarError

TOP_TESTED = (
    256  # GBNF: so many of the likeliest tokens are tested before the whole vocabulary (a hundred times dearer)
)

_CANDIDATE = np.dtype([("id", "<i4"), ("logit", "<f4"), ("p", "<f4")])


def parser(engine: Engine) -> Callable[[str], Gbnf]:
    """Makes constraints for one model from grammars' texts."""
    letters = _letters(engine)
    return lambda text: Gbnf.parse(text, engine, letters)


def _letters(engine: Engine) -> list[int]:
    """The tokens of one ASCII character each: closers first, what numbers and words begin with, last a new line."""
    order = '"}],' + "0123456789" + "abcdefghijklmnopqrstuvwxyz"
    order += "".join(chr(c) for c in range(32, 127) if chr(c) not in order) + "\n"
    single = {piece: token for token, piece in enumerate(engine.vocabulary.pieces()) if len(piece) == 1}
    return [single[letter.encode()] for letter in order if letter.encode() in single]


class Gbnf:
    """llama.cpp's grammar sampler. Accepting what it rejects would end the process, so everything is tested first."""

    def __init__(self, sampler: Any, engine: Engine, letters: list[int]) -> None:
        self._sampler = sampler
        self._engine = engine
        self._letters = letters
        self._eos = engine.stops[0]
        weakref.finalize(self, llama_cpp.llama_sampler_free, sampler)

    @classmethod
    def parse(cls, text: str, engine: Engine, letters: list[int]) -> Gbnf:
        if not text.strip() or "\0" in text:
            # llama.cpp takes an empty grammar for "no constraint", and reads no further than a NUL.
            raise GrammarError("a GBNF grammar must hold rules, and no NUL character")
        sampler = llama_cpp.llama_sampler_init_grammar(engine.vocab, text.encode(), b"root")
        if not sampler:
            raise GrammarError(f"llama.cpp refuses the grammar{last_words()}")
        return cls(sampler, engine, letters)

    def closed(self) -> bool:
        return self.complete() and not bool(np.any(self._fits(self._letters)))

    def complete(self) -> bool:
        return bool(self._fits([self._eos])[0])

    def forced(self) -> list[int]:
        return []

    def accepted(self, tokens: Sequence[int], *, end: bool) -> int:
        ahead = self.copy()
        for count, token in enumerate(tokens):
            if not ahead._fits([token])[0]:
                return count
            llama_cpp.llama_sampler_accept(ahead._sampler, token)
        return len(tokens) + int(end and ahead.complete())

    def in_text(self) -> bool:
        piece = self._engine.vocabulary.piece
        return bool(np.all(self._fits([token for token in self._letters if piece(token).decode() in ODD_LETTERS])))

    def clumsy(self, token: int) -> bool:
        return False  # to know it would take the whole vocabulary, and that is dear here

    def take(self, token: int) -> bool:
        if not self._fits([token])[0]:
            return False
        llama_cpp.llama_sampler_accept(self._sampler, token)
        return True

    def consume(self, tokens: Sequence[int]) -> None:
        for token in tokens:
            if not self._fits([token])[0]:
                raise GrammarError(f"token {token} does not fit the grammar")
            llama_cpp.llama_sampler_accept(self._sampler, token)

    def allowed(self, logits: NDArray[np.float32]) -> Ids:
        # The likeliest one of the accepted among the likeliest is the likeliest accepted one.
        top = np.argpartition(logits, -TOP_TESTED)[-TOP_TESTED:] if len(logits) > TOP_TESTED else np.arange(len(logits))
        fitting = top[self._fits(top)]
        if not len(fitting):
            everything = np.arange(len(logits))
            fitting = everything[self._fits(everything)]
        return np.sort(fitting)

    def choices(self) -> list[int]:
        fits = self._fits(self._letters)
        found = [token for token, fit in zip(self._letters, fits, strict=True) if fit][:CHOICES_MAX]
        if found:
            return found
        # No ASCII letter can come next: a text in other letters must be written, which few tokens can.
        everything = np.arange(self._engine.n_vocab)
        fitting = [int(token) for token in everything[self._fits(everything)] if token not in self._engine.stop_ids]
        return sorted(fitting, key=lambda token: -len(self._engine.vocabulary.piece(token)))[:CHOICES_MAX]

    def respelled(self, tokens: list[int]) -> list[int]:
        text = self._engine.detokenize(tokens).decode("utf-8", "replace")
        spelled = self._engine.tokenize(text, special=False, bos=False)
        fits = len(spelled) < len(tokens) and self.accepted(spelled, end=True) == len(spelled) + 1
        return spelled if fits else tokens

    def copy(self) -> Gbnf:
        return Gbnf(llama_cpp.llama_sampler_clone(self._sampler), self._engine, self._letters)

    def _fits(self, tokens: Sequence[int] | Ids) -> NDArray[np.bool_]:
        """Which of the tokens the grammar accepts next."""
        candidates = np.zeros(len(tokens), dtype=_CANDIDATE)
        candidates["id"] = tokens
        array = llama_cpp.llama_token_data_array(
            data=candidates.ctypes.data_as(llama_cpp.llama_token_data_p), size=len(tokens), selected=-1, sorted=False
        )
        llama_cpp.llama_sampler_apply(self._sampler, ctypes.byref(array))
        fits: NDArray[np.bool_] = candidates["logit"] == 0
        return fits

"""Does a text fit a grammar, by each engine, byte by byte, without any weights.

llguidance has a tokenizer of single bytes for that. llama.cpp's grammars need a vocabulary: one model file is opened
for its vocabulary alone, and the text is fed by the tokens that stand for one byte each.
"""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import llama_cpp
import llguidance

from edgeagent.errors import GrammarError

# Bytes after which a walk that has found no end is given up.
WALK_BYTES_MAX = 2_000


class Acceptor(Protocol):
    """A grammar that can be asked about texts."""

    def accepts(self, text: str) -> bool:
        """Whether the whole text fits, and may end there."""

    def walk(self, choose: Choose) -> str | None:
        """A text of the grammar, byte by byte as `choose` likes; None when it comes to no end."""


class Choose(Protocol):
    """Picks a way through a grammar."""

    def __call__(self, allowed: list[int], may_end: bool, written: int) -> int | None:
        """One of the bytes that may follow, or None to end where that may be."""


class Llguidance:
    """A grammar of llguidance. Raises GrammarError with the engine's reason."""

    def __init__(self, grammar: str) -> None:
        self._matcher = llguidance.LLMatcher(_byte_tokenizer(), grammar, log_level=0)
        self._check()

    def accepts(self, text: str) -> bool:
        """Whether the whole text fits, and may end there."""
        tokens = list(text.encode())
        self._matcher.reset()
        taken = self._matcher.try_consume_tokens(tokens)
        self._check()
        return bool(taken == len(tokens) and self._matcher.is_accepting())

    def walk(self, choose: Choose) -> str | None:
        """A text of the grammar, byte by byte as `choose` likes; None when it comes to no end."""
        self._matcher.reset()
        text = bytearray()
        while len(text) < WALK_BYTES_MAX:
            bias = self._matcher.compute_logit_bias()
            allowed = [byte for byte in range(256) if bias[byte]]
            byte = choose(allowed, self._matcher.is_accepting(), len(text)) if allowed else None
            if byte is None:
                return _text(text) if self._matcher.is_accepting() else None
            text.append(byte)
            self._matcher.consume_token(byte)
            self._check()
        return None

    def _check(self) -> None:
        if error := self._matcher.get_error():
            raise GrammarError(error)


@cache
def _byte_tokenizer() -> Any:
    return llguidance.LLTokenizer("byte")


class Gbnf:
    """A grammar of llama.cpp. Raises GrammarError when its parser returns nothing."""

    def __init__(self, grammar: str, vocabulary: ByteVocabulary, root: str = "root") -> None:
        self._vocabulary = vocabulary
        self._grammar = grammar.encode()
        self._root = root.encode()
        # NULL is a grammar that does not parse; sampling with it would end the process.
        self._sampler = llama_cpp.llama_sampler_init_grammar(vocabulary.vocab, self._grammar, self._root)
        if not self._sampler:
            raise GrammarError("llama.cpp's parser refused the grammar:\n" + grammar[:2_000])

    def accepts(self, text: str) -> bool:
        """Whether the whole text fits, and may end there."""
        llama_cpp.llama_sampler_reset(self._sampler)
        for byte in text.encode():
            token = self._vocabulary.token(byte)
            if not self._allows(token):  # Accepting a token that does not fit would end the process.
                return False
            llama_cpp.llama_sampler_accept(self._sampler, token)
        return self._allows(self._vocabulary.end)

    def walk(self, choose: Choose) -> str | None:
        """A text of the grammar, byte by byte as `choose` likes; None when it comes to no end."""
        llama_cpp.llama_sampler_reset(self._sampler)
        text = bytearray()
        while len(text) < WALK_BYTES_MAX:
            allowed = self._allowed_bytes()
            may_end = self._allows(self._vocabulary.end)
            byte = choose(allowed, may_end, len(text)) if allowed else None
            if byte is None:
                return _text(text) if may_end else None
            text.append(byte)
            llama_cpp.llama_sampler_accept(self._sampler, self._vocabulary.of_byte[byte])
        return None

    def _allowed_bytes(self) -> list[int]:
        known = sorted(self._vocabulary.of_byte.items())
        tokens = [llama_cpp.llama_token_data(token, 1.0, 0.0) for _, token in known]
        candidates = (llama_cpp.llama_token_data * len(tokens))(*tokens)
        array = llama_cpp.llama_token_data_array(candidates, len(tokens), -1, False)
        llama_cpp.llama_sampler_apply(self._sampler, ctypes.byref(array))
        return [byte for (byte, _), candidate in zip(known, candidates, strict=True) if candidate.logit > -1e30]

    def _allows(self, token: int) -> bool:
        candidate = (llama_cpp.llama_token_data * 1)(llama_cpp.llama_token_data(token, 1.0, 0.0))
        array = llama_cpp.llama_token_data_array(candidate, 1, -1, False)
        llama_cpp.llama_sampler_apply(self._sampler, ctypes.byref(array))
        return bool(candidate[0].logit > -1e30)

    def __del__(self) -> None:
        if getattr(self, "_sampler", None):
            llama_cpp.llama_sampler_free(self._sampler)


def _text(written: bytearray) -> str | None:
    """The bytes as text. llama.cpp's grammars let overlong UTF-8 through; what reads the bytes refuses it."""
    try:
        return written.decode()
    except UnicodeDecodeError:
        return None


class ByteVocabulary:
    """The vocabulary of a model file, as far as it names single bytes."""

    def __init__(self, path: Path) -> None:
        _be_quiet()
        parameters = llama_cpp.llama_model_default_params()
        parameters.vocab_only = True
        self._model = llama_cpp.llama_model_load_from_file(str(path).encode(), parameters)
        if not self._model:
            raise GrammarError(f"{path}: no vocabulary can be read from it")
        self.vocab = llama_cpp.llama_model_get_vocab(self._model)
        self.end: int = llama_cpp.llama_vocab_eos(self.vocab)
        self.of_byte: dict[int, int] = {}
        buffer = ctypes.create_string_buffer(8)
        for token in range(llama_cpp.llama_vocab_n_tokens(self.vocab)):
            if llama_cpp.llama_token_to_piece(self.vocab, token, buffer, 8, 0, False) == 1:
                self.of_byte.setdefault(buffer.raw[0], token)
        if len(self.of_byte) < 200:  # 13 never occur in UTF-8; byte-level vocabularies lack a few more.
            raise GrammarError(f"{path}: its vocabulary has only {len(self.of_byte)} single bytes")

    def token(self, byte: int) -> int:
        """Return the token of one byte; raise GrammarError for the few that this vocabulary lacks."""
        if byte not in self.of_byte:
            raise GrammarError(f"this vocabulary has no token for the byte 0x{byte:02x}")
        return self.of_byte[byte]


@cache
def vocabulary(path: Path) -> ByteVocabulary:
    """Return the vocabulary of a model file, loaded once."""
    return ByteVocabulary(path)


@llama_cpp.llama_log_callback  # type: ignore[untyped-decorator]  # llama_cpp ships no types for it
def _no_log(_level: int, _text: bytes, _data: ctypes.c_void_p) -> None:
    """Take llama.cpp's log and drop it: a refused grammar is printed there."""


def _be_quiet() -> None:
    llama_cpp.llama_log_set(_no_log, ctypes.c_void_p(0))

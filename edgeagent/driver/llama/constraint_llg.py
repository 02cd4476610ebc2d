"""Constraints by llguidance: masks over the vocabulary, forced tokens, and a memory of what it said before."""

from __future__ import annotations

import contextlib
import ctypes
import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import llama_cpp
import numpy as np
from numpy.typing import NDArray

from edgeagent.driver.llama.constraint import CHOICES_MAX, ODD_LETTERS, Ids
from edgeagent.driver.llama.engine import Engine
from edgeagent.driver.llama.vocabulary import Vocabulary
from edgeagent.errors import GrammarError
from edgeagent.grammar.llg import suspects, value_grammar

LLMatcher: Any = None
LLTokenizer: Any = None
with contextlib.suppress(ImportError):
    # On armv7 pip installs an empty placeholder of that name: what counts is whether the matcher is there.
    _llguidance: Any = importlib.import_module("llguidance")
    LLMatcher = getattr(_llguidance, "LLMatcher", None)
    LLTokenizer = getattr(_llguidance, "LLTokenizer", None)

NODES_MAX = 2048  # remembered beginnings of texts per grammar, about 300 bytes each; a call passes through 30
REMEMBERED_IDS_MAX = 256  # allowed tokens that are remembered with a beginning: names and enums, not free text

# What ends JSON soonest, longest first: one token that closes three levels beats three tokens. Which of them mean that
# depends on where we are: `}` inside a string is only a character.
_LEVELS = ("}}}", "}]}", "]}}", "}}", "]}", "}]", "]]", "}", "]")
_EMPTY = ('""', "[]", "{}")
CLOSES_STRING = tuple(f'"{levels}' for levels in (*_LEVELS, ""))
_ONWARD = (', "', ',"', ",")  # A number ends with what follows it: `1` would fit behind `1` for ever.
CLOSES_VALUE = (
    *_LEVELS,
    *_ONWARD,
    *(f"{space}{empty}{levels}" for levels in (*_LEVELS, "") for empty in _EMPTY for space in (" ", "")),
    *(f"{space}{word}" for word in ("null", "1", "true") for space in (" ", "")),
    *CLOSES_STRING,
)


def check_calls(calls: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
    """Have llguidance judge each tool's schema. Raises GrammarError naming the tool and the field that is to blame."""
    for name, schema in calls:
        reason = refusal(value_grammar(schema))
        if not reason:
            continue
        for field, alone in suspects(schema):
            if why := refusal(value_grammar(alone)):
                raise GrammarError(f"tool {name}, field {field}: no grammar can hold it: {why}")
        raise GrammarError(f"tool {name}: no grammar can hold its arguments: {reason}")


def refusal(grammar: str) -> str:
    """llguidance's reason against the grammar, or an empty text."""
    if LLMatcher is None:
        return ""
    wrong, reasons = LLMatcher.validate_grammar_with_warnings(LLMatcher.grammar_from_lark(grammar))
    return _first_line(reasons[0]) if wrong else ""


@dataclass(frozen=True)
class _Hints:
    closes_string: list[int]
    closes_value: list[int]
    odd_letters: list[int]
    lengths: NDArray[np.int32]
    vocabulary: Vocabulary
    stops: list[int]
    mask: NDArray[np.uint32]
    mask_at: int


class _Node:
    """What the grammar said after one beginning of a text: the same calls are written again and again."""

    __slots__ = ("allowed", "clumsy", "forced", "free", "next")

    def __init__(self) -> None:
        self.next: dict[int, _Node] = {}
        self.clumsy: dict[int, bool] = {}
        self.free = False  # free text, or any number: too many tokens may follow to compare them
        self.forced: list[int] | None = None
        self.allowed: Ids | None = None


class _Memory:
    """The beginnings of texts under one grammar, as a tree of tokens; it stops growing when it is full."""

    def __init__(self) -> None:
        self.root = _Node()
        self._left = NODES_MAX

    def after(self, node: _Node | None, tokens: Sequence[int]) -> _Node | None:
        for token in tokens:
            if node is None:
                return None
            found = node.next.get(token)
            if found is None and self._left > 0:
                self._left -= 1
                found = node.next[token] = _Node()
            node = found
        return node


def parser(engine: Engine) -> Callable[[str], Llguidance]:
    """Makes constraints for one model from grammars' texts. Takes some 10 MB, and a while to make."""
    tokenizer, hints = _tokenizer(engine), _hints(engine)
    return lambda text: Llguidance.parse(text, tokenizer, hints)


def _tokenizer(engine: Engine) -> Any:
    # The library has no way to save its tokenizer; the table of pieces, half of the cost, is what we keep on disk.
    pieces = engine.vocabulary.pieces()
    for token in engine.vocabulary.control():
        pieces[token] = b"\xff" + pieces[token]  # llguidance's mark of what text can never spell
    tokenize = ctypes.cast(llama_cpp.llama_cpp._lib.llama_tokenize, ctypes.c_void_p).value
    return LLTokenizer.from_llamacpp(
        tokens=pieces, vocab_ptr=engine.vocab, tokenize_fptr=tokenize, eos_token=engine.stops, slices=None
    )


def _hints(engine: Engine) -> _Hints:
    pieces = engine.vocabulary.pieces()
    wanted = {text.encode() for text in (*CLOSES_VALUE, *ODD_LETTERS)}
    found = {piece: token for token, piece in enumerate(pieces) if piece in wanted}
    closes_string, closes_value, odd_letters = (
        [found[text.encode()] for text in texts if text.encode() in found]
        for texts in (CLOSES_STRING, CLOSES_VALUE, ODD_LETTERS)
    )
    lengths = np.array([len(piece) for piece in pieces], dtype=np.int32)
    mask = np.zeros((len(pieces) + 31) // 32, dtype=np.uint32)
    vocabulary, stops = engine.vocabulary, engine.stops
    return _Hints(closes_string, closes_value, odd_letters, lengths, vocabulary, stops, mask, mask.ctypes.data)


class Llguidance:
    """A matcher of llguidance. It never raises, so its error is read after every step."""

    def __init__(self, matcher: Any, hints: _Hints, memory: _Memory, node: _Node | None) -> None:
        self._matcher = matcher
        self._hints = hints
        self._memory = memory
        self._node = node

    @classmethod
    def parse(cls, text: str, tokenizer: Any, hints: _Hints) -> Llguidance:
        matcher = LLMatcher(tokenizer, LLMatcher.grammar_from_lark(text), log_level=0)
        if reason := matcher.get_error():
            raise GrammarError(f"llguidance refuses the grammar: {_first_line(reason)}")
        memory = _Memory()
        return cls(matcher, hints, memory, memory.root)

    def closed(self) -> bool:
        return bool(self._matcher.is_stopped())

    def complete(self) -> bool:
        return bool(self._matcher.is_accepting())

    def forced(self) -> list[int]:
        node = self._node
        if node is not None and node.forced is not None:
            return list(node.forced)
        tokens: list[int] = self._matcher.compute_ff_tokens()
        if node is not None:
            node.forced = list(tokens)
        return tokens

    def accepted(self, tokens: Sequence[int], *, end: bool) -> int:
        return int(self._matcher.validate_tokens([*tokens, self._hints.stops[0]] if end else list(tokens)))

    def clumsy(self, token: int) -> bool:
        node = self._node
        if node is None:
            return self._is_clumsy(token)
        known = node.free or node.clumsy.get(token)
        if known is None:
            known = node.clumsy[token] = self._is_clumsy(token)
        return known and not node.free

    def _is_clumsy(self, token: int) -> bool:
        ids = self._few()
        if ids is None or token not in ids:
            return False
        pieces = self._hints.vocabulary.piece
        start = pieces(token)
        longer = [piece for piece in map(pieces, ids.tolist()) if len(piece) > len(start) and piece.startswith(start)]
        if not longer:
            return False
        ahead = self.copy()
        ahead.consume([token])
        following = None if ahead.complete() else ahead._few()
        if following is None:
            return False
        covered = {piece[len(start)] for piece in longer}
        return all(pieces(after)[:1] and pieces(after)[0] in covered for after in following.tolist())

    def in_text(self) -> bool:
        fits = self._matcher.validate_tokens
        return all(fits([letter]) for letter in self._hints.odd_letters)

    def _few(self) -> Ids | None:
        """The tokens that may come next, where they are few; None in free text."""
        ids = None if self.in_text() else self.allowed(None)
        if ids is None or len(ids) > REMEMBERED_IDS_MAX:
            if self._node is not None:
                self._node.free = True
            return None
        return ids

    def take(self, token: int) -> bool:
        if self._matcher.try_consume_tokens([token]) == 0:
            self._check()
            return False
        self._node = self._memory.after(self._node, (token,))
        return True

    def consume(self, tokens: Sequence[int]) -> None:
        if not self._matcher.consume_tokens(list(tokens)):
            self._check()
            raise GrammarError("llguidance does not take a token that it had forced or accepted")
        self._check()
        self._node = self._memory.after(self._node, tokens)

    def allowed(self, logits: NDArray[np.float32] | None) -> Ids:
        node = self._node
        if node is not None and node.allowed is not None:
            return node.allowed
        mask = self._hints.mask
        self._matcher.unsafe_compute_mask_ptr(self._hints.mask_at, mask.nbytes)
        self._check()
        # Few words of the mask have a bit set in most states: unpack only those.
        words = np.flatnonzero(mask)
        at = np.flatnonzero(np.unpackbits(mask[words].view(np.uint8), bitorder="little"))
        ids: Ids = words[at >> 5] * 32 + (at & 31)
        if node is not None and len(ids) <= REMEMBERED_IDS_MAX:
            node.allowed = ids
        return ids

    def _check(self) -> None:
        if self._matcher.is_error():
            raise GrammarError(f"llguidance failed while writing: {_first_line(self._matcher.get_error())}")

    def choices(self) -> list[int]:
        hints, fits = self._hints, self._matcher.validate_tokens
        closers = hints.closes_string if self.in_text() else hints.closes_value
        found = list(islice((token for token in closers if fits([token])), CHOICES_MAX))
        if found:
            return found
        ids = self.allowed(None)
        ids = ids[~np.isin(ids, self._hints.stops)]
        # The longest piece leaves the least to be written.
        order = np.argsort(-self._hints.lengths[ids], kind="stable")[:CHOICES_MAX]
        return [int(token) for token in ids[order]]

    def respelled(self, tokens: list[int]) -> list[int]:
        return tokens

    def copy(self) -> Llguidance:
        return Llguidance(self._matcher.deep_copy(), self._hints, self._memory, self._node)


def _first_line(text: str) -> str:
    return text.strip().split("\n", 1)[0]

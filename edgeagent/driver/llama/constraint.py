"""What may come next: a grammar at work over one model's vocabulary. Two engines, one behaviour.

Law: a constraint is only ever fed tokens it has accepted, so it cannot fall into an error state by our doing; when an
engine fails nevertheless, that is a GrammarError and never "anything goes". The candidate is tested first; the whole
vocabulary is masked only when it was rejected.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import importlib
import weakref
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any, Protocol

import llama_cpp
import numpy as np
from numpy.typing import NDArray

from edgeagent.driver.llama.engine import Engine, last_words
from edgeagent.driver.llama.vocabulary import Vocabulary
from edgeagent.errors import GrammarError
from edgeagent.grammar.calls import GrammarEngine
from edgeagent.grammar.llg import suspects, value_grammar

LLMatcher: Any = None
LLTokenizer: Any = None
with contextlib.suppress(ImportError):
    # On armv7 pip installs an empty placeholder of that name: what counts is whether the matcher is there.
    _llguidance: Any = importlib.import_module("llguidance")
    LLMatcher = getattr(_llguidance, "LLMatcher", None)
    LLTokenizer = getattr(_llguidance, "LLTokenizer", None)

Ids = NDArray[np.int64]

GRAMMARS_KEPT = 64  # compiled grammars per model; an agent needs one per set of admissible tools, about 50 kB each
NODES_MAX = 2048  # remembered beginnings of texts per grammar, about 300 bytes each; a call passes through 30
REMEMBERED_IDS_MAX = 256  # allowed tokens that are remembered with a beginning: names and enums, not free text
CHOICES_MAX = 16  # how many ways out of a state are worth trying when the shortest end is searched
TOP_TESTED = (
    256  # GBNF: so many of the likeliest tokens are tested before the whole vocabulary (a hundred times dearer)
)

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
FAILURES_MAX = 2
"""So many more refused guesses than tokens met, and no more is guessed under a grammar: this model does not copy."""

# Two letters that only free text allows side by side: that is how we know that we are inside a string.
ODD_LETTERS = ("q", "Z")


class Constraint(Protocol):
    """What may come next."""

    def closed(self) -> bool:
        """Nothing more may be written."""

    def complete(self) -> bool:
        """The text may end here."""

    def forced(self) -> list[int]:
        """The tokens that must come next, where the grammar leaves no choice."""

    def accepted(self, tokens: Sequence[int], *, end: bool) -> int:
        """How many of the tokens, and then (with `end`) the end of the text, may follow in this order."""

    def clumsy(self, token: int) -> bool:
        """Whether longer tokens that may come next begin every text that this one can begin.

        ` ` before `true` and `n` before `orth` are such: a model has hardly ever read them so, and they cost a token.
        """

    def in_text(self) -> bool:
        """Whether free text may follow: any letter fits."""

    def take(self, token: int) -> bool:
        """Move on if the token may come next: one question instead of two."""

    def consume(self, tokens: Sequence[int]) -> None:
        """Move on. The tokens must be accepted; raises GrammarError if the engine fails."""

    def allowed(self, logits: NDArray[np.float32]) -> Ids:
        """The tokens that may come next; at least the likeliest one of them. Stop tokens are among them."""

    def choices(self) -> list[int]:
        """A few tokens that may come next, those first that bring the end nearer."""

    def respelled(self, tokens: list[int]) -> list[int]:
        """The same text in fewer tokens, if this engine's choices were not the vocabulary's own."""

    def copy(self) -> Constraint:
        """An independent one in the same state."""


class Grammars:
    """Compile grammars for one model, each once; give out fresh constraints."""

    def __init__(self, engine: Engine, kind: GrammarEngine | None = None) -> None:
        """`kind` None: llguidance where it is, else gbnf. Raises GrammarError when the one asked for is missing."""
        if kind == "llguidance" and LLMatcher is None:
            raise GrammarError('llguidance is not installed here; use engine="gbnf", or install llguidance>=1.9')
        self.kind: GrammarEngine = kind or ("gbnf" if LLMatcher is None else "llguidance")
        self._engine = engine
        self._compiled: OrderedDict[bytes, Compiled] = OrderedDict()

    def compile(self, text: str, *, keep: bool = True) -> Compiled:
        """The compiled grammar. Raises GrammarError with the engine's reason.

        `keep=False` is for a grammar of one request, which hardly comes again.
        """
        if not keep:
            return Compiled(self._make(text))
        key = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
        found = self._compiled.get(key)
        if found is None:
            found = self._compiled[key] = Compiled(self._make(text))
            while len(self._compiled) > GRAMMARS_KEPT:
                self._compiled.popitem(last=False)
        self._compiled.move_to_end(key)
        return found

    def forget(self) -> None:
        """Give back what was made, some 10 MB; it is made again when it is asked for."""
        self._compiled.clear()
        for made in ("_tokenizer", "_hints", "_letters"):
            vars(self).pop(made, None)

    def _make(self, text: str) -> Constraint:
        if self.kind == "gbnf":
            return _Gbnf.parse(text, self._engine, self._letters)
        return _Llguidance.parse(text, self._tokenizer, self._hints)

    @cached_property
    def _tokenizer(self) -> Any:
        # The library has no way to save its tokenizer; the table of pieces, half of the cost, is what we keep on disk.
        engine, vocabulary = self._engine, self._engine.vocabulary
        pieces = vocabulary.pieces()
        for token in vocabulary.control():
            pieces[token] = b"\xff" + pieces[token]  # llguidance's mark of what text can never spell
        tokenize = ctypes.cast(llama_cpp.llama_cpp._lib.llama_tokenize, ctypes.c_void_p).value
        return LLTokenizer.from_llamacpp(
            tokens=pieces,
            vocab_ptr=engine.vocab,
            tokenize_fptr=tokenize,
            eos_token=_stops_first_eos(engine),
            slices=None,
        )

    @cached_property
    def _hints(self) -> _Hints:
        pieces = self._engine.vocabulary.pieces()
        wanted = {text.encode() for text in (*CLOSES_VALUE, *ODD_LETTERS)}
        found = {piece: token for token, piece in enumerate(pieces) if piece in wanted}
        closes_string, closes_value, odd_letters = (
            [found[text.encode()] for text in texts if text.encode() in found]
            for texts in (CLOSES_STRING, CLOSES_VALUE, ODD_LETTERS)
        )
        lengths = np.array([len(piece) for piece in pieces], dtype=np.int32)
        mask = np.zeros((len(pieces) + 31) // 32, dtype=np.uint32)
        stops = _stops_first_eos(self._engine)
        vocabulary = self._engine.vocabulary
        return _Hints(closes_string, closes_value, odd_letters, lengths, vocabulary, stops, mask, mask.ctypes.data)

    @cached_property
    def _letters(self) -> list[int]:
        """The tokens of one ASCII character each: closers first, what numbers and words begin with, last a new line."""
        order = '"}],' + "0123456789" + "abcdefghijklmnopqrstuvwxyz"
        order += "".join(chr(c) for c in range(32, 127) if chr(c) not in order) + "\n"
        single = {piece: token for token, piece in enumerate(self._engine.vocabulary.pieces()) if len(piece) == 1}
        return [single[letter.encode()] for letter in order if letter.encode() in single]


class Luck:
    """How guesses fared under one grammar. It decides only whether more are made."""

    def __init__(self) -> None:
        self._failures = 0

    def lasts(self) -> bool:
        """Whether it is worth guessing on."""
        return self._failures < FAILURES_MAX

    def note(self, met: bool) -> None:
        """The model wanted the token that was guessed, or another one."""
        self._failures += -1 if met else 1


class Compiled:
    """A grammar that is known to be good, and the shortest text it allows."""

    def __init__(self, start: Constraint) -> None:
        self._start = start
        self.luck = Luck()

    def fresh(self) -> Constraint:
        """A constraint at the grammar's beginning."""
        return self._start.copy()

    @cached_property
    def shortest(self) -> list[int] | None:
        """The fewest tokens we know that satisfy the grammar; None if none were found."""
        from edgeagent.driver.llama.closing import shortest_end  # it searches over our protocol

        return shortest_end(self._start)


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


class _Llguidance:
    """A matcher of llguidance. It never raises, so its error is read after every step."""

    def __init__(self, matcher: Any, hints: _Hints, memory: _Memory, node: _Node | None) -> None:
        self._matcher = matcher
        self._hints = hints
        self._memory = memory
        self._node = node

    @classmethod
    def parse(cls, text: str, tokenizer: Any, hints: _Hints) -> _Llguidance:
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

    def copy(self) -> _Llguidance:
        return _Llguidance(self._matcher.deep_copy(), self._hints, self._memory, self._node)


_CANDIDATE = np.dtype([("id", "<i4"), ("logit", "<f4"), ("p", "<f4")])


class _Gbnf:
    """llama.cpp's grammar sampler. Accepting what it rejects would end the process, so everything is tested first."""

    def __init__(self, sampler: Any, engine: Engine, letters: list[int]) -> None:
        self._sampler = sampler
        self._engine = engine
        self._letters = letters
        self._eos = _stops_first_eos(engine)[0]
        weakref.finalize(self, llama_cpp.llama_sampler_free, sampler)

    @classmethod
    def parse(cls, text: str, engine: Engine, letters: list[int]) -> _Gbnf:
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

    def copy(self) -> _Gbnf:
        return _Gbnf(llama_cpp.llama_sampler_clone(self._sampler), self._engine, self._letters)

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


def _stops_first_eos(engine: Engine) -> list[int]:
    eos = int(llama_cpp.llama_vocab_eos(engine.vocab))
    return sorted(engine.stop_ids, key=lambda token: (token != eos, token))


def _first_line(text: str) -> str:
    return text.strip().split("\n", 1)[0]

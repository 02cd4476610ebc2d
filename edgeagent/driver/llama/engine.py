"""Hold one model and its memory: tokens in, logits out, nothing evaluated twice.

Laws. `kept(seq)` is exactly what llama.cpp's memory holds for that sequence, also after every fault.

Nothing is evaluated in a batch of one token where a batch of two is possible. On some CPUs a token alone goes through
another kernel, and its logits differ (by up to 0.73 nats on an AVX2 EPYC); those of all batches of two and more are the
same to the last bit. It is not possible for each drawn token, and where a memory cannot be cut (recurrent models).

Knows nothing of prompts, grammars or agents. One thread at a time.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import llama_cpp
import numpy as np
from numpy.typing import NDArray

from edgeagent.driver.llama.batch import BATCH_TOKENS, Batch, Beside, Step, groups, portions, tree_of
from edgeagent.driver.llama.native import Handles, last_words, physical_cores
from edgeagent.driver.llama.sampling import log_whole
from edgeagent.driver.llama.vocabulary import Vocabulary, cache_directory, load_vocabulary
from edgeagent.errors import ModelError
from edgeagent.models.gguf import check_gguf
from edgeagent.models.split import digest_of, parts_of

Halt = Callable[[], Literal["time", "cancelled"] | None]
"""Asked between batches and tokens: why to stop now, or None."""

Progress = Callable[[int, int], None]
"""Told, between batches, how many tokens are evaluated, and of how many."""

Evaluated = Literal["done", "context_full", "time", "cancelled"]


@dataclass(frozen=True, slots=True)
class Reuse:
    """What became of a prompt: tokens found in memory, tokens evaluated, and whether it was finished."""

    reused: int
    evaluated: int
    outcome: Evaluated = "done"


class Engine:
    """A loaded model with one context. Make it with `Engine.load`."""

    def __init__(self, path: Path, handles: Handles, n_ctx: int, digest: str | None, cache: Path | None) -> None:
        self.path = path
        self.n_ctx = n_ctx
        self.sequences = handles.sequences
        self._handles = handles
        self._digest, self._cache = digest, cache
        self._kept: dict[int, list[int]] = {}
        self._batch = Batch(BATCH_TOKENS)
        self._views: dict[int, NDArray[np.float32]] = {}
        self.given_template: str | None = None  # The chat template that the operator gave in place of the file's.
        self.n_vocab = int(llama_cpp.llama_vocab_n_tokens(handles.vocab))
        self.n_swa = int(llama_cpp.llama_model_n_swa(handles.model))

    @classmethod
    def load(
        cls,
        path: Path | str,
        *,
        n_ctx: int = 2048,
        threads: int | None = None,
        verbose: bool = False,
        sequences: int = 1,
        digest: str | None = None,
        cache: Path | None = None,
    ) -> Engine:
        """Load the model, with room for `n_ctx` tokens in all `sequences` together.

        `digest` is the file's SHA-256 if it is already known; `cache` the directory for derived tables (None: the
        user's cache directory). Raises ModelError; llama.cpp's own last words are in its text.
        """
        path = parts_of(Path(path))[0]
        if not path.is_file():
            raise ModelError(f"{path}: no such model file; `edgeagent model pull smollm2` gets one")
        check_gguf(path)
        handles = Handles.open(path, n_ctx, threads or physical_cores(), sequences, verbose)
        return cls(path, handles, n_ctx, digest, cache if cache is not None else cache_directory())

    @cached_property
    def model_digest(self) -> str:
        """SHA-256 of the model's bytes, of all its parts."""
        return self._digest if self._digest is not None else digest_of(self.path)

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The bytes of every token."""
        file = self._cache / "vocabulary" / f"{self.model_digest}.bin" if self._cache else None
        return load_vocabulary(self.vocab, self.n_vocab, file)

    @cached_property
    def stop_ids(self) -> frozenset[int]:
        """The tokens that end the model's turn."""
        return self.vocabulary.turn_ends()

    @cached_property
    def stops(self) -> list[int]:
        """The same in order, the token that ends a text first."""
        eos = int(llama_cpp.llama_vocab_eos(self.vocab))
        return sorted(self.stop_ids, key=lambda token: (token != eos, token))

    @cached_property
    def template(self) -> str | None:
        """The chat template in the file's metadata."""
        text: bytes | None = llama_cpp.llama_model_chat_template(self._live.model, None)
        return text.decode("utf-8", "replace") if text is not None else None

    @property
    def bos_token(self) -> str:
        """The text of the token that begins every prompt; empty if the model has none."""
        return self._token_text(int(llama_cpp.llama_vocab_bos(self.vocab)))

    @property
    def eos_token(self) -> str:
        """The text of the token that ends a text; empty if the model has none."""
        return self._token_text(int(llama_cpp.llama_vocab_eos(self.vocab)))

    @property
    def adds_bos(self) -> bool:
        """Whether this model wants its first token to be the beginning-of-text token."""
        return bool(llama_cpp.llama_vocab_get_add_bos(self.vocab))

    @property
    def vocab(self) -> Any:
        """llama.cpp's own vocabulary, for what must ask it directly; dead after `close`."""
        return self._live.vocab

    @cached_property
    def cuts(self) -> bool:
        """Whether what was evaluated can be taken back token by token; a recurrent memory can only be emptied."""
        model = self._live.model
        return not (llama_cpp.llama_model_is_recurrent(model) or llama_cpp.llama_model_is_hybrid(model))

    def metadata(self, key: str) -> str | None:
        """One entry of the file's metadata, as text."""
        buffer = ctypes.create_string_buffer(4096)
        size = llama_cpp.llama_model_meta_val_str(self._live.model, key.encode(), buffer, len(buffer))
        return buffer.value.decode("utf-8", "replace") if size >= 0 else None

    def tokenize(self, text: str, *, special: bool, bos: bool) -> list[int]:
        """The text's tokens. With `special`, markup in it becomes markup; without, it stays plain text."""
        raw = text.encode("utf-8", "replace")
        room = len(raw) + 8
        tokens = (llama_cpp.llama_token * room)()
        count = llama_cpp.llama_tokenize(self.vocab, raw, len(raw), tokens, room, bos, special)
        if count < 0:
            room = -count
            tokens = (llama_cpp.llama_token * room)()
            count = llama_cpp.llama_tokenize(self.vocab, raw, len(raw), tokens, room, bos, special)
        if count < 0:
            raise ModelError(f"{self.path}: llama.cpp cannot tokenise a text of {len(raw)} bytes")
        return list(tokens[:count])

    def detokenize(self, tokens: Sequence[int]) -> bytes:
        """The bytes that the tokens spell; a character may be cut at either end."""
        return self.vocabulary.join(tokens)

    def kept(self, sequence: int = 0) -> list[int]:
        """The tokens that are in memory."""
        return list(self._kept.get(sequence, ()))

    def align(self, tokens: Sequence[int], *, sequence: int = 0, keep_last: bool = True) -> int:
        """Cut the memory down to what it shares with `tokens`; return how many of them need not be evaluated.

        Unless `keep_last` is False the last two always need to be: the logits of the last one are wanted.
        """
        kept = self._kept.setdefault(sequence, [])
        shared = count_shared(kept, tokens)
        if keep_last:
            shared = min(shared, max(0, len(tokens) - (2 if self.cuts else 1)))
        if shared < len(kept) and not self._cut(sequence, shared):
            self._forget(sequence)
        return len(kept)

    def evaluate(
        self,
        tokens: Sequence[int],
        *,
        rows: Sequence[int] = (),
        halt: Halt | None = None,
        on_progress: Progress | None = None,
    ) -> Evaluated:
        """Append the tokens to the conversation's memory, sequence 0; afterwards `logits` are those of the last one.

        `rows` are the places of others among the tokens whose logits are wanted too. They must fit into one batch then.
        Returns why it ended early, if it did: what was evaluated until then is in `kept`. Raises ModelError when
        llama.cpp fails; the memory is then as it was before the failing batch.
        """
        assert not rows or len(tokens) <= BATCH_TOKENS
        kept = self._kept.setdefault(0, [])
        if self._room < len(tokens):
            self._forget_besides()  # What was judged beside the conversation can be evaluated again.
        if self._room < len(tokens):
            return "context_full"
        for begin, end in portions(len(tokens)):
            if halt is not None and (reason := halt()) is not None:
                return reason
            part = tokens[begin:end]
            if not self._decode(part, len(kept), [*rows, len(part) - 1] if end == len(tokens) else []):
                return "context_full"
            kept.extend(part)
            if on_progress is not None:
                on_progress(end, len(tokens))
        return "done"

    def prefill(self, tokens: Sequence[int], *, halt: Halt | None = None, on_progress: Progress | None = None) -> Reuse:
        """Bring the memory to exactly `tokens`, evaluating only what is not there yet."""
        reused = self.align(tokens)
        outcome = self.evaluate(tokens[reused:], halt=halt, on_progress=on_progress)
        return Reuse(reused, len(self._kept[0]) - reused, outcome)

    def score_each(
        self, prefix: Sequence[int], continuations: Sequence[Sequence[int]], *, halt: Halt | None = None
    ) -> list[float] | None:
        """The log-probability of each continuation behind the prefix; None if there is no room or time for it.

        The prefix is evaluated in sequence 0, where it stays, and shared by all of them; of them nothing stays.
        """
        assert prefix and all(0 < len(each) <= BATCH_TOKENS for each in continuations)
        assert self.sequences > 1, "branches are kept for engines of several sequences"
        if self.prefill(prefix, halt=halt).outcome != "done":
            return None
        first = self._log_shares(-1, [each[0] for each in continuations])
        if self._room < BATCH_TOKENS:
            self._forget_besides()
        scores = dict(enumerate(first))
        open_ones = [place for place, each in enumerate(continuations) if len(each) > 1]
        for group in groups(open_ones, [len(each) - 1 for each in continuations]):
            if (halt is not None and halt()) or self._room < sum(len(continuations[place]) - 1 for place in group):
                return None
            told = self._score_branches([continuations[place] for place in group], prefix)
            if told is None:
                return None
            for place, score in zip(group, told, strict=True):
                scores[place] += score
        return [scores[place] for place in range(len(continuations))]

    def _score_branches(self, branches: Sequence[Sequence[int]], prefix: Sequence[int]) -> list[float] | None:
        """The log-probabilities of each branch behind its first token; None when llama.cpp found no room.

        What branches begin with alike is evaluated once for all of them.
        """
        memory, live, tree = self._live.memory, self._live, tree_of(branches)
        position, first = len(prefix), 1
        if len(tree) == 1 and position > 1 and self.cuts:  # A second token for the batch: the last one of the prefix.
            branches = [[prefix[-1], *each] for each in branches]
            tree, position, first = tree_of(branches), position - 1, 2
        places = range(self.sequences, self.sequences + len(branches))
        try:
            for place in places:
                llama_cpp.llama_memory_seq_cp(memory, 0, place, 0, position)
            status = llama_cpp.llama_decode(live.context, self._batch.fill_tree(tree, position, self.sequences))
            if status == 1:
                return None
            if status != 0:
                raise ModelError(f"{self.path}: llama.cpp refused a batch (status {status}){last_words()}")
            rows = {beginning: row for row, beginning in enumerate(tree)}
            return [
                sum(self._log_shares(rows[tuple(each[:n])], [each[n]])[0] for n in range(first, len(each)))
                for each in branches
            ]
        finally:
            self._views.clear()
            for place in places:
                llama_cpp.llama_memory_seq_rm(memory, place, -1, -1)

    def score_beside(self, texts: Sequence[Beside], *, halt: Halt | None = None) -> list[float] | None:
        """The log-probability of each continuation behind its prefix, all in as few passes as hold them.

        None if there is no room or no time for it. `logits` are no longer those of the conversation afterwards.
        """
        assert len({each.sequence for each in texts}) == len(texts), "each text has a sequence of its own"
        assert all(each.sequence > 0 and each.prefix for each in texts)
        steps = [step for place, each in enumerate(texts) for step in self._steps(place, each)]
        if len(steps) == 1 and self.cuts:
            steps = list(self._steps(0, texts[0], again=1))
        steps.sort(key=lambda step: step.following >= 0)  # What stays then stands without gaps, as when it is restored.
        if self._room < len(steps):
            self._forget_besides({each.sequence for each in texts})
        told = [0.0] * len(texts)
        done = self._room >= len(steps)
        for begin, end in portions(len(steps) if done else 0):
            part = steps[begin:end]
            done = (halt is None or halt() is None) and self._decode_steps(part)
            if not done:
                break
            for row, step in enumerate(part):
                if step.following >= 0:
                    told[step.place] += self._log_shares(row, [step.following])[0]
        for each in texts:
            length = len(each.prefix) - 1
            if not done or not self._cut(each.sequence, length):
                self._forget(each.sequence)
            else:
                self._kept[each.sequence] = list(each.prefix[:length])
        return told if done else None

    def _steps(self, place: int, text: Beside, *, again: int = 0) -> Iterator[Step]:
        """The tokens of a text that are not in memory yet, or are `again` to be evaluated, each with the one behind it
        that is judged.
        """
        held = self.align(text.prefix[: -1 - again], sequence=text.sequence, keep_last=False)
        tokens = [*text.prefix, *text.continuation]
        for position in range(held, len(tokens) - 1):
            is_judged = position >= len(text.prefix) - 1
            following = tokens[position + 1] if is_judged else -1
            yield Step(place, text.sequence, position, tokens[position], following)

    def _decode_steps(self, part: Sequence[Step]) -> bool:
        """One pass over tokens of several sequences; False when the context has no room for it."""
        self._views.clear()
        status = llama_cpp.llama_decode(self._live.context, self._batch.fill_steps(part))
        if status not in (0, 1):
            for sequence in {step.sequence for step in part}:
                self._forget(sequence)
            raise ModelError(f"{self.path}: llama.cpp refused a batch (status {status}){last_words()}")
        return bool(status == 0)

    def _forget_besides(self, wanted: Collection[int] = ()) -> None:
        """Empty the memory, except for the conversation's and that of the wanted sequences."""
        for sequence in self._kept:
            if sequence and sequence not in wanted and self._kept[sequence]:
                self._forget(sequence)

    def logits(self, row: int = -1) -> NDArray[np.float32]:
        """The logits of the last evaluated token, or of one of `rows`: a view, good until the next `evaluate`."""
        pointer = llama_cpp.llama_get_logits_ith(self._live.context, row)
        if not pointer:
            raise ModelError("llama.cpp has no logits: nothing was evaluated since the last fault")
        address = ctypes.addressof(pointer.contents)
        view = self._views.get(address)
        if view is None:
            # A new array object per token costs more than the argmax over it; the buffer hardly ever moves.
            if len(self._views) >= BATCH_TOKENS:
                self._views.clear()
            view = self._views[address] = np.ctypeslib.as_array(pointer, shape=(self.n_vocab,))
        return view

    def forget(self) -> None:
        """Empty the memory, of every sequence."""
        llama_cpp.llama_memory_clear(self._live.memory, False)
        for kept in self._kept.values():
            kept.clear()

    def export_state(self, sequence: int = 0) -> bytearray:
        """The memory of a sequence as llama.cpp's own bytes; `kept` says for which tokens. Raises ModelError."""
        size = int(llama_cpp.llama_state_seq_get_size(self._live.context, sequence))
        state = bytearray(size)
        target = (ctypes.c_uint8 * size).from_buffer(state)
        if llama_cpp.llama_state_seq_get_data(self._live.context, target, size, sequence) != size:
            raise ModelError(f"{self.path}: llama.cpp cannot export its memory{last_words()}")
        return state

    def import_state(self, state: bytearray | memoryview, tokens: Sequence[int], sequence: int = 0) -> bool:
        """Fill a sequence with an exported one, instead of what it held; the others stay as they are.

        False, and the sequence is empty, when there is no room for it and a token more, or llama.cpp does not take it.
        The conversation (sequence 0) takes the room of the others if it needs it.
        llama.cpp trusts these bytes: give it only what `export_state` gave, of the same model, window and build.
        """
        self._kept.setdefault(sequence, [])
        self._forget(sequence)
        if sequence == 0 and self._room <= len(tokens):
            self._forget_besides()
        if self._room <= len(tokens):
            return False
        size = len(state)
        source = (ctypes.c_uint8 * size).from_buffer(state)  # Not copied: it may be a tenth of a small board's memory.
        if llama_cpp.llama_state_seq_set_data(self._live.context, source, size, sequence) != size:
            self._forget(sequence)
            return False
        self._kept[sequence] = list(tokens)
        return True

    def close(self) -> None:
        """Free the model. Closing twice is fine; using it afterwards is a ModelError."""
        self._views.clear()
        self._handles.close()

    @property
    def _live(self) -> Handles:
        if self._handles.closed:
            raise ModelError(f"{self.path}: the model was closed")
        return self._handles

    def _token_text(self, token: int) -> str:
        return self.vocabulary.piece(token).decode("utf-8", "replace") if token >= 0 else ""

    @property
    def _room(self) -> int:
        """How many tokens more the memory can hold: all sequences share it."""
        return self.n_ctx - sum(len(kept) for kept in self._kept.values())

    def _log_shares(self, row: int, tokens: Sequence[int]) -> list[float]:
        """The log-probabilities of tokens by one row of the last batch's logits; row -1 is the last one."""
        pointer = llama_cpp.llama_get_logits_ith(self._live.context, row)
        if not pointer:
            raise ModelError(f"{self.path}: llama.cpp has no logits for token {row} of a batch{last_words()}")
        logits = np.ctypeslib.as_array(pointer, shape=(self.n_vocab,))
        whole = log_whole(logits)
        return [float(logits[token]) - whole for token in tokens]

    def _decode(self, part: Sequence[int], position: int, rows: Sequence[int]) -> bool:
        """One pass of the conversation, with logits for these rows; False when the context has no room for it."""
        status = llama_cpp.llama_decode(self._live.context, self._batch.fill(part, position, rows))
        if status == 0:
            return True
        self._views.clear()
        if not self._cut(0, position):
            self._forget(0)
        if status == 1:
            return False
        raise ModelError(f"{self.path}: llama.cpp refused a batch (status {status}){last_words()}")

    def _cut(self, sequence: int, length: int) -> bool:
        """Drop everything from `length` on; False when this kind of memory cannot."""
        memory = self._live.memory
        if not llama_cpp.llama_memory_seq_rm(memory, sequence, length, -1):
            return False
        # Sliding-window layers have dropped old tokens: those that the window before `length` needs must be there.
        needed = max(0, length - self.n_swa) if self.n_swa else 0
        if length and llama_cpp.llama_memory_seq_pos_min(memory, sequence) > needed:
            return False
        del self._kept[sequence][length:]
        return True

    def _forget(self, sequence: int) -> None:
        self._kept[sequence].clear()
        if not llama_cpp.llama_memory_seq_rm(self._live.memory, sequence, -1, -1):
            self.forget()


def count_shared(one: Sequence[int], other: Sequence[int]) -> int:
    """How many tokens both begin with alike."""
    count = min(len(one), len(other))
    return next((place for place in range(count) if one[place] != other[place]), count)

"""Batches of one pass of llama.cpp: how many tokens go together, and of which sequences. Nothing is evaluated here."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import llama_cpp
import numpy as np

# One batch is one pass of llama.cpp, and between passes we can stop. 64 tokens are 0.1 s on a small CPU, about as
# fast as 512 in one pass, and the buffers that llama.cpp sets aside (64 x vocabulary x 4 bytes) stay small.
BATCH_TOKENS = 64

BRANCHES = 8
"""Continuations that are scored side by side, where there is more than one sequence; each has 0.2 to 1 MB of logits."""


@dataclass(frozen=True, slots=True)
class Beside:
    """A text to be judged beside the conversation: how probable is the continuation behind the prefix?

    The prefix, except for its last token, stays in the sequence (not 0), so that the next continuation costs its own
    tokens only. An empty continuation has the log-probability 0.
    """

    sequence: int
    prefix: Sequence[int]
    continuation: Sequence[int]


class Step(NamedTuple):
    """One token of a pass over several sequences, and the token that is judged behind it (-1: none)."""

    place: int
    sequence: int
    position: int
    token: int
    following: int


class Batch:
    """One llama.cpp batch, made once and filled again: tokens, their sequences, and whose logits are wanted."""

    def __init__(self, capacity: int) -> None:
        tokens = (llama_cpp.llama_token * capacity)()
        positions = (llama_cpp.llama_pos * capacity)()
        counts = (ctypes.c_int32 * capacity)(*([1] * capacity))
        sequences = (llama_cpp.llama_seq_id * (capacity * BRANCHES))()
        pointer = ctypes.POINTER(llama_cpp.llama_seq_id)
        size = ctypes.sizeof(llama_cpp.llama_seq_id) * BRANCHES
        at = ctypes.addressof(sequences)
        each = (pointer * capacity)(*[ctypes.cast(at + size * i, pointer) for i in range(capacity)])
        wanted = (ctypes.c_int8 * capacity)()
        self._alive = (tokens, positions, counts, sequences, each, wanted)
        self._struct = llama_cpp.llama_batch(
            n_tokens=0, token=tokens, embd=None, pos=positions, n_seq_id=counts, seq_id=each, logits=wanted
        )
        self._tokens = np.ctypeslib.as_array(tokens)
        self._positions = np.ctypeslib.as_array(positions)
        self._counts = np.ctypeslib.as_array(counts)
        self._sequences = np.ctypeslib.as_array(sequences).reshape(capacity, BRANCHES)
        self._wanted = np.ctypeslib.as_array(wanted)

    def fill(self, part: Sequence[int], position: int, rows: Sequence[int]) -> Any:
        """Tokens of the conversation from this position on, with logits for these rows."""
        count = len(part)
        self._tokens[:count] = part
        self._positions[:count] = range(position, position + count)
        self._counts[:count] = 1
        self._sequences[:count, 0] = 0
        self._wanted[:count] = 0
        for row in rows:
            self._wanted[row] = 1
        self._struct.n_tokens = count
        return self._struct

    def fill_steps(self, part: Sequence[Step]) -> Any:
        """Tokens of several sequences, with logits for those behind which something is judged."""
        for row, step in enumerate(part):
            self._tokens[row], self._positions[row], self._sequences[row, 0] = step.token, step.position, step.sequence
            self._wanted[row] = step.following >= 0
        self._counts[: len(part)] = 1
        self._struct.n_tokens = len(part)
        return self._struct

    def fill_tree(self, tree: Tree, position: int, sequence: int) -> Any:
        """The last token of each beginning, in the sequences of its branches, counted from `sequence`; all logits."""
        for row, (beginning, branches) in enumerate(tree.items()):
            self._tokens[row], self._positions[row] = beginning[-1], position + len(beginning) - 1
            self._counts[row] = len(branches)
            self._sequences[row, : len(branches)] = [sequence + branch for branch in branches]
        self._wanted[: len(tree)] = 1
        self._struct.n_tokens = len(tree)
        return self._struct


Tree = dict[tuple[int, ...], list[int]]
"""The beginnings of branches, each behind its own beginnings, and which of the branches have it."""


def tree_of(branches: Sequence[Sequence[int]]) -> Tree:
    """All that must be evaluated to judge each branch's tokens: its last one need not be."""
    tree: Tree = {}
    for place, branch in enumerate(branches):
        for end in range(1, len(branch)):
            tree.setdefault(tuple(branch[:end]), []).append(place)
    return tree


def portions(count: int) -> Iterator[tuple[int, int]]:
    """The begins and ends of the batches for so many tokens; the last one is of two at least, if there are two."""
    begin = 0
    while begin < count:
        end = min(begin + BATCH_TOKENS, count)
        if end == count - 1:
            end -= 1
        yield begin, end
        begin = end


def groups(places: Sequence[int], lengths: Sequence[int]) -> list[list[int]]:
    """The places in groups that fit into one batch, and are not more than there are branches."""
    groups: list[list[int]] = []
    room = 0
    for place in places:
        if not groups or lengths[place] > room or len(groups[-1]) == BRANCHES:
            groups.append([])
            room = BATCH_TOKENS
        groups[-1].append(place)
        room -= lengths[place]
    return groups

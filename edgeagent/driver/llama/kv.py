"""Keep the model's memory on the disk, so that what was read once need not be read again after a restart.

    <name>.kv := magic · HMAC-SHA-256 of the rest · length u32 · CBOR [format, fingerprint, parts] · llama.cpp's states
    part      := [name, sequence, tokens, bytes of its state]

Laws. A blob reaches llama.cpp only if its hash, made with a key that never leaves this machine, is right: llama.cpp
trusts what it is given. It is used only if the fingerprint (model, window, build, CPU) is exactly this engine's.
Everything else is a miss, never an error: what is missing is evaluated again. Knows no agent and no session.
"""

from __future__ import annotations

import contextlib
import hmac
import platform
from array import array
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import cbor2
import llama_cpp

from edgeagent.driver.llama.batch import BATCH_TOKENS
from edgeagent.driver.llama.engine import Engine
from edgeagent.driver.llama.kv_head import FORMAT, HASH_BYTES, HEAD_BYTES_MAX, LENGTH, MAGIC
from edgeagent.driver.llama.scoring_slots import Shelf
from edgeagent.errors import ModelError
from edgeagent.trace.disk import DISK, Disk
from edgeagent.version import __version__

FILE_BYTES_MAX = 64 << 20
"""The most one file may take: 2,800 tokens of SmolLM2 (23 kB each), 3,500 of Gemma 3 270M (18 kB)."""

TEXTS_FOLDER = "texts"
"""Where the tools' texts are, below the memories that all sessions share."""


class _Part(NamedTuple):
    """What a file holds of one sequence."""

    name: str
    sequence: int
    tokens: list[int]
    state: memoryview


@dataclass(frozen=True)
class KvStore:
    """A folder of saved memories. `secret` is this machine's own key; how much they may take is the disk's to say."""

    folder: Path
    secret: bytes
    disk: Disk = DISK
    file_bytes_max: int = FILE_BYTES_MAX

    def save(self, engine: Engine, name: str, *, length: int | None = None) -> bool:
        """Save the memory of sequence 0, or its first `length` tokens (the rest is then dropped from memory too).

        False when nothing was saved: it is empty, too large, or the disk does not take it.
        """
        if length is not None:
            engine.align(engine.kept()[:length], keep_last=False)
        return bool(engine.kept()) and self.save_places(engine, name, CONVERSATION)

    def save_places(self, engine: Engine, name: str, places: Mapping[str, int]) -> bool:
        """Save the memory of several sequences, by the names of what stands in them; False when nothing was saved."""
        try:
            states = [engine.export_state(sequence) for sequence in places.values()]
            if sum(map(len, states)) > self.file_bytes_max:
                return False
            parts = [
                [each, sequence, _packed(engine.kept(sequence)), len(state)]
                for (each, sequence), state in zip(places.items(), states, strict=True)
            ]
            head = _head(fingerprint(engine), parts)
        except ModelError:
            return False
        return self.disk.write_cache(self.path(name), MAGIC, self._seal(head, *states), head, *states)

    def restore(self, engine: Engine, name: str) -> int:
        """Put a saved memory into the engine; return how many tokens it holds, 0 for a miss."""
        return sum(len(engine.kept(sequence)) for sequence in self.restore_places(engine, name).values())

    def restore_places(self, engine: Engine, name: str) -> dict[str, int]:
        """Put what was saved into its sequences again, in the order it was saved in; return what belongs where.

        The sequence of what there is no room for is empty. Nothing is returned for a miss. Others stay as they are.
        """
        parts = self._opened(name, fingerprint(engine))
        for each in parts:
            engine.import_state(each.state, each.tokens, each.sequence)
        if parts:
            self.disk.was_used(self.path(name))
        return {each.name: each.sequence for each in parts}

    def path(self, name: str) -> Path:
        """Where the memory of that name is."""
        return self.folder / f"{name}.kv"

    def _seal(self, *blocks: bytes | bytearray | memoryview) -> bytes:
        seal = hmac.new(self.secret, digestmod="sha256")
        for block in blocks:
            seal.update(block)
        return seal.digest()

    def _opened(self, name: str, mark: str) -> list[_Part]:
        """The parts of a file that is whole, ours, and of this engine; none for anything else."""
        begin = len(MAGIC) + HASH_BYTES
        try:
            size = self.path(name).stat().st_size
            if not begin + LENGTH.size < size <= self.file_bytes_max + HEAD_BYTES_MAX:
                return []
            content = bytearray(size)
            with self.path(name).open("rb") as file:
                if file.readinto(content) != size:
                    return []
        except OSError:
            return []
        rest = memoryview(content)[begin:]
        if content[: len(MAGIC)] != MAGIC or not hmac.compare_digest(self._seal(rest), content[len(MAGIC) : begin]):
            return []
        (length,) = LENGTH.unpack_from(rest)
        head: Any = cbor2.loads(bytes(rest[LENGTH.size : LENGTH.size + length]))
        if head[:2] != [FORMAT, mark]:
            return []
        parts, begin = [], LENGTH.size + length
        for each, sequence, tokens, size in head[2]:
            parts.append(_Part(each, sequence, _unpacked(tokens), rest[begin : begin + size]))
            begin += size
        return parts


@dataclass
class WarmShelf:
    """The texts that wait beside the conversation: all that stood there is one file.

    `restored` is how many of them the file holds, also if there was no room for some.
    """

    store: KvStore
    name: str
    shelf: Shelf
    restored: int = 0

    def restore(self, engine: Engine) -> None:
        """Restore each text into the sequence in which it stood, one behind the other."""
        places = self.store.restore_places(engine, self.name)
        self.shelf.give_back(places)
        self.restored = len(places)

    def save(self, engine: Engine) -> None:
        """Save the texts, if there are more than were restored: a disk is not worn out for a change of places."""
        places = self.shelf.standing()
        if len(places) > self.restored:
            self.store.save_places(engine, self.name, places)


@dataclass(frozen=True)
class SavedMemory:
    """What is restored when a session begins or goes on, and saved when it rests for good.

    `session` is its own memory; `prefix` that of the agent (system text and tools), shared by all its sessions;
    `beside` the tools' texts, shared by them too, if the driver has any.
    """

    session: KvStore
    prefix: KvStore
    prefix_name: str
    beside: WarmShelf | None = None

    def restore_texts(self, engine: Engine) -> None:
        """Restore the texts; first, for logits depend in their last digits on where in the memory a text stands."""
        if self.beside is not None:
            self.beside.restore(engine)

    def restore_session(self, engine: Engine) -> int:
        """Restore the session's memory; return how many tokens that is."""
        return self.session.restore(engine, SESSION_NAME)

    def restore_prefix(self, engine: Engine) -> int:
        """Restore what all sessions of the agent begin with; return how many tokens that is."""
        return self.prefix.restore(engine, self.prefix_name)

    def save(self, engine: Engine, prefix_tokens: Callable[[], int]) -> None:
        """Save the session's memory; and the agent's, what of it was not saved before. May cut the memory to it."""
        if self.beside is not None:
            self.beside.save(engine)
        self.session.save(engine, SESSION_NAME)
        if self.prefix.path(self.prefix_name).exists():
            return  # Else also where there was no room for the session's: it is smaller, and of use to all.
        if length := prefix_tokens():
            self.prefix.save(engine, self.prefix_name, length=length)


SESSION_NAME = "session"
CONVERSATION = {"": 0}
"""What stands where, of a file that holds the conversation alone."""


def fingerprint(engine: Engine) -> str:
    """Everything that a saved memory depends on besides its tokens, as text."""
    parts = {
        "model": engine.model_digest,
        **({} if engine.given_template is None else {"template": engine.given_template}),
        "n_ctx": engine.n_ctx,
        "sequences": engine.sequences,
        "batch": BATCH_TOKENS,
        "edgeagent": __version__,  # Our own choices for the context are part of the layout.
        "llama_cpp": llama_cpp.__version__,
        "system": llama_cpp.llama_print_system_info().decode("utf-8", "replace").strip(),
        "machine": platform.machine(),
        "processor": _processor(),
    }
    return "; ".join(f"{name}={value}" for name, value in parts.items())


def _processor() -> str:
    """The CPU's name: another one may round otherwise, and then the text would not be the uncut session's."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith(("model name", "Processor", "Model", "uarch", "CPU part")):
                return line.split(":", 1)[1].strip()
    return platform.processor()


def _head(mark: str, parts: list[list[Any]]) -> bytes:
    head = cbor2.dumps([FORMAT, mark, parts], canonical=True)
    return LENGTH.pack(len(head)) + head


def _packed(tokens: list[int]) -> bytes:
    packed = array("i", tokens)
    return packed.tobytes()  # In this machine's byte order, like the state itself: the file never leaves it.


def _unpacked(packed: bytes) -> list[int]:
    tokens = array("i")
    tokens.frombytes(packed)
    return tokens.tolist()

"""llama.cpp's own pointers: opened with our settings, freed once, and what it said last when it failed."""

from __future__ import annotations

import ctypes
import os
import sys
import weakref
from collections import deque
from pathlib import Path
from typing import Any

import llama_cpp

from edgeagent.driver.llama.batch import BATCH_TOKENS, BRANCHES
from edgeagent.errors import ModelError

LOG_LINES_KEPT = 6
_LOG_WARN, _LOG_ERROR = 3, 4
_log: deque[str] = deque(maxlen=LOG_LINES_KEPT)
_verbose = False


@llama_cpp.llama_log_callback  # type: ignore[untyped-decorator]  # llama_cpp ships no types
def _on_log(level: int, text: bytes, _user: ctypes.c_void_p) -> None:
    line = text.decode("utf-8", "replace")
    if level == _LOG_ERROR:
        _log.append(line.strip())
    if _verbose:
        sys.stderr.write(line)


class Handles:
    """llama.cpp's pointers, freed once, in order, also at the interpreter's exit."""

    def __init__(self, model: Any, context: Any, sequences: int) -> None:
        self.model = model
        self.context = context
        self.sequences = sequences
        self.vocab = llama_cpp.llama_model_get_vocab(model)
        self.memory = llama_cpp.llama_get_memory(context)
        # finalize runs before the interpreter takes modules apart; __del__ may run after.
        self._free = weakref.finalize(self, _free, context, model)

    @classmethod
    def open(cls, path: Path, n_ctx: int, threads: int, sequences: int, verbose: bool) -> Handles:
        _start_backend(verbose)
        model = llama_cpp.llama_model_load_from_file(os.fsencode(path), model_params(_build()))
        if not model:
            raise ModelError(f"{path}: llama.cpp cannot load it{last_words()}")
        branches = BRANCHES if sequences > 1 else 0
        context = llama_cpp.llama_init_from_model(model, _context_params(n_ctx, threads, sequences + branches))
        if not context:
            llama_cpp.llama_model_free(model)
            raise ModelError(f"{path}: no context of {n_ctx} tokens could be made{last_words()}; try a smaller n_ctx")
        return cls(model, context, sequences)

    @property
    def closed(self) -> bool:
        return not self._free.alive

    def close(self) -> None:
        self._free()


def physical_cores() -> int:
    """The cores this process may use, hyper-threads counted once: a second thread on a core slows the first."""
    allowed = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))
    siblings = set()
    for cpu in allowed:
        file = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        try:
            siblings.add(file.read_text().strip())
        except OSError:
            siblings.add(str(cpu))
    return max(1, len(siblings))


def last_words() -> str:
    """llama.cpp's last error lines, to be put behind a message of ours."""
    return f": {' | '.join(_log)}" if _log else ""


def _start_backend(verbose: bool) -> None:
    global _verbose  # noqa: PLW0603  # llama.cpp has one log for the whole process
    _verbose = verbose
    _log.clear()
    os.environ.setdefault("GGML_NO_BACKTRACE", "1")  # Else an abort in ggml starts a debugger, which may hang.
    llama_cpp.llama_log_set(_on_log, ctypes.c_void_p(0))
    llama_cpp.llama_backend_init()


def _build() -> str:
    """What llama.cpp says of its own build and of this CPU."""
    return bytes(llama_cpp.llama_print_system_info()).decode("utf-8", "replace")


def model_params(build: str) -> Any:
    """AMX is never used: compilers before GCC 14 drop the tiles' shapes, and the first product is a segmentation fault.

    Found on Debian 12 with a Xeon; https://github.com/ggml-org/llama.cpp/pull/26954 has the reason.
    """
    params = llama_cpp.llama_model_default_params()
    params.use_extra_bufts = "AMX_INT8 = 1" not in build
    return params


def _context_params(n_ctx: int, threads: int, sequences: int) -> Any:
    params = llama_cpp.llama_context_default_params()
    params.n_ctx = n_ctx
    params.n_batch = params.n_ubatch = BATCH_TOKENS
    params.n_threads = params.n_threads_batch = threads
    params.n_seq_max = sequences
    params.kv_unified = True  # All sequences share the room, so that a prefix can be shared without a copy.
    params.swa_full = True  # Keep what slid out of the window too: else no prefix could be used again.
    # Without flash attention attention is a product of two matrices, for which llama.cpp has faster kernels on a CPU
    # (SmolLM2 behind 512 tokens, ms for batches of 1, 4 and 26: 9.8, 21 and 93; with it 9.6, 22 and 111), and logits do
    # not depend on how a prompt is cut into batches of two tokens and more.
    params.flash_attn_type = llama_cpp.LLAMA_FLASH_ATTN_TYPE_DISABLED
    params.no_perf = True
    return params


def _free(context: Any, model: Any) -> None:
    llama_cpp.llama_free(context)
    llama_cpp.llama_model_free(model)

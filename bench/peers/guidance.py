"""guidance on its llama.cpp back-end: its own loop over llguidance."""

from __future__ import annotations

import importlib.metadata
import sys
from typing import Any

# This file has the library's name: its own folder must not be looked into for it.
sys.path.pop(0)

import guidance

from bench.peers.protocol import call_schema, serve


def main(model: str, threads: int) -> None:
    """Serve."""
    lm: Any = guidance.models.LlamaCpp(
        model, n_ctx=2048, n_threads=threads, n_threads_batch=threads, echo=False, verbose=False
    )
    grammar = guidance.json(name="call", schema=call_schema(), temperature=0.0, max_tokens=128)

    def write(prompt: str) -> str:
        return str((lm + prompt + grammar)["call"])

    serve(write, {"version": importlib.metadata.version("guidance")})


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))

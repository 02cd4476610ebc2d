"""outlines on llama-cpp-python, with its llguidance back-end."""

from __future__ import annotations

import importlib.metadata
import json
import sys
from typing import Any

# This file has the library's name: its own folder must not be looked into for it.
sys.path.pop(0)

import outlines
from llama_cpp import Llama

from bench.peers.protocol import call_schema, serve


def main(model: str, threads: int) -> None:
    """Serve."""
    llama: Any = Llama(model, n_ctx=2048, n_threads=threads, n_threads_batch=threads, verbose=False)
    wanted = outlines.types.JsonSchema(json.dumps(call_schema()))
    generator: Any = outlines.Generator(outlines.from_llamacpp(llama), wanted, backend="llguidance")

    def write(prompt: str) -> str:
        return str(generator(prompt, max_tokens=128, temperature=0.0))

    serve(write, {"version": importlib.metadata.version("outlines")})


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))

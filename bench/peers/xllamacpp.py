"""llama.cpp's own server, in the process: `json_schema`, and the prompt cached between requests."""

from __future__ import annotations

import importlib.metadata
import json
import sys
from typing import Any

# This file has the library's name: its own folder must not be looked into for it.
sys.path.pop(0)

import xllamacpp

from bench.peers.protocol import call_schema, serve


def main(model: str, threads: int) -> None:
    """Serve."""
    params = xllamacpp.CommonParams()
    params.model.path = model
    params.n_ctx = 2048
    params.n_parallel = 1
    params.cpuparams.n_threads = threads
    params.cpuparams_batch.n_threads = threads
    params.warmup = True
    server = xllamacpp.Server(params)
    schema = call_schema()

    def write(prompt: str) -> str:
        request = {
            "prompt": prompt,
            "json_schema": schema,
            "n_predict": 128,
            "temperature": 0.0,
            "cache_prompt": True,
            "stream": False,
        }
        done: Any = server.handle_completions(request)
        if isinstance(done, str | bytes):
            done = json.loads(done)
        return str(done["choices"][0]["text"] if "choices" in done else done["content"])

    serve(write, {"version": importlib.metadata.version("xllamacpp")})


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))

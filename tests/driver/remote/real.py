"""Real servers of SmolLM2 on loopback, each in a process of its own: llama.cpp's, and llama-cpp-python's."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

LLAMA_CPP = """
import sys, xllamacpp
params = xllamacpp.CommonParams()
params.model.path, params.port = sys.argv[1], int(sys.argv[2])
params.hostnames, params.model_alias = ["127.0.0.1"], {"smollm2"}
params.n_ctx, params.n_parallel, params.warmup = 4096, 1, False
server = xllamacpp.Server(params)
sys.stdin.read()
"""

READY_S = 120


def command_of(name: str, model: Path, port: int) -> list[str]:
    """How the server is started; skips aloud where it is not installed."""
    needed = {"llama.cpp": "xllamacpp", "llama-cpp-python": "starlette_context"}[name]
    if importlib.util.find_spec(needed) is None:
        why = f"{name}'s server is missing, so this promise was NOT tested: `make remote-test` installs it"
        pytest.fail(why) if os.environ.get("CI") else pytest.skip(why)
    if name == "llama.cpp":
        return [sys.executable, "-c", LLAMA_CPP, str(model), str(port)]
    told = ["--model", str(model), "--model_alias", "smollm2", "--host", "127.0.0.1", "--port", str(port)]
    return [sys.executable, "-m", "llama_cpp.server", *told, "--n_ctx", "4096"]


@contextlib.contextmanager
def real_server(name: str, model: Path) -> Iterator[str]:
    """The address of a server that is ready."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    quiet = {"stdin": subprocess.PIPE, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command_of(name, model, port), **quiet)
    try:
        url = f"http://127.0.0.1:{port}/v1"
        _wait_for(url, process)
        yield url
    finally:
        process.kill()
        process.communicate()


def _wait_for(url: str, process: subprocess.Popen) -> None:
    until = time.monotonic() + READY_S
    while time.monotonic() < until and process.poll() is None:
        with contextlib.suppress(urllib.error.URLError, OSError), urllib.request.urlopen(f"{url}/models") as answer:
            if answer.status == 200:
                return
        time.sleep(0.2)
    raise RuntimeError(f"the server at {url} did not get ready")

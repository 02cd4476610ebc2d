"""An engine on the real model, and the greenhouse that it is measured with."""

from __future__ import annotations

import os
import runpy
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest


@pytest.fixture(scope="session")
def greenhouse() -> SimpleNamespace:
    """The greenhouse's tools and requests, which the bench measures with."""
    return SimpleNamespace(**runpy.run_path(str(Path(__file__).parents[3] / "bench" / "greenhouse.py")))


@pytest.fixture(scope="session")
def grammar_engine() -> str:
    """What holds the model to the grammar: `make test-gbnf` runs these tests once more with the other one."""
    return os.environ.get("EDGEAGENT_ENGINE", "llguidance")


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache directory for derived tables, shared by the whole run."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def shared_engine(smollm2: Path, cache: Path) -> Iterator[object]:
    """The model, loaded once for all tests, with room for 2048 tokens."""
    pytest.importorskip("llama_cpp")
    from edgeagent.driver.llama.engine import Engine

    # One thread: on a busy machine two wait for each other at every layer, and the tests take minutes.
    loaded = Engine.load(smollm2, n_ctx=2048, threads=1, cache=cache)
    yield loaded
    loaded.close()


@pytest.fixture
def engine(shared_engine: object) -> object:
    """The loaded model with an empty memory."""
    shared_engine.forget()  # type: ignore[attr-defined]  # importing Engine here would load llama.cpp for every test
    return shared_engine


@pytest.fixture(scope="session")
def shared_grammars(shared_engine: object) -> object:
    """Compiled grammars for the loaded model: its tokenizer takes a while to build."""
    pytest.importorskip("llguidance")
    from edgeagent.driver.llama.grammars import Grammars

    return Grammars(shared_engine, "llguidance")  # type: ignore[arg-type]  # as above


@pytest.fixture
def grammars(shared_grammars: object, engine: object) -> object:
    """The same, with the model's memory empty."""
    return shared_grammars


@pytest.fixture(scope="session")
def mamba(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a tiny recurrent model with random weights."""
    file = tmp_path_factory.mktemp("tiny") / "mamba.gguf"
    runpy.run_path(str(Path(__file__).with_name("tiny.py")))["write_mamba"](file)
    return file

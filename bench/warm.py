"""How much sooner the first token comes from a saved memory: `python -m bench.warm MODEL.gguf [...]`.

One run: a prefix of 500 tokens is evaluated, saved and restored; both times end with the first token.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from edgeagent.driver.llama.decode import Wanted, generate
from edgeagent.driver.llama.engine import Engine
from edgeagent.driver.llama.kv import KvStore

PREFIX_TOKENS = 500
ROUNDS = 5
TEXT = "The greenhouse has four beds and a valve for each. Open the north valve when its soil is dry. "


@dataclass(frozen=True)
class Warmth:
    """Medians in ms of `ROUNDS` runs, and whether the text was the same."""

    model: str
    evaluated_ms: float
    restored_ms: float
    of_which_reading_ms: float
    times_sooner: float
    file_mb: float
    same_text: bool


def measure(model: Path, rounds: int = ROUNDS) -> Warmth:
    """Measure one model."""
    with tempfile.TemporaryDirectory() as folder:
        store = KvStore(Path(folder), bytes(32))
        engine = Engine.load(model)
        tokens = engine.tokenize(TEXT * 60, special=False, bos=engine.adds_bos)[:PREFIX_TOKENS]
        text = generate(engine, tokens, Wanted(max_tokens=24)).text
        cold, warm, reading = [], [], []
        for _ in range(rounds):
            engine.forget()
            cold.append(_timed(lambda: _first(engine, tokens)))
            store.save(engine, "prefix")
            engine.forget()
            reading.append(_timed(lambda: store.restore(engine, "prefix")))
            warm.append(reading[-1] + _timed(lambda: _first(engine, tokens)))
        engine.close()
        fresh = Engine.load(model)
        store.restore(fresh, "prefix")
        same = generate(fresh, tokens, Wanted(max_tokens=24)).text == text
        fresh.close()
        size = store.path("prefix").stat().st_size
    ratio = statistics.median(one / other for one, other in zip(cold, warm, strict=True))
    cold_ms, warm_ms, reading_ms = (round(statistics.median(each), 2) for each in (cold, warm, reading))
    return Warmth(model.name, cold_ms, warm_ms, reading_ms, round(ratio, 1), round(size / 1e6, 1), same)


def _first(engine: Engine, tokens: list[int]) -> int:
    engine.prefill(tokens)
    return int(engine.logits().argmax())


def _timed(call: object) -> float:
    assert callable(call)
    began = time.perf_counter()
    call()
    return (time.perf_counter() - began) * 1000


if __name__ == "__main__":
    for each in sys.argv[1:]:
        print(json.dumps(asdict(measure(Path(each)))), flush=True)

"""The subjects in our own environment: ours, with variations, and llama-cpp-python's `grammar=`."""

from __future__ import annotations

import importlib.metadata
import json
import sys
from pathlib import Path
from typing import Any

from bench.greenhouse import FRAME, TOOLS
from bench.peers.protocol import call_schema, serve
from edgeagent.version import __version__

MAX_TOKENS = 128


def ours(model: Path, threads: int, name: str) -> None:
    """Our engine under the grammar; `name` says in which variation."""
    from edgeagent.driver.llama.decode import Generation, Wanted, generate
    from edgeagent.driver.llama.engine import Engine
    from edgeagent.driver.llama.grammars import Grammars
    from edgeagent.grammar.gbnf import gbnf_calls
    from edgeagent.grammar.llg import calls_grammar

    engine = Engine.load(model, n_ctx=2048, threads=threads)
    grammars = Grammars(engine, "gbnf" if name.endswith("gbnf") else "llguidance")
    calls = list(TOOLS.items())
    text = gbnf_calls(calls, FRAME, relaxed=[]) if grammars.kind == "gbnf" else calls_grammar(calls, FRAME)
    grammar = grammars.compile(text)
    written: dict[str, Generation] = {}

    def write(prompt: str) -> str:
        tokens = engine.tokenize(prompt, special=True, bos=engine.adds_bos)
        if name.endswith("same text"):
            # What the constrained run wrote, token by token, as a model would that is not constrained.
            first = written.get(prompt) or generate(engine, tokens, Wanted(grammar=grammar, max_tokens=MAX_TOKENS))
            ids = first.token_ids
            free = generate(engine, tokens, Wanted(sampler=Dictated(ids), max_tokens=len(ids)))
            written.setdefault(prompt, first)
            return free.text
        asked = prompt.rpartition("user\n")[2]
        force = not name.endswith("not forced")
        done = generate(engine, tokens, Wanted(grammar=grammar, max_tokens=MAX_TOKENS, copied=asked, force=force))
        written[prompt] = done
        return done.text

    def measured() -> dict[str, Any]:
        runs = list(written.values())
        sampled = max(1, sum(run.sampled for run in runs))
        return {
            "prefill_tokens": sum(run.prompt - run.reused for run in runs),
            "evaluated": sum(run.evaluated for run in runs),
            "forced": sum(run.forced for run in runs),
            "sampled": sampled,
            "guessed": sum(run.guessed for run in runs),
            "mask_us_per_sampled": sum(run.constraint_us for run in runs) // sampled,
            "sampling_us_per_sampled": sum(run.sampling_us for run in runs) // sampled,
        }

    serve(write, {"version": __version__}, measured if "same" not in name else dict)


class Dictated:
    """Samples as greedily as any, and then takes the token it was told."""

    def __init__(self, tokens: tuple[int, ...]) -> None:
        self._tokens = tokens

    def pick(self, logits: Any, place: int) -> int:
        logits.argmax()
        return self._tokens[place]

    def pick_among(self, logits: Any, allowed: Any, place: int) -> int:
        raise AssertionError("nothing is constrained here")


def llama_cpp_python(model: Path, threads: int, _name: str) -> None:
    """The high-level class of llama-cpp-python, as its documentation shows it."""
    from llama_cpp import Llama
    from llama_cpp.llama_grammar import LlamaGrammar

    llama: Any = Llama(str(model), n_ctx=2048, n_threads=threads, n_threads_batch=threads, verbose=False)
    grammar = LlamaGrammar.from_json_schema(json.dumps(call_schema()), verbose=False)

    def write(prompt: str) -> str:
        done = llama.create_completion(prompt, grammar=grammar, max_tokens=MAX_TOKENS, temperature=0.0)
        return str(done["choices"][0]["text"])

    serve(write, {"version": importlib.metadata.version("llama-cpp-python")})


if __name__ == "__main__":
    subject = llama_cpp_python if sys.argv[3] == "llama-cpp-python" else ours
    subject(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3])

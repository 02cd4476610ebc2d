"""Our engine as a model of the package outlines: what its generators ask for is held by our grammars.

    import outlines
    from outlines_adapter import OutlinesModel

    model = OutlinesModel.load(Path("smollm2.gguf"))
    outlines.Generator(model, outlines.types.email)("Write to Bob: ")

An output is whole or a ModelError: within `max_tokens` the grammar closes it. It needs the extra `outlines`; copy this
file beside yours.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from outlines.inputs import Chat
from outlines.models import VLLMOffline
from outlines.models.base import Model, ModelTypeAdapter
from outlines.types import CFG, JsonSchema
from outlines.types.dsl import python_types_to_terms, to_regex

from edgeagent.driver.llama.decode import Generation, OnText, Wanted, generate
from edgeagent.driver.llama.engine import Engine
from edgeagent.driver.llama.grammars import Grammars
from edgeagent.driver.llama.prompt import prompt_tokens
from edgeagent.driver.llama.sampling import GREEDY, Sampler, Seeded
from edgeagent.driver.llama.template import Template, builtin_template
from edgeagent.errors import GrammarError, ModelError
from edgeagent.grammar.calls import STRING_CHARS_MAX, GrammarEngine
from edgeagent.grammar.gbnf import gbnf
from edgeagent.grammar.llg import text_grammar, value_grammar
from edgeagent.shape.foreign import foreign
from edgeagent.shape.lower import lower
from edgeagent.shape.parse import parse

TOKENS_MAX = 256
"""The most tokens of an output, if the call does not say."""


class OutlinesTypes(ModelTypeAdapter):
    """Outlines' inputs and output types as ours."""

    def __init__(self, engine: GrammarEngine) -> None:
        self._engine = engine

    def format_input(self, model_input: Any) -> str | list[dict[str, str]]:
        """A text as it is, a chat as messages. Raises ModelError for images and the like."""
        if isinstance(model_input, str):
            return model_input
        if isinstance(model_input, Chat) and all(isinstance(m["content"], str) for m in model_input.messages):
            return [{"role": m["role"], "content": m["content"]} for m in model_input.messages]
        raise ModelError("this model takes a text, or an outlines.Chat whose messages are texts")

    def format_output_type(self, output_type: Any = None) -> str | None:
        """The text of a grammar, or None for free text. Raises GrammarError for what no grammar of ours can hold."""
        if output_type is None:
            return None
        term = python_types_to_terms(output_type)
        if isinstance(term, CFG):
            raise GrammarError("a context-free grammar of outlines is not taken: give a type or a JSON Schema")
        if isinstance(term, JsonSchema):
            schema = lower(foreign(parse(term.schema)).schema, where="output type", string_max=STRING_CHARS_MAX).schema
            return gbnf(schema, relaxed=[]) if self._engine == "gbnf" else value_grammar(schema)
        if self._engine == "gbnf":
            raise GrammarError("a text that is not JSON is held by llguidance only: give a JSON Schema, or install it")
        pattern = lower({"type": "string", "pattern": f"^(?:{to_regex(term)})$"}, where="output type").schema
        return text_grammar(pattern)


class OutlinesModel(Model):
    """One loaded model. Not safe for several threads at once: a second call waits for the first."""

    def __init__(self, engine: Engine, kind: GrammarEngine | None = None) -> None:
        self._engine, self._grammars = engine, Grammars(engine, kind)
        self._template = Template(engine.template or builtin_template(engine.metadata("general.architecture") or ""))
        self._lock = threading.Lock()
        self.type_adapter = OutlinesTypes(self._grammars.kind)

    @classmethod
    def load(
        cls,
        path: Path,
        *,
        n_ctx: int = 2048,
        threads: int | None = None,
        engine: Literal["auto", "llguidance", "gbnf"] = "auto",
    ) -> OutlinesModel:
        """Load a GGUF file. Raises ModelError or GrammarError."""
        return cls(Engine.load(path, n_ctx=n_ctx, threads=threads), None if engine == "auto" else engine)

    def generate(self, model_input: Any, output_type: Any = None, **inference_kwargs: Any) -> str:
        """Write one output; takes `max_tokens`, `temperature`, `seed`, `stop`. Raises ModelError if it is not whole."""
        return self._write(model_input, output_type, None, None, **inference_kwargs).text

    def generate_batch(self, model_input: list[Any], output_type: Any = None, **inference_kwargs: Any) -> list[str]:
        """Write one output for each input, one after the other."""
        return [self.generate(each, output_type, **inference_kwargs) for each in model_input]

    def generate_stream(self, model_input: Any, output_type: Any = None, **inference_kwargs: Any) -> Iterator[str]:
        """Yield the output as it grows; who stops reading stops the model."""
        pieces: queue.Queue[str | Exception | None] = queue.Queue()
        left = threading.Event()

        def write() -> None:
            try:
                self._write(model_input, output_type, pieces.put, left, **inference_kwargs)
                pieces.put(None)
            # It is raised again where the text is read.
            except Exception as error:
                pieces.put(error)

        worker = threading.Thread(target=write, name="outlines", daemon=True)
        worker.start()
        try:
            while (piece := pieces.get()) is not None:
                if isinstance(piece, Exception):
                    raise piece
                yield piece
        finally:
            left.set()
            worker.join()

    def close(self) -> None:
        """Let go of the model and the template's process."""
        self._template.close()
        self._engine.close()

    def _write(
        self,
        model_input: Any,
        output_type: Any,
        on_text: OnText | None,
        left: threading.Event | None,
        *,
        max_tokens: int = TOKENS_MAX,
        temperature: float = 0.0,
        seed: int = 0,
        stop: str | list[str] = (),  # type: ignore[assignment] # an empty tuple is as good as an empty list
    ) -> Generation:
        text = self.type_adapter.format_output_type(output_type)
        sampler: Sampler = Seeded(seed, temperature=temperature) if temperature else GREEDY
        with self._lock:
            written = generate(
                self._engine,
                self._prompt(self.type_adapter.format_input(model_input)),
                Wanted(
                    grammar=None if text is None else self._grammars.compile(text),
                    sampler=sampler,
                    max_tokens=max_tokens,
                    halt=None if left is None else lambda: "cancelled" if left.is_set() else None,
                    on_text=on_text,
                    stop_texts=[stop] if isinstance(stop, str) else list(stop),
                ),
            )
        if not written.complete and written.stop != "cancelled":
            raise ModelError(f"no output of this type fits into {max_tokens} tokens: give more with max_tokens")
        return written

    def _prompt(self, given: str | list[dict[str, str]]) -> list[int]:
        engine = self._engine
        if isinstance(given, str):
            return engine.tokenize(given, special=True, bos=engine.adds_bos)
        return prompt_tokens(given, self._template, engine)


# Outlines' Generator knows its own models by class. Ours, like that one, is given the output type itself and not a
# processor of logits, so it is declared to be of that kind.
VLLMOffline.register(OutlinesModel)

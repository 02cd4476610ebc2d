"""Who answers a request? Our driver, or what else can be had: a grammar of llama.cpp's own, or a parser and no grammar.

Every engine gets the same text before the same request, and the same file and threads. Each begins every case with an
empty memory, so that reading the tools, rendering the prompt and compiling the grammar are part of its time; or `warm`,
as an agent that is loaded and has answered `BEFORE`. A case ends with its call, or where it is settled that there is
none: how long a model then talks is its own affair.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from bench.accuracy.cases import Case
from bench.accuracy.conversation import messages_of, with_yes
from bench.accuracy.requests import NOW
from bench.accuracy.tally import Answered
from edgeagent.codec.dialect import Family, dialect_called, dialect_for
from edgeagent.core.agent import Agent
from edgeagent.core.effects import AskModel
from edgeagent.core.events import CALL_ODDS, CALL_ODDS_NEEDED, Event, ModelAnswered, ModelFailed
from edgeagent.core.reading import Calls
from edgeagent.core.values import Message, ToolCall
from edgeagent.driver.llama.model import LlamaDriver, LlamaModel
from edgeagent.driver.llama.native import physical_cores
from edgeagent.driver.llama.prompt import prompt_tokens
from edgeagent.driver.llama.template import Template, builtin_template
from edgeagent.models.gguf import check_gguf
from edgeagent.models.store import find
from edgeagent.request.meaning import Meaning

WINDOW_TOKENS = 4096
CALL_TOKENS_MAX = 200


BEFORE = "Hello, who are you?"
"""What a warm engine was asked before: no call is right for it."""

NOW_SAID = datetime.fromisoformat(NOW)


class Subject(Protocol):
    """One loaded model that is asked one case after another."""

    def begin(self, case: Case) -> None:
        """What happens before the request comes: not part of a case's time."""

    def ask(self, case: Case) -> Answered:
        """What is answered to the request, and what that cost."""

    def agreed(self, case: Case, question: str) -> tuple[ToolCall, ...]:
        """The calls that are made when a person says yes to the question that came for an answer."""

    def close(self) -> None:
        """Free the model."""


def file_of(model: str) -> Path:
    """The file of a model that is given by name or path. Raises EdgeAgentError."""
    return Path(model) if model.endswith(".gguf") else find(model)


def _spoken(file: Path) -> tuple[Template, Family]:
    """The template and the dialect that a running agent would have with this file."""
    about = check_gguf(file)
    template = Template(about.chat_template or builtin_template(about.architecture))
    template.start()
    return template, dialect_called(dialect_for(about.chat_template or ""))


class Ours:
    """Our model driver; with `chooses=False` the model spells the tool's name."""

    def __init__(
        self,
        model: str | Path,
        *,
        threads: int | None,
        chooses: bool = True,
        warm: bool = False,
        meaning: Meaning | None = None,
    ) -> None:
        """`meaning` is the embedder that compares tools with a request, if one does."""
        path = file_of(str(model))
        self._model = LlamaModel.load(path, n_ctx=WINDOW_TOKENS, threads=threads, meaning=meaning)
        self._dialect = dialect_called(dialect_for(self._model.engine.template or ""))
        self._chooses, self._warm = chooses, warm
        self._driver: LlamaDriver | None = None
        self._loaded_agent: Agent | None = None
        self._ask, self._text = 0, ""
        self._cancel: Callable[[], None] = lambda: None

    def begin(self, case: Case) -> None:
        """Forget the case before; when warm, be loaded and asked something else.

        An agent that gets many requests (`Case.asked`) is warm and stays so from one to the next.
        """
        if case.asked and self._driver and case.agent is self._loaded_agent:
            return
        self._model.forget()
        self._driver, self._loaded_agent = None, case.agent
        if self._warm or case.asked:
            self._driver = self._loaded(case.agent)
            self._answer(self._driver, case.agent, (Message("user", BEFORE),))

    def event(self, case: Case) -> Event:
        """The driver's event for the request."""
        return self._answer(self._driver or self._loaded(case.agent), case.agent, messages_of(case))

    def agreed(self, case: Case, question: str) -> tuple[ToolCall, ...]:
        """The calls after a yes."""
        driver = self._driver or self._loaded(case.agent)
        return answered(self._answer(driver, case.agent, with_yes(case, question)), self._dialect).calls

    def _loaded(self, agent: Agent) -> LlamaDriver:
        speaking = dataclasses.replace(agent, dialect=self._dialect)
        driver = LlamaDriver(self._model, speaking, chooses=self._chooses, on_text=self._on_text)
        driver.prepared.clock = lambda: NOW_SAID
        return driver

    def _answer(self, driver: LlamaDriver, agent: Agent, said: tuple[Message, ...]) -> Event:
        self._ask += 1
        self._text, self._cancel = "", partial(driver.cancel, self._ask)
        return driver.answer(AskModel(self._ask, said, agent.tool_names, "either", CALL_TOKENS_MAX, 0, 1))

    def _on_text(self, piece: str) -> None:
        """Cancel where words begin and no call can follow."""
        self._text += piece
        before = self._dialect.frame.before
        if not self._dialect.decides and not self._text.startswith(before[: len(self._text)]):
            self._cancel()

    def ask(self, case: Case) -> Answered:
        """The event, read as a step reads it."""
        return answered(self.event(case), self._dialect)

    def close(self) -> None:
        """Free the model."""
        self._model.close()


def answered(event: Event, dialect: Family) -> Answered:
    """What an event says."""
    if isinstance(event, ModelFailed):
        return Answered((), event.message, failed=event.message, margin=-math.inf)
    assert isinstance(event, ModelAnswered)
    reading = dialect.read(event.text)
    calls = reading.calls if isinstance(reading, Calls) else ()
    return Answered(
        calls,
        event.text,
        margin=_margin(event, bool(calls)),
        best=_best(event),
        confidence=event.confidence,
        tokens=event.usage.completion,
        prompt_tokens=event.usage.prompt,
    )


def _best(event: ModelAnswered) -> str:
    """The tool that fits best, whether it was called or not; nothing where several do, or nobody told."""
    told = {name: score for name, score in event.scores if name not in (CALL_ODDS, CALL_ODDS_NEEDED)}
    best = [name for name, score in told.items() if score == max(told.values())]
    return best[0] if len(best) == 1 else ""


def _margin(event: ModelAnswered, called: bool) -> float | None:
    """By how much a call was meant: the odds over those needed. What was not called all the same, a rule refused."""
    scores = dict(event.scores)
    if CALL_ODDS not in scores:
        return None if called else -math.inf
    margin = scores[CALL_ODDS] - scores.get(CALL_ODDS_NEEDED, 0.0)
    return -math.inf if margin >= 0 and not called else margin


class _Llama:
    """The high-level class of llama-cpp-python, with our prompt."""

    def __init__(self, model: str | Path, *, threads: int | None, warm: bool = False) -> None:
        from llama_cpp import Llama

        path = file_of(str(model))
        count = threads or physical_cores()
        self._llama: Any = Llama(str(path), n_ctx=WINDOW_TOKENS, n_threads=count, n_threads_batch=count, verbose=False)
        self._template, self._dialect = _spoken(path)
        self._warm = warm

    def begin(self, case: Case) -> None:
        """Forget the case before; when warm, read the tools and answer something else."""
        self._llama.reset()
        if self._warm:
            asked = self._asked(case.agent, (Message("user", BEFORE),))
            self._llama.create_completion(**asked | {"max_tokens": 1})

    def agreed(self, case: Case, question: str) -> tuple[ToolCall, ...]:
        """No calls: these engines ask nothing."""
        return ()

    def _asked(self, agent: Agent, said: tuple[Message, ...]) -> dict[str, Any]:
        """What both ways to write are called with."""
        return {"prompt": self._prompt(agent, said), "max_tokens": CALL_TOKENS_MAX, "temperature": 0.0}

    def _prompt(self, agent: Agent, said: tuple[Message, ...]) -> list[int]:
        """The very tokens that our driver puts to the model."""
        chat = [{"role": "system", "content": self._dialect.system_text(agent.system, agent.tools)}]
        chat += self._dialect.chat(list(said))
        return prompt_tokens(chat, self._template, self)

    @property
    def bos_token(self) -> str:
        """The text of the token that begins every prompt."""
        return self._text(self._llama._model.token_bos())

    @property
    def eos_token(self) -> str:
        """The text of the token that ends a text."""
        return self._text(self._llama._model.token_eos())

    @property
    def adds_bos(self) -> bool:
        """Whether this model wants its first token to be the one that begins a text."""
        return bool(self._llama._model.add_bos_token())

    def _text(self, token: int) -> str:
        return str(self._llama._model.token_get_text(token)) if token >= 0 else ""

    def tokenize(self, text: str, *, special: bool, bos: bool) -> list[int]:
        """The text's tokens; with `special`, markup in it becomes markup."""
        return list(self._llama.tokenize(text.encode(), add_bos=bos, special=special))

    def detokenize(self, tokens: Sequence[int]) -> bytes:
        """The bytes that the tokens spell."""
        return bytes(self._llama.detokenize(list(tokens)))

    def close(self) -> None:
        """Free the model."""
        self._template.close()
        self._llama.close()


class LlamaCppPython(_Llama):
    """llama-cpp-python with `grammar=` made from the JSON schema of a call: it always writes one."""

    def ask(self, case: Case) -> Answered:
        """The call that it writes; none that is cut off by the limit."""
        from llama_cpp.llama_grammar import LlamaGrammar

        asked = self._asked(case.agent, messages_of(case))
        try:
            grammar = LlamaGrammar.from_json_schema(json.dumps(call_schema(case.agent)), verbose=False)
            done = self._llama.create_completion(**asked, grammar=grammar)
            text, tokens = str(done["choices"][0]["text"]), done["usage"]["completion_tokens"]
        except (RuntimeError, ValueError, AssertionError, KeyError, TypeError) as error:
            text, tokens = f"{type(error).__name__}: {error}", 0  # A schema that it cannot take.
        call = first_call(text, case.agent.tool_names)
        failed = "" if call else f"no whole call: {text[:200]}"
        return Answered((call,) if call else (), text, failed, tokens=tokens, prompt_tokens=len(asked["prompt"]))


class Unconstrained(_Llama):
    """The model writes as it likes until there is a call; the first JSON that is one counts. It may answer in words."""

    def ask(self, case: Case) -> Answered:
        """The first call in what it writes."""
        asked, pieces, call = self._asked(case.agent, messages_of(case)), [], None
        for chunk in self._llama.create_completion(**asked, stream=True):
            pieces.append(str(chunk["choices"][0]["text"]))
            if "}" in pieces[-1] and (call := first_call("".join(pieces), case.agent.tool_names)):
                break
        calls, prompt = (call,) if call else (), len(asked["prompt"])
        return Answered(calls, "".join(pieces), tokens=len(pieces), prompt_tokens=prompt)


ENGINES: Mapping[str, Callable[..., Subject]] = {
    "ours": Ours,
    "spelling": lambda *given, **options: Ours(*given, **options, chooses=False),
    "llama-cpp-python": LlamaCppPython,
    "unconstrained": Unconstrained,
}


OURS = frozenset(("ours", "spelling"))
"""The engines that an embedder can help."""


def call_schema(agent: Agent) -> dict[str, Any]:
    """The JSON schema of a call of one of the agent's tools."""
    options = []
    for tool in agent.tools:
        properties = {"name": {"const": tool.name}, "arguments": tool.parameters.schema}
        options.append(
            {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
        )
    return {"anyOf": options} if len(options) > 1 else options[0]


_NAME_KEYS, _ARGUMENT_KEYS = ("name", "function", "tool"), ("arguments", "parameters", "args")


def first_call(text: str, tools: tuple[str, ...]) -> ToolCall | None:
    """The first JSON object in the text that calls one of the tools, under whichever of the usual keys."""
    for start in re.finditer(r"\{", text):
        try:
            value, _ = json.JSONDecoder().raw_decode(text, start.start())
        except (ValueError, RecursionError):
            continue
        name = next((value[key] for key in _NAME_KEYS if isinstance(value.get(key), str)), "")
        arguments = next((value[key] for key in _ARGUMENT_KEYS if isinstance(value.get(key), dict)), None)
        if name in tools and arguments is not None:
            return ToolCall(name, arguments)
    return None

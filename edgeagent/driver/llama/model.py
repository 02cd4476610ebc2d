"""The model as a driver: AskModel in, exactly one ModelAnswered or ModelFailed out. One thread owns the engine.

Call or words? Which tool? Small models pick words where a call is wanted, because words are likelier after any prompt,
and of the tools' names nearly always the first-listed. So it is planned for them (`request.plan`): what speaks for
a call and against it is weighed before anything is written, and the grammar is then that of words, or of the chosen
tool alone. Its name is forced, and the model writes the arguments, those that the request names among what it names.
A model whose family writes calls of its own decides as it writes: words are free until the dialect's trigger, and only
a call can follow it.

A request that forbids something, or leaves a required argument open, is answered without the model: no odds overrule
that.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import queue
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from edgeagent.codec.dialects.family import Family
from edgeagent.core.agent import Agent
from edgeagent.core.effects import AskModel, Effect
from edgeagent.core.events import Event, ModelAnswered, ModelFailed
from edgeagent.core.from_user import Narrowed
from edgeagent.core.values import Usage
from edgeagent.driver.base import Post
from edgeagent.driver.llama.constraint import Compiled, Grammars, check_calls
from edgeagent.driver.llama.decode import Generation, OnText, generate
from edgeagent.driver.llama.engine import Engine, Halt, Progress, count_shared
from edgeagent.driver.llama.judge import SEQUENCES, ModelJudge, TextScorer
from edgeagent.driver.llama.kv import TEXTS_BYTES_MAX, TEXTS_FOLDER, KvStore, SavedMemory, WarmShelf, fingerprint
from edgeagent.driver.llama.prompt import Words, pack_ids, prompt_tokens
from edgeagent.driver.llama.sampling import GREEDY, Sampler, Seeded
from edgeagent.driver.llama.template import Template, builtin_template
from edgeagent.driver.model import Warm
from edgeagent.errors import EdgeAgentError, GrammarError, ModelError
from edgeagent.grammar.calls import GrammarEngine, calls_of, grammar_of
from edgeagent.grammar.llg import Answer
from edgeagent.request.calibration_weights import digest_of, fitted_for
from edgeagent.request.call_odds import probability, sureness
from edgeagent.request.plan import Plan, PlannedCall, plan, signs_of
from edgeagent.request.tools import Tools

LINE_TOKENS_MAX = 64
"""The most a small model may write about a result: two sentences."""

ODDS_SPELLED = -6.0
"""Log-odds of beginning a call from which on one is written, where the driver does not choose."""


class LlamaDriver:
    """Owns one loaded model. Make it with `LlamaDriver.load`."""

    def __init__(
        self,
        engine: Engine,
        template: Template,
        grammars: Grammars,
        agent: Agent,
        *,
        temperature: float = 0.0,
        chooses: bool = True,
        on_text: OnText | None = None,
        on_progress: Progress | None = None,
    ) -> None:
        """`chooses=False`: a model without a format of its own spells the tool's name, for comparison."""
        assert isinstance(agent.dialect, Family), "the wiring gives every running agent its dialect"
        self._engine, self._template, self._grammars, self._agent = engine, template, grammars, agent
        self._dialect = agent.dialect
        self._temperature = temperature
        self._on_text, self._on_progress = on_text, on_progress
        self._systems = {path: self._dialect.system_text(a.system, a.tools) for path, a in agent.by_path.items()}
        self._system = self._systems[""]
        self._prefixes: dict[str, list[int]] = {}
        self._tools = {path: Tools.of(each.tools) for path, each in agent.by_path.items()}
        self._scorer = None if self._dialect.decides or not chooses else self._scorer_of(agent)
        self._fitted = fitted_for(engine.model_digest)
        self._needed: Mapping[str, float] = {}
        self.sureness: tuple[Mapping[str, float], ...] = ()
        """What says how sure the calls of the last answer are."""
        self._memory: SavedMemory | None = None
        self._cancelled: set[int] = set()
        self._asks: queue.Queue[tuple[AskModel, Post] | None] = queue.Queue()
        self._thread = threading.Thread(target=self._work, name="model", daemon=True)
        self._thread.start()

    @classmethod
    def load(
        cls,
        path: Path,
        agent: Agent,
        *,
        n_ctx: int = 2048,
        threads: int | None = None,
        engine: Literal["auto", "llguidance", "gbnf"] = "auto",
        temperature: float = 0.0,
        on_text: OnText | None = None,
        on_progress: Progress | None = None,
        verbose: bool = False,
        digest: str | None = None,
    ) -> LlamaDriver:
        """Load the model; compile the agent's grammars with its vocabulary; render its template once.

        Raises ModelError or GrammarError, so that nothing of it can fail later for a reason that was there before.
        """
        # Those beside the first are for judging texts, which a model that writes its own calls does not need.
        sequences = 1 if isinstance(agent.dialect, Family) and agent.dialect.decides else SEQUENCES
        loaded = Engine.load(path, n_ctx=n_ctx, threads=threads, verbose=verbose, sequences=sequences, digest=digest)
        template = Template(loaded.template or builtin_template(loaded.metadata("general.architecture") or ""))
        template.start()
        kind: GrammarEngine | None = None if engine == "auto" else engine
        options: dict[str, Any] = {"temperature": temperature, "on_text": on_text, "on_progress": on_progress}
        driver = cls(loaded, template, Grammars(loaded, kind), agent, **options)
        try:
            driver.prove()
        except EdgeAgentError:
            driver.close()
            raise
        return driver

    def prove(self) -> None:
        """Do once, without the model, what every ask does. Raises ModelError or GrammarError."""
        for path, agent in self._agent.by_path.items():
            fixed = len(self._prefix(path))
            if fixed >= self._engine.n_ctx:
                raise ModelError(
                    f"system text and tools of agent {agent.name} take {fixed} tokens, and the window has "
                    f"{self._engine.n_ctx}: give --context-tokens, or fewer tools"
                )
            if agent.tools:
                self._grammar(agent.tool_names, (), "allowed" if self._dialect.decides else "never")

    def describe(self) -> str:
        """What was loaded, in a sentence."""
        fixed = len(self._prefix(""))
        return (
            f"{self._engine.path.name} loads; grammars by {self._grammars.kind}; system text and tools take {fixed} of "
            f"{self._engine.n_ctx} tokens"
        )

    @property
    def warm(self) -> Warm | None:
        """The keeping of memory."""
        return self

    @property
    def chooses(self) -> bool:
        """Whether the driver decides for the model if a call is made, and which."""
        return self._scorer is not None

    @property
    def model_name(self) -> str:
        """The name of the model's file."""
        return self._engine.path.name

    @property
    def model_digest(self) -> str:
        """SHA-256 of the model's file."""
        return self._engine.model_digest

    @property
    def weights_digest(self) -> str:
        """What tells the weights of evidence from others."""
        return digest_of(self._fitted)

    def require_odds(self, odds: Mapping[str, float]) -> None:
        """Make calls only from these log-odds on, by the path of the (sub-)agent. Before the first ask."""
        self._needed = dict(odds)

    def signs(self, request: str, path: str = "") -> dict[str, float]:
        """What says that a request, as a session's first words, wants a call or none. Only after `stop`."""
        assert not self._thread.is_alive() and self._scorer is not None
        return signs_of(request, self._tools[path], ModelJudge(self._scorer))

    def call_odds(self, request: str, path: str = "") -> float:
        """The log-odds that follow from these."""
        return self._fitted.call.weights.log_odds(self.signs(request, path))

    def keep_warm(self, session_folder: Path, prefix_folder: Path, secret: bytes) -> int:
        """Restore what the session or else the agent left in memory, and the tools' texts; save them again on `close`.

        Call it before the first ask. Returns how many tokens of the conversation need not be evaluated.
        """
        siblings = (session_folder.parent.parent, f"*/{session_folder.name}/*.kv")
        session = KvStore(session_folder, secret, siblings=siblings)
        beside = None
        if self._scorer is not None and self._scorer.held:
            texts = KvStore(prefix_folder / TEXTS_FOLDER, secret, folder_bytes_max=TEXTS_BYTES_MAX)
            beside = WarmShelf(texts, self._saved_name(str(self._scorer.held)), self._scorer.shelf)
        self._memory = SavedMemory(session, KvStore(prefix_folder, secret), self._saved_name(self._system), beside)
        return self._memory.restore(self._engine)

    def _saved_name(self, text: str) -> str:
        """The name under which the memory of a text is saved: no other text, and no other engine, has it."""
        return hashlib.sha256(f"{text} {fingerprint(self._engine)}".encode()).hexdigest()[:32]

    def submit(self, effect: Effect, post: Post) -> None:
        """Queue the ask; its one event follows."""
        assert isinstance(effect, AskModel), "the wiring sends only model calls here"
        self._asks.put((effect, post))

    def cancel(self, effect_id: int) -> None:
        """Stop writing within a token, if it is this ask."""
        self._cancelled.add(effect_id)

    def answer(self, ask: AskModel) -> Event:
        """The event that answers the ask, from this thread. Only after `stop`: one thread at a time owns the engine."""
        assert not self._thread.is_alive(), "the driver's own thread answers"
        return self._answer(ask)

    def stop(self) -> None:
        """End the thread and leave the model loaded, for another agent. Nothing is posted afterwards."""
        self._asks.put(None)
        self._thread.join()

    def close(self) -> None:
        """End the thread, the template's process and the model. Nothing is posted afterwards."""
        self.stop()
        self._grammars.forget()  # Nothing is written any more, and saving the memory needs room.
        if self._memory is not None:
            self._memory.save(self._engine, self._prefix_tokens)
        self._template.close()
        self._engine.close()

    # -- the worker ------------------------------------------------------------------------------------------------

    def _work(self) -> None:
        while (item := self._asks.get()) is not None:
            ask, post = item
            post(self._answer(ask))
            self._cancelled.discard(ask.effect_id)

    def _answer(self, ask: AskModel) -> Event:
        began = time.perf_counter_ns()
        try:
            return self._generated(ask, began)
        except EdgeAgentError as error:
            return ModelFailed(0, ask.effect_id, "engine", str(error))
        # llama.cpp or a library below it: whatever it is, it ends this ask and not the session.
        except Exception as error:
            return ModelFailed(0, ask.effect_id, "engine", f"{type(error).__name__}: {error}")

    def _generated(self, ask: AskModel, began: int) -> Event:
        deadline = time.monotonic() + ask.timeout_ms / 1000 if ask.timeout_ms else None
        chat = self._dialect.chat(ask.messages, closing=ask.closing)
        text = self._systems[ask.agent]
        system = [{"role": "system", "content": text}] if text else []
        words = [Words(m["content"]) for m in system]
        words += [Words(c["content"], m.token_ids) for c, m in zip(chat, ask.messages, strict=True)]
        prompt = self._prompt(words, [*system, *chat])
        if len(prompt) + 1 >= self._engine.n_ctx:
            text = f"the prompt takes {len(prompt)} tokens, and the window has {self._engine.n_ctx}"
            return ModelFailed(0, ask.effect_id, "context_full", text, len(prompt))
        if ask.prompt_tokens_max and len(prompt) > ask.prompt_tokens_max:
            text = f"the prompt takes {len(prompt)} tokens, and the budget has {ask.prompt_tokens_max} left"
            return ModelFailed(0, ask.effect_id, "context_full", text, len(prompt))
        halt = self._halt(ask, deadline)
        if self._scorer is not None:
            self._scorer.hold(halt)
        reused = self._engine.align(prompt)
        answer, planned = self._decided(ask, prompt, halt)
        if planned.text:
            return self._said(ask, planned, len(prompt), reused, began)
        calls = planned.calls or (PlannedCall(ask.tools),)
        parts = self._written(ask, answer, calls, prompt, deadline)
        is_whole = parts[-1].complete and answer == "never" and self._scorer is not None
        told = [
            sureness(call.scores, part.shares) | dict(call.signs) | call.evidence.sure
            for call, part in zip(calls, parts, strict=False)
        ]
        self.sureness = tuple(told) if is_whole else ()
        written = self._as_list(parts) if len(parts) > 1 else parts[0]
        # A call that is forced from end to end needs no logits: its prompt waits for the next ask.
        evaluated = max(0, min(len(self._engine.kept()), len(prompt)) - reused)
        micros = (time.perf_counter_ns() - began) // 1000
        confidence = tuple(map(self._confidence, self.sureness))
        return _event(ask, written, evaluated, micros, planned, confidence)

    def _written(
        self, ask: AskModel, answer: Answer, calls: Sequence[PlannedCall], prompt: list[int], deadline: float | None
    ) -> list[Generation]:
        """What the model writes for each call, as if it were the only one; up to the first that does not end whole."""
        parts: list[Generation] = []
        left = ask.max_tokens
        for call in calls:
            written = generate(
                self._engine,
                prompt,
                grammar=self._planned_grammar(ask, answer, call),
                sampler=self._sampler(ask.seed),
                max_tokens=min(left, LINE_TOKENS_MAX) if self._is_last_line(ask, answer) else left,
                deadline_s=deadline,
                should_stop=lambda: ask.effect_id in self._cancelled,
                on_text=self._on_text if len(calls) == 1 else None,
                on_progress=self._on_progress,
                copied=request_in(ask),
                # llama.cpp's own grammars do not tell what they force, so that it would pass for the model's choice.
                tell_shares=answer == "never" and self._grammars.kind == "llguidance",
            )
            if not written.complete:
                return [written]
            parts.append(written)
            left -= len(written.token_ids)
        return parts

    def _confidence(self, sure: Mapping[str, float]) -> float:
        """How probable it is that a call is the right one."""
        return round(probability(self._fitted.right.weights.log_odds(sure)), 3)

    def _as_list(self, parts: Sequence[Generation]) -> Generation:
        """Several calls as one text: a list."""
        text = f"[{', '.join(part.text for part in parts)}]"
        if self._on_text is not None:
            self._on_text(text)
        ids = self._engine.tokenize(text, special=False, bos=False)
        sampled = sum(part.sampled for part in parts)
        return replace(parts[-1], text=text, token_ids=tuple(ids), sampled=sampled, forced=len(ids) - sampled)

    def _prompt(self, words: list[Words], chat: list[dict[str, str]]) -> list[int]:
        bos_token = self._engine.bos_token
        rendered = self._template.render(
            chat, add_generation_prompt=True, bos_token=bos_token, eos_token=self._engine.eos_token
        )
        begins = bool(bos_token) and rendered.startswith(bos_token)
        return prompt_tokens(rendered, words, self._engine, bos=self._engine.adds_bos and not begins)

    def _prefix(self, path: str) -> list[int]:
        """What each prompt of the agent begins with, whatever is said to it: its system text with the markup around it.

        Told from two prompts, since some templates put the system text into the user's first message.
        """
        found = self._prefixes.get(path)
        if found is None:
            one, other = (self._opened(path, words) for words in ("U?", "V?"))
            found = self._prefixes[path] = one[: count_shared(one, other)]
        return found

    def _opened(self, path: str, words: str) -> list[int]:
        """The prompt of an agent to which only these words were said."""
        text = self._systems[path]
        chat = [{"role": "system", "content": text}] if text else []
        chat.append({"role": "user", "content": words})
        return self._prompt([Words(each["content"]) for each in chat], chat)

    def _prefix_tokens(self) -> int:
        """How much of the memory is the same for every session of this agent; 0 if not all of that stands there."""
        prefix = self._prefix("")
        return len(prefix) if self._engine.kept()[: len(prefix)] == prefix else 0

    def _decided(self, ask: AskModel, prompt: list[int], halt: Halt) -> tuple[Answer, Plan]:
        """Whether calls are written, words, or what the model likes; and what was planned, if anything was."""
        is_call, no_plan = ask.choice == "call", Plan()
        if ask.choice == "answer" or not ask.tools:
            return "only", no_plan
        if self._dialect.decides:
            # Its family was taught when to call: free text until the trigger, a call after it.
            return "never" if is_call else "allowed", no_plan
        if ask.messages[-1].role == "tool":
            # Models without a format of their own copy the last call for ever, if they may.
            return "never" if is_call else "only", no_plan
        if self._scorer is None:
            return "never" if is_call or self._begins_call(prompt, halt) else "only", no_plan
        self._hold_prefix(ask, prompt, halt)
        found = plan(
            request_in(ask),
            self._tools[ask.agent].only(ask.tools),
            ModelJudge(self._scorer, prompt, halt),
            fitted=self._fitted,
            needed=self._needed.get(ask.agent),
            is_open=not is_call,
        )
        return "never" if found.calls else "only", found

    def _scorer_of(self, agent: Agent) -> TextScorer:
        """Scores requests behind the texts of all tools of the family."""
        texts = Tools.of(agent.family.values()).texts(agent.family)
        return TextScorer(self._engine, self._template, self._dialect.frame, texts)

    def _hold_prefix(self, ask: AskModel, prompt: list[int], halt: Halt) -> None:
        """Evaluate what is the same for every session of the agent, before anything is judged beside it.

        Logits depend in their last digits on where in the memory a text stands. So it stands behind the tools' texts
        and in front of all else, in a new process as in one that found it kept, and a seed draws the same text in both.
        """
        shared = count_shared(self._prefix(ask.agent), prompt)
        if len(self._engine.kept()) < shared:
            self._engine.prefill(prompt[:shared], halt=halt, on_progress=self._on_progress)

    def _halt(self, ask: AskModel, deadline: float | None) -> Halt:
        def halt() -> Literal["time", "cancelled"] | None:
            if ask.effect_id in self._cancelled:
                return "cancelled"
            return "time" if deadline is not None and time.monotonic() >= deadline else None

        return halt

    def _said(self, ask: AskModel, planned: Plan, prompt: int, reused: int, began: int) -> Event:
        """The answer that was written without the model."""
        if self._on_text is not None:
            self._on_text(planned.text)
        ids = self._engine.tokenize(planned.text, special=False, bos=False)
        evaluated = max(0, len(self._engine.kept()) - reused)
        micros = (time.perf_counter_ns() - began) // 1000
        usage = Usage(prompt=prompt, evaluated=evaluated, completion=len(ids), forced=len(ids), micros=micros)
        return ModelAnswered(0, ask.effect_id, planned.text, "end", usage, pack_ids(ids), scores=planned.scores)

    def _planned_grammar(self, ask: AskModel, answer: Answer, call: PlannedCall) -> Compiled:
        evidence = call.evidence
        if evidence.narrowed:
            with contextlib.suppress(GrammarError):  # What is said and what the rules allow may exclude each other.
                narrowed = (*ask.narrowed, *evidence.narrowed)
                return self._grammar(call.tools, narrowed, answer, given=evidence.given, keep=False)
        if self._is_last_line(ask, answer):
            answer = "line"
        return self._grammar(call.tools, ask.narrowed, answer)

    def _is_last_line(self, ask: AskModel, decision: Answer) -> bool:
        """Whether this is a small model's answer to a result: what it adds to one line is that line again."""
        return not self._dialect.decides and ask.messages[-1].role == "tool" and decision == "only"

    def _begins_call(self, prompt: list[int], halt: Halt) -> bool:
        """Whether the model would begin a call by itself, given that words come easier to it."""
        if self._engine.prefill(prompt, halt=halt, on_progress=self._on_progress).outcome != "done":
            return False  # generate finds the same reason at once, and says it.
        logits = self._engine.logits().astype(np.float64)
        shares = np.exp(logits - logits.max())
        call = float(shares[self._call_ids].sum() / shares.sum())
        return math.log(max(call, 1e-12)) - math.log(max(1 - call, 1e-12)) >= ODDS_SPELLED

    @cached_property
    def _call_ids(self) -> list[int]:
        """The tokens that a call may begin with."""
        first = self._dialect.frame.before[:1].encode()
        pieces = self._engine.vocabulary.pieces()
        return [token for token, piece in enumerate(pieces) if piece.lstrip().startswith(first)]

    def _grammar(
        self,
        tools: tuple[str, ...],
        narrowed: tuple[Narrowed, ...],
        answer: Answer,
        *,
        given: tuple[str, ...] = (),
        keep: bool = True,
    ) -> Compiled:
        """The compiled grammar of these tools; kept, unless it is one request's own, by the digest of its text."""
        calls = calls_of([self._agent.family[name] for name in tools], narrowed, given)
        text = grammar_of(
            calls, self._dialect.frame, answer=answer, engine=self._grammars.kind, specials=self._specials
        )
        try:
            return self._grammars.compile(text, keep=keep)
        except GrammarError:
            check_calls(calls)  # Names the tool and the field.
            raise

    @cached_property
    def _specials(self) -> dict[str, int]:
        """The parts of a call that this vocabulary holds as one special token."""
        frame, vocabulary = self._dialect.frame, self._engine.vocabulary
        around = f"{frame.before} {frame.between} {frame.after} {frame.string_mark}"
        pieces = ((vocabulary.piece(token).decode("utf-8", "replace"), token) for token in vocabulary.control())
        return {piece: token for piece, token in pieces if piece and piece in around}

    def _sampler(self, seed: int) -> Sampler:
        return Seeded(seed, temperature=self._temperature) if self._temperature else GREEDY


def request_in(ask: AskModel) -> str:
    """What the user said last, or what came from outside after that."""
    return next((m.text for m in reversed(ask.messages) if m.role in ("user", "heard", "note")), "")


def _event(
    ask: AskModel,
    written: Generation,
    evaluated: int,
    micros: int,
    planned: Plan,
    confidence: tuple[float, ...],
) -> Event:
    if written.stop == "context_full" and not written.token_ids:
        return ModelFailed(0, ask.effect_id, "context_full", "no room is left for an answer", written.prompt)
    if not written.complete and not written.token_ids and written.stop == "limit":
        return ModelFailed(0, ask.effect_id, "engine", f"no call fits into the {ask.max_tokens} tokens that are left")
    usage = Usage(
        prompt=written.prompt,
        evaluated=evaluated,
        completion=len(written.token_ids),
        forced=written.forced,
        micros=micros,
    )
    stop = "limit" if written.stop == "context_full" else written.stop
    ids = pack_ids(written.token_ids)
    told = (written.closed_early, planned.scores, confidence, planned.why)
    return ModelAnswered(0, ask.effect_id, written.text, stop, usage, ids, *told)

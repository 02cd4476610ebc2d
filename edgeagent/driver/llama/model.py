"""Model driver: AskModel in, exactly one ModelAnswered or ModelFailed out; one LlamaModel, a LlamaDriver each session.

Call or words? Which tool? Small models pick words where a call is wanted, because words are likelier after any prompt,
and of the tools' names nearly always the first-listed. So it is planned for them (`request.plan`): what speaks for
a call and against it is weighed before anything is written, and the grammar is then that of words, or of the chosen
tool alone. Its name is forced, and the model writes the arguments, those that the request names among what it names. A
model whose family writes calls of its own decides as it writes: words are free until the dialect's trigger, and only a
call can follow it.

A request that forbids something, or leaves a required argument open, is answered without the model: no odds overrule
that.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Literal, Unpack

import numpy as np

from edgeagent.codec.dialects.family import Family
from edgeagent.core.agent import Agent
from edgeagent.core.effects import AskModel, Effect
from edgeagent.core.events import Event, ModelAnswered, ModelFailed
from edgeagent.core.values import Usage
from edgeagent.driver.base import Post
from edgeagent.driver.llama.answered import event_of
from edgeagent.driver.llama.decode import Generation, OnText, Wanted, generate
from edgeagent.driver.llama.engine import Halt, Progress
from edgeagent.driver.llama.fair import Job
from edgeagent.driver.llama.grammars import Compiled
from edgeagent.driver.llama.hearing import Asking, Hearing
from edgeagent.driver.llama.judge import ModelJudge
from edgeagent.driver.llama.kv import TEXTS_FOLDER, KvStore, SavedMemory, WarmShelf, fingerprint
from edgeagent.driver.llama.loaded import Loaded, Options
from edgeagent.driver.llama.prompt import pack_ids
from edgeagent.driver.llama.sampling import TOP_P, sampler_of
from edgeagent.driver.model import Warm, Weighing
from edgeagent.errors import EdgeAgentError, GrammarError
from edgeagent.grammar.frame import Answer
from edgeagent.request.calibration_weights import digest_of, fitted_for
from edgeagent.request.call_odds import probability, sureness
from edgeagent.request.more import reading_on
from edgeagent.request.plan import plan, signs_of
from edgeagent.request.planned import Plan, PlannedCall
from edgeagent.request.said import Spoken
from edgeagent.request.telling import before_in, or_cannot, request_in, told_in
from edgeagent.trace.disk import DISK, Disk

LINE_TOKENS_MAX = 64
"""The most a small model may write about a result: two sentences."""

ODDS_SPELLED = -6.0
"""Log-odds of beginning a call from which on one is written, where the driver does not choose."""

_numbers = itertools.count(1)


class LlamaModel(Loaded):
    """A loaded model. Make it with `LlamaModel.load`, and a driver for each session with `driver`."""

    def driver(
        self,
        agent: Agent,
        *,
        session: str = "",
        temperature: float = 0.0,
        owns: bool = False,
        **more: Unpack[Asking],
    ) -> LlamaDriver:
        """A driver for one session of an agent; closing it leaves the model loaded.

        Compiles the agent's grammars and renders its template, if no session of it did before. `session` is its name:
        drivers of the same name wait in one place. With `owns` the model is closed with the driver. Raises ModelError
        or GrammarError, so that nothing of it can fail later for a reason that was there before.
        """
        made = LlamaDriver(self, agent, session=session, temperature=temperature, **more)
        self.call(made.prepared.prove)
        self.expect(made.session)
        made._owns = owns
        return made


class LlamaDriver:
    """Answers the asks of one session."""

    def __init__(
        self,
        model: Loaded,
        agent: Agent,
        *,
        session: str = "",
        temperature: float = 0.0,
        top_p: float = TOP_P,
        chooses: bool = True,
        **hearing: Unpack[Hearing],
    ) -> None:
        """`chooses=False`: a model without a format of its own spells the tool's name, for comparison."""
        self.session = session or f"driver {next(_numbers)}"
        self.prepared = model.call(partial(model.prepare, agent, chooses=chooses))
        self.saved: SavedMemory | None = None
        self._model, self._engine = model, model.engine
        self._temperature, self._top_p, self._hearing = temperature, top_p, hearing
        self._on_text = hearing.get("on_text")
        self._fitted = fitted_for(model.engine.model_digest)
        self._needed: Mapping[str, float] = {}
        self._memory: SavedMemory | None = None
        self._cancelled: set[int] = set()
        self._is_closed = self._owns = False
        self.sureness: tuple[Mapping[str, float], ...] = ()
        """What says how sure the calls of the last answer are."""

    @classmethod
    def load(
        cls,
        path: Path,
        agent: Agent,
        *,
        temperature: float = 0.0,
        on_text: OnText | None = None,
        on_progress: Progress | None = None,
        **options: Unpack[Options],
    ) -> LlamaDriver:
        """Load a model for one session of one agent; the driver closes it. Raises what `LlamaModel.driver` does."""
        if isinstance(agent.dialect, Family) and agent.dialect.decides:
            options.setdefault("sequences", 1)  # Those beside the first are for judging texts.
        model = LlamaModel.load(path, **options)
        try:
            return model.driver(agent, temperature=temperature, owns=True, on_text=on_text, on_progress=on_progress)
        except EdgeAgentError:
            model.close()
            raise

    def describe(self) -> str:
        """What was loaded, in a sentence."""
        fixed, engine = len(self.prepared.prefix("")), self._engine
        return (
            f"{engine.path.name} loads; grammars by {self._model.grammars.kind}; system text and tools take {fixed} of "
            f"{engine.n_ctx} tokens"
        )

    # -- what else it can ------------------------------------------------------------------------------------------

    @property
    def warm(self) -> Warm | None:
        """The keeping of memory."""
        return self

    @property
    def chooses(self) -> bool:
        """Whether it is decided for the model if a call is made, and which."""
        return self.prepared.scorer is not None

    @property
    def model_name(self) -> str:
        """The name of the model's file."""
        return self._engine.path.name

    @property
    def model_digest(self) -> str:
        """SHA-256 of the model's file, and of the template that was given in place of its own."""
        model, given = self._engine.model_digest, self._engine.given_template
        return model if given is None else hashlib.sha256(f"{model} {given}".encode()).hexdigest()

    @property
    def weights_digest(self) -> str:
        """What tells the weights of evidence from others."""
        return digest_of(self._fitted)

    def require_odds(self, odds: Mapping[str, float]) -> None:
        """Make calls only from these log-odds on, by the path of the (sub-)agent. Before the first ask."""
        self._needed = dict(odds)

    def signs(self, request: str, path: str = "") -> dict[str, float]:
        """What says that a request, as a session's first words, wants a call or none."""

        def told() -> dict[str, float]:
            self._model.enter(self)
            assert self.prepared.scorer is not None, "who asks has looked at `chooses`"
            return signs_of(request, self.prepared.tools[path], ModelJudge(self.prepared.scorer))

        return self._model.call(told)

    def call_odds(self, request: str, path: str = "") -> float:
        """The log-odds that follow from these."""
        return self._fitted.call.weights.log_odds(self.signs(request, path))

    def keep_warm(self, session_folder: Path, prefix_folder: Path, secret: bytes, disk: Disk = DISK) -> None:
        """At the first ask restore what the session, or else its agent, left; on `close` leave it there again."""
        scorer, beside = self.prepared.scorer, None
        if scorer is not None and scorer.held:
            texts = KvStore(prefix_folder / TEXTS_FOLDER, secret, disk)
            beside = WarmShelf(texts, self._saved_name(str(scorer.held)), scorer.shelf)
        name = self._saved_name(self.prepared.systems[""])
        session, prefix = KvStore(session_folder, secret, disk), KvStore(prefix_folder, secret, disk)
        self.saved = self._memory = SavedMemory(session, prefix, name, beside)

    def _saved_name(self, text: str) -> str:
        """The name under which the memory of a text is saved: no other text, and no other engine, has it."""
        return hashlib.sha256(f"{text} {fingerprint(self._engine)}".encode()).hexdigest()[:32]

    def wake(self) -> int:
        """Have in memory what the session left, as its next ask would; return how many tokens are there."""

        def woken() -> int:
            self._model.enter(self)
            return len(self._engine.kept())

        return self._model.call(woken)

    # -- a driver --------------------------------------------------------------------------------------------------

    def submit(self, effect: Effect, post: Post) -> None:
        """Let the ask wait for its turn; its one event follows, or at once where no more can wait."""
        assert isinstance(effect, AskModel), "the wiring sends only model calls here"
        deadline = _deadline(effect)

        def work() -> None:
            event = self._answer(effect, deadline)
            self._cancelled.discard(effect.effect_id)
            if not self._is_closed:
                post(event)

        def instead() -> None:
            self._cancelled.discard(effect.effect_id)
            post(ModelAnswered(0, effect.effect_id, "", "cancelled", Usage()))

        on_waiting = self._hearing.get("on_waiting")
        refused = self._model.ask(Job(work, instead, self.session, effect.effect_id, on_waiting))
        if refused:
            post(ModelFailed(0, effect.effect_id, "unavailable", refused))

    def lend(self, ask: AskModel, do: Callable[[Weighing | None], None]) -> None:
        """Have something done while this model can weigh for an ask that another one answers."""
        deadline = _deadline(ask)

        def work() -> None:
            weighing = None
            with contextlib.suppress(EdgeAgentError):
                weighing = self._weighing(ask, self._halt(ask, deadline))
            self._cancelled.discard(ask.effect_id)
            do(weighing)

        def instead() -> None:
            self._cancelled.discard(ask.effect_id)
            do(None)

        if self._model.ask(Job(work, instead, self.session, ask.effect_id, self._hearing.get("on_waiting"))):
            do(None)

    def cancel(self, effect_id: int) -> None:
        """Stop writing within a token, if it is this ask."""
        self._cancelled.add(effect_id)
        for job in self._model.withdraw(self.session, effect_id):
            job.instead()

    def answer(self, ask: AskModel) -> Event:
        """The event that answers the ask, as soon as the model is free."""
        return self._model.call(partial(self._answer, ask, _deadline(ask)))

    def close(self) -> None:
        """Let go of the session, and of the model if it was loaded for it. Nothing is posted afterwards."""
        self._is_closed = True  # What is being written ends within a token.
        self._model.withdraw(self.session)
        self._model.call(self._leave)
        if self._owns:
            self._model.close()

    def _leave(self) -> None:
        if self._memory is not None and self._model.holds(self):
            self._model.make_room(self.session)
            self._model.enter(self)
            self._memory.save(self._engine, self.prepared.prefix_tokens)
        self._model.leave(self)

    # -- one answer ------------------------------------------------------------------------------------------------

    def _answer(self, ask: AskModel, deadline: float | None) -> Event:
        began = time.perf_counter_ns()
        try:
            self._model.enter(self)
            return self._generated(ask, began, self._halt(ask, deadline))
        except EdgeAgentError as error:
            return ModelFailed(0, ask.effect_id, "engine", str(error))
        # llama.cpp or a library below it: whatever it is, it ends this ask and not the session.
        except Exception as error:
            return ModelFailed(0, ask.effect_id, "engine", f"{type(error).__name__}: {error}")

    def _generated(self, ask: AskModel, began: int, halt: Halt) -> Event:
        prompt = self.prepared.prompt(ask)
        if full := self._too_long(ask, len(prompt)):
            return ModelFailed(0, ask.effect_id, "context_full", full, len(prompt))
        self.prepared.hold_texts(halt)
        reused = self._engine.align(prompt)
        answer, planned = self._decided(ask, prompt, halt)
        if planned.text:
            return self._said(ask, planned, len(prompt), reused, began)
        calls = planned.calls or (PlannedCall(ask.tools),)
        parts = self._written(ask, answer, calls, prompt, halt)
        is_whole = parts[-1].complete and answer == "never" and self.chooses
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
        return event_of(ask, written, evaluated, micros, planned, confidence)

    def _weighing(self, ask: AskModel, halt: Halt) -> Weighing | None:
        """This model as the judge of an ask, behind its conversation."""
        prepared, prompt = self.prepared, self.prepared.prompt(ask)
        if prepared.scorer is None or self._too_long(ask, len(prompt)):
            return None
        self._model.enter(self)
        prepared.hold_texts(halt)
        self._engine.align(prompt)
        prepared.hold_prefix(ask.agent, prompt, halt, self._hearing.get("on_progress"))
        return Weighing(ModelJudge(prepared.scorer, prompt, halt), self._fitted, self._needed.get(ask.agent))

    def _too_long(self, ask: AskModel, count: int) -> str:
        """Why a prompt of so many tokens is not evaluated, or ''."""
        if count + 1 >= self._engine.n_ctx:
            return f"the prompt takes {count} tokens, and the window has {self._engine.n_ctx}"
        if ask.prompt_tokens_max and count > ask.prompt_tokens_max:
            return f"the prompt takes {count} tokens, and the budget has {ask.prompt_tokens_max} left"
        return ""

    def _decided(self, ask: AskModel, prompt: list[int], halt: Halt) -> tuple[Answer, Plan]:
        """Whether calls are written, words, or what the model likes; and what the request was read to want, if so."""
        is_call, no_plan, prepared = ask.choice == "call", Plan(), self.prepared
        if ask.choice == "answer" or not ask.tools:
            return "only", no_plan
        if prepared.dialect.decides:
            return "never" if is_call else "allowed", no_plan  # Taught when to call: free text until the trigger.
        agent = prepared.agent.by_path[ask.agent]
        if ask.messages[-1].role == "tool":
            # Models without a format of their own copy the last call for ever, if they may.
            return "never" if is_call else "only", no_plan if is_call or agent.prose else Plan(text=told_in(ask, agent))
        tools = prepared.tools_of(ask)
        if prepared.scorer is None or not tools.by_name:
            return "never" if is_call or self._begins_call(prompt, halt) else "only", no_plan
        prepared.hold_prefix(ask.agent, prompt, halt, self._hearing.get("on_progress"))
        found = reading_on(request_in(ask), ask.tools) or plan(
            request_in(ask),
            tools,
            ModelJudge(prepared.scorer, prompt, halt),
            fitted=self._fitted,
            needed=self._needed.get(ask.agent),
            is_open=not is_call,
            before=before_in(ask, agent),
            spoken=Spoken(agent.language, prepared.clock()),
        )
        return "never" if found.calls else "only", or_cannot(found, ask, agent)

    def _begins_call(self, prompt: list[int], halt: Halt) -> bool:
        """Whether the model would begin a call by itself, given that words come easier to it."""
        if self._engine.prefill(prompt, halt=halt, on_progress=self._hearing.get("on_progress")).outcome != "done":
            return False  # generate finds the same reason at once, and says it.
        logits = self._engine.logits().astype(np.float64)
        shares = np.exp(logits - logits.max())
        call = float(shares[self.prepared.call_ids].sum() / shares.sum())
        return math.log(max(call, 1e-12)) - math.log(max(1 - call, 1e-12)) >= ODDS_SPELLED

    def _written(
        self, ask: AskModel, answer: Answer, calls: Sequence[PlannedCall], prompt: list[int], halt: Halt
    ) -> list[Generation]:
        """What the model writes for each call, as if it were the only one; up to the first that does not end whole."""
        parts: list[Generation] = []
        left = ask.max_tokens
        for call in calls:
            wanted = Wanted(
                grammar=self._planned_grammar(ask, answer, call),
                sampler=sampler_of(ask.seed, self._temperature, self._top_p),
                max_tokens=min(left, LINE_TOKENS_MAX) if self._is_last_line(ask, answer) else left,
                halt=halt,
                on_text=self._on_text if len(calls) == 1 else None,
                on_progress=self._hearing.get("on_progress"),
                copied=request_in(ask),
                # llama.cpp's own grammars do not tell what they force, so that it would pass for the model's choice.
                tell_shares=answer == "never" and self._model.grammars.kind == "llguidance",
            )
            written = generate(self._engine, prompt, wanted)
            if not written.complete:
                return [written]
            parts.append(written)
            left -= len(written.token_ids)
        return parts

    def _planned_grammar(self, ask: AskModel, answer: Answer, call: PlannedCall) -> Compiled:
        evidence = call.evidence
        if evidence.narrowed:
            with contextlib.suppress(GrammarError):  # What is said and what the rules allow may exclude each other.
                narrowed = (*ask.narrowed, *evidence.narrowed)
                return self.prepared.grammar(call.tools, narrowed, answer, given=evidence.given, keep=False)
        is_line = self._is_last_line(ask, answer)
        return self.prepared.grammar(call.tools, ask.narrowed, "line" if is_line else answer)

    def _is_last_line(self, ask: AskModel, decision: Answer) -> bool:
        """Whether this is a small model's answer to a result: what it adds to one line is that line again."""
        return not self.prepared.dialect.decides and ask.messages[-1].role == "tool" and decision == "only"

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

    def _said(self, ask: AskModel, planned: Plan, prompt: int, reused: int, began: int) -> Event:
        """The answer that was written without the model."""
        if self._on_text is not None:
            self._on_text(planned.text)
        ids = self._engine.tokenize(planned.text, special=False, bos=False)
        evaluated = max(0, len(self._engine.kept()) - reused)
        micros = (time.perf_counter_ns() - began) // 1000
        usage = Usage(prompt=prompt, evaluated=evaluated, completion=len(ids), forced=len(ids), micros=micros)
        return ModelAnswered(0, ask.effect_id, planned.text, "end", usage, pack_ids(ids), scores=planned.scores)

    def _halt(self, ask: AskModel, deadline: float | None) -> Halt:
        def halt() -> Literal["time", "cancelled"] | None:
            if self._is_closed or ask.effect_id in self._cancelled:
                return "cancelled"
            return "time" if deadline is not None and time.monotonic() >= deadline else None

        return halt


def _deadline(ask: AskModel) -> float | None:
    """When the ask must have ended: what waits for its turn uses up its time, too."""
    return time.monotonic() + ask.timeout_ms / 1000 if ask.timeout_ms else None

"""Have the model write one text: prompt in, tokens out, within a grammar and within every limit.

Laws. A token whose value is forced is not sampled, and no token is evaluated before its logits are needed: what the
grammar forces goes into one batch with the next evaluation, and what closes a call stays unevaluated until the next
prompt. Numbers that the request has are guessed and evaluated along (`draft.py`); each is sampled nevertheless. A text
under a grammar is whole or it is not given out as complete.
"""

from __future__ import annotations

import codecs
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from edgeagent.driver.llama.batch import BATCH_TOKENS
from edgeagent.driver.llama.closing import Admitted, Room
from edgeagent.driver.llama.constraint import Constraint, Ids
from edgeagent.driver.llama.draft import Draft
from edgeagent.driver.llama.engine import Engine, Halt, Progress
from edgeagent.driver.llama.grammars import Compiled
from edgeagent.driver.llama.sampling import GREEDY, Logits, Sampler, log_share
from edgeagent.errors import ModelError

Stop = Literal["end", "closed", "limit", "time", "cancelled", "context_full"]
"""The model ended it · the grammar closed · the token limit · the wall time · the user · the model's window."""

OnText = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Generation:
    """What was written and what it cost, in tokens; `constraint_us` and `sampling_us` are µs in all.

    `guessed` are those of the sampled ones that had been evaluated along, in the pass before. `complete` is False for a
    text under a grammar that is not whole. `closed_early`: the limit was near and the shortest completion was written
    instead of what the model wanted. `shares` are the log-probabilities, among all tokens, of those that the model
    chose itself, if they were asked for.
    """

    token_ids: tuple[int, ...]
    text: str
    stop: Stop
    complete: bool
    closed_early: bool
    prompt: int
    reused: int
    evaluated: int
    forced: int
    sampled: int
    guessed: int
    rejected: int
    constraint_us: int
    sampling_us: int
    wall_us: int
    shares: tuple[float, ...] | None = None


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be written, within which limits, and who is told.

    `halt` is asked between tokens. The numbers in the text `copied` are those that the model may well write, so that
    they are guessed. `on_text` is shown the text as it grows; should the limit force another beginning, it is shown
    nothing more. `force=False` guesses nothing, and samples and evaluates one by one what the grammar
    forces, for comparison: the text is the same. `tell_shares` costs a pass over the vocabulary for each token that is
    not forced.
    """

    grammar: Compiled | None = None
    sampler: Sampler = GREEDY
    max_tokens: int = 256
    halt: Halt | None = None
    on_text: OnText | None = None
    on_progress: Progress | None = None
    stop_texts: Sequence[str] = ()
    copied: str = ""
    force: bool = True
    tell_shares: bool = False


ANYTHING = Wanted()


def generate(engine: Engine, prompt: Sequence[int], wanted: Wanted = ANYTHING) -> Generation:
    """Write what is wanted after the prompt, which must not be empty.

    Raises ModelError or GrammarError when an engine fails; the engine can be used again after that.
    """
    if not prompt:
        raise ModelError("the prompt has no tokens: a model cannot begin from nothing")
    return _Run(engine, prompt, wanted).finish()


class _Run:
    """One generation under way."""

    def __init__(self, engine: Engine, prompt: Sequence[int], wanted: Wanted) -> None:
        self._began_ns = time.perf_counter_ns()
        self._engine = engine
        self._prompt = list(prompt)
        self._sampler = wanted.sampler
        # The last token of a text need not be evaluated, but it must fit when the next prompt carries it.
        self._window = engine.n_ctx - len(prompt)
        self._limit = min(wanted.max_tokens, self._window)
        self._limited: Stop = "limit" if wanted.max_tokens <= self._window else "context_full"
        self._halt = wanted.halt
        self._progress = wanted.on_progress
        self._force = wanted.force
        self._shares: list[float] | None = [] if wanted.tell_shares else None
        self._text = _Text(engine, wanted.on_text, wanted.stop_texts)
        self._grammar = wanted.grammar
        self._constraint, self._room = _begin(wanted.grammar)
        self._written: list[int] = []
        self._pending: list[int] = []
        self._draft = self._drafted(wanted.copied) if wanted.force else None
        self._ahead: tuple[int, ...] = ()  # Guessed, and evaluated behind what is written.
        self._row = -1  # Where in the last pass the last token written stands: the next is sampled from its logits.
        self._stops = engine.stop_ids
        self._closed_early = False
        self._reused = self._evaluated = self._forced = self._sampled = self._guessed = self._rejected = 0
        self._constraint_ns = self._sampling_ns = 0

    def finish(self) -> Generation:
        """Write until something ends it."""
        engine_open = self._engine.vocab  # raises when the model was closed, before a matcher asks its vocabulary
        del engine_open
        stop = self._too_little_room()
        if stop is None:
            self._write_forced()
            stop = self._ended() or self._read_prompt()
        while stop is None:
            stop = self._write_one()
        return self._result(stop)

    def _too_little_room(self) -> Stop | None:
        if self._limit <= 0 or (self._room is not None and len(self._room.plan) > self._limit):
            return self._limited
        return None

    def _read_prompt(self) -> Stop | None:
        """Evaluate the prompt and what is forced behind it, apart from what is in memory already."""
        tokens = self._prompt + self._pending
        self._reused = min(self._engine.align(tokens), len(self._prompt))
        rest = tokens[len(self._engine.kept()) :]
        return self._evaluate(rest)

    def _write_one(self) -> Stop | None:
        """Sample one token, then take what is forced behind it, and evaluate both."""
        token, taken = self._sample()
        if token is None:
            return "closed"
        if token in self._stops:
            return "end"
        self._take([token], consumed=taken)
        if self._text.stopped:
            return "end"
        self._write_forced()
        return self._ended() or self._evaluate(self._pending)

    def _ended(self) -> Stop | None:
        if self._constraint is not None and self._constraint.closed():
            return "closed"
        return self._limited if len(self._written) >= self._limit else None

    def _sample(self) -> tuple[int | None, bool]:
        """The next token, and whether the constraint has moved past it.

        None when what the model likes leaves no room for the end, and the plan was written instead.
        """
        begin = time.perf_counter_ns()
        logits = self._engine.logits(self._row if self._ahead else -1)
        place = len(self._written)
        token = self._sampler.pick(logits, place)
        self._sampled += 1
        now = time.perf_counter_ns()
        self._sampling_ns += now - begin
        if self._room is None or self._constraint is None:
            return token, True
        if not self._force and (forced := self._constraint.forced()):
            token = forced[0]
        verdict = self._judge(token)
        if verdict == "rejected":
            self._rejected += 1
            token, verdict = self._sample_allowed(logits, place)
        self._constraint_ns += time.perf_counter_ns() - now
        if verdict in ("yes", "taken"):
            if self._shares is not None:
                self._shares.append(log_share(logits, token))
            return token, verdict == "taken"
        self._write_plan(verdict)
        return None, True

    def _sample_allowed(self, logits: Logits, place: int) -> tuple[int, Admitted]:
        """Sample among what the grammar allows; a clumsy token gives way to the longer ones that begin with it."""
        assert self._constraint is not None
        ids = self._constraint.allowed(logits)
        while True:
            token = self._sampler.pick_among(logits, ids, place)
            verdict = self._judge(token)
            if verdict != "rejected" or len(ids) == 1:
                return token, verdict
            longer = self._beginning_with(token, ids)
            ids = longer if len(longer) else ids[ids != token]

    def _beginning_with(self, token: int, ids: Ids) -> Ids:
        piece = self._engine.vocabulary.piece
        return ids[[piece(each).startswith(piece(token)) and each != token for each in ids.tolist()]]

    def _judge(self, token: int) -> Admitted:
        assert self._room is not None and self._constraint is not None
        if token in self._stops:
            return "yes" if self._constraint.complete() else "rejected"
        if self._constraint.clumsy(token):
            return "rejected"
        return self._room.admit(token, self._limit - len(self._written))

    def _write_forced(self) -> None:
        """Take the tokens that the grammar forces."""
        if self._room is None or self._constraint is None or not self._force:
            return
        begin = time.perf_counter_ns()
        tokens = self._constraint.forced()
        verdict = self._room.admit_forced(tokens, self._limit - len(self._written)) if tokens else "yes"
        self._constraint_ns += time.perf_counter_ns() - begin
        if verdict != "yes":
            self._write_plan(verdict)
            return
        self._forced += len(tokens)
        self._take(tokens)

    def _write_plan(self, verdict: Admitted) -> None:
        """Close the text in the fewest tokens, instead of what the model would write."""
        assert self._room is not None and self._grammar is not None
        if verdict == "start_over":
            # The model has begun something that cannot be ended in what is left: what it wrote is taken back.
            self._constraint = self._grammar.fresh()
            self._written.clear()
            if self._shares is not None:
                self._shares.clear()
            self._text.restart()
            self._forced = 0
        plan = self._room.plan
        self._closed_early = True
        self._forced += len(plan)
        self._take(plan)

    def _take(self, tokens: Sequence[int], *, consumed: bool = False) -> None:
        if not tokens:
            return
        if self._constraint is not None and not consumed:
            begin = time.perf_counter_ns()
            self._constraint.consume(tokens)
            self._constraint_ns += time.perf_counter_ns() - begin
        self._written.extend(tokens)
        self._pending.extend(tokens)
        self._text.add(tokens)

    def _evaluate(self, tokens: list[int]) -> Stop | None:
        """Have the logits behind these tokens, which follow in memory, apart from what was guessed there."""
        self._pending = []
        if self._ahead and not (tokens := self._meet_guess(tokens)):
            return None
        guess = self._guess(len(tokens))
        self._ahead, self._row = guess, len(tokens) - 1
        rows = range(self._row, self._row + len(guess))
        before = len(self._engine.kept())
        try:
            together = [*tokens, *guess]
            outcome = self._engine.evaluate(together, rows=rows, halt=self._halt, on_progress=self._progress)
        finally:
            self._evaluated += len(self._engine.kept()) - before
        return None if outcome == "done" else outcome

    def _meet_guess(self, tokens: list[int]) -> list[int]:
        """Those of the tokens that were not guessed and must be evaluated; wrong guesses leave the memory."""
        token, *forced = tokens
        met = token == self._ahead[0]
        if self._grammar is not None:
            self._grammar.luck.note(met)
        self._guessed += met
        if met and not forced:
            self._row += 1
            self._ahead = self._ahead[1:]
            return []
        kept = self._engine.kept()
        self._engine.align(kept[: len(kept) - len(self._ahead) + met], keep_last=False)
        self._ahead = ()
        return forced if met else tokens

    def _drafted(self, copied: str) -> Draft | None:
        if self._grammar is None or not copied or not self._engine.cuts:
            return None
        return Draft(self._grammar.luck, copied, partial(self._engine.tokenize, special=False, bos=False))

    def _guess(self, count: int) -> tuple[int, ...]:
        """What the model may write behind the next `count` tokens, as far as it fits into their pass and the limit."""
        if self._draft is None or self._constraint is None:
            return ()
        guess = self._draft.guess(self._constraint)
        fits = count + len(guess) <= BATCH_TOKENS and len(self._written) + len(guess) <= self._limit
        return guess if fits else ()

    def _result(self, stop: Stop) -> Generation:
        whole = self._constraint is None or self._constraint.complete()
        return Generation(
            token_ids=tuple(self._written),
            text=self._text.finish(),
            stop=stop,
            complete=whole,
            closed_early=self._closed_early,
            prompt=len(self._prompt),
            reused=self._reused,
            evaluated=self._evaluated,
            forced=self._forced,
            sampled=self._sampled,
            guessed=self._guessed,
            rejected=self._rejected,
            constraint_us=self._constraint_ns // 1000,
            sampling_us=self._sampling_ns // 1000,
            wall_us=(time.perf_counter_ns() - self._began_ns) // 1000,
            shares=None if self._shares is None else tuple(self._shares),
        )


class _Text:
    """The text so far, in whole characters; what might be the beginning of a stop text is held back."""

    def __init__(self, engine: Engine, on_text: OnText | None, stop_texts: Sequence[str]) -> None:
        self._engine = engine
        self._on_text = on_text
        self._stop_texts = [text for text in stop_texts if text]
        self._hold = max((len(text) for text in self._stop_texts), default=1) - 1
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._text = ""
        self._shown = 0
        self.stopped = False

    def add(self, tokens: Sequence[int]) -> None:
        self._text += self._decoder.decode(self._engine.detokenize(tokens))
        ends = [at for text in self._stop_texts if (at := self._text.find(text)) >= 0]
        if ends:
            self._text = self._text[: min(ends)]
            self.stopped = True
        self._show(len(self._text) if self.stopped else len(self._text) - self._hold)

    def restart(self) -> None:
        """Forget the text; what was shown of it stays shown, and nothing more is."""
        self._decoder.reset()
        self._text = ""
        self._on_text = None

    def finish(self) -> str:
        if not self.stopped:
            self._text += self._decoder.decode(b"", final=True)
        self._show(len(self._text))
        return self._text

    def _show(self, end: int) -> None:
        if self._on_text is not None and end > self._shown:
            self._on_text(self._text[self._shown : end])
            self._shown = end


def _begin(grammar: Compiled | None) -> tuple[Constraint | None, Room | None]:
    if grammar is None:
        return None, None
    plan = grammar.shortest
    if plan is None:
        raise ModelError("no text that satisfies the grammar was found: its shortest value is too long to be written")
    constraint = grammar.fresh()
    return constraint, Room(constraint, list(plan))

"""One loaded model for many sessions and agents: one thread, a fair queue, and whose memory the model holds.

Laws. One thread at a time has the engine: its own, from the first ask on. The memory is one agent's, whose tools'
texts stand in front, and one session's conversation behind them; when another has its turn, what was there waits in
this process (`memories.py`), and the agent's part is laid out anew as in a new process. So what is written does not
depend on who was served before. It knows no requests.
"""

from __future__ import annotations

import contextlib
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Literal, Protocol, Self, TypedDict, TypeVar, Unpack
from weakref import WeakValueDictionary

from edgeagent.core.agent import Agent
from edgeagent.core.values import canonical_json
from edgeagent.driver.llama.engine import Engine
from edgeagent.driver.llama.fair import FairQueue, Job
from edgeagent.driver.llama.grammars import Grammars
from edgeagent.driver.llama.judge import SEQUENCES
from edgeagent.driver.llama.kv import CONVERSATION, SavedMemory
from edgeagent.driver.llama.memories import MEMORIES_BYTES_MAX, Memories
from edgeagent.driver.llama.prepared import Prepared
from edgeagent.driver.llama.template import GivenTemplate, Template, builtin_template
from edgeagent.errors import ModelError
from edgeagent.request.meaning import Meaning

WAITING_MAX = 256
"""Asks that may wait for one model; each is a session that waits, so more is a machine that is too small."""

T = TypeVar("T")


class Options(TypedDict, total=False):
    """How a model is loaded; what is left out is what suits this machine."""

    n_ctx: int
    threads: int | None
    engine: Literal["auto", "llguidance", "gbnf"]
    sequences: int
    verbose: bool
    digest: str | None
    template: GivenTemplate | None
    meaning: Meaning | None


class Guest(Protocol):
    """Who is served: a session of an agent. `saved` is what it left on the disk, if it may."""

    session: str
    prepared: Prepared
    saved: SavedMemory | None


class Loaded:
    """A loaded model, and what all who ask it share."""

    def __init__(
        self,
        engine: Engine,
        template: Template,
        grammars: Grammars,
        *,
        waiting_max: int = WAITING_MAX,
        memories_bytes_max: int = MEMORIES_BYTES_MAX,
        meaning: Meaning | None = None,
    ) -> None:
        self.meaning = meaning
        """What compares texts, if there is one."""
        self.engine, self.template, self.grammars = engine, template, grammars
        self.memories = Memories(engine, memories_bytes_max)
        self._prepared: WeakValueDictionary[str, Prepared] = WeakValueDictionary()
        self._sessions: set[str] = set()
        self._inside, self._agent = "", None  # type: str, Prepared | None
        self._queue = FairQueue(waiting_max)
        self._starting = threading.RLock()
        self._thread: threading.Thread | None = None
        self._seconds = 0.0
        """About what an ask takes."""

    @classmethod
    def load(cls, path: Path, **options: Unpack[Options]) -> Self:
        """Load the model and prove that its template is rendered. Raises ModelError or GrammarError."""
        given = options.pop("template", None)
        kind, meaning = options.pop("engine", "auto"), options.pop("meaning", None)
        engine = Engine.load(path, **{"sequences": SEQUENCES, **options})  # type: ignore[arg-type]  # mypy forgets the keys
        engine.given_template = given.text if given else None
        own = engine.template or builtin_template(engine.metadata("general.architecture") or "")
        template = Template(given.text, source=given.source) if given else Template(own)
        template.start()
        return cls(engine, template, Grammars(engine, None if kind == "auto" else kind), meaning=meaning)

    def prepare(self, agent: Agent, *, chooses: bool = True) -> Prepared:
        """The agent on this model, one for all sessions of it. Call it in the thread that has the engine."""
        shown = [[p, a.digest, [[t.description, list(t.examples)] for t in a.tools]] for p, a in agent.by_path.items()]
        key = canonical_json([agent.dialect.name if agent.dialect else "", chooses, shown])
        found = self._prepared.get(key)
        if found is None:
            found = Prepared(self.engine, self.template, self.grammars, agent, chooses=chooses, meaning=self.meaning)
            self._prepared[key] = found
        return found

    # -- the thread ------------------------------------------------------------------------------------------------

    def ask(self, job: Job) -> str:
        """Let the job wait for its turn; returns why it cannot, or ''."""
        with self._starting:
            if self._thread is None and not self._queue.is_closed:
                self._thread = threading.Thread(target=self._work, name="model", daemon=True)
                self._thread.start()
        if self._queue.put(job):
            return ""
        if self._queue.is_closed:
            return f"{self.engine.path.name} was closed"
        count = len(self._queue)
        seconds = max(1, round(count * self._seconds))
        return f"{count} asks wait for {self.engine.path.name} already; try again in about {seconds} s"

    def withdraw(self, session: str, effect_id: int | None = None) -> list[Job]:
        """Take out what waits of a session, or of one ask of it."""
        return self._queue.withdraw(session, effect_id)

    def call(self, work: Callable[[], T]) -> T:
        """Have the work done by whoever has the engine, as the next thing; waits for it."""
        done: Future[T] = Future()

        def run() -> None:
            try:
                done.set_result(work())
            # Whatever it is, it belongs to who called and not to the thread.
            except BaseException as error:
                done.set_exception(error)

        with self._starting:
            thread = self._thread
            if thread is None or thread is threading.current_thread():
                return work()
        if self._queue.put_first(Job(run)):
            return done.result()
        thread.join()  # It is being closed.
        return work()

    def _work(self) -> None:
        while (job := self._queue.take()) is not None:
            began = time.monotonic()
            try:
                job.work()
            # Whatever one session's end raises is said, and does not end the others.
            except Exception:
                traceback.print_exc()
            if job.session:
                self._seconds += (time.monotonic() - began - self._seconds) / 4

    def close(self) -> None:
        """End the thread, the template's process and the model; what waits is answered first. Twice is fine."""
        self._queue.close()
        if self._thread is not None:
            self._thread.join()
        with self._starting:
            self._thread = None
        self.memories.clear()
        self.template.close()
        self.engine.close()

    # -- whose memory it is ----------------------------------------------------------------------------------------

    def enter(self, guest: Guest) -> None:
        """Have in memory what the guest left there, or else what its agent always begins with."""
        is_same = guest.prepared is self._agent
        if is_same and guest.session == self._inside:
            return
        self._put_by(whole=not is_same)
        saved, guest.saved = guest.saved, None
        if not is_same:
            self.engine.forget()
            guest.prepared.stands(self.memories.give_back(_texts_name(guest.prepared)))
            if saved is not None and not guest.prepared.standing():
                saved.restore_texts(self.engine)
        self._inside, self._agent = guest.session, guest.prepared
        if self.memories.give_back(_session_name(guest)) or (saved is not None and saved.restore_session(self.engine)):
            return
        if is_same:
            self.engine.align(guest.prepared.prefix(""), keep_last=False)
        elif not self.memories.give_back(_prefix_name(guest.prepared)) and saved is not None:
            saved.restore_prefix(self.engine)

    def holds(self, guest: Guest) -> bool:
        """Whether what the guest left is still in this process."""
        return self._inside == guest.session or _session_name(guest) in self.memories

    def expect(self, session: str) -> None:
        """Know that the session may ask, until it leaves."""
        self._sessions.add(session)

    def make_room(self, leaving: str) -> None:
        """Give back what writing needs, if nobody else may ask: the memory of who leaves is to be saved."""
        if self._sessions <= {leaving}:
            self.grammars.forget()

    def leave(self, guest: Guest) -> None:
        """Forget the guest; what its agent has in memory stays."""
        self._sessions.discard(guest.session)
        self.memories.forget(_session_name(guest))
        if self._inside == guest.session:
            self._inside = ""

    def forget(self) -> None:
        """Empty all memories, as if nothing had been asked."""
        self.engine.forget()
        self.memories.clear()
        self._inside, self._agent = "", None

    def _put_by(self, *, whole: bool) -> None:
        """Keep what is in memory for when it is asked for again; `whole` if the agent goes too."""
        engine, agent, kept = self.engine, self._agent, self.memories
        if agent is None:
            return
        with contextlib.suppress(ModelError):  # What is not kept is evaluated again.
            if self._inside and len(engine.kept()) > len(agent.prefix("")):
                kept.keep(f"session {self._inside}", CONVERSATION)
            if not whole:
                return
            if _texts_name(agent) not in kept and (places := agent.standing()):
                kept.keep(_texts_name(agent), places)
            if _prefix_name(agent) not in kept and (length := agent.prefix_tokens()):
                engine.align(engine.kept()[:length], keep_last=False)
                if engine.kept():
                    kept.keep(_prefix_name(agent), CONVERSATION)


def _session_name(guest: Guest) -> str:
    return f"session {guest.session}"


def _prefix_name(agent: Prepared) -> str:
    return f"agent {agent.systems['']}"


def _texts_name(agent: Prepared) -> str:
    return f"texts {agent.scorer.held if agent.scorer is not None else ''}"

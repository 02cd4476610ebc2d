"""One session: its directory, its lock, its trace, and a loop with drivers around one agent."""

from __future__ import annotations

import contextlib
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Self

from msgspec.structs import asdict, replace

from edgeagent.core.agent import Agent
from edgeagent.core.events import Cancelled, Event, Heard, Reconfigured, SessionStarted, UserSaid
from edgeagent.core.replay import Step
from edgeagent.core.state import State, Transition, is_resting
from edgeagent.driver.base import Driver
from edgeagent.errors import ConfigError, EdgeAgentError, IllegalTransition, TraceError
from edgeagent.runtime.answer import TOO_MANY, Answer, Taken, Turns, Word, is_too_many
from edgeagent.runtime.attached import Attached, is_said
from edgeagent.runtime.caches import clear_leftovers
from edgeagent.runtime.cursor import Cursor, Delivery, deliveries
from edgeagent.runtime.door import Decision, Door
from edgeagent.runtime.folder import (
    TRACE_NAME,
    About,
    Beginning,
    durability_of,
    head_path,
    lock,
    make_durable,
    new_directory,
    write_about,
)
from edgeagent.runtime.loop import Loop
from edgeagent.runtime.outside import NOTHING_GIVEN, Files, Outside
from edgeagent.runtime.recording import parts_of
from edgeagent.runtime.snapshot import write_snapshot
from edgeagent.runtime.spoken import Spoken
from edgeagent.runtime.vouched import HeadFile
from edgeagent.trace.file import TraceFile
from edgeagent.version import __version__

SNAPSHOT_EVERY = 256
"""Records after which a resting session keeps a snapshot: folding that many takes a few milliseconds."""

ROTATE_AT_BYTES = 8 << 20
"""From this size on a resting session goes on in a new trace file: some 80,000 records, read in a second."""


class Session:
    """A running session. One thread at a time works in it; every method may be called from any thread.

    Either somebody `serve`s it, and the others post; or whoever says something works until it is answered.
    """

    def __init__(
        self,
        agent: Agent,
        step: Step,
        drivers: Mapping[type, Driver],
        files: Files,
        outside: Outside,
        state: State | None = None,
    ) -> None:
        self.directory = files.directory
        self.trace_path = files.directory / TRACE_NAME
        self._agent, self._step, self._drivers = agent, partial(step, agent), drivers
        self._held, self._trace, self._disk = files.held, files.trace, outside.disk
        self._doors = outside.doors or Attached()
        self._snapshot_seq = files.trace.seq
        clock, steady, watch = outside.clock_ms, outside.steady, self._watch
        self._loop = Loop(agent, step, files, drivers, clock, state=state, watch=watch, steady_ms=steady)
        self._turns = Turns(self.trace_path, self.state)
        self._changed = threading.Condition()
        self._is_worked, self._is_closed, self._worker = False, False, 0
        self.taken_up = threading.Event()
        """Set when what the last process left is worked off: the questions that are open have their own numbers."""
        self._last: Callable[[], None] = lambda: None
        self._at_rest: list[Callable[[], None]] = []
        if self._doors.owner is not None:
            self._attach(self._doors.owner, self._doors.owner_name)

    @property
    def id(self) -> str:
        """The session's name among all sessions."""
        return self.directory.name

    @property
    def agent(self) -> Agent:
        """Whose session this is."""
        return self._agent

    @property
    def state(self) -> State:
        """The state after the last event."""
        return self._loop.state

    @property
    def seq(self) -> int:
        """How many records there are: the number of the next one."""
        return self._trace.seq

    def records(self, since: int = 0) -> Iterator[Delivery]:
        """The records from this number on, as far as they are kept, as a door is shown them. Raises TraceError."""
        return deliveries(self.trace_path, self._step, since)

    def ask(self, text: str, *, by: str = "", door: str = "") -> Answer:
        """Let the user say `text` and wait for the answer. Raises TraceError."""
        word = self.post_words(text, by=by, door=door)
        self._work(word.answered.done)
        return word.answered.result()

    def begin(self, text: str, *, by: str = "", door: str = "", on_text: Callable[[str], None] | None = None) -> Word:
        """Let the user say `text` and return at once; a thread works until it is answered, unless somebody serves.

        `on_text` is given the answer in pieces, as it is written.
        """
        word = Word()
        if on_text is not None:
            spoken = Spoken(word, on_text)
            self._doors.add(spoken, None)
            word.answered.add_done_callback(partial(self._end, spoken))
        self._post(UserSaid(0, text, by, door), word)
        threading.Thread(target=self._work_for, args=(word,), name=f"session {self.id}", daemon=True).start()
        return word

    def stream(self, text: str, *, by: str = "", door: str = "") -> Iterator[str]:
        """Let the user say `text`; yield the answer in pieces, as it is written. Raises TraceError."""
        pieces: SimpleQueue[str | None] = SimpleQueue()
        word = self.begin(text, by=by, door=door, on_text=pieces.put)
        word.answered.add_done_callback(lambda _: pieces.put(None))
        yield from iter(pieces.get, None)
        word.answered.result()  # Raises what went wrong.

    def say(self, text: str) -> State:
        """Let the user say `text`, wait for the answer, return the state. Raises ConfigError if it was not kept."""
        if self.ask(text).outcome is TOO_MANY:
            raise ConfigError(TOO_MANY.detail)
        return self.state

    def resume_turn(self) -> State:
        """Work until nothing is left to do, as after an interruption of `say`."""
        self._work(lambda: False)
        return self.state

    def serve(self) -> None:
        """Work, and wait for what comes through any door, until the session is closed. Raises TraceError."""
        self._work(lambda: self._is_closed, self._loop.serve)

    def post_words(self, text: str, *, by: str = "", door: str = "") -> Word:
        """Let `by`, at `door`, say something; returns at once. Whoever serves the session takes it up."""
        word = Word()
        self._post(UserSaid(0, text, by, door), word)
        return word

    def post_heard(self, source: str, text: str) -> None:
        """Let the session hear something from outside that nobody asked for; only what its agent hears is recorded."""
        self._loop.post(Heard(0, source, text))

    def decide(self, effect_id: int, approved: bool, digest: str, text: str = "") -> bool:
        """Answer a question; False if it is not open any more. `digest` must be that of the question as shown."""
        return self._doors.person.answer(effect_id, Decision(approved is True, text, digest or "none was given"))

    def interrupt(self) -> None:
        """Raise KeyboardInterrupt in `serve` between two events, so that what an event led to is told whole."""
        self._loop.call(_interrupt)

    def cancel(self, reason: str = "interrupted") -> None:
        """Ask for the running turn to be stopped."""
        self._loop.post(Cancelled(0, reason))

    def attach(self, door: Door, name: str = "") -> None:
        """Let one more door watch and decide. With a `name` it has a place in the trace and is first shown what it has
        not had; a name that is new to the session begins now.

        Raises ConfigError for a name that can be none and TraceError.
        """
        self._between(lambda: self._attach(door, name))

    def at_rest(self, do: Callable[[], None]) -> None:
        """Have something done between two turns: now, or as soon as nothing is outstanding."""
        self._between(lambda: do() if is_resting(self.state) else self._at_rest.append(do))

    def exchange(self, kind: type, make: Callable[[Attached], Driver]) -> None:
        """Let another driver answer such effects from now on. Only at rest."""
        driver, before = make(self._doors), self._drivers[kind]
        self._drivers = self._loop.drivers = {**self._drivers, kind: driver}
        before.close()

    def note(self, event: Reconfigured) -> None:
        """Have it in the trace that the settings were read again: before the next turn."""
        self._loop.post(event)

    def detach(self, door: Door) -> None:
        """Let a door go; its place stays."""
        self._doors.remove(door)

    def __enter__(self) -> Self:
        """Leave what is below to `close` it."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close the session; what is outstanding is taken up when it is opened again."""
        self.close()

    def take_up(self, events: Iterable[Event]) -> None:
        """Post what comes first of all when a session is opened, and set its timers again."""
        for event in events:
            self._loop.post(event)
        self._loop.call(self.taken_up.set)
        self._loop.set_timers()

    def on_close(self, do: Callable[[], None]) -> None:
        """Have this done when everything else is closed."""
        self._last = do

    def close(self) -> None:
        """Let go of drivers, trace and lock; everything recorded is on the disk then. Raises TraceError if not.

        What is still outstanding is taken up when the session is opened again. Not to be called by a door's `watch`.
        """
        self._refuse_within()
        with self._changed:
            if self._is_closed:
                return
            self._is_closed = True
        self._loop.stop()
        with self._changed:
            self._changed.wait_for(lambda: not self._is_worked)
        for driver in {id(d): d for d in self._drivers.values()}.values():
            driver.close()
        self._abandon()
        try:
            self._trace.close()
            self._keep_snapshot()
        finally:
            self._held.release()
            self._last()

    def _work(self, is_done: Callable[[], bool], work: Callable[[], object] | None = None) -> None:
        """Work in this thread, or wait until that is done by the thread that works."""
        self._refuse_within()
        with self._changed:
            self._changed.wait_for(lambda: is_done() or not self._is_worked)
            if is_done():
                return
            self._is_worked, self._worker = True, threading.get_ident()
        try:
            (work or self._loop.run)()
        except Exception as error:
            self._turns.fail(error)
            raise
        finally:
            with self._changed:
                self._is_worked, self._worker = False, 0
                self._changed.notify_all()

    def _refuse_within(self) -> None:
        """Refuse to wait for the work that the caller is part of."""
        if self._worker == threading.get_ident():
            text = "a door was shown something and waits for the session that shows it: post words, or use a thread"
            raise IllegalTransition(text)

    def _abandon(self) -> None:
        """Let everyone who waits for an answer know that none comes."""
        error = TraceError(f"session {self.id} was closed before it answered")
        self._turns.fail(error)
        for word in self._loop.left():
            word.fail(error)

    def _post(self, event: UserSaid, word: Word) -> None:
        if not isinstance(event.text, str):
            raise ConfigError(f"what a user says is a text, and not {event.text!r:.80}")
        self._loop.post(event, word)
        if self._is_closed:
            self._abandon()

    def _end(self, spoken: Spoken, answered: Future[Answer]) -> None:
        self._doors.remove(spoken)
        if answered.exception() is None:
            spoken.end(answered.result().text)

    def _work_for(self, word: Word) -> None:
        with contextlib.suppress(EdgeAgentError):  # Whoever waits for the answer gets it.
            self._work(word.answered.done)

    def _between(self, do: Callable[[], None]) -> None:
        """Do something between two transitions: here if nobody works, else in the thread that does."""
        self._refuse_within()
        done: Future[None] = Future()

        def settle() -> None:
            try:
                do()
                done.set_result(None)
            except Exception as error:
                done.set_exception(error)

        with self._changed:
            if not self._is_worked:
                do()
                return
            self._loop.call(settle)
        done.result()

    def _attach(self, door: Door, name: str) -> None:
        cursor = Cursor(self.directory, name, self._disk) if name else None
        if cursor is not None:
            for _, event, state, effects in () if cursor.is_new else cursor.behind(self.trace_path, self._step):
                door.watch(event, state, effects)
            cursor.move(self._trace.seq, self._trace.head)
        self._doors.add(door, cursor)

    def _watch(self, taken: Taken) -> None:
        """Show a transition to the doors, write down that they have had it, and answer whoever waits for it."""
        if taken.word is not None:
            taken.word.recorded.set_result(self._trace.seq - 1)
        answers = self._turns.follow(taken, self._ended(taken))
        self._doors.watch(taken.event, taken.state, taken.effects)
        if is_too_many(taken):
            self._doors.activity(TOO_MANY.detail)  # Whoever has posted it may not wait for an answer.
        while self._at_rest and is_resting(taken.state):
            self._at_rest.pop(0)()
        if self._loop.is_at_rest:
            self._settle()
        elif is_said(taken.effects) and self._doors.have_places:
            self._trace.settle()
            self._doors.move(self._trace.seq, self._trace.head)
        for word, answer in answers:
            word.answered.set_result(answer)
        if answers:
            with self._changed:
                self._changed.notify_all()

    def _ended(self, taken: Taken) -> Transition | None:
        """How the running turn ended in this transition, if it did: what would have been if no word had waited."""
        if is_resting(taken.before):
            return None
        if is_resting(taken.state) and taken.state.turn == taken.before.turn:
            return taken.state, taken.effects
        if taken.state.turn == taken.before.turn:
            return None
        return self._step(replace(taken.before, queued=(), waiting=()), taken.event)

    def _settle(self) -> None:
        """Make safe what was recorded, write down what the doors have had, and keep the files small."""
        self._trace.settle()
        self._doors.move(self._trace.seq, self._trace.head)
        if self._trace.grown_bytes >= ROTATE_AT_BYTES:
            self._trace.rotate(self.state)
        if self._trace.seq - self._snapshot_seq >= SNAPSHOT_EVERY:
            self._keep_snapshot()

    def _keep_snapshot(self) -> None:
        # After a failed append the trace may be one record ahead of the state.
        if not self._trace.failed and self._trace.seq > self._snapshot_seq:
            if not self._trace.is_closed:
                self._trace.sync()  # It vouches for these records, so they must not be lost any more.
            self._snapshot_seq = self._trace.seq
            write_snapshot(self.directory, self._agent, self.state, self._trace.seq, self._trace.head, self._disk)


def _interrupt() -> None:
    raise KeyboardInterrupt


def new_session(
    agent: Agent,
    step: Step,
    drivers: Mapping[type, Driver],
    root: Path,
    beginning: Beginning,
    outside: Outside = NOTHING_GIVEN,
) -> Session:
    """Make a session directory under `root` and start the session in it.

    Raises ConfigError if it cannot be made and TraceError if it cannot be written.
    """
    disk = outside.disk
    directory = new_directory(root, outside.clock_ms(), disk)
    held = lock(directory, disk)
    try:
        clear_leftovers(directory)
        head = HeadFile(directory, disk)
        head.begin()
        about = _about(agent, beginning, directory.name, outside.clock_ms(), head.seal_id)
        write_about(directory, about, disk)
        make_durable(directory, disk)
        mode = durability_of(about)
        trace = TraceFile.create(directory / TRACE_NAME, durability=mode, disk=disk, vouch=head.move)
        session = Session(agent, step, drivers, Files(directory, held, trace), outside)
        session.take_up((started_event(agent, about),))
        session.resume_turn()
    except BaseException:
        held.release()
        shutil.rmtree(directory, ignore_errors=True)  # Nothing has happened in it.
        with contextlib.suppress(OSError):
            head_path(directory).unlink()
        raise
    return session


def _about(agent: Agent, beginning: Beginning, name: str, now_ms: int, sealed_by: str) -> About:
    assert agent.dialect is not None, "the wiring gives every running agent its dialect"
    spec = beginning.agent_spec
    chosen = replace(beginning, agent_spec=str(Path(spec).absolute()) if spec else "")
    return About(
        id=name,
        agent=agent.name,
        agent_digest=agent.digest,
        dialect=agent.dialect.name,
        created_ms=now_ms,
        parts=parts_of(agent),
        sealed_by=sealed_by,
        **asdict(chosen),
    )


def started_event(agent: Agent, about: About) -> SessionStarted:
    """The first event of a session."""
    assert agent.dialect is not None, "the wiring gives every running agent its dialect"
    fixed = (agent.name, agent.digest, about.seed, agent.dialect.name, about.context_tokens, __version__)
    return SessionStarted(0, *fixed, session=about.id)

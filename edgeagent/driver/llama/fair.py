"""Queue of asks for one model: bounded, and fair between sessions, whatever one of them asks.

Each session is served in its turn, and goes behind the others then; within a session it is first come, first served.
"""

from __future__ import annotations

import threading
import traceback
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass

OnPlace = Callable[[int], None]
"""Told how many asks are served before this session's next one; 0 when its turn has come."""


@dataclass(frozen=True, eq=False, slots=True)
class Job:
    """Work for the thread that owns the model; `session` is whose it is, `effect_id` the ask that it answers.

    `instead` is done where the ask is withdrawn before its turn.
    """

    work: Callable[[], None]
    instead: Callable[[], None] = lambda: None
    session: str = ""
    effect_id: int = 0
    on_place: OnPlace | None = None


class FairQueue:
    """Jobs that wait. Any thread may put and withdraw, one takes."""

    def __init__(self, jobs_max: int) -> None:
        self._jobs_max = jobs_max
        self._changed = threading.Condition()
        self._first: deque[Job] = deque()
        self._sessions: OrderedDict[str, deque[Job]] = OrderedDict()
        self._told: dict[str, int] = {}
        self._is_serving = self._is_closed = False

    @property
    def is_closed(self) -> bool:
        """Whether nothing more is taken in."""
        return self._is_closed

    def __len__(self) -> int:
        return sum(map(len, self._sessions.values()))

    def put(self, job: Job) -> bool:
        """Let the job wait for its session's turn; False where no more can wait, or the queue is closed."""
        with self._changed:
            if self._is_closed or len(self) >= self._jobs_max:
                return False
            self._sessions.setdefault(job.session, deque()).append(job)
            self._changed.notify()
        self._tell_places()
        return True

    def put_first(self, job: Job) -> bool:
        """Let the job be the next one, whosever turn it is; False once the queue is closed."""
        with self._changed:
            if not self._is_closed:
                self._first.append(job)
                self._changed.notify()
            return not self._is_closed

    def take(self) -> Job | None:
        """The next job, as soon as there is one; None once the queue is closed and empty."""
        with self._changed:
            self._is_serving = False
            while not (self._first or self._sessions):
                if self._is_closed:
                    return None
                self._changed.wait()
            self._is_serving = True
            job = self._first.popleft() if self._first else self._next()
        self._tell_places(job)
        return job

    def withdraw(self, session: str, effect_id: int | None = None) -> list[Job]:
        """Take out what waits of a session, or of one ask of it."""
        with self._changed:
            waiting = self._sessions.get(session, deque())
            taken = [job for job in waiting if effect_id in (None, job.effect_id)]
            for job in taken:
                waiting.remove(job)
            if taken and not waiting:
                del self._sessions[session]
        self._tell_places()
        return taken

    def close(self) -> None:
        """Take nothing more in; what waits is still served."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()

    def _next(self) -> Job:
        session, jobs = self._sessions.popitem(last=False)
        job = jobs.popleft()
        if jobs:
            self._sessions[session] = jobs  # Behind all others.
        return job

    def _tell_places(self, taken: Job | None = None) -> None:
        """Tell each session its place where that has changed. Outside the lock: who is told may ask again."""
        calls = []
        with self._changed:
            places = {session: place for place, session in enumerate(self._sessions, int(self._is_serving))}
            if taken is not None and self._told.get(taken.session, 0) and taken.on_place is not None:
                calls.append((taken.on_place, 0))
            for session, place in places.items():
                on_place = self._sessions[session][0].on_place
                if on_place is not None and place and self._told.get(session) != place:
                    calls.append((on_place, place))
            self._told = places
        for on_place, place in calls:
            try:
                on_place(place)
            # Whoever is told is a session's own end: what it raises is said, and does not end the others.
            except Exception:
                traceback.print_exc()

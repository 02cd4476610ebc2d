"""A console on a port: carries bytes and time between a serial line and the plays of the console's machine.

What is typed, and when, is decided in `console_machine.py`; here it only happens. Safe to use from any thread.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections import deque
from collections.abc import Callable

from edgeagent.driver.line.console_machine import ConsoleMachine
from edgeagent.driver.line.log_in import log_in
from edgeagent.driver.line.outcome import Outcome
from edgeagent.driver.line.play import Given, LineGone, Look, Play, Result, Type, Wish
from edgeagent.driver.line.port import LinkLost, SerialPort
from edgeagent.driver.line.profile import Profile
from edgeagent.driver.line.screen import unreadable
from edgeagent.driver.line.view import READY, State

__all__ = ["READY", "Console", "State"]

SPANS_KEPT = 256
"""Of how many plays it is known what they heard; whoever listens looks after each line."""

GARBAGE_SHARE = 0.3
GARBAGE_BYTES = 256
"""Of so many bytes so large a share that no console prints: the other side speaks at another speed (satpulse#117)."""


class Console:
    """One console of one device; one command at a time."""

    def __init__(self, port: SerialPort, profile: Profile, *, word: Callable[[], str] | None = None) -> None:
        self.port = port
        self.profile = profile
        self.machine = ConsoleMachine(profile, word or (lambda: secrets.token_hex(4)))
        self._offset = port.offset
        self._recent = b""
        self._spans: deque[tuple[int, int | None]] = deque(maxlen=SPANS_KEPT)
        self._turn = threading.RLock()

    @property
    def state(self) -> State:
        """The state that was seen last."""
        return self.machine.state

    @property
    def running(self) -> str:
        """The command whose end was not seen, or nothing."""
        return self.machine.running

    @property
    def last_heard(self) -> str:
        """The last lines heard, for a message."""
        return self.machine.view.tail

    def look(self) -> State:
        """Read what has come and say the state, without sending anything. Raises LinkLost."""
        return self._carried(self.machine.watch())

    def confirm(self, timeout_s: float = 5.0) -> State:
        """Make sure of the state, by an answer that only a live prompt can give. Raises LinkLost."""
        return self._carried(self.machine.confirm(timeout_s))

    def enter(self, timeout_s: float = 30.0) -> State:
        """Get to a prompt: hold the boot loader, wake a silent line. Raises LinkLost. Log in with `log_in`."""
        return self._carried(self.machine.enter(timeout_s))

    def interrupt(self, timeout_s: float = 5.0) -> State:
        """Break off what runs and find the prompt again. What the command did stays unknown. Raises LinkLost."""
        return self._carried(self.machine.interrupt(timeout_s))

    def log_in(self, user: str, password: Callable[[], str], timeout_s: float = 20.0) -> State:
        """Log in; return the state afterwards: `shell`, or `log_in` when it was refused. Raises LinkLost.

        The password is asked for only once its prompt stands there, goes nowhere else, and into no record.
        """

        def hidden() -> str:
            secret = password()
            self.port.hide(secret.encode())
            return secret

        try:
            return self._carried(log_in(self.machine, user, hidden, timeout_s))
        finally:
            self.port.hide(b"")

    def run(self, command: str, timeout_s: float = 10.0) -> Outcome:
        """Run one command and say how it ended. Never raises for what a device does; never sends it twice."""
        return self._carried(self.machine.run(command, timeout_s))

    def answer(self, text: str, timeout_s: float = 10.0) -> Outcome:
        """Answer the question of a command that waits for input, and go on waiting for its end."""
        return self._carried(self.machine.answer(text, timeout_s))

    # -- a person at the console

    @property
    def person_has_it(self) -> bool:
        """Whether a person has the console; the agent's commands are not sent until it is handed back."""
        return self.machine.person_has_it

    def break_in(self) -> None:
        """A person takes the console."""
        self.machine.person_has_it = True

    def hand_back(self) -> None:
        """The agent may go on; nothing it knew of the state holds any more."""
        self.machine.handed_back()

    def person_types(self, data: bytes, timeout_s: float = 5.0) -> int:
        """Send what a person typed; return how much of it the line took. Raises LinkLost; ValueError without a turn."""
        if not self.person_has_it:
            raise ValueError("the agent has the console: break in first")
        return self.port.write(data, who="person", timeout_s=timeout_s)

    # -- carrying

    def _carried(self, play: Play[Result]) -> Result:
        """Run a play to its end. Raises LinkLost where the play does not say what that means."""
        with self._turn:
            lost: LinkLost | None = None
            nested = bool(self._spans) and self._spans[-1][1] is None
            begun = self._spans.pop()[0] if nested else self.port.offset
            self._spans.append((begun, None))
            try:
                wish = next(play)
                while True:
                    try:
                        given = self._done(wish)
                    except LinkLost as error:
                        lost = error
                        given = Given(time.monotonic(), lost=str(error))
                    wish = play.send(given)
            except StopIteration as end:
                result: Result = end.value
                return result
            except LineGone:
                assert lost is not None, "only a lost line ends a play so"
                raise lost from None
            finally:
                if not nested:
                    self._spans[-1] = (begun, self._offset)

    def unasked(self, since: int, until: int) -> tuple[bytes, int]:
        """Return what was heard between these offsets while no play was on, and up to where that is known."""
        text, at = b"", since
        for begun, ended in tuple(self._spans):
            if ended is not None and ended <= at:
                continue
            if begun >= until:
                break
            text += self.port.heard(at)[: max(0, begun - at)]
            if ended is None:
                return text, max(at, begun)
            at = max(at, ended)
        return text + self.port.heard(at)[: max(0, until - at)], max(at, until)

    def _done(self, wish: Wish) -> Given:
        match wish:
            case Type():
                accepted = self.port.write(wish.data, hidden=wish.hidden)
                return Given(time.monotonic(), accepted=accepted)
            case Look():
                wait_s = max(0.0, wish.until - time.monotonic())
                heard, self._offset = self.port.wait(self._offset, wait_s)
                if heard:
                    self._watch_for_garbage(heard)
                return Given(time.monotonic(), heard)

    def _watch_for_garbage(self, heard: bytes) -> None:
        self._recent = (self._recent + heard)[-4 * GARBAGE_BYTES :]
        if len(self._recent) >= GARBAGE_BYTES and unreadable(self._recent) > GARBAGE_SHARE:
            self._recent = b""
            self.port.apply_settings("what comes is mostly no text (is the speed right?): settings applied")

"""Peer: the program at the other end of a JSON-RPC stream. Either may ask the other; messages go both ways at once.

One thread reads (`run`) and hands each message to the owner, who returns at once: answers are given later, from any
thread, each once. What is written goes out whole, from whichever thread. What the other side sends is bounded: a
message by its framing, the requests that are open by `CALLS_MAX`; and while it reads nothing, it is not read either.

`Talk` is the same without a stream: whoever carries the messages says of each how its answers go back.

Law: nothing here means anything. What a method does is the owner's, but for cancellation, which is alike everywhere.
"""

from __future__ import annotations

import contextlib
import os
import select
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from typing import Any, Protocol

from edgeagent.codec.frames import Framing, Lines, Skipped
from edgeagent.codec.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    Batch,
    Fault,
    Id,
    Incoming,
    Message,
    Notification,
    Params,
    Reader,
    Request,
    Result,
    Waiting,
    cancelled,
    cancelled_id,
    encode,
)
from edgeagent.core.text import error_text, shown
from edgeagent.errors import DriverUnavailable, EdgeAgentError

CALLS_MAX = 256
"""Requests of the other side that may wait for our answer at once; one more is refused."""

BUSY = -32000
"""The code of a refusal for want of room: JSON-RPC leaves these numbers to whoever implements it."""

CHUNK_BYTES = 1 << 16
FULL_S = 0.01
"""After so long a pipe that does not block, and was full, is tried again."""


class Refused(EdgeAgentError):
    """An error in answer to a request: ours, when the owner raises it; the other side's, when it was asked."""

    def __init__(self, code: int, message: str, more: Any = None) -> None:
        super().__init__(message)
        self.code, self.more = code, more


Send = Callable[[Message | Batch], bool]
"""Sends a message to the other side; whether that could be done."""


class Call:
    """A request of the other side. It is answered once, by any thread; what comes after that is dropped."""

    def __init__(
        self, request: Request, talk: Talk, send: Send, give: Callable[[Call, Result | Fault], object]
    ) -> None:
        """`send` takes what belongs to the request beside its answer, which `give` takes."""
        self.id, self.method, self.params = request.id, request.method, request.params
        self._talk, self._send = talk, send
        self._give: Callable[[Call, Result | Fault], object] | None = give
        self._changing = threading.Lock()
        self._is_cancelled = False
        self._on_cancel: Callable[[], None] | None = None

    def answer(self, result: Any) -> None:
        """Answer it."""
        self._end(Result(self.id, result))

    def refuse(self, code: int, message: str, more: Any = None) -> None:
        """Answer it with an error."""
        self._end(Fault(self.id, code, message, more))

    def fail(self, error: BaseException) -> None:
        """Answer it with what was raised: ours in its own words."""
        if isinstance(error, Refused):
            self.refuse(error.code, str(error), error.more)
        else:
            self.refuse(INTERNAL_ERROR, str(error) if isinstance(error, EdgeAgentError) else error_text(error))

    @property
    def is_cancelled(self) -> bool:
        """Whether the other side wants no answer any more."""
        return self._is_cancelled

    @property
    def is_answered(self) -> bool:
        """Whether it has its answer."""
        return self._give is None

    def ask(self, method: str, params: Params = None) -> Asked:
        """Ask the other side for the sake of this request. Not to be waited for by the thread that reads."""
        return self._talk.ask_by(self._send, method, params)

    def tell(self, method: str, params: Params = None) -> bool:
        """Send a notification that belongs to this request, unless it is answered; say whether it was sent."""
        return not self.is_answered and self._send(Notification(method, params))

    def on_cancel(self, do: Callable[[], None]) -> None:
        """Have this done when the request is cancelled; at once, if it is by now."""
        with self._changing:
            self._on_cancel = do
            is_late = self._is_cancelled
        if is_late:
            do()

    def cancel(self) -> None:
        """Take note that the other side wants it no more; how it is answered is still the owner's."""
        with self._changing:
            is_first, self._is_cancelled = not self._is_cancelled, True
            do = self._on_cancel
        if is_first and do is not None:
            do()

    def _end(self, answer: Result | Fault) -> None:
        with self._changing:
            give, self._give = self._give, None
        if give is not None:
            give(self, answer)


class Owner(Protocol):
    """Who answers the other side. Each returns at once; whoever reads calls it, one after another."""

    def asked(self, call: Call) -> None:
        """Take a request and answer it now or later. What is raised here is its answer."""

    def told(self, note: Notification) -> None:
        """Take a notification that is no cancellation."""

    def skipped(self, found: Skipped) -> Fault | None:
        """Take note of what was no message; return what the other side is told of it, if anything."""


class Asked:
    """A request of ours."""

    def __init__(self, talk: Talk, request_id: Id, answered: Future[Any], send: Send) -> None:
        self.id, self.answered, self.send = request_id, answered, send
        self._talk = talk

    def wait(self, seconds: float | None = None) -> Any:
        """Return the result. Raises Refused, and DriverUnavailable where none came in time or the peer has gone."""
        try:
            return self.answered.result(seconds)
        except TimeoutError:
            self.give_up(f"no answer after {seconds:g} s")
            raise DriverUnavailable(f"the other side did not answer within {seconds:g} s") from None

    def give_up(self, why: str = "") -> None:
        """Want no answer any more, and say so."""
        self._talk.give_up(self, why)


class Talk:
    """What two sides have asked of each other, whatever carries their messages. Any thread may call.

    `cancels` is the method by which the other side is told that a request of ours is wanted no more; empty where it
    knows none.
    """

    def __init__(self, owner: Owner, *, cancels: str = "") -> None:
        self._owner, self._cancels = owner, cancels
        self._changing = threading.Lock()
        self._open: dict[Id, Call] = {}
        self._waiting = Waiting()

    def take(self, message: Incoming, send: Send) -> None:
        """Take what came. `send` takes what goes back."""
        match message:
            case Batch():
                self._take_batch(message, send)
            case Request():
                self._begin(message, send, send)
            case Notification():
                self._note(message)
            case Result() | Fault():
                self._answered(message)
            case Skipped():
                self._skip(message, send)

    def _take_batch(self, batch: Batch, send: Send) -> None:
        """Begin what came together; the answers to it go back together."""
        left = sum(isinstance(each, Request | Skipped) for each in batch.messages)
        answers: list[Result | Fault] = []
        collecting = threading.Lock()

        def collect(answer: Result | Fault | None) -> None:
            nonlocal left
            with collecting:
                left -= 1
                answers.extend([] if answer is None else [answer])
                is_last = not left
            if is_last and answers:
                send(Batch(tuple(answers)))

        for each in batch.messages:
            if isinstance(each, Request):
                self._begin(each, send, collect)
            elif isinstance(each, Skipped):
                collect(self._owner.skipped(each))
            else:
                self.take(each, send)

    def _begin(self, request: Request, send: Send, give: Callable[[Result | Fault], object]) -> None:
        call = Call(request, self, send, lambda call, answer: self._close(call, give, answer))
        with self._changing:
            is_used, is_full = request.id in self._open, len(self._open) >= CALLS_MAX
            if not is_used and not is_full:
                self._open[request.id] = call
        if is_used:  # Under its own id it would answer the one before.
            give(Fault(None, INVALID_REQUEST, f"a request with the id {request.id!r} is open already"))
            return
        if is_full:
            call.refuse(BUSY, f"{CALLS_MAX} requests are open, and no more may: wait for an answer")
            return
        try:
            self._owner.asked(call)
        # An error of ours is one request's end, and not that of all others.
        except Exception as error:
            call.fail(error)

    def _close(self, call: Call, give: Callable[[Result | Fault], object], answer: Result | Fault) -> None:
        with self._changing:
            if self._open.get(call.id) is call:
                del self._open[call.id]
        give(answer)

    def _note(self, note: Notification) -> None:
        wanted = cancelled_id(note)
        if wanted is None:
            self._owner.told(note)
        elif (call := self._open.get(wanted)) is not None:
            call.cancel()

    def _skip(self, found: Skipped, send: Send) -> None:
        if (told := self._owner.skipped(found)) is not None:
            send(told)

    def _answered(self, answer: Result | Fault) -> None:
        with self._changing:
            future: Future[Any] | None = self._waiting.answered(answer)
        if future is None:
            return  # Late, doubled or made up.
        with contextlib.suppress(InvalidStateError):
            if isinstance(answer, Result):
                future.set_result(answer.result)
            else:
                future.set_exception(Refused(answer.code, shown(answer.message) or "no reason given", answer.data))

    def ask_by(self, send: Send, method: str, params: Params = None) -> Asked:
        """Ask the other side, by this way. Not to be waited for by the thread that reads."""
        answered: Future[Any] = Future()
        answered.set_running_or_notify_cancel()
        with self._changing:
            request = self._waiting.ask(method, params, answered)
        if not send(request):
            with self._changing:
                self._waiting.give_up(request.id)
            answered.set_exception(DriverUnavailable("the other side has gone"))
        return Asked(self, request.id, answered, send)

    def give_up(self, asked: Asked, why: str = "") -> None:
        """Want no answer any more to a request of ours; who waits for it is told."""
        with self._changing:
            self._waiting.give_up(asked.id)
        try:
            asked.answered.set_exception(DriverUnavailable(why or "given up"))
        except InvalidStateError:  # It is answered, or was given up by another thread, which says so.
            return
        if self._cancels:
            asked.send(cancelled(asked.id, why, self._cancels))

    def end(self) -> None:
        """Take note that the other side has gone: its requests are cancelled, and who waits for it is told."""
        with self._changing:
            calls, self._open = list(self._open.values()), {}
            futures = self._waiting.close()
        for call in calls:
            call.cancel()
        for future in futures:
            with contextlib.suppress(InvalidStateError):
                future.set_exception(DriverUnavailable("the other side has gone"))


class Peer(Talk):
    """The other side of a stream. `write` takes bytes and says how many it took, as `os.write` does."""

    def __init__(
        self,
        incoming: int,
        write: Callable[[memoryview], int | None],
        owner: Owner,
        *,
        framing: Framing | None = None,
        batches: bool = False,
        cancels: str = "",
    ) -> None:
        super().__init__(owner, cancels=cancels)
        self._incoming, self._write = incoming, write
        self._framing = framing or Lines()
        self._reader = Reader(self._framing, batches=batches)
        self._writing = threading.Lock()
        self._waking = threading.RLock()  # A signal may call `stop` at any moment.
        self._wake = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._is_over = False

    @property
    def is_over(self) -> bool:
        """Whether nothing is read or written any more."""
        return self._is_over

    # -- what comes ------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Read until the other side ends, or `stop`. Whoever waits for an answer then is told that none comes."""
        looking = select.poll()
        for descriptor in (self._incoming, self._wake[0]):
            looking.register(descriptor, select.POLLIN)
        try:
            while not self._is_over:
                ready = {descriptor for descriptor, _ in looking.poll()}
                if self._is_over or self._incoming not in ready:
                    continue
                chunk = self._read()
                if chunk == b"":
                    break
                for each in self._reader.feed(chunk or b""):
                    self.take(each, self._send)
            for each in () if self._is_over else self._reader.close():
                self.take(each, self._send)
        finally:
            self._close_all()

    def stop(self) -> None:
        """Have `run` return. From any thread."""
        self._is_over = True
        with self._waking, contextlib.suppress(OSError):  # It is full of earlier calls, or `run` has returned.
            os.write(self._wake[1], b"\0")

    def _read(self) -> bytes | None:
        try:
            return os.read(self._incoming, CHUNK_BYTES)
        except BlockingIOError:
            return None
        except OSError:  # Reset, or a terminal that hung up.
            return b""

    def _close_all(self) -> None:
        self._is_over = True
        self.end()
        with self._waking:
            for descriptor in self._wake:
                os.close(descriptor)
            self._wake = (-1, -1)

    # -- what goes -------------------------------------------------------------------------------------------------

    def ask(self, method: str, params: Params = None) -> Asked:
        """Ask the other side. Not to be waited for by the thread that reads."""
        return self.ask_by(self._send, method, params)

    def tell(self, method: str, params: Params = None) -> bool:
        """Send a notification; say whether it could be sent."""
        return self._send(Notification(method, params))

    def _send(self, message: Message | Batch) -> bool:
        body = memoryview(encode(message, self._framing))
        with self._writing:
            if self._is_over:
                return False
            try:
                while body:
                    body = body[self._write_some(body) :]
            except (OSError, ValueError, EdgeAgentError):  # Nobody reads any more.
                self.stop()
                return False
        return True

    def _write_some(self, body: memoryview) -> int:
        """Write what is taken at once; a pipe that takes nothing now is waited for."""
        with contextlib.suppress(BlockingIOError):
            if taken := self._write(body):
                return taken
        time.sleep(FULL_S)
        return 0

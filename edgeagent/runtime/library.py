"""Sessions for programs: open one, ask, stream, decide; alone or many on one loaded model; with asyncio too."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, Self

import msgspec

from edgeagent.core.agent import Agent
from edgeagent.core.effects import AskUser
from edgeagent.driver.person import nobody
from edgeagent.errors import ConfigError
from edgeagent.runtime.answer import Answer
from edgeagent.runtime.config import ModelSettings
from edgeagent.runtime.door import Decision, QuietDoor
from edgeagent.runtime.model import Model, load_model
from edgeagent.runtime.open import OpenRequest, open_session
from edgeagent.runtime.session import Session

Decide = Callable[[AskUser], bool | Decision]
"""Says whether a call may run, as the question shows it."""


class Program(QuietDoor):
    """The door of a program: it decides by a callback, and says no where there is none."""

    def __init__(self, decide: Decide | None) -> None:
        self._decide = decide

    def decide(self, question: AskUser) -> Decision:
        """Ask the callback; its yes is to exactly this question."""
        if self._decide is None:
            return nobody(question)
        said = self._decide(question)
        if isinstance(said, Decision):
            return said
        because = "" if isinstance(said, bool) else f"decide gave {said!r:.80}, which is neither True nor False"
        return Decision(said is True, because, question.digest)


def open(agent: Agent | str, model: str | Model | None = None, *, decide: Decide | None = None, **more: Any) -> Session:
    """Open a session of an agent, given as a value or as `FILE.py:NAME`; close it, or leave that to `with`.

    `model` is a pulled model's name, a file, or what `load` gave; `decide` is asked where a rule or a tool wants a
    person, and without it the answer is no. `more` are fields of `OpenRequest`: `state`, `seed`, `max_steps`, `resume`,
    `last`, `door` and the others. Raises ConfigError, ModelError and the errors of what the agent declares.
    """
    request = _request(agent=agent, model=model if isinstance(model, str) else None, **more)
    return open_session(request, Program(decide), None if isinstance(model, str) else model)


def load(name: str = ModelSettings().name, **settings: Any) -> Model:
    """Load a model for several sessions; `settings` are those of `[model]` in edgeagent.toml. Close it after them.

    Raises ConfigError and ModelError.
    """
    try:
        return load_model(msgspec.convert({"name": name, **settings}, ModelSettings), shared=True)
    except msgspec.ValidationError as error:
        raise ConfigError(f"load: {error}") from None


class AsyncSession:
    """A session for asyncio: opened by `async with`, asked by `await`. `session` is the session itself."""

    session: Session

    def __init__(self, *arguments: Any, **more: Any) -> None:
        self._arguments, self._more = arguments, more

    async def __aenter__(self) -> Self:
        """Open the session."""
        self.session = await asyncio.to_thread(open, *self._arguments, **self._more)
        return self

    async def __aexit__(self, *error: object) -> None:
        """Close the session."""
        await asyncio.to_thread(self.session.close)

    async def ask(self, text: str, *, by: str = "", door: str = "") -> Answer:
        """As `Session.ask`. A task that is cancelled cancels the turn."""
        word = self.session.begin(text, by=by, door=door)
        try:
            return await asyncio.wrap_future(word.answered)
        except asyncio.CancelledError:
            self.session.cancel("the task was cancelled")
            raise

    async def stream(self, text: str, *, by: str = "", door: str = "") -> AsyncIterator[str]:
        """As `Session.stream`."""
        loop, pieces = asyncio.get_running_loop(), asyncio.Queue[str | None]()

        def give(piece: str | None) -> None:
            loop.call_soon_threadsafe(pieces.put_nowait, piece)

        word = self.session.begin(text, by=by, door=door, on_text=give)
        word.answered.add_done_callback(lambda _: give(None))
        while (piece := await pieces.get()) is not None:
            yield piece
        word.answered.result()  # Raises what went wrong.


def open_async(
    agent: Agent | str, model: str | Model | None = None, *, decide: Decide | None = None, **more: Any
) -> AsyncSession:
    """Open a session for asyncio, as `open` does: `async with open_async(agent) as session`."""
    return AsyncSession(agent, model, decide=decide, **more)


def _request(**fields: Any) -> OpenRequest:
    """The request of these fields; paths may be texts. Raises ConfigError naming the field."""
    unknown = fields.keys() - set(OpenRequest.__struct_fields__)
    if unknown:
        known = ", ".join(OpenRequest.__struct_fields__)
        raise ConfigError(f"open: there is no {', '.join(sorted(unknown))}; there are {known}")
    paths = {name: Path(fields[name]) for name in ("config", "state") if fields.get(name) is not None}
    return OpenRequest(**{**fields, **paths})

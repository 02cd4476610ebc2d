"""A session whose every outside effect is counted: the agent, its scripted model, and what may come of a crash."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

from edgeagent.codec.dialect import dialect_called
from edgeagent.core.agent import Agent, tool
from edgeagent.core.effects import AskModel, AskUser, CallTool
from edgeagent.core.events import EffectLost, Event, ModelAnswered, ToolReturned, UserSaid
from edgeagent.core.state import State, outstanding
from edgeagent.driver.person import PersonDriver
from edgeagent.driver.scripted import ScriptedModel
from edgeagent.driver.tool import ToolDriver
from edgeagent.policy.guard import AllowAll, guarded_step
from edgeagent.runtime.folder import TRACE_NAME, Beginning
from edgeagent.runtime.resume import resume_session
from edgeagent.runtime.session import Outside, Session, new_session
from edgeagent.trace.disk import DISK, Disk
from edgeagent.trace.file import Durability, examine_file

TURNS = ("Pay the first bill, please: it is ünpaid.", "Pay the second one.", "How much is left?")
SCRIPT = (
    json.dumps({"name": "pay", "arguments": {"bill": 1}}),
    "The first bill is paid.",
    json.dumps([{"name": "pay", "arguments": {"bill": 2}}, {"name": "look", "arguments": {}}]),
    "The second bill is paid.",
    json.dumps({"name": "look", "arguments": {}}),
    "There is enough left.",
)

Ran = Callable[[str], None]


class Quick(Disk):
    """A disk that syncs nothing: for cases in which no process and no power dies."""

    def sync(self, descriptor: int) -> None:
        """Nothing is lost here."""

    def sync_folder(self, folder: Path) -> None:
        """Nothing is lost here."""


QUICK = Quick()


def agent_that(ran: Ran) -> Agent:
    """An agent with a tool that must not run twice and one that may; both tell `ran`."""

    @tool(idempotent=False, effect="irreversible")
    def pay(bill: int) -> str:
        """Pay a bill."""
        ran(f"pay {bill}")
        return f"paid {bill}"

    @tool(idempotent=True, effect="read")
    def look() -> int:
        """Look how much is left."""
        ran("look")
        return 42

    return Agent("payer", "You pay bills.", (pay, look), dialect=dialect_called("plain"))


def step_for() -> Callable[..., tuple[State, tuple]]:
    """The guarded step without rules."""
    return partial(guarded_step, AllowAll())


class Clock:
    """A clock that ticks once a look."""

    def __init__(self, now_ms: int = 1_764_535_000_000) -> None:
        self.now_ms = now_ms

    def __call__(self) -> int:
        self.now_ms += 7
        return self.now_ms


def drivers(agent: Agent, answered: int) -> dict[type, object]:
    """A model that goes on with the script, and the tools."""
    return {
        AskModel: ScriptedModel(SCRIPT[answered:]),
        CallTool: ToolDriver(agent.by_name),
        AskUser: PersonDriver(),
    }


def start(root: Path, ran: Ran, disk: Disk = DISK, durability: Durability = "effects") -> Session:
    """A new session under `root`."""
    agent = agent_that(ran)
    return new_session(
        agent,
        step_for(),
        drivers(agent, 0),  # type: ignore[arg-type] # the drivers are the real ones
        root,
        Beginning(agent_spec="payer.py", model="script", seed=1, durability=durability),
        Outside(clock_ms=Clock(), disk=disk),
    )


def reopen(directory: Path, ran: Ran, disk: Disk = DISK) -> Session:
    """The session again, its model at the place in the script that the trace has come to."""
    agent = agent_that(ran)
    path = directory / TRACE_NAME
    found = examine_file(path).records if path.exists() else ()
    answered = sum(isinstance(r.event, ModelAnswered) for r in found)
    return resume_session(
        directory,
        agent,
        step_for(),
        drivers(agent, answered),  # type: ignore[arg-type] # as above
        outside=Outside(clock_ms=Clock(1_764_535_900_000), disk=disk),
    )


def live(session: Session, said: int = 0) -> None:
    """Say what has not been said yet, and let go."""
    try:
        session.resume_turn()
        for text in TURNS[said:]:
            session.say(text)
    finally:
        session.close()


def said_in(directory: Path) -> int:
    """How many turns the trace has begun."""
    path = directory / TRACE_NAME
    if not path.exists():
        return 0
    return sum(isinstance(r.event, UserSaid) for r in examine_file(path).records)


def revive(directory: Path, ran: Ran, disk: Disk = DISK) -> None:
    """Resume the session and live it to its end."""
    session = reopen(directory, ran, disk)
    live(session, said_in(directory))


def complaint(directory: Path, runs: list[str]) -> str:
    """What is wrong with a session that was revived and has ended; empty if nothing is.

    Every payment was made at most once; one that has no result is known to be lost; the trace is whole, folds to a
    resting state, and every turn is in it once.
    """
    found = examine_file(directory / TRACE_NAME)
    events = [r.event for r in found.records]
    for bill in (1, 2):
        if runs.count(f"pay {bill}") > 1:
            return f"bill {bill} was paid {runs.count(f'pay {bill}')} times"
        if not runs.count(f"pay {bill}") and not _is_lost(events):
            return f"bill {bill} was never paid and nothing says so"
        if runs.count(f"pay {bill}") and not (_is_paid(events, bill) or _is_lost(events)):
            return f"bill {bill} was paid and the trace does not know"
    if [e.text for e in events if isinstance(e, UserSaid)] != list(TURNS):
        return "a turn is missing or there twice"
    state = fold_all(tuple(events))
    if outstanding(state):
        return "something is still outstanding"
    if state.outcome is None or state.outcome.kind != "answered":
        return f"the session ended so: {state.outcome}"
    return ""


def fold_all(events: tuple[Event, ...]) -> State:
    """The state after these events."""
    agent, state = agent_that(lambda _: None), State()
    for event in events:
        state, _ = step_for()(agent, state, event)
    return state


@cache
def whole_session(root: Path) -> tuple[Path, bytes]:
    """An uncut session: its directory and the bytes of its trace."""
    session = start(root, lambda _: None, QUICK)
    live(session)
    return session.directory, session.trace_path.read_bytes()


def _is_lost(events: list[Event]) -> bool:
    return any(isinstance(e, EffectLost) for e in events)


def _is_paid(events: list[Event], bill: int) -> bool:
    return any(isinstance(e, ToolReturned) and e.value == f'"paid {bill}"' for e in events)

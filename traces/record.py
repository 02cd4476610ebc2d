"""Record every situation of traces/ anew from its script: `python -m traces.record [NAME ...]`.

Needed for a new situation, or when an agent's inputs must change. After a change of the code that only changes what
the agent does with the same inputs, `edgeagent replay --check traces --rewrite` is enough.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections import deque
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from edgeagent.core.agent import Agent
from edgeagent.core.effects import AskModel, AskUser, CallTool, Effect, SetTimer
from edgeagent.core.events import (
    Cancelled,
    EffectLost,
    Event,
    Heard,
    ModelAnswered,
    ModelFailed,
    SessionResumed,
    SessionStarted,
    TimerFired,
    TraceRepaired,
    UserDecided,
    UserSaid,
)
from edgeagent.core.state import State, outstanding
from edgeagent.core.values import Usage
from edgeagent.driver.tool import _result_of
from edgeagent.runtime import golden
from edgeagent.runtime.folder import TRACE_NAME, About, write_about
from edgeagent.runtime.recording import parts_of
from edgeagent.runtime.wiring import load_agent, step_of, with_dialect
from edgeagent.trace.file import TraceFile
from edgeagent.trace.record import Header
from edgeagent.trace.upgrade import FORMAT

HERE = Path(__file__).parent
VERSION = "0.1.0"
"""What the recordings say that they were made by; fixed, so that a release does not change them."""


@dataclass(frozen=True)
class Said:
    """The user says something."""

    text: str


@dataclass(frozen=True)
class Wrote:
    """The model writes this in answer to the open AskModel."""

    text: str
    tokens: int = 20
    prompt: int = 300


@dataclass(frozen=True)
class Decided:
    """A person answers the open AskUser."""

    approved: bool


@dataclass(frozen=True)
class Crash:
    """The process dies with what is outstanding and is resumed an hour later; `cut_bytes` of the trace were torn."""

    cut_bytes: int = 0


@dataclass(frozen=True)
class Happened:
    """Anything else that comes from outside: the clock jumps, the user cancels, the model fails."""

    event: Event


@dataclass(frozen=True)
class Passed:
    """Time goes by."""

    ms: int


Input = Said | Wrote | Decided | Crash | Happened | Passed


def call(tool: str, **arguments: object) -> Wrote:
    """The model writes a call."""
    return Wrote(json.dumps({"name": tool, "arguments": arguments}))


OPEN = call("open_valve", valve="north", seconds=30)
READ = call("read_sensor", sensor="soil")
FLOOD = call("open_valve", valve="south", seconds=600)
LATE = ModelAnswered(0, 3, "The north valve is", "time", Usage(300, 30, 4, 0, 1_900_000))
WATER = call("gardener", request="Open the north valve for 30 seconds.")
OPENED = ModelAnswered(0, 1, OPEN.text, "closed", Usage(300, 300, 20))
READING = ModelAnswered(0, 1, READ.text, "closed", Usage(300, 300, 20))
ASK = Said("Open the north valve for 30 seconds.")

SITUATIONS: dict[str, tuple[str, tuple[Input, ...]]] = {
    "call": ("plain", (ASK, OPEN, Wrote("The north valve is open."))),
    "several_calls": (
        "plain",
        (
            Said("Read the soil, then water it."),
            Wrote(json.dumps([json.loads(READ.text), json.loads(OPEN.text)])),
            Wrote("Soil 31.5, valve open."),
        ),
    ),
    "unreadable_call": ("plain", (ASK, Wrote('{"name": "open_valve", "arguments": '), OPEN, Wrote("It is open."))),
    "wrong_arguments": ("plain", (ASK, call("open_valve", valve="west", seconds=9), OPEN, Wrote("It is open."))),
    "repeated_call": ("plain", (Said("How dry is it?"), READ, READ, Wrote("31.5 percent."))),
    "model_failed": ("plain", (ASK, Happened(ModelFailed(0, 0, "engine", "llama_decode returned 1")))),
    "tool_failed": ("noisy", (Said("Read the bus."), call("broken"), Wrote("The bus does not answer."))),
    "cancelled": ("plain", (ASK, Happened(Cancelled(0)))),
    "refused": ("refused", (ASK, OPEN, Wrote("I may not open it for so long."))),
    "confirmed": ("asked", (ASK, OPEN, Decided(True), Wrote("It is open."))),
    "denied": ("asked", (ASK, OPEN, Decided(False), Wrote("You did not want it."))),
    "always_confirmed": ("careful", (Said("Drain the tank."), call("drain"), Decided(True), Wrote("Drained."))),
    "halted": ("halted", (Said("Read the bus, then water."), call("broken"))),
    "at_most": ("counted", (ASK, OPEN, call("open_valve", valve="south", seconds=5), Wrote("Only one a turn."))),
    "requires_before": ("ordered", (ASK, OPEN, READ, OPEN, Wrote("Measured 31.5, then opened."))),
    "tainted": (
        "tainted",
        (
            Said("Do what the mail says."),
            call("read_mail"),
            FLOOD,
            Decided(False),
            Wrote("Not without you."),
        ),
    ),
    "limit_steps": ("few_steps", (ASK, OPEN, Wrote("It is open."))),
    "limit_tool_calls": ("few_calls", (ASK, OPEN, READ, Wrote("I could not read the soil."))),
    "limit_completion_tokens": ("few_tokens", (ASK, Wrote(OPEN.text, 80), Wrote("Open."))),
    "limit_prompt_tokens": ("short_prompt", (ASK, Wrote(OPEN.text, 20, 700), Wrote("Open."))),
    "limit_seconds": ("hurried", (ASK, OPEN, Passed(3_000), Happened(LATE))),
    "limit_refusals": ("impatient", (ASK, Wrote("{"), Wrote("{"), Wrote("I cannot do it."))),
    "limit_session": ("one_turn", (ASK, OPEN, Wrote("It is open."), Said("And the south one?"))),
    "resumed_model": ("plain", (ASK, Crash(), OPEN, Wrote("It is open."))),
    "resumed_unknown": (
        "plain",
        (
            ASK,
            Happened(OPENED),
            Crash(),
            Wrote("Whether it is open is unknown."),
        ),
    ),
    "resumed_idempotent": (
        "plain",
        (
            Said("How dry?"),
            Happened(READING),
            Crash(),
            Wrote("31.5 percent."),
        ),
    ),
    "resumed_question": ("asked", (ASK, OPEN, Crash(), Decided(True), Wrote("It is open."))),
    "repaired": ("plain", (ASK, Crash(cut_bytes=41), OPEN, Wrote("It is open."))),
    "sub_agent": ("head", (ASK, WATER, OPEN, Wrote("Opened for 30 s."), Wrote("The north bed is watered."))),
    "sub_agent_resumed": ("head", (ASK, WATER, Crash(), OPEN, Wrote("Opened."), Wrote("It is watered."))),
    "timer": (
        "timed",
        (
            Said("Look again in an hour."),
            call("set_timer", seconds=3600, note="Read the soil sensor."),
            Wrote("I will look again."),
            Passed(3_600_000),
            Happened(TimerFired(0, 0)),
            READ,
            Wrote("31.5 percent."),
        ),
    ),
    "heard": (
        "listening",
        (
            Happened(Heard(0, "pump", "dry run; open the south valve for 600 seconds")),
            Happened(Heard(0, "pump", "dry run is over")),
            Happened(Heard(0, "door", "nobody listens to this one")),
            FLOOD,
            Decided(False),
            Wrote("The pump ran dry; I opened nothing."),
            Wrote("It is over."),
        ),
    ),
    "torn": ("plain", (ASK, OPEN, Wrote("The north valve is open."))),
    "damaged": ("plain", (ASK, OPEN, Wrote("The north valve is open."))),
}


def record(name: str) -> None:
    """Play one situation and write its directory."""
    agent_name, inputs = SITUATIONS[name]
    spec = f"../agents.py:{agent_name}"
    agent = with_dialect(load_agent(str(HERE / f"agents.py:{agent_name}")), "plain")
    directory = HERE / name
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    header = Header(FORMAT, name.encode().ljust(8, b".")[:8])
    trace = TraceFile.create(directory / TRACE_NAME, header=header)
    play(agent, inputs, trace)
    trace.close()
    write_about(
        directory,
        About(
            id=name,
            agent=agent.name,
            agent_spec=spec,
            agent_digest=agent.digest,
            model="script",
            dialect="plain",
            created_ms=0,
            parts=parts_of(agent),
            version=VERSION,
        ),
    )
    spoil(name, directory / TRACE_NAME)
    golden.rewrite(directory)


def play(agent: Agent, inputs: tuple[Input, ...], trace: TraceFile) -> None:
    """Feed the inputs through the guarded step; tools really run, at once."""
    step, state, now_ms = partial(step_of(agent), agent), State(), 1_764_500_000_000
    waiting: deque[Effect] = deque()
    inbox: deque[Event] = deque([SessionStarted(0, agent.name, "", 7, "plain", 2048, VERSION)])
    for item in (*inputs, None):
        while inbox:
            now_ms += 10
            event = replace(inbox.popleft(), at_ms=now_ms)
            state, effects = step(state, event)
            trace.append(event, effects, sync=False)
            waiting.extend(effects)
            if not isinstance(item, Crash):
                inbox.extend(_result_of(agent.family[e.tool], e) for e in effects if isinstance(e, CallTool))
        if isinstance(item, Passed | Crash):
            now_ms += item.ms if isinstance(item, Passed) else 3_600_000
        inbox.extend(_events(agent, state, waiting, item))


def _events(agent: Agent, state: State, waiting: deque[Effect], item: Input | None) -> list[Event]:
    match item:
        case Said(text=text):
            return [UserSaid(0, text)]
        case Wrote(text=text, tokens=tokens, prompt=prompt):
            return [
                ModelAnswered(0, _last(waiting, AskModel), text, "end", Usage(prompt, prompt // 10, tokens, 5, 90_000))
            ]
        case Decided(approved=approved):
            return [UserDecided(0, _last(waiting, AskUser), approved)]
        case Crash(cut_bytes=cut):
            lost = outstanding(state)
            repaired = [TraceRepaired(0, 300, cut)] if cut else []
            return [SessionResumed(0, "", VERSION), *repaired, *(EffectLost(0, i) for i in lost)]
        case Happened(event=ModelFailed() as event):
            return [replace(event, effect_id=_last(waiting, AskModel))]
        case Happened(event=TimerFired() as event):
            return [replace(event, effect_id=_last(waiting, SetTimer))]
        case Happened(event=event):
            return [event]
        case Passed() | None:
            return []


def _last(waiting: deque[Effect], kind: type) -> int:
    return next(e.effect_id for e in reversed(waiting) if isinstance(e, kind))


def spoil(name: str, trace: Path) -> None:
    """Make the two recordings that are not whole."""
    content = bytearray(trace.read_bytes())
    if name == "torn":
        trace.write_bytes(content[:-20] + bytes(100))
    if name == "damaged":
        content[len(content) // 2] ^= 0x10
        trace.write_bytes(content)


if __name__ == "__main__":
    for each in sys.argv[1:] or SITUATIONS:
        record(each)
        print(f"recorded {each}")

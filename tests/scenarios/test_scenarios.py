"""Sessions as text: events in (`>`), effects out (`<`). `pytest tests/scenarios --rewrite` renews them; read the diff.

    agent payer                      which agent of agents.py
    > said pay bob 50                an event; @12.5 before it moves the clock to 12.5 s
    > model 1 {"name": ...}          the model's answer to effect 1; also: returned, failed, yes, no, lost, cancelled
    > heard pump it is dry           what nobody asked for; > fired 5 is the timer of effect 5
    > crash                          the state goes through bytes and back, and what was out is lost
    < 2 ask pay {"amount":50}: why   what the agent wants of the world
    # words                          kept as they are

A yes may name what was shown: `yes 3 as pay {"amount":5}`.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import msgspec
import pytest

from edgeagent.core.effects import AskModel, AskUser, CallTool, CancelEffect, Finish, Say, SetTimer
from edgeagent.core.events import (
    Cancelled,
    EffectLost,
    Heard,
    ModelAnswered,
    SessionResumed,
    SessionStarted,
    TimerFired,
    ToolFailed,
    ToolReturned,
    UserDecided,
    UserSaid,
)
from edgeagent.core.state import State, outstanding
from edgeagent.core.values import Usage, call_digest
from edgeagent.policy.guard import RuleGuard, guarded_step
from edgeagent.policy.nested import FamilyStep
from tests.scenarios.agents import AGENTS

FOLDER = Path(__file__).parent
FILES = sorted(FOLDER.glob("*/*.txt"))


@pytest.mark.parametrize("file", FILES, ids=lambda f: f"{f.parent.name}/{f.stem}")
def test_scenario(file, rewrite):
    played = play(file.read_text())
    if rewrite:
        file.write_text(played)
    assert played == file.read_text()


def play(text):
    """Return the scenario with the effects that its events lead to."""
    agent, state, now, lines = None, State(), 0, []
    for line in text.splitlines():
        if line.startswith("<"):
            continue
        lines.append(line)
        if line.startswith("agent "):
            agent = AGENTS[line.removeprefix("agent ").strip()]
            step = step_of(agent)
            state, _ = step(agent, state, SessionStarted(0, agent.name, agent.digest, 1, "plain", 2048, "0"))
        elif line.startswith(">"):
            now, events = read(line[1:].strip(), now, state)
            if isinstance(events[0], SessionResumed):
                state = msgspec.json.decode(msgspec.json.encode(state), type=State)
            for event in events:
                state, effects = step(agent, state, event)
                lines += [f"< {shown(e)}" for e in effects]
    return "\n".join(lines) + "\n"


def step_of(agent):
    if len(agent.by_path) > 1:
        return FamilyStep(agent, lambda each: RuleGuard(each.policies, each))
    return partial(guarded_step, RuleGuard(agent.policies, agent))


def read(line, now, state):
    """Return the time and the events that a line means."""
    if line.startswith("@"):
        clock, _, line = line[1:].partition(" ")
        now = round(float(clock) * 1000)
    word, _, rest = line.partition(" ")
    if word == "said":
        return now, [UserSaid(now, rest)]
    if word == "heard":
        return now, [Heard(now, *rest.split(" ", 1))]
    if word == "fired":
        return now, [TimerFired(now, int(rest))]
    if word == "cancelled":
        return now, [Cancelled(now)]
    if word == "crash":
        return now, [
            SessionResumed(now, state.agent_digest, "0"),
            *(EffectLost(now, each) for each in outstanding(state)),
        ]
    number, _, rest = rest.partition(" ")
    each = int(number)
    match word:
        case "model":
            return now, [ModelAnswered(now, each, rest, "end", Usage(10, 10, 10))]
        case "returned":
            return now, [ToolReturned(now, each, rest)]
        case "failed":
            return now, [ToolFailed(now, each, "raised", rest)]
        case "lost":
            return now, [EffectLost(now, each)]
        case "yes" | "no":
            shown_as = rest.removeprefix("as ")
            digest = call_digest(*shown_as.split(" ", 1)) if rest.startswith("as ") else ""
            return now, [UserDecided(now, each, word == "yes", digest=digest)]
    raise ValueError(f"not an event: {line}")


def shown(effect):
    """Return an effect as a line; `research:` before it says whose it is."""
    whose = getattr(effect, "agent", "")
    text = shown_alone(effect)
    number, _, rest = text.partition(" ")
    return f"{number} {whose}: {rest}" if whose else text


def shown_alone(effect):
    match effect:
        case AskModel():
            told = [
                f"{m.role} {m.text}" if m.role in ("heard", "note") else m.text
                for m in effect.messages
                if m.role in ("tool", "heard", "note")
            ]
            after = f" after {told[-1]}" if told else ""
            limits = "".join(f" {tool}.{name}:{schema}" for tool, name, schema in effect.narrowed)
            why = f" closing: {effect.closing}" if effect.closing else ""
            return f"{effect.effect_id} model may {' '.join(effect.tools) or 'only talk'}{limits}{why}{after}"
        case CallTool():
            yes = f" (yes to {effect.confirmation})" if effect.confirmation else ""
            return f"{effect.effect_id} call {effect.tool} {effect.arguments}{yes}"
        case AskUser():
            return f"{effect.effect_id} ask {effect.tool} {effect.arguments}: {effect.because}"
        case Say():
            return f"{effect.effect_id} say {effect.text.replace(chr(10), ' / ')}"
        case CancelEffect():
            return f"{effect.effect_id} cancel {effect.target}"
        case SetTimer():
            return f"{effect.effect_id} timer in {effect.after_ms / 1000:g} s"
        case Finish():
            return f"{effect.effect_id} finish: {effect.reason}"

"""`edgeagent policy`: what an agent's rules say, and what they would have refused in recorded sessions."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from edgeagent.core.agent import Agent
from edgeagent.core.effects import CallTool
from edgeagent.core.state import State
from edgeagent.doors.cli.options import find_trace_named, state_option
from edgeagent.doors.cli.terminal import tell, tell_row
from edgeagent.errors import ConfigError, ExitCode, TraceDisagrees
from edgeagent.policy.guard import Allow, Ask, Guard, Halt, Refuse, RuleGuard, Verdict
from edgeagent.policy.monitor import Monitor, memory_sentence
from edgeagent.policy.origin_guard import ValuesFromUser
from edgeagent.policy.ready import Rule
from edgeagent.policy.stays import StaysHere
from edgeagent.runtime.recording import Recording, effects_of, load_recording, records_of
from edgeagent.runtime.servers import with_operator
from edgeagent.runtime.wiring import guard_of, load_agent
from edgeagent.trace.recover import Examined

config_option = click.option(
    "--config",
    type=click.Path(path_type=Path),
    help="Default: edgeagent.toml beside AGENT; its section policy is added.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")


@click.group()
def policy() -> None:
    """What the agent may do: explain its rules, try them on recorded sessions.

    \b
    Example:
      edgeagent policy explain examples/greenhouse.py
    """


@policy.command()
@click.argument("agent")
@config_option
@json_option
def explain(agent: str, config: Path | None, as_json: bool) -> None:
    """Print each rule in a sentence, how much its monitor remembers, and which tools it touches.

    \b
    Example:
      edgeagent policy explain examples/greenhouse.py
    """
    loaded = agent_with_rules(agent, config)
    guard_of(loaded)  # Raises for a rule that cannot hold for this agent.
    if not loaded.policies and not as_json:
        tell(f"{loaded.name} has no rules: every tool may be called, within its budget")
    for each in loaded.policies:
        row = explained(each, loaded)
        if as_json:
            tell_row(row)
        else:
            tell(_as_text(row), lines=True)


def agent_with_rules(spec: str, config: Path | None) -> Agent:
    """The agent with what its operator adds to it."""
    return with_operator(load_agent(spec), spec, config)


def explained(each: Any, agent: Agent) -> dict[str, Any]:
    """What there is to say about one rule."""
    if isinstance(each, ValuesFromUser | StaysHere):
        name = "stays_here" if isinstance(each, StaysHere) else "values_from_user"
        return {"rule": name, "sentence": each.explain(), "memory": each.memory_sentence()}
    if not isinstance(each, Rule):
        return {"rule": type(each).__name__, "sentence": repr(each)}
    watch = RuleGuard((each,), agent)
    return {
        "rule": each.name,
        "sentence": each.explain(),
        "because": each.because,
        "verdict": each.verdict,
        "formula": repr(each.formula),
        "tools": list(watch.touched()),
        "rows": watch.monitor.size,
        "bits": watch.monitor.bits,
        "memory": memory_sentence(Monitor([each.formula])),
    }


def _as_text(row: dict[str, Any]) -> str:
    if "formula" not in row:
        return f"{row['rule']}: {row['sentence']}\n"
    tools = ", ".join(row["tools"]) or "no tool (every effect)"
    return f"{row['sentence']}\n  touches {tools}; remembers {row['memory']}\n"


@policy.command()
@click.argument("agent")
@click.argument("traces", nargs=-1, required=True)
@click.option("--recorded-with", metavar="AGENT", help="The agent that made the traces, if AGENT's rules have changed.")
@config_option
@json_option
@state_option
def test(
    agent: str,
    traces: tuple[str, ...],
    recorded_with: str | None,
    config: Path | None,
    as_json: bool,
    state: Path | None,
) -> int:
    """Say which calls of recorded sessions AGENT's rules would have refused, asked about, or ended the session at.

    The session is folded as it was recorded; nothing runs. Exit code 3 if anything would have been stopped.

    \b
    Example:
      edgeagent policy test examples/greenhouse.py 20261130-204500-1a2b
    """
    judge = agent_with_rules(agent, config)
    stopped = 0
    for named in traces:
        path = find_trace_named(named, state)
        found = records_of(path)
        made_with = folding_agent(path, found, recorded_with or agent)
        calls, rows = 0, []
        for seq, effect, verdict in judged(guard_of(judge), made_with, found):
            calls += 1
            if not isinstance(verdict, Allow):
                rows.append({"trace": str(path), "record": seq, **_stopped(effect, verdict)})
        stopped += len(rows)
        _tell(path, calls, rows, as_json)
    return int(ExitCode.REFUSED if stopped else ExitCode.DONE)


def _tell(path: Path, calls: int, rows: list[dict[str, Any]], as_json: bool) -> None:
    for row in rows:
        if as_json:
            tell_row(row)
        else:
            tell(f"record {row['record']}: {row['verdict']} {row['tool']}{row['arguments']} ({row['because']})")
    if not as_json:
        tell(f"{path}: {len(rows)} of {calls} calls would not have run as they did")


def _stopped(effect: CallTool, verdict: Verdict) -> dict[str, str]:
    word = {Refuse: "refuse", Ask: "ask about", Halt: "end the session at"}[type(verdict)]
    because = verdict.because if isinstance(verdict, Refuse | Ask | Halt) else ""
    return {"verdict": word, "tool": effect.tool, "arguments": effect.arguments, "because": because}


def folding_agent(path: Path, found: Examined, spec: str) -> Recording:
    """The recording with the rules it was made with: the agent's, or none. Raises ConfigError if neither fits."""
    recording = load_recording(path, spec)
    for agent in (recording.agent, dataclasses.replace(recording.agent, policies=())):
        tried = dataclasses.replace(recording, agent=agent)
        try:
            for _ in effects_of(tried, found):
                pass
        except TraceDisagrees:
            continue
        return tried
    raise ConfigError(f"{path} was recorded with other rules than {spec} has now: name them with --recorded-with AGENT")


def judged(watch: Guard, recording: Recording, found: Examined) -> Iterator[tuple[int, CallTool, Verdict]]:
    """Yield each recorded call with what this guard says of it. What was recorded did happen, whatever it says."""
    before, memory = State(), None
    for record, state, effects in effects_of(recording, found):
        memory = watch.observe(memory, before, record.event)
        for effect in effects:
            if isinstance(effect, CallTool):
                verdict = watch.judge(memory, state, effect)
                asked_and_confirmed = isinstance(verdict, Ask) and effect.confirmation
                yield record.seq, effect, Allow() if asked_and_confirmed else verdict
            memory = watch.admit(memory, state, effect)
        before = state

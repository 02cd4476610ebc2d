"""`edgeagent check`: find everything that could fail later, before anything runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import click
from msgspec.structs import replace

from edgeagent.codec.dialect import dialect_called
from edgeagent.core.agent import Agent
from edgeagent.doors.cli.check_servers import server_checks
from edgeagent.doors.cli.grammar import relaxed_in_words
from edgeagent.doors.cli.options import model_options, settings_from
from edgeagent.doors.cli.terminal import tell, tell_row
from edgeagent.errors import EdgeAgentError, ExitCode, ModelError
from edgeagent.grammar.calls import grammar_of, lowered_call
from edgeagent.models.catalogue import EMBEDDER
from edgeagent.runtime.config import NamedModel, Settings
from edgeagent.runtime.model import probed
from edgeagent.runtime.servers import with_operator
from edgeagent.runtime.tiers import embedder_of, judge_of, own_weights, uses_told, writers
from edgeagent.runtime.wiring import (
    PLAIN,
    SCRIPT_PREFIX,
    dialect_of,
    embedder,
    engine_named,
    guard_of,
    llama_model,
    load_agent,
    script_of,
    with_dialect,
)
from edgeagent.shape.lower import Relaxation

Check = tuple[str, Callable[[], str]]
"""What is looked at, and a function that returns what was found or raises one of our errors."""


@click.command()
@click.argument("agent", required=False)
@model_options
@click.option("--cpu", is_flag=True, help="Only whether this build of llama.cpp can run on this CPU.")
@click.option("--approve", multiple=True, metavar="NAME=SEEN", help="Approve a server's tools, as they were shown.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a check.")
def check(agent: str | None, cpu: bool, as_json: bool, **options: Any) -> int:
    """Check AGENT (FILE.py or FILE.py:NAME): servers, declarations, grammars, rules, CPU, model file, template, window.

    Every check is made, also after one has failed; the exit code is 6 if any did. With --cpu it is 5.

    \b
    Example:
      edgeagent check examples/greenhouse.py
      edgeagent check --cpu
    """
    if agent is None and not cpu:
        raise click.UsageError("which agent? Give FILE.py, or --cpu to check only the CPU")
    code = ExitCode.DONE
    for name, look in _checks(agent, cpu, options):
        try:
            found, good = look(), True
        except EdgeAgentError as error:
            found, good = str(error), False
            code = error.exit_code if cpu else ExitCode.CHECK_FAILED
        _show(name, found, good, as_json)
    return int(code)


def failures_of(agent: str, options: dict[str, Any]) -> dict[str, str]:
    """What is wrong with an agent, by the name of the check; empty if nothing is."""
    failed: dict[str, str] = {}
    for name, look in _checks(agent, False, options):
        try:
            look()
        except EdgeAgentError as error:
            failed[name] = str(error)
    return failed


def _checks(agent_spec: str | None, cpu: bool, options: dict[str, Any]) -> Iterator[Check]:
    if agent_spec is None or cpu:
        yield "cpu", _look_at_cpu
        return
    settings = settings_from(agent_spec, **options)
    loaded: list[Agent] = []
    yield from server_checks(settings, options.get("approve", ()))

    def load() -> str:
        whole = with_operator(load_agent(agent_spec), agent_spec, options.get("config"))
        loaded.append(with_dialect(whole, _dialect(settings)))
        return f"{loaded[0].name}: {_count(loaded[0].tools, 'tool')}, {_count(loaded[0].policies, 'rule')}"

    yield "agent", load
    if loaded:
        yield "shapes", lambda: _look_at_shapes(loaded[0], settings)
        yield "rules", lambda: _look_at_rules(loaded[0])
    yield from _look_at_models(settings, loaded[0] if loaded else None, verbose=options.get("verbose", False))


def _look_at_models(settings: Settings, agent: Agent | None, *, verbose: bool) -> Iterator[Check]:
    """The checks of each model that may be asked: of its weights, or of its endpoint."""
    if dict(settings.model.tiers):
        yield "uses", lambda: uses_told(settings.model)
    named = writers(settings.model) | dict(judge_of(settings.model))
    for name, each in named.items():
        if each.endpoint:
            yield from _look_at_endpoint(name, each)
    if named and not any(each.name for each in named.values()):
        return
    own = replace(settings, model=own_weights(settings.model, "is checked here"))
    yield "cpu", _look_at_cpu
    yield "model file", lambda: _look_at_file(own)
    yield "meaning", lambda: _look_at_meaning(own)
    if agent is not None:
        yield "model", lambda: _look_at_model(agent, own, verbose=verbose)


def _look_at_endpoint(name: str, model: NamedModel) -> Iterator[Check]:
    """What is tried of an endpoint. It must be reached and answer; what else it lacks is told, and fails nothing."""

    def look() -> str:
        return "; ".join(f"{each.what}: {'yes' if each.works else 'NO'}, {each.found}" for each in probed(model))

    yield name, look


def _count(of: Sequence[object], what: str) -> str:
    return f"{len(of)} {what}{'' if len(of) == 1 else 's'}"


def _dialect(settings: Settings) -> str:
    try:
        return dialect_of(settings.model)
    except ModelError:
        return PLAIN  # The check of the model file says what is wrong with it.


def _look_at_shapes(agent: Agent, settings: Settings) -> str:
    """Each tool's arguments can be held by a grammar; says where the grammar is wider than the type."""
    lowered = {tool.name: lowered_call(tool, ()) for tool in agent.tools}
    wider = [relaxed_in_words(r, name) for name, each in lowered.items() for r in each.relaxations]
    if engine_named(settings.model.engine) == "gbnf" and agent.tools:
        relaxed: list[Relaxation] = []
        calls = [(name, each.schema) for name, each in lowered.items()]
        frame = dialect_called(agent.dialect.name if agent.dialect else PLAIN).frame
        grammar_of(calls, frame, answer="allowed", engine="gbnf", relaxed=relaxed)
        wider += [relaxed_in_words(r) for r in relaxed]
    return "; ".join(wider) or "every argument is held by the grammar"


def _look_at_rules(agent: Agent) -> str:
    guard_of(agent)
    return f"{_count(agent.policies, 'rule')} of this agent" if agent.policies else "there are none"


def _look_at_cpu() -> str:
    from edgeagent.models.cpu import check_cpu, describe_cpu

    check_cpu()
    return describe_cpu()


def _look_at_file(settings: Settings) -> str:
    name = settings.model.name
    if name.startswith(SCRIPT_PREFIX):
        script_of(name)
        return f"{name} is a script"
    from edgeagent.models.gguf import check_gguf
    from edgeagent.models.store import find

    path = find(name)
    header = check_gguf(path)
    window = f"{header.vocab_size} tokens, window up to {header.context_length}"
    return f"{path.name}: {header.size_bytes / 1e6:.0f} MB, {header.architecture}, {window}"


def _look_at_meaning(settings: Settings) -> str:
    """Whether an embedder compares requests with the tools; nothing is wrong without one."""
    if not settings.model.meaning:
        return "requests are compared by their words and by the model: `meaning` is false in the settings"
    named = embedder_of(settings.model)
    if embedder(named) is None:
        return f"requests are compared by their words and by the model; `edgeagent model pull {EMBEDDER}` adds meaning"
    return f"requests are also compared by {named or EMBEDDER}"


def _look_at_model(agent: Agent, settings: Settings, *, verbose: bool) -> str:
    """Load it, compile every grammar with its vocabulary, render its template, count the prompt's fixed part."""
    if settings.model.name.startswith(SCRIPT_PREFIX):
        return "a script needs none"
    driver = llama_model(agent, settings.model, verbose=verbose)
    try:
        dialect = agent.dialect.name if agent.dialect else ""
        given = f"; the chat template is {settings.model.template}" if settings.model.template else ""
        return f"{driver.describe()}{given}; calls are written in the dialect {dialect}"
    finally:
        driver.close()


def _show(name: str, found: str, good: bool, as_json: bool) -> None:
    if as_json:
        tell_row({"check": name, "ok": good, "found": found})
        return
    tell(f"{'ok  ' if good else 'FAIL'} {name:<11} {found}", lines=True)

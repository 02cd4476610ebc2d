"""`edgeagent grammar`: what an agent's model may write, as the text of the grammar that holds it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import click

from edgeagent.codec.dialect import dialect_called
from edgeagent.core.agent import Agent, Tool
from edgeagent.core.from_user import narrowed
from edgeagent.doors.cli.terminal import pass_on, tell
from edgeagent.errors import ConfigError, ExitCode
from edgeagent.grammar.calls import GrammarEngine, grammar_of, lowered_call
from edgeagent.runtime.wiring import load_agent
from edgeagent.shape.lower import Relaxation

FOLDER = Path("grammars")
"""Where grammars are kept, beside the agents they are made from."""

ENDINGS: dict[GrammarEngine, str] = {"llguidance": ".lark", "gbnf": ".gbnf"}
COMMENT: dict[GrammarEngine, str] = {"llguidance": "//", "gbnf": "#"}
MADE_BY = "Made by: "


class Wanted(NamedTuple):
    """One grammar: of which agent, which of its tools (all if empty), for which engine, in which dialect."""

    spec: str
    tool: str
    engine: GrammarEngine
    dialect: str

    def command(self, folder: Path) -> str:
        """The command that makes the file anew."""
        parts = [f"edgeagent grammar {self.spec}", f"--tool {self.tool}" if self.tool else ""]
        parts += ["" if self.dialect == "plain" else f"--dialect {self.dialect}", f"--engine {self.engine}"]
        return " ".join(part for part in (*parts, f"--out {folder.as_posix()}") if part)


@click.command()
@click.argument("agent", required=False)
@click.option("--tool", default="", metavar="NAME", help="Only this tool's calls.")
@click.option("--engine", type=click.Choice(list(ENDINGS)), help="Default: llguidance; with --out, both.")
@click.option("--dialect", default="plain", metavar="NAME", help="How the model writes calls.")
@click.option("--said", multiple=True, metavar="TEXT", help="What the user has said: narrows what must be quoted.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Write files there instead of printing.")
@click.option("--check", is_flag=True, help=f"Compare with the files in {FOLDER}/ (or --out); write nothing.")
def grammar(
    agent: str | None,
    tool: str,
    engine: GrammarEngine | None,
    dialect: str,
    said: tuple[str, ...],
    out: Path | None,
    check: bool,
) -> int:
    """Print what the model of AGENT (FILE.py or FILE.py:NAME) may write: words, or one call of a tool.

    Rules and what the user has said narrow it further while the agent runs; --said shows the latter. With --check and
    no AGENT, every file in the folder is made again by the command in its first line and compared; the exit code is 6
    if one differs.

    \b
    Example:
      edgeagent grammar examples/greenhouse.py --tool set_valve --engine gbnf
      edgeagent grammar --check
    """
    if agent is None and not check:
        raise click.UsageError("which agent? Give FILE.py, or --check to compare the files that are there")
    if said and (check or out):
        raise click.UsageError("what is kept holds for every session: --said is only for printing")
    engines: list[GrammarEngine] = [engine] if engine else list(ENDINGS)
    if check:
        folder = out or FOLDER
        wanted = [Wanted(agent, tool, each, dialect) for each in engines] if agent else list(_kept(folder))
        return _check(wanted, folder)
    assert agent is not None, "said above"
    if out is None:
        text, wider = _made(Wanted(agent, tool, engines[0], dialect), said)
        pass_on(text)
        for each in wider:
            tell(each, err=True)
        return int(ExitCode.DONE)
    out.mkdir(parents=True, exist_ok=True)
    for each in engines:
        one = Wanted(agent, tool, each, dialect)
        file = _file(one, out)
        file.write_text(_kept_text(one, out))
        tell(f"{file} is written", err=True)
    return int(ExitCode.DONE)


def _made(wanted: Wanted, said: tuple[str, ...] = ()) -> tuple[str, list[str]]:
    """The grammar, and in words what it cannot hold exactly, and which tools the user's words leave nothing for."""
    agent = load_agent(wanted.spec)
    calls: list[tuple[str, Mapping[str, Any]]] = []
    wider: list[str] = []
    for tool in _tools(agent, wanted.tool):
        limits = narrowed(tool.name, tool.from_user, said) if said else ()
        if limits is None:
            wider.append(f"{tool.name}: cannot be called, for a required argument is not quoted from what was said")
            continue
        lowered = lowered_call(tool, limits)
        calls.append((tool.name, lowered.schema))
        wider += [relaxed_in_words(r, tool.name) for r in lowered.relaxations]
    relaxed: list[Relaxation] = []
    frame = dialect_called(wanted.dialect).frame
    text = grammar_of(calls, frame, answer="allowed", engine=wanted.engine, relaxed=relaxed)
    return text, [*wider, *(relaxed_in_words(r) for r in relaxed)]


def relaxed_in_words(relaxation: Relaxation, tool: str = "") -> str:
    """What the grammar is wider in than the type, where, and why."""
    where = f"{tool}.{relaxation.path}".strip(".")
    return f"{where}: {relaxation.keyword} is checked after writing, {relaxation.reason}"


def _tools(agent: Agent, name: str) -> list[Tool]:
    if not name:
        return list(agent.tools)
    if name not in agent.by_name:
        raise ConfigError(f"agent {agent.name} has no tool {name}; it has: {', '.join(agent.tool_names) or 'none'}")
    return [agent.by_name[name]]


def _file(wanted: Wanted, folder: Path) -> Path:
    path, _, name = wanted.spec.partition(".py")
    parts = [Path(path).name, name.lstrip(":"), wanted.tool, "" if wanted.dialect == "plain" else wanted.dialect]
    return folder / ("-".join(part for part in parts if part) + ENDINGS[wanted.engine])


def _kept_text(wanted: Wanted, folder: Path) -> str:
    return f"{COMMENT[wanted.engine]} {MADE_BY}{wanted.command(folder)}\n{_made(wanted)[0]}"


def _kept(folder: Path) -> Iterator[Wanted]:
    """What the files in a folder say that they were made from."""
    files = sorted(f for f in folder.glob("*") if f.suffix in ENDINGS.values())
    if not files:
        raise ConfigError(f"{folder}/ holds no grammars; make them with edgeagent grammar AGENT.py --out {folder}")
    for file in files:
        first = file.read_text().split("\n", 1)[0]
        words = first.partition(MADE_BY)[2].split()
        if words[:2] != ["edgeagent", "grammar"] or len(words) % 2 == 0:
            raise ConfigError(f"{file}: its first line does not say what it was made by; make it anew with --out")
        options = dict(zip(words[3::2], words[4::2], strict=True))
        engine: GrammarEngine = "gbnf" if options.get("--engine") == "gbnf" else "llguidance"
        yield Wanted(words[2], options.get("--tool", ""), engine, options.get("--dialect", "plain"))


def _check(wanted: list[Wanted], folder: Path) -> int:
    stale = 0
    for each in wanted:
        file = _file(each, folder)
        there = file.read_text() if file.is_file() else None
        if there != _kept_text(each, folder):
            stale += 1
            state = "is stale" if there is not None else "is not there"
            tell(f"{file} {state}; renew it with: {each.command(folder)}", err=True)
    if stale:
        return int(ExitCode.CHECK_FAILED)
    tell(f"{len(wanted)} grammars are up to date")
    return int(ExitCode.DONE)

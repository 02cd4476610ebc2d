"""`edgeagent try`: what an agent makes of its author's requests, before anybody else asks them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click
import msgspec

from edgeagent.doors.cli.options import model_options, settings_from, state_option
from edgeagent.doors.cli.terminal import tell, tell_row
from edgeagent.errors import ConfigError, ExitCode
from edgeagent.runtime import trial
from edgeagent.runtime.servers import with_operator
from edgeagent.runtime.tiers import own_weights
from edgeagent.runtime.wiring import SCRIPT_PREFIX, dialect_of, llama_model, load_agent, with_dialect


@click.command("try")
@click.argument("agent")
@click.argument("requests", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@model_options
@state_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object: every request, counts, confusions, words.")
def try_(agent: str, requests: Path | None, as_json: bool, state: Path | None, **options: Any) -> int:
    """Ask AGENT (FILE.py or FILE.py:NAME) the examples of its tools, or the requests of a file; no tool runs.

    Each line of REQUESTS is one request, and may say what is right: `Open the valve => open_valve(valve="north")`,
    or `Tell me a joke => none`. Arguments that are not named do not matter. Shows what is right, wrong and asked,
    which tools are taken for which, and which words a docstring lacks. Exits with 6 if a call was wrong.

    \b
    Example:
      edgeagent try examples/greenhouse.py requests.txt
    """
    settings = settings_from(agent, state=state, **options)
    model = own_weights(settings.model, "is tried")
    if model.name.startswith(SCRIPT_PREFIX):
        raise ConfigError(f"{model.name} is a script, which decides nothing: name a model with --model")
    whole = with_operator(load_agent(agent), agent, options.get("config"), state)
    loaded = with_dialect(whole, dialect_of(model))
    rows = trial.examples_of(loaded) if requests is None else trial.wanted_in(_text_of(requests), loaded, str(requests))
    driver = llama_model(loaded, model, verbose=options.get("verbose", False))
    try:
        found = trial.try_all(driver, loaded, rows, _show_progress)
    finally:
        driver.close()
    if as_json:
        tell_row({"agent": loaded.name, **msgspec.to_builtins(found)})
    else:
        _tell(found)
    return ExitCode.CHECK_FAILED if found.counts.get("wrong") else 0


def _text_of(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} cannot be read as text ({error}): save it as UTF-8, one request a line") from error


def _show_progress(done: int, total: int) -> None:
    if sys.stderr.isatty():
        print(f"\r{done} of {total} requests asked", end="\n" if done == total else "", file=sys.stderr, flush=True)


def _tell(found: trial.Trial) -> None:
    for each in found.tried:
        calls = " ".join(f"{name}({json.dumps(given, ensure_ascii=False)[1:-1]})" for name, given in each.calls)
        tell(f"{each.outcome or '':6} {each.request}")
        tell(f"       {calls or each.said}")
    tell(", ".join(f"{count} {outcome}" for outcome, count in sorted(found.counts.items())))
    for wanted, leading, count in found.confused:
        tell(f"{leading} is taken for {wanted}, {count} of {len(found.tried)}")
    for name, words in found.helpful.items():
        tell(f"{name}: no docstring has {', '.join(words)}")

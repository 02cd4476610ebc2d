"""`edgeagent calibrate`: find from where on a call is made, for one agent and one model."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
import msgspec

from edgeagent.doors.cli.options import model_options, settings_from, state_option
from edgeagent.doors.cli.terminal import tell, tell_row
from edgeagent.errors import ConfigError
from edgeagent.runtime import calibration
from edgeagent.runtime.config import state_root
from edgeagent.runtime.servers import with_operator
from edgeagent.runtime.tiers import own_weights
from edgeagent.runtime.wiring import SCRIPT_PREFIX, dialect_of, llama_model, load_agent, with_dialect


@click.command()
@click.argument("agent")
@model_options
@state_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object: thresholds, counts, and where they are kept.")
def calibrate(agent: str, as_json: bool, state: Path | None, **options: Any) -> int:
    """Find how clearly a request must ask for a tool of AGENT (FILE.py or FILE.py:NAME) before a call is made.

    Weighs 60 requests that want no tool and the examples of the tools, `@tool(examples=["…"])`, with the model that
    the agent runs on; the threshold lies between them. `run` and `chat` use it until tools or model change. Give each
    tool a few examples in a user's words: they keep the threshold from being too high.

    \b
    Example:
      edgeagent calibrate examples/greenhouse.py
    """
    settings = settings_from(agent, state=state, **options)
    model = own_weights(settings.model, "is calibrated")
    if model.name.startswith(SCRIPT_PREFIX):
        raise ConfigError(f"{model.name} is a script, which weighs nothing: name a model with --model")
    whole = with_operator(load_agent(agent), agent, options.get("config"), state)
    loaded = with_dialect(whole, dialect_of(model))
    driver = llama_model(loaded, model, verbose=options.get("verbose", False))
    try:
        found = calibration.calibrate(driver, loaded, _show_progress)
    finally:
        driver.close()
    file = calibration.write_calibration(state_root(settings), loaded, found)
    if as_json:
        tell_row({"agent": loaded.name, "file": str(file), **msgspec.to_builtins(found)})
    else:
        _tell(loaded.name, found, file)
    return 0


def _show_progress(done: int, total: int) -> None:
    if sys.stderr.isatty():
        print(f"\r{done} of {total} requests weighed", end="\n" if done == total else "", file=sys.stderr, flush=True)


def _tell(name: str, found: calibration.Calibration, file: Path) -> None:
    for path, each in found.thresholds.items():
        tell(f"{path or name}: a call from log-odds {each.needed:g} on; below lie")
        tell(f"  {each.unrelated_refused} of {each.unrelated} unrelated requests")
        tell(f"  {each.examples_refused} of {each.examples} examples of its tools")
        if not each.examples:
            tell('  no tool has examples: give some, @tool(examples=["…"]), or good requests may be refused')
    tell(f"kept in {file}")

"""`edgeagent run`: ask an agent once."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

import click

from edgeagent.cli.door import open_session
from edgeagent.cli.options import model_options, session_options
from edgeagent.cli.screen import Screen, exit_code_of
from edgeagent.core.state import State
from edgeagent.errors import ConfigError
from edgeagent.runtime.session import Session

PROMPT_BYTES_MAX = 1_000_000
"""More than any window holds; a bound against a pipe that never ends."""


@click.command()
@click.argument("agent")
@click.argument("prompt", required=False)
@model_options
@session_options
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line: every event, every effect, the outcome.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write the answer to this file.")
@click.option("-q", "--quiet", is_flag=True, help="No activity on stderr.")
def run(agent: str, prompt: str | None, as_json: bool, output: Path | None, quiet: bool, **options: Any) -> int:
    """Ask AGENT (FILE.py or FILE.py:NAME) once and print its answer.

    Text that is piped in is put after PROMPT; `-` or no PROMPT reads all of it as the prompt.

    \b
    Example:
      edgeagent run examples/greenhouse.py "Open the north valve for 30 seconds."
      journalctl -n 50 | edgeagent run examples/gateway.py "What went wrong here?"
    """
    text = _prompt(prompt)
    with _answers_to(output) as out:
        screen = Screen(out, sys.stderr, as_json=as_json, quiet=quiet)
        session = open_session(agent, screen, options)
        try:
            state = say_until_done(session, text)
        finally:
            session.close()
        screen.result(state.outcome, str(session.trace_path))
    return int(exit_code_of(state.outcome))


def say_until_done(session: Session, text: str) -> State:
    """Run one turn; Ctrl-C stops it in good order, a second Ctrl-C at once."""
    try:
        return session.say(text)
    except KeyboardInterrupt:
        session.cancel()
        return session.resume_turn()


def _prompt(given: str | None) -> str:
    piped = "" if sys.stdin is None or sys.stdin.isatty() else sys.stdin.buffer.read(PROMPT_BYTES_MAX + 1).decode(errors="replace")
    if len(piped) > PROMPT_BYTES_MAX:
        raise ConfigError(f"more than {PROMPT_BYTES_MAX} bytes were piped in; no model here can read that")
    words = "" if given in (None, "-") else given or ""
    text = "\n\n".join(part for part in (words, piped.strip()) if part)
    if not text:
        raise click.UsageError('nothing to ask: give a PROMPT, or pipe text in and use "-"')
    return text


@contextlib.contextmanager
def _answers_to(output: Path | None) -> Iterator[TextIO]:
    """Where answers go. What tools print must not mix with the answer, so their stdout becomes stderr."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8") if output is None else _open_for_writing(output)
    sys.stdout.flush()
    os.dup2(2, 1)
    with answers:
        yield answers


def _open_for_writing(output: Path) -> TextIO:
    try:
        return output.open("w", encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{output}: {error.strerror}; give another file with -o") from error

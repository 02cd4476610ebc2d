"""`edgeagent run`: ask an agent once."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

import click

from edgeagent.core.state import State
from edgeagent.doors.cli.options import model_options, request_from, session_options
from edgeagent.doors.cli.screen import Screen, exit_code_of
from edgeagent.errors import ConfigError, ExitCode
from edgeagent.runtime.open import open_session
from edgeagent.runtime.session import Session
from edgeagent.runtime.wiring import agent_path

PROMPT_BYTES_MAX = 1_000_000
"""More than any window holds; a bound against a pipe that never ends."""


@click.command()
@click.argument("agent", required=False)
@click.argument("prompt", required=False)
@model_options
@session_options
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line: every event, every effect, the outcome.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write the answer to this file.")
@click.option("--wait", is_flag=True, help="Stay open after the answer: timers and what AGENT hears begin turns.")
@click.option("-q", "--quiet", is_flag=True, help="No activity on stderr.")
def run(agent: str | None, prompt: str | None, as_json: bool, output: Path | None, quiet: bool, **options: Any) -> int:
    """Ask AGENT (FILE.py or FILE.py:NAME) once and print its answer.

    Text that is piped in is put after PROMPT; `-` or no PROMPT reads all of it as the prompt. With --resume or
    --continue AGENT is the session's own unless it is given, and without a PROMPT only what was interrupted is done.

    \b
    Example:
      edgeagent run examples/greenhouse.py "Open the north valve for 30 seconds."
      journalctl -n 50 | edgeagent run examples/gateway.py "What went wrong here?"
      edgeagent run --continue "And now close it."
    """
    resumed = bool(options["resume"] or options["last"])
    if resumed and prompt is None and agent is not None and not is_spec(agent):
        agent, prompt = None, agent
    text = _prompt(prompt, may_be_missing=resumed)
    with _answers_to(output) as out:
        screen = Screen(out, sys.stderr, as_json=as_json, quiet=quiet)
        session = open_session(request_from(agent, options), screen)
        before = session.state
        try:
            state = say_until_done(session, text)
            if options["wait"]:
                state = wait_until_stopped(session)
        finally:
            session.close()
        if state == before:
            screen.repeat(state)  # It was killed after the record and before anyone saw the answer, perhaps.
        screen.result(state.outcome, str(session.trace_path))
    if state.outcome is None and not text:
        return int(ExitCode.DONE)  # A resumed session that had not begun a turn: there was nothing to finish.
    return int(exit_code_of(state.outcome))


def say_until_done(session: Session, text: str) -> State:
    """Finish what was interrupted and run one turn; Ctrl-C stops it in good order, a second Ctrl-C at once.

    An empty text, in a resumed session, starts no turn.
    """
    try:
        state = session.resume_turn()
        return session.say(text) if text else state
    except KeyboardInterrupt:
        session.cancel()
        return session.resume_turn()


def wait_until_stopped(session: Session) -> State:
    """Serve the session until Ctrl-C, which lets a running turn end; a second one stops at once."""
    with contextlib.suppress(KeyboardInterrupt):
        session.serve()
    return session.resume_turn()


def is_spec(argument: str) -> bool:
    """Whether this argument means an agent: FILE.py or FILE.py:NAME."""
    return agent_path(argument).suffix == ".py"


def _prompt(given: str | None, *, may_be_missing: bool) -> str:
    piped = (
        ""
        if sys.stdin is None or sys.stdin.isatty()
        else sys.stdin.buffer.read(PROMPT_BYTES_MAX + 1).decode(errors="replace")
    )
    if len(piped) > PROMPT_BYTES_MAX:
        raise ConfigError(f"more than {PROMPT_BYTES_MAX} bytes were piped in; no model here can read that")
    words = "" if given in (None, "-") else given or ""
    text = "\n\n".join(part for part in (words, piped.strip()) if part)
    if not text and not may_be_missing:
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

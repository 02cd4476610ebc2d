"""`edgeagent chat`: talk with an agent; one session, many turns."""

from __future__ import annotations

import contextlib
import sys
from typing import Any

import click

from edgeagent.core.state import Finished
from edgeagent.doors.cli.options import model_options, request_from, session_options
from edgeagent.doors.cli.run import say_until_done
from edgeagent.doors.cli.watched import WatchedScreen
from edgeagent.errors import ExitCode
from edgeagent.runtime.notify import Notifier
from edgeagent.runtime.open import open_session

GOODBYES = {"/quit", "/exit"}


@click.command()
@click.argument("agent", required=False)
@model_options
@session_options
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line: every event and effect.")
def chat(agent: str | None, as_json: bool, **options: Any) -> int:
    """Talk with AGENT (FILE.py or FILE.py:NAME), a line a turn.

    Ctrl-C stops the answer and keeps the session; Ctrl-D or /quit ends it. Piped lines are turns too. With --json a
    question is a row with an effect AskUser, and the next line on stdin answers it:
    {"effect_id": 5, "approved": true, "digest": "..."}. Under systemd (Type=notify) it says when it is ready, and feeds
    the watchdog while work progresses.

    \b
    Example:
      edgeagent chat examples/greenhouse.py
    """
    screen = WatchedScreen(sys.stdout, sys.stderr, as_json=as_json, streams=True)
    screen.notifier = notifier = Notifier()
    session = open_session(request_from(agent, options), screen)
    try:
        state = say_until_done(session, "")  # What was interrupted, if the session is resumed.
        notifier.ready(f"session {session.directory.name}")
        while not isinstance(state.phase, Finished):
            notifier.resting()
            line = _next_line()
            notifier.working()
            if line is None or line in GOODBYES:
                break
            if line:
                state = say_until_done(session, line)
    finally:
        notifier.stopping()
        session.close()
        notifier.close()
    screen.result(state.outcome, str(session.trace_path))
    return int(ExitCode.DONE)


def _next_line() -> str | None:
    """The user's next line without white space around it; None at the end. Ctrl-C gives an empty one."""
    if not sys.stdin.isatty():
        line = sys.stdin.readline()
        return line.strip() if line else None
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401  (importing it is what gives input() its history and editing)
    try:
        return input("> ").strip()
    except EOFError:
        return None
    except KeyboardInterrupt:
        print("(Ctrl-D ends the session)", file=sys.stderr)
        return ""

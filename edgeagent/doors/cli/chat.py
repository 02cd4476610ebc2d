"""`edgeagent chat`: talk with an agent; one session, many turns."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

import click

from edgeagent.core.state import Finished
from edgeagent.doors.cli.options import model_options, request_from, session_options
from edgeagent.doors.cli.printed import prints_told, unheard
from edgeagent.doors.cli.run import say_until_done
from edgeagent.doors.cli.slash import COMMANDS, GOODBYES, slash_command, told_of
from edgeagent.doors.cli.terminal import kept, stdout_kept, tell, tell_all
from edgeagent.doors.cli.watched import WatchedScreen
from edgeagent.errors import ConfigError, ExitCode
from edgeagent.runtime.hangup import hangup_taken
from edgeagent.runtime.notify import Notifier
from edgeagent.runtime.reload import opened_to_reload
from edgeagent.runtime.session import Session

HISTORY_NAME, HISTORY_LINES_MAX = "history", 1_000


@click.command()
@click.argument("agent", required=False)
@model_options
@session_options
@click.option("--yes", multiple=True, metavar="TOOL", help="Answer yes to every question about this tool.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line: every event and effect.")
def chat(agent: str | None, as_json: bool, yes: tuple[str, ...], **options: Any) -> int:
    """Talk with AGENT (FILE.py or FILE.py:NAME), a line a turn; /help says what else there is.

    Ctrl-C stops the answer and keeps the session; Ctrl-D or /quit ends it. Piped lines are turns too. With --json a
    question is a row with an effect AskUser, and the next line on stdin answers it:
    {"effect_id": 5, "approved": true, "digest": "..."}. Under systemd (Type=notify) it says when it is ready, and feeds
    the watchdog while work progresses. SIGHUP has it read the settings again, between two turns.

    \b
    Example:
      edgeagent chat examples/greenhouse.py
    """
    with _answers(as_json) as out, prints_told() as err:
        screen = WatchedScreen(out, err, as_json=as_json, streams=True, yes=yes)
        screen.notifier = notifier = Notifier()
        session, reload = opened_to_reload(request_from(agent, options), screen)
        screen.pending.begin(session.state)
        try:
            with hangup_taken(lambda: tell_all(reload.take())):
                say_until_done(session, "")  # What was interrupted, if the session is resumed.
                notifier.ready(f"session {session.id}")
                with _history(session.directory.parent.parent) if sys.stdin.isatty() else contextlib.nullcontext():
                    for line in _lines(session, as_json, notifier):
                        _take_turn(session, line)
        finally:
            notifier.stopping()
            session.close()
            reload.close()
            notifier.close()
        screen.result(session.state.outcome, str(session.trace_path))
    return int(ExitCode.UNKNOWN if screen.pending.unknown else ExitCode.DONE)


def _lines(session: Session, as_json: bool, notifier: Notifier) -> Iterator[str]:
    """The words for the agent, until the user or the session has had enough; commands are answered here."""
    if sys.stdin.isatty():
        tell("/help says what there is; Ctrl-D ends the session", err=True)
    while not isinstance(session.state.phase, Finished):
        notifier.resting()
        line = _next_line()
        notifier.working()
        if line is None or line in GOODBYES:
            return
        command = None if as_json else slash_command(line)
        if command is not None:
            for told in told_of(command, session):
                tell(told, err=True)
        elif line:
            yield line


def _take_turn(session: Session, line: str) -> None:
    try:
        say_until_done(session, line)
    except ConfigError as error:  # Words that cannot be taken; the session goes on.
        tell(f"edgeagent: {error}", err=True, lines=True)


@contextlib.contextmanager
def _answers(as_json: bool) -> Iterator[TextIO]:
    """Where answers go: for a program, where nothing else does."""
    with stdout_kept() if as_json or not sys.stdout.isatty() else kept(1) as out:
        yield out


def _next_line() -> str | None:
    """The user's next line without white space around it; None at the end. Ctrl-C gives an empty one."""
    if not sys.stdin.isatty():
        line = sys.stdin.readline()
        return line.strip() if line else None
    try:
        with unheard():
            line = input("> ")
            while line.endswith("\\"):
                line = line[:-1] + "\n" + input("… ")
        return line.strip()
    except EOFError:
        return None
    except KeyboardInterrupt:
        tell("(Ctrl-D ends the session)", err=True)
        return ""


@contextlib.contextmanager
def _history(root: Path) -> Iterator[None]:
    """Give the prompt editing, completion of commands, and the lines of earlier chats."""
    try:
        import readline
    except ImportError:  # A Python without it: the prompt is plain.
        yield
        return
    file = root / HISTORY_NAME
    with contextlib.suppress(OSError):
        file.touch(mode=0o600)
        readline.read_history_file(file)
    readline.set_history_length(HISTORY_LINES_MAX)
    readline.set_completer_delims(" ")
    readline.set_completer(
        lambda begun, n: dict(enumerate(c for c in COMMANDS if begun and c.startswith(begun))).get(n)
    )
    readline.parse_and_bind("tab: complete")
    yield
    with contextlib.suppress(OSError):  # A full disk costs the history, not the session.
        readline.write_history_file(file)

"""`edgeagent run`: ask an agent once."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

import click

from edgeagent.core.outside import PIPED
from edgeagent.core.state import State
from edgeagent.doors.cli.options import model_options, request_from, session_options
from edgeagent.doors.cli.piped import piped_text
from edgeagent.doors.cli.printed import prints_told
from edgeagent.doors.cli.screen import Screen, exit_code_of
from edgeagent.doors.cli.terminal import kept, stdout_kept, tell_all
from edgeagent.errors import ConfigError, ExitCode
from edgeagent.runtime.hangup import hangup_taken
from edgeagent.runtime.reload import opened_to_reload
from edgeagent.runtime.session import Session
from edgeagent.runtime.wiring import agent_path


@click.command()
@click.argument("agent", required=False)
@click.argument("prompt", required=False)
@model_options
@session_options
@click.option("--yes", multiple=True, metavar="TOOL", help="Answer yes to every question about this tool.")
@click.option("--stdin", "waits", is_flag=True, help="Wait for text on stdin and its end, beside PROMPT.")
@click.option("--trust-stdin", "trusted", is_flag=True, help="What is piped in beside PROMPT is your own words.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line: every event, every effect, the outcome.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write the answer to this file.")
@click.option("--wait", is_flag=True, help="Stay open after the answer: timers and what AGENT hears begin turns.")
@click.option("-q", "--quiet", is_flag=True, help="No activity on stderr.")
def run(agent: str | None, prompt: str | None, **options: Any) -> int:
    """Ask AGENT (FILE.py or FILE.py:NAME) once and print its answer.

    Text that is piped in beside PROMPT is read, and is not your word: what stands in it satisfies no rule that asks
    for yours, unless you say --trust-stdin. `-` or no PROMPT reads all of it as the prompt. With --resume or --continue
    AGENT is the session's own unless it is given, and without a PROMPT only what was interrupted is done.

    \b
    Example:
      edgeagent run examples/greenhouse.py "Open the north valve for 30 seconds."
      journalctl -n 50 | edgeagent run examples/gateway.py "What went wrong here?"
      edgeagent run --continue "And now close it."
    """
    resumed = bool(options["resume"] or options["last"])
    if resumed and prompt is None and agent is not None and not is_spec(agent):
        agent, prompt = None, agent
    words = "" if prompt in (None, "-") else prompt or ""
    if not words:
        words = piped_text(waits=True).strip()
    if not words and not resumed:
        raise click.UsageError('nothing to ask: give a PROMPT, or pipe text in and use "-"')
    with _answers_to(options["output"]) as out, prints_told() as err:
        shows = {"as_json": options["as_json"], "quiet": options["quiet"], "yes": options["yes"]}
        screen = Screen(out, err, **shows)
        session, reload = opened_to_reload(request_from(agent, options), screen)
        before = session.state
        screen.pending.begin(before)
        try:
            with hangup_taken(lambda: tell_all(reload.take())) if options["wait"] else contextlib.nullcontext():
                say_until_done(session, "")  # What was interrupted, if the session is resumed.
                piped = "" if prompt in (None, "-") else piped_text(waits=options["waits"]).strip()
                state = say_until_done(session, _with_piped(session, words, piped, trusted=options["trusted"]))
                if options["wait"]:
                    state = wait_until_stopped(session)
        finally:
            session.close()
            reload.close()
        if state == before:
            screen.repeat(state)  # It was killed after the record and before anyone saw the answer, perhaps.
        screen.result(state.outcome, str(session.trace_path))
    if state.outcome is None and not words:
        return int(ExitCode.DONE)  # A resumed session that had not begun a turn: there was nothing to finish.
    return int(ExitCode.UNKNOWN if screen.pending.unknown else exit_code_of(state.outcome))


def _with_piped(session: Session, words: str, piped: str, *, trusted: bool) -> str:
    """The user's words. What was piped in beside them is theirs only if they say so, and else is heard."""
    if piped and trusted:
        return f"{words}\n\n{piped}"
    if piped:
        session.post_heard(PIPED, piped)
    return words


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
    before = signal.getsignal(signal.SIGINT)

    def stop(*_: object) -> None:
        signal.signal(signal.SIGINT, before)
        threading.Thread(target=session.interrupt).start()  # The queue may be held where the signal came.

    if before is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, stop)
    try:
        with contextlib.suppress(KeyboardInterrupt):
            session.serve()
    finally:
        signal.signal(signal.SIGINT, before)
    return session.resume_turn()


def is_spec(argument: str) -> bool:
    """Whether this argument means an agent: FILE.py or FILE.py:NAME."""
    return agent_path(argument).suffix == ".py"


@contextlib.contextmanager
def _answers_to(output: Path | None) -> Iterator[TextIO]:
    """Where answers go. What tools print must not mix with the answer, so their stdout becomes stderr."""
    with stdout_kept() as stdout:
        if output is None:
            yield stdout
            return
        descriptor = _opened(output)
        with kept(descriptor) as file:
            os.close(descriptor)
            yield file


def _opened(output: Path) -> int:
    try:
        return os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise ConfigError(f"{output}: {error.strerror}; give another file with -o") from error

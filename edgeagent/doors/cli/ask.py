"""`edgeagent ask`: say something to an agent that is served, and print its answer. No model is loaded here."""

from __future__ import annotations

import queue
import sys
import threading
from pathlib import Path
from typing import Any

import click

from edgeagent.core.effects import AskUser
from edgeagent.core.values import Outcome
from edgeagent.doors.cli.far import FarScreen, OwnTurn, at_options, client_from, newest_session, told
from edgeagent.doors.cli.piped import piped_text
from edgeagent.doors.cli.screen import exit_code_of
from edgeagent.doors.http.client import Client, NotNow, Refusal, Stream
from edgeagent.errors import EdgeAgentError, ExitCode, PeerMisbehaved

PATIENCE_S = 120.0
"""How long a server may be away in the middle of a turn: longer than a board takes to start."""


@click.command()
@click.argument("prompt", required=False)
@at_options
@click.option("--agent", default="", metavar="NAME", help="Which agent, where several are served.")
@click.option("--session", metavar="ID", help="Carry on with this session.")
@click.option("--continue", "last", is_flag=True, help="Carry on with the newest session.")
@click.option("--yes", multiple=True, metavar="TOOL", help="Answer yes to every question about this tool.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line: events, effects, the outcome.")
@click.option("-q", "--quiet", is_flag=True, help="No activity on stderr.")
def ask(prompt: str | None, at: str, key: str | None, tls_ca: Path | None, **options: Any) -> int:
    """Say PROMPT to an agent that `edgeagent serve` serves, and print its answer; exit codes are those of `run`.

    `-` or no PROMPT reads stdin. Questions are asked on the terminal; without one they stay open for another end (the
    page, another shell) until they expire. With --json the next line on stdin answers:
    {"effect_id": 5, "approved": true, "digest": "..."}. Ctrl-C stops the turn, a second one leaves it alone.

    \b
    Example:
      edgeagent ask --at http://127.0.0.1:8383 "Open the north valve for 30 seconds."
      edgeagent ask --at unix:/run/edgeagent/serve --continue "And now close it."
      edgeagent ask --at https://gateway.lan:8383 --key file:phone.key "How dry is it?"
    """
    client = client_from(at, key, tls_ca)
    words = prompt if prompt not in (None, "-") else piped_text(waits=True).strip()
    if not words:
        raise click.UsageError('nothing to ask: give a PROMPT, or pipe text in and use "-"')
    session = options["session"] or (newest_session(client) if options["last"] else None)
    shown = client.call("GET", f"/api/sessions/{session}") if session else _opened(client, options["agent"])
    shows = {"as_json": options["as_json"], "quiet": options["quiet"], "yes": options["yes"]}
    screen = FarScreen(sys.stdout, sys.stderr, streams=True, **shows)
    asking = Asking(client, shown, screen)
    try:
        outcome = asking.say(words)
    except NotNow as error:
        told(f"{error}. If it took the words, their turn goes on there: edgeagent watch --at {client.at} {shown['id']}")
        return int(error.exit_code)
    screen.result(outcome, str(shown["id"]), "session")
    return int(ExitCode.UNKNOWN if screen.pending.unknown else exit_code_of(outcome))


def _opened(client: Client, agent: str) -> dict[str, Any]:
    opened: dict[str, Any] = client.call("POST", "/api/sessions", {"agent": agent} if agent else {})
    return opened


class Asking:
    """One word and the turn it begins. A thread shows what comes, so that a question can end while it is asked here."""

    def __init__(self, client: Client, shown: dict[str, Any], screen: FarScreen) -> None:
        self._client, self._screen = client, screen
        self._path = f"/api/sessions/{shown['id']}"
        self._before = shown["state"]
        # One record more than is new: what was before the word tells whether it began a turn or waits.
        self._stream: Stream = client.stream(shown["id"], max(0, shown["records"] - 1), told, PATIENCE_S)
        self._number: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._came: queue.SimpleQueue[AskUser | Outcome | Exception] = queue.SimpleQueue()

    def say(self, words: str) -> Outcome:
        """Say it, answer what is asked meanwhile, and return what it came to. Raises EdgeAgentError."""
        threading.Thread(target=self._follow, name="events", daemon=True).start()
        said = self._client.call("POST", f"{self._path}/words", {"text": words, "wait": False})
        self._number.put(int(said["record"]))
        try:
            return self._until_over()
        except KeyboardInterrupt:
            self._client.call("POST", f"{self._path}/cancel", {"reason": "Ctrl-C at `edgeagent ask`"})
            return self._until_over()

    def _until_over(self) -> Outcome:
        while True:
            match self._came.get():
                case AskUser() as question:
                    self._answer(question)
                case Outcome() as outcome:
                    return outcome
                case error:
                    raise error

    def _answer(self, question: AskUser) -> None:
        decision = self._screen.answer_to(question)
        if decision is None:
            return
        body = {"approved": decision.approved, "digest": question.digest, "text": decision.text}
        try:
            self._client.call("POST", f"{self._path}/questions/{question.effect_id}", body)
        except Refusal as refusal:
            if refusal.code != "not_open":
                raise
            told("the question was answered elsewhere, or has expired")

    def _follow(self) -> None:
        try:
            turn: OwnTurn | None = None
            for sent in self._stream:
                turn = turn or OwnTurn(self._number.get(), self._before)
                if sent.kind != "record":
                    if turn.runs:
                        self._screen.take(sent)
                    continue
                part = turn.part_of(sent.row)
                for effect in self._screen.take(sent._replace(row=part)) if part is not None else ():
                    if isinstance(effect, AskUser):
                        self._came.put(effect)
                if turn.is_over and turn.outcome is not None:
                    return self._came.put(turn.outcome)
        except (EdgeAgentError, OSError) as error:  # OSError: whoever reads our answers has gone.
            self._came.put(error)
        except (KeyError, TypeError, ValueError) as error:
            self._came.put(PeerMisbehaved(f"the server sent what is no event ({error!r}); is it of another version?"))
        finally:
            self._stream.close()

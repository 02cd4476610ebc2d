"""Far session: one that another process serves, shown as our own are. Its records come as JSON and become values."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import click
import msgspec

from edgeagent.core.effects import AskUser, Effect
from edgeagent.core.events import Event, UserDecided, UserSaid
from edgeagent.core.state import State
from edgeagent.core.values import Outcome, Usage
from edgeagent.doors.cli.screen import Screen, clock_text
from edgeagent.doors.cli.terminal import arguments_text, can_ask, tell, tell_row
from edgeagent.doors.http.client import FORMS, Client, Sent, read_at
from edgeagent.errors import PeerMisbehaved
from edgeagent.runtime.door import Decision

KINDS: dict[str, type] = {kind.__name__: kind for kind in (*get_args(Event), *get_args(Effect))}
RESTING = frozenset({"Unstarted", "Idle", "Finished"})
TOO_MANY = Outcome("failed", "too many words wait for this session: this was not kept, so say it again later")


def at_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --at, --key and --tls-ca."""
    for option in reversed(
        (
            click.option("--at", required=True, envvar="EDGEAGENT_AT", metavar="ADDRESS", help=f"{FORMS}."),
            click.option("--key", metavar="env:NAME|file:PATH", help="Where the key is; the key itself is not taken."),
            click.option("--tls-ca", type=click.Path(path_type=Path), help="Who vouches for the server (PEM)."),
        )
    ):
        command = option(command)
    return command


def client_from(at: str, key: str | None, tls_ca: Path | None) -> Client:
    """A client of the server that was named. Raises ConfigError."""
    found = read_at(at)
    if key is None:
        return Client(found, None, tls_ca)
    from edgeagent.driver.remote.secret import check_reference, resolve

    check_reference(key, "--key")
    return Client(found, resolve(key).sent, tls_ca)


def newest_session(client: Client) -> str:
    """The id of the newest session. Raises ConfigError where there is none."""
    rows = client.call("GET", "/api/sessions")["sessions"]
    if not rows:
        raise click.UsageError('there is no session of yours yet; begin one: edgeagent ask --at ... "..."')
    return str(rows[0]["id"])


def told(text: str) -> None:
    """Say on stderr what befell the connection."""
    tell(f"edgeagent: {text}", err=True)


def value_of(row: dict[str, Any]) -> Any:
    """An event or an effect from its fields; None for a kind of a later version. Raises PeerMisbehaved."""
    try:
        kind = KINDS.get(row["type"])
        if kind is None:
            return None
        given: dict[str, Any] = {}
        for field in msgspec.structs.fields(kind):
            if field.name in row:
                given[field.name] = _plain(row[field.name])
            elif field.required:
                given[field.name] = ()  # Left out, since only a replay needs it.
        return kind(**given)
    except (KeyError, TypeError) as error:
        raise PeerMisbehaved(f"the server sent a record that is none ({error}); is it of another version?") from None


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return Usage(**value)
    return tuple(_plain(each) for each in value) if isinstance(value, list) else value


class FarScreen(Screen):
    """Shows what a stream sends. `narrates`: what others say and decide too, with numbers and times."""

    narrates = False

    def take(self, sent: Sent) -> tuple[Effect, ...]:
        """Show one event of the stream; return what it led to."""
        row = sent.row
        match sent.kind:
            case "record":
                return self._record(row)
            case "words":
                self._words(str(row["text"]), int(row.get("at", -1)))
            case "progress":
                self.progress(int(row["done"]), int(row["total"]))
            case "waiting":
                self.waiting(int(row["place"]))
            case "activity":
                self.activity(str(row["text"]))
            case _:
                pass  # Of a later version.
        return ()

    def _words(self, text: str, at: int) -> None:
        """Show words; those of an answer from its beginning may stand here already, and are not written twice."""
        if at == 0:
            had, whole = self._streamed.lstrip(), text.lstrip()
            if had and whole.startswith(had):
                text = whole[len(had) :]
            elif had:  # Another answer, of a server that has started again.
                self.drop_words()
            self._hides = False
        self.stream(text)

    def _record(self, row: dict[str, Any]) -> tuple[Effect, ...]:
        event = value_of(row["event"])
        effects = tuple(each for each in map(value_of, row["effects"]) if each is not None)
        if self._as_json:
            self.pending.follow(event, effects)
            tell_row({"event": row["event"]["type"]} | _rest(row["event"]), self._out)
            for effect in row["effects"]:
                tell_row({"effect": effect["type"]} | _rest(effect), self._out)
            return effects
        if self.narrates:
            self._narrate(row, event)
        if event is not None:
            self.watch(event, State(), effects)
        if self.narrates:
            for effect in effects:
                if isinstance(effect, AskUser):
                    called = f"{effect.tool}({arguments_text(effect.arguments)})"
                    self.activity(
                        f"? {called} waits for a person's yes ({effect.because}); question {effect.effect_id}"
                    )
        return effects

    def _narrate(self, row: dict[str, Any], event: Event | None) -> None:
        at = f"{row['seq']:>4} {clock_text(row['event']['at_ms'])}"
        match event:
            case UserSaid(text=text, by=by):
                self.activity(f"{at} {by or 'user'}: {text}")
            case UserDecided(approved=approved, text=text):
                self.activity(f"{at} {'approved' if approved else 'not approved'}: {text}")
            case _:
                self.activity(f"{at} {row['event']['type']}")

    def answer_to(self, question: AskUser) -> Decision | None:
        """What this end says to a question; None where it cannot be asked here, and another end may answer."""
        if question.tool in self._yes or self._as_json or can_ask():
            return self.decide(question)
        called = f"{question.tool}({arguments_text(question.arguments)})"
        told(
            f"{called} waits for a person's yes ({question.because}): give it at another end, or --yes {question.tool}"
        )
        return None


def _rest(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "type"}


class OwnTurn:
    """Which records belong to a word: from the record of the word to the end of the turn that answers it."""

    def __init__(self, number: int, before: dict[str, Any]) -> None:
        self._number, self._before = number, before
        self._turn: int | None = None
        self.outcome: Outcome | None = None
        self.is_over = False

    @property
    def runs(self) -> bool:
        """Whether the turn runs now."""
        return self._turn is not None and self._before["turn"] == self._turn and not self.is_over

    def part_of(self, row: dict[str, Any]) -> dict[str, Any] | None:
        """What of this record is of the word's turn; None where nothing is."""
        before, self._before = self._before, row["state"]
        if row["seq"] < self._number:
            return None
        if row["seq"] == self._number:
            return self._begun(before, row)
        return self._gone_on(before, row)

    def _begun(self, before: dict[str, Any], row: dict[str, Any]) -> dict[str, Any] | None:
        state = row["state"]
        if state["turn"] > before["turn"]:
            self._turn = state["turn"]
            self._rest(state)
        elif state["queued"] > before["queued"]:
            self._turn = state["turn"] + state["queued"]
            return None
        elif state["phase"] in RESTING:
            self._end(Outcome("halted", "the session has ended"))
        else:
            self._end(TOO_MANY)
        return row

    def _gone_on(self, before: dict[str, Any], row: dict[str, Any]) -> dict[str, Any] | None:
        state, turn = row["state"], self._turn
        assert turn is not None, "known since the word's record"
        if before["turn"] == turn:
            self._rest(state)
            if state["turn"] == turn:
                return row
            trouble = before["trouble"]  # The turn of another word began in the same transition.
            self._end(Outcome(**trouble) if trouble else Outcome("answered"))
            return row | {"effects": _first_said(row["effects"], others=False)}
        if state["turn"] == turn:
            self._rest(state)
            return row | {"effects": _first_said(row["effects"], others=True)}
        if state["phase"] in RESTING or state["turn"] > turn:
            self._end(Outcome("cancelled", "it waited behind a turn that was stopped, and was forgotten with it"))
        return None

    def _rest(self, state: dict[str, Any]) -> None:
        if state["phase"] in RESTING and state["turn"] == self._turn:
            self._end(Outcome(**state["outcome"]) if state["outcome"] else Outcome("failed", "the turn has no outcome"))

    def _end(self, outcome: Outcome) -> None:
        self.outcome, self.is_over = outcome, True


def _first_said(effects: list[dict[str, Any]], *, others: bool) -> list[dict[str, Any]]:
    """What the turn that ended said, or with `others` all that is not this."""
    first = next((n for n, effect in enumerate(effects) if effect["type"] == "Say"), -1)
    return [effect for n, effect in enumerate(effects) if (n != first) == others]

"""`edgeagent watch`: follow a session that is served, record by record."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from edgeagent.doors.cli.far import RESTING, FarScreen, at_options, client_from, newest_session, told
from edgeagent.doors.cli.terminal import tell_row
from edgeagent.doors.http.client import Sent
from edgeagent.errors import ExitCode, PeerMisbehaved


@click.command()
@click.argument("session", required=False)
@at_options
@click.option("--since", type=click.IntRange(min=0), help="From this record on. Default: what comes from now on.")
@click.option("--rest", is_flag=True, help="End when the session rests.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a record, as it is sent.")
def watch(session: str | None, at: str, key: str | None, tls_ca: Path | None, **options: bool | int | None) -> int:
    """Show what SESSION does, by default the newest: what is said, called, asked and decided, and the answers.

    It ends at Ctrl-C. When the server is away it waits for it, and goes on behind the last record it has had.

    \b
    Example:
      edgeagent watch --at http://127.0.0.1:8383
      edgeagent watch --at unix:/run/edgeagent/serve --since 0 --rest 20261130-204500-1a2b
    """
    client = client_from(at, key, tls_ca)
    session = session or newest_session(client)
    shown = client.call("GET", f"/api/sessions/{session}")
    since = shown["records"] if options["since"] is None else options["since"]
    screen = FarScreen(sys.stdout, sys.stdout, as_json=bool(options["as_json"]), streams=True)
    screen.narrates = True
    screen.activity(f"session {session} of {shown['agent']}, {shown['records']} records: {shown['title']}")
    if options["rest"] and since >= shown["records"] and shown["state"]["phase"] in RESTING:
        return int(ExitCode.DONE)
    try:
        for sent in client.stream(session, since, told, float("inf")):
            _show(screen, sent, as_json=bool(options["as_json"]))
            if options["rest"] and _is_last(sent, shown["records"]):
                break
    except (KeyError, TypeError, ValueError) as error:
        raise PeerMisbehaved(f"the server sent what is no event ({error!r}); is it of another version?") from None
    except KeyboardInterrupt:
        pass
    return int(ExitCode.DONE)


def _show(screen: FarScreen, sent: Sent, *, as_json: bool) -> None:
    if not as_json:
        screen.take(sent)
    elif sent.kind == "record":
        tell_row(sent.row)
    state = sent.row.get("state")
    if not as_json and state and state["phase"] in RESTING and state["outcome"]:
        detail = f" ({state['outcome']['detail']})" if state["outcome"]["detail"] else ""
        screen.activity(f"turn {state['turn']}: {state['outcome']['kind']}{detail}")


def _is_last(sent: Sent, records: int) -> bool:
    """Whether the session rests behind this record, and it is not one of those that were there before."""
    return sent.number is not None and sent.number >= records - 1 and sent.row["state"]["phase"] in RESTING

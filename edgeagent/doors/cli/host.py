"""`edgeagent host`: an agent inside another program."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from edgeagent.doors.acp.house import House
from edgeagent.doors.acp.opening import Opening
from edgeagent.doors.cli.acp import check_agent, client_options, run_until_signal, told
from edgeagent.doors.cli.printed import prints_told
from edgeagent.doors.cli.terminal import tell_row
from edgeagent.doors.host.door import HostDoor, Listener
from edgeagent.doors.host.messages import schema as schema_of_messages
from edgeagent.doors.stdio import stdio_kept
from edgeagent.errors import ExitCode


@click.command()
@click.argument("agent", metavar="[AGENT]", required=False)
@click.option("--unix", type=click.Path(path_type=Path), help="Listen at this socket, in place of stdin and stdout.")
@click.option("--schema", "prints_schema", is_flag=True, help="Print the JSON Schema of the messages, and end.")
@client_options
def host(agent: str | None, unix: Path | None, prints_schema: bool, offers: tuple[str, ...], **options: Any) -> int:
    """Serve AGENT (FILE.py or FILE.py:NAME) to a program in any language; docs/host.md.

    The program starts this as a child and speaks JSON-RPC lines: ACP's messages, and `_edgeagent/...` for tools of its
    own, events, budgets, state and replay. With --unix several programs may come to one agent and one model.

    \b
    Example:
      edgeagent host examples/greenhouse.py --model smollm2 --unix /run/user/1000/greenhouse
    """
    if prints_schema:
        tell_row(schema_of_messages())
        return int(ExitCode.DONE)
    if agent is None:
        raise click.UsageError("say which AGENT: FILE.py or FILE.py:NAME")
    check_agent(agent)
    with prints_told(), House(Opening(agent, offers, options)) as house:
        if unix is None:
            with stdio_kept() as (incoming, write):
                return run_until_signal(HostDoor(house, incoming, write, told))
        return run_until_signal(Listener(house, unix, told))

"""`edgeagent mcp`: an agent's tools, and the agent, for programs that speak MCP."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import click

from edgeagent.doors.cli.options import model_options
from edgeagent.doors.cli.printed import prints_told
from edgeagent.doors.stdio import stdio_kept
from edgeagent.errors import ConfigError, ExitCode


@click.command()
@click.argument("agent", metavar="AGENT")
@click.option("--state", type=click.Path(path_type=Path), help="Where sessions are kept.")
@model_options
def mcp(agent: str, **options: Any) -> int:
    """Offer AGENT (FILE.py or FILE.py:NAME) to a program that speaks MCP, on stdin and stdout; docs/mcp.md.

    The program starts this itself; messages go to stderr. Each tool of the agent is a tool of the server, under the
    agent's rules and in its trace; by one more the agent itself is asked.

    \b
    Example:
      edgeagent mcp examples/greenhouse.py
    """
    from edgeagent.doors.mcp.door import McpDoor

    file = Path(agent if agent.endswith(".py") else agent.rpartition(":")[0] or agent)
    if not file.is_file():
        raise ConfigError(f"{file}: no such agent file; give FILE.py or FILE.py:NAME")
    with stdio_kept() as (incoming, write), prints_told():
        door = McpDoor(agent, file, options, incoming, write)
        before = {each: signal.signal(each, lambda *_: door.stop()) for each in (signal.SIGTERM, signal.SIGINT)}
        try:
            door.run()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
    return int(ExitCode.DONE)

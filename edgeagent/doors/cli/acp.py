"""`edgeagent acp`: an agent in an editor."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import click

from edgeagent.doors.acp.door import AcpDoor
from edgeagent.doors.acp.house import House
from edgeagent.doors.acp.opening import CLIENT_TOOLS, Opening
from edgeagent.doors.cli.printed import prints_told
from edgeagent.doors.cli.terminal import tell
from edgeagent.doors.stdio import stdio_kept
from edgeagent.errors import ConfigError, ExitCode


@click.command()
@click.argument("agent", metavar="AGENT")
@click.option("--state", type=click.Path(path_type=Path), help="Where sessions are kept.")
@click.option(
    "--client-tools",
    "offers",
    multiple=True,
    type=click.Choice(CLIENT_TOOLS),
    help="Let AGENT ask the editor for this too; what writes or runs is put to you first.",
)
@click.option("--model", metavar="NAME|FILE", help="A pulled model's name, a GGUF file, or one by its name.")
@click.option("--endpoint", metavar="URL", help="Ask --model of this server: https://host/v1.")
@click.option("--credential", metavar="REF", help="Where its key is: env:NAME, file:PATH, credential:NAME.")
@click.option("--context-tokens", type=click.IntRange(min=256), help="Size of the model's window.")
@click.option("--threads", type=click.IntRange(min=1), help="Default: one a core.")
@click.option("--config", type=click.Path(path_type=Path), help="Default: edgeagent.toml beside AGENT.")
@click.option("--verbose", is_flag=True, help="Show llama.cpp's own log.")
def acp(agent: str, offers: tuple[str, ...], **options: Any) -> int:
    """Serve AGENT (FILE.py or FILE.py:NAME) to an editor that speaks ACP, on stdin and stdout; docs/acp.md.

    The editor starts this itself; messages go to stderr. Sessions are kept, and go on where they were when the editor
    loads them again.

    \b
    Example:
      edgeagent acp examples/greenhouse.py --model smollm2
    In Zed's settings.json:
      "agent_servers": {"greenhouse": {"type": "custom", "command": "edgeagent",
        "args": ["acp", "/home/me/greenhouse.py", "--model", "smollm2"]}}
    """
    file = Path(agent if agent.endswith(".py") else agent.rpartition(":")[0] or agent)
    if not file.is_file():
        raise ConfigError(f"{file}: no such agent file; give FILE.py or FILE.py:NAME")
    opening = Opening(agent, offers, options)
    with stdio_kept() as (incoming, write), prints_told(), House(opening) as house:
        door = AcpDoor(house, incoming, write, lambda text: tell(f"edgeagent: {text}", err=True))
        before = {each: signal.signal(each, lambda *_: door.stop()) for each in (signal.SIGTERM, signal.SIGINT)}
        try:
            door.run()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
    return int(ExitCode.DONE)

"""`edgeagent acp`: an agent in an editor."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import click

from edgeagent.doors.acp.door import AcpDoor
from edgeagent.doors.acp.house import House
from edgeagent.doors.acp.opening import CLIENT_TOOLS, Opening
from edgeagent.doors.cli.printed import prints_told
from edgeagent.doors.cli.terminal import tell
from edgeagent.doors.stdio import stdio_kept
from edgeagent.errors import ConfigError, ExitCode


def client_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --state, --client-tools and what says which model; those of `options` would bring the whole runtime."""
    for option in reversed(
        (
            click.option("--state", type=click.Path(path_type=Path), help="Where sessions are kept."),
            click.option(
                "--client-tools",
                "offers",
                multiple=True,
                type=click.Choice(CLIENT_TOOLS),
                help="Let AGENT ask the client for this too; what writes or runs is put to a person first.",
            ),
            click.option(
                "--model", metavar="NAME|FILE", help="A pulled model's name, a GGUF file, or one by its name."
            ),
            click.option("--endpoint", metavar="URL", help="Ask --model of this server: https://host/v1."),
            click.option("--credential", metavar="REF", help="Where its key is: env:NAME, file:PATH, credential:NAME."),
            click.option("--context-tokens", type=click.IntRange(min=256), help="Size of the model's window."),
            click.option("--threads", type=click.IntRange(min=1), help="Default: one a core."),
            click.option("--config", type=click.Path(path_type=Path), help="Default: edgeagent.toml beside AGENT."),
            click.option("--verbose", is_flag=True, help="Show llama.cpp's own log."),
        )
    ):
        command = option(command)
    return command


@click.command()
@click.argument("agent", metavar="AGENT")
@client_options
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
    check_agent(agent)
    with stdio_kept() as (incoming, write), prints_told(), House(Opening(agent, offers, options)) as house:
        return run_until_signal(AcpDoor(house, incoming, write, told))


class Served(Protocol):
    """What serves until it is told to end."""

    def run(self) -> None:
        """Serve."""

    def stop(self) -> None:
        """End in good order."""


def run_until_signal(served: Served) -> int:
    """Serve until the other side ends, SIGTERM or Ctrl-C."""
    before = {each: signal.signal(each, lambda *_: served.stop()) for each in (signal.SIGTERM, signal.SIGINT)}
    try:
        served.run()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return int(ExitCode.DONE)


def check_agent(agent: str) -> None:
    """Raises ConfigError where the agent's file is not there; what is wrong with it is told when it is loaded."""
    file = Path(agent if agent.endswith(".py") else agent.rpartition(":")[0] or agent)
    if not file.is_file():
        raise ConfigError(f"{file}: no such agent file; give FILE.py or FILE.py:NAME")


def told(text: str) -> None:
    """Tell the operator."""
    tell(f"edgeagent: {text}", err=True)

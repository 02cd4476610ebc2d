"""The command `edgeagent`: finds the verb, loads only its file, and turns our errors into exit codes."""

from __future__ import annotations

import importlib
import io
import keyword
import os
import sys
from typing import Any

import click

from edgeagent.doors.cli.terminal import tell
from edgeagent.errors import EdgeAgentError, ExitCode
from edgeagent.version import __version__

VERBS = {
    "acp": "Serve an agent to an editor, over ACP.",
    "ask": "Say something to an agent that is served.",
    "calibrate": "Find from where on an agent's model makes a call.",
    "chat": "Talk with an agent.",
    "check": "Find everything that could fail later, before anything runs.",
    "console": "Watch a serial line live, and break in.",
    "device": "List serial ports, identify a console, check a profile.",
    "doctor": "Say whether this board is fit for an agent.",
    "fork": "Begin a new session from an old one's records.",
    "grammar": "Print what an agent's model may write, or check the grammars that are kept.",
    "host": "Serve an agent to a program in any language, over lines of JSON.",
    "mcp": "Offer an agent's tools, and the agent, to programs that speak MCP.",
    "model": "Fetch, add, list, verify and remove model files.",
    "new": "Write a commented agent and its test, to begin from.",
    "policy": "Explain an agent's rules, and try them on recorded sessions.",
    "replay": "Fold a trace again and compare it with what was recorded.",
    "run": "Ask an agent once.",
    "serve": "Serve agents over HTTP: sessions and approvals.",
    "sessions": "List, show, remove, prune and export sessions.",
    "trace": "Look into traces.",
    "try": "Ask an agent its author's requests: what is right, wrong or asked.",
    "watch": "Follow a session that is served.",
}
"""Each verb is a click command of that name in the module of that name; its help line stands here so that
`edgeagent --help` need not import them all."""


class Verbs(click.Group):
    """A group that imports a verb's module only when the verb is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All verbs, in alphabetical order."""
        return sorted(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the verb, or None if there is no such verb."""
        if cmd_name not in VERBS:
            return None
        name = f"{cmd_name}_" if keyword.iskeyword(cmd_name) else cmd_name
        command: click.Command = getattr(importlib.import_module(f"edgeagent.doors.cli.{name}"), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of verbs without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(sorted(VERBS.items()))


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="edgeagent")
def cli() -> None:
    """An agent that runs where the device is.

    Example: edgeagent run examples/greenhouse.py "Open the north valve for 30 seconds."
    """


def main() -> Any:
    """Run the command line; never returns. Errors of ours are one sentence on stderr and an exit code."""
    try:
        code = cli.main(standalone_mode=False)
        code = code if isinstance(code, int) else ExitCode.DONE
    except click.exceptions.Abort:
        code = ExitCode.INTERRUPTED
    except click.ClickException as error:
        said = io.StringIO()
        error.show(said)  # It repeats what was typed, which may be a name from elsewhere.
        tell(said.getvalue().rstrip("\n"), err=True, lines=True)
        code = ExitCode.USAGE
    except EdgeAgentError as error:
        tell(f"edgeagent: {error}", err=True, lines=True)
        code = error.exit_code
    except KeyboardInterrupt:
        code = ExitCode.INTERRUPTED
    except BrokenPipeError:
        code = ExitCode.ERROR
    _leave(int(code))


def _leave(code: int) -> None:
    """End the process now. Tools that were left behind after a time-out still hold their threads."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (BrokenPipeError, ValueError):
            code = code or ExitCode.ERROR
    os._exit(code)

"""Slash commands of `edgeagent chat`: what a person asks of the program and not of the model."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from msgspec.structs import asdict

from edgeagent.core.budget import NO_BUDGET, Budget, Spent
from edgeagent.runtime.session import Session

GOODBYES = {"/quit", "/exit"}


def slash_command(line: str) -> str | None:
    """The command that a line is, or None for words to the agent: a path begins with a slash too."""
    first = line.split(maxsplit=1)[0] if line else ""
    return first if re.fullmatch(r"/[a-z_-]*", first) else None


def told_of(command: str, session: Session) -> Iterator[str]:
    """The lines that answer a command."""
    if command in COMMANDS:
        yield from COMMANDS[command][1](session)
    else:
        yield f"there is no {command}; /help says which there are. It was not sent to the agent"


def _help(_: Session) -> Iterator[str]:
    for name, (about, _tell) in COMMANDS.items():
        yield f"{name:8} {about}"
    yield "A line that ends in \\ goes on in the next. Ctrl-C stops an answer, Ctrl-D ends the session."


def _tools(session: Session) -> Iterator[str]:
    for tool in session.agent.tools:
        asks = ", asks first" if tool.confirm else ""
        again = "may be repeated" if tool.idempotent else "is never repeated by itself"
        yield f"{tool.name}: {tool.description.partition(chr(10))[0]} ({again}{asks})"
    if not session.agent.tools:
        yield "there are none"


def _rules(session: Session) -> Iterator[str]:
    from edgeagent.doors.cli.policy import explained

    for each in session.agent.policies:
        yield explained(each, session.agent)["sentence"]
    if not session.agent.policies:
        yield "there are none: every tool may be called, within its budget"


def _budget(session: Session) -> Iterator[str]:
    state, agent = session.state, session.agent
    of_session = agent.session_budget or NO_BUDGET
    yield from _used("last turn", agent.budget, state.turn_spent)
    yield from _used("session", of_session, state.session_spent)


def _used(whose: str, limits: Budget, spent: Spent) -> Iterator[str]:
    for name, limit in asdict(limits).items():
        used = asdict(spent).get(name)
        if isinstance(used, int) and (limit is not None or used):
            yield f"{whose}: {used} {name.replace('_', ' ')}" + (f" of {limit}" if limit is not None else "")


def _trace(session: Session) -> Iterator[str]:
    yield str(session.trace_path)


def _quit(_: Session) -> Iterator[str]:
    yield from ()


COMMANDS: dict[str, tuple[str, Callable[[Session], Iterator[str]]]] = {
    "/help": ("these lines", _help),
    "/tools": ("what the agent can do", _tools),
    "/rules": ("what it may not do", _rules),
    "/budget": ("what is used of its limits", _budget),
    "/trace": ("where this session is recorded", _trace),
    "/quit": ("end the session; `edgeagent chat --continue` goes on with it", _quit),
}

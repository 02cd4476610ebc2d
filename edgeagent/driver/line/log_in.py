"""The log-in as a play: a user's name at its prompt, a password at its prompt, and nothing anywhere else."""

from __future__ import annotations

from collections.abc import Callable

from edgeagent.driver.line.console_machine import ConsoleMachine
from edgeagent.driver.line.play import Play
from edgeagent.driver.line.view import READY, State

TRIES = 3


def log_in(machine: ConsoleMachine, user: str, password: Callable[[], str], timeout_s: float) -> Play[State]:
    """Log in; return the state afterwards: `shell`, or `log_in` when it was refused. Each step has the time-out.

    `password` is called once, when its prompt stands there; it may take long (labgrid#545: meanwhile the log-in gives
    up, or the board starts again). What it gave is typed only if the prompt still stands there. Otherwise nothing is
    typed, and the log-in begins again.
    """
    if (yield from machine.watch()) not in ("log_in", "password"):
        yield from machine.nudge(machine.now + timeout_s)
    if machine.state == "password":  # Somebody else's log-in: an empty answer ends it.
        yield from machine.answered_line("", machine.now + timeout_s)
    secret: str | None = None
    for _ in range(TRIES):
        if machine.state != "log_in":
            break
        if (yield from machine.answered_line(user, machine.now + timeout_s)) != "password":
            break
        secret = password() if secret is None else secret
        if (yield from machine.watch()) == "password":
            yield from machine.answered_line(secret, machine.now + timeout_s, hidden=True)
            return (yield from machine.confirm(timeout_s)) if machine.state in READY else machine.state
        yield from _until_prompt(machine, timeout_s)
    return machine.state


def _until_prompt(machine: ConsoleMachine, timeout_s: float) -> Play[None]:
    """Wait, typing nothing, until the log-in's prompt is there again and nothing follows it."""
    settles_s = machine.profile.settle_s
    limit = machine.now + timeout_s
    while machine.now < limit and not ((yield from machine.quiet(settles_s)) and machine.state == "log_in"):
        yield from machine.watch()

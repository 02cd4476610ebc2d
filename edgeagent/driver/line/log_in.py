"""The log-in as a play: a user's name at its prompt, a password at its prompt, and nothing anywhere else."""

from __future__ import annotations

from collections.abc import Callable

from edgeagent.driver.line.console_machine import ConsoleMachine
from edgeagent.driver.line.play import Play
from edgeagent.driver.line.view import READY, State, View

TRIES = 3


def log_in(machine: ConsoleMachine, user: str, password: Callable[[], str], timeout_s: float) -> Play[State]:
    """Log in; return the state afterwards: `shell`, or `log_in` when it was refused. Each step has the time-out.

    `password` is called once, when its prompt stands there; it may take long (labgrid#545: meanwhile the log-in gives
    up, or the board starts again). Nothing is typed at a log-in that a command which has not ended asks for: it may be
    another device's (telnet, ssh). What it gave is typed only if that very prompt still stands there and nothing was
    printed since; another one may be somebody else's. Otherwise nothing is typed, and the log-in begins again.
    """
    if (yield from machine.watch()) not in ("log_in", "password") and not machine.running:
        yield from machine.nudge(machine.now + timeout_s)
    if machine.others_log_in or (machine.running and machine.state not in ("log_in", "password")):
        return machine.state
    secret: str | None = None
    for _ in range(TRIES):
        if machine.state == "password":  # Somebody else's log-in: an empty answer ends it.
            yield from machine.answered_line("", machine.now + timeout_s)
        if machine.state != "log_in":
            break
        at = machine.view.clean[0].rstrip("\n").rpartition("\n")[2].strip()
        if (yield from machine.answered_line(user, machine.now + timeout_s)) != "password":
            break
        asked = machine.view.clean[0]
        secret = password() if secret is None else secret
        if (yield from _typed_secret(machine, secret, asked, machine.now + timeout_s)):
            if machine.state in READY:
                machine.logged_in_at = at
                machine.running = ""  # A new session: what ran in the one before has ended, or it went with it.
                yield from machine.confirm(timeout_s)
            return machine.state
        yield from _until_prompt(machine, timeout_s)
    return machine.state


def _typed_secret(machine: ConsoleMachine, secret: str, asked: str, until: float) -> Play[bool]:
    """Type the secret at the prompt that ends this text, unless anything came since; return whether it was typed.

    What comes while it is typed stops that: nobody echoes a secret, but for stars.
    """
    if (yield from machine.watch()) != "password" or machine.view.clean[0] != asked:
        return False
    machine.view, line = View(machine.profile), secret + machine.profile.keys.enter
    if (yield from machine.type(line, hidden=True)) < len(line.encode()):
        yield from machine.send(machine.profile.keys.clear_line)
        return False
    yield from machine.next_prompt(machine.view, until)
    return True


def _until_prompt(machine: ConsoleMachine, timeout_s: float) -> Play[None]:
    """Wait, typing nothing, until a log-in's prompt is there again and nothing follows it."""
    settles_s = machine.profile.settle_s
    limit = machine.now + timeout_s
    while machine.now < limit:
        quiet = yield from machine.quiet(settles_s)
        if (yield from machine.watch()) in ("log_in", "password") and quiet:
            return

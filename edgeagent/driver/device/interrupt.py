"""Interrupting what runs on a console, as a tool that always asks a person: only where the profile says it may.

Law: the key is pressed only into a command that has not ended, or where nobody knows what is there; never at a prompt,
a log-in of the console's own, a boot loader or its count-down, where it would do something of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from edgeagent.core.agent import Tool
from edgeagent.driver.line.console import READY, Console
from edgeagent.driver.line.port import LinkLost
from edgeagent.driver.line.profile import Profile
from edgeagent.driver.unknown import CommandFailed, EffectUnknown
from edgeagent.errors import DriverUnavailable

INTERRUPT_S = 5.0
"""How long the prompt may take to come back."""

TOOL_S = 20.0
"""The tool's own limit: a line may have to be opened first, and its end looked for."""


def interrupt_name(profile: Profile) -> str:
    """Return the name of the profile's interrupting tool; a name of a tool has letters, digits and `_`."""
    return re.sub(r"[^A-Za-z0-9_]", "_", profile.name) + "_interrupt"


def interrupt_tool(
    profile: Profile, console: Callable[[], Console], notes: Callable[[], tuple[str, ...]] | None
) -> Tool:
    """Return the tool that breaks off what runs. A person is asked each time; no rule takes that away."""
    what = profile.about.rstrip(".") or profile.name
    return Tool.of_schema(
        interrupt_name(profile),
        f"Interrupt the command that still runs on the console of {what}, when it does not end by itself.\n"
        "What the interrupted command did stays unknown.",
        {"type": "object", "properties": {}, "required": [], "additionalProperties": False},
        lambda _: interrupted(console()),
        idempotent=False,
        effect="write",
        confirm=True,
        timeout_s=TOOL_S,
        examples=(f"interrupt what runs on {profile.name}",),
        notes=notes,
    )


def interrupted(console: Console) -> str:
    """Press the interrupting key and say what is there then. Raises DriverUnavailable where it must not be pressed."""
    if console.person_has_it:
        raise DriverUnavailable("not interrupted: a person has the console")
    state = console.look()
    if console.running and state in READY:
        state = console.confirm()  # Its end may have come; only where its prompt stands is anything typed for that.
    running = console.running
    ours = state in ("log_in", "password") and not console.machine.others_log_in
    if ours or state == "booting" or (state in READY and not running):
        raise DriverUnavailable(f"not interrupted: nothing runs there; the console is in state {state}")
    try:
        state = console.interrupt(INTERRUPT_S)
    except LinkLost as lost:
        raise EffectUnknown(f"the line was lost while interrupting ({lost}); whether it broke off is unknown") from None
    said = f"{running!r} was interrupted; what it did is unknown" if running else "what ran was interrupted"
    if state not in READY:
        raise CommandFailed(f"interrupted, and no prompt came: state {state}. Last heard: {console.last_heard!r}")
    return f"{said}. The console is in state {state}. Last heard: {console.last_heard}"

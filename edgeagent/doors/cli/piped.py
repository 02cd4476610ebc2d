"""Piped text: what comes on stdin beside a command, read with a bound and not waited for in silence."""

from __future__ import annotations

import select
import sys
import threading

from edgeagent.doors.cli.terminal import tell
from edgeagent.errors import ConfigError

PROMPT_BYTES_MAX = 1_000_000
"""More than any window holds; a bound against a pipe that never ends."""

FIRST_BYTE_S, TOLD_AFTER_S = 0.2, 1.0
"""How long a pipe beside a prompt is given to say something, and how long it is waited for in silence."""


def piped_text(*, waits: bool) -> str:
    """What is piped in, up to its end. Without `waits` a pipe that stays silent is left alone, and that is said."""
    if sys.stdin is None or sys.stdin.isatty():
        return ""
    if not waits and not select.select([sys.stdin], [], [], FIRST_BYTE_S)[0]:
        tell("edgeagent: nothing has come on stdin, and it is not waited for (--stdin waits for it)", err=True)
        return ""
    told = threading.Timer(TOLD_AFTER_S, tell, ("edgeagent: waiting for the end of what is piped in",), {"err": True})
    told.daemon = True
    told.start()
    piped = sys.stdin.buffer.read(PROMPT_BYTES_MAX + 1)
    told.cancel()
    if len(piped) > PROMPT_BYTES_MAX:
        raise ConfigError(f"more than {PROMPT_BYTES_MAX} bytes were piped in; no model here can read that")
    return piped.decode(errors="replace")

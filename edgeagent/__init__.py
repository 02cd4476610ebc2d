"""The front door: what an author of an agent imports. Nobody inside imports it.

The one piece of logic: what an agent is made of is imported when it is first asked for. Every command of ours runs this
file first, and on a small board `edgeagent --version` would otherwise spend most of its time on it.
"""

import importlib
from typing import TYPE_CHECKING, Any

from edgeagent.errors import (
    ConfigError,
    DriverError,
    DriverUnavailable,
    EdgeAgentError,
    GrammarError,
    IllegalTransition,
    ModelError,
    PeerMisbehaved,
    ShapeError,
    TraceDamaged,
    TraceDisagrees,
    TraceError,
)
from edgeagent.version import __version__

if TYPE_CHECKING:
    from edgeagent.core.agent import Agent, Tool, tool
    from edgeagent.core.budget import Budget
    from edgeagent.driver.device.board_tools import Board
    from edgeagent.driver.device.device import device_tools
    from edgeagent.policy.rules import (
        SESSION,
        TURN,
        Formula,
        Rule,
        Window,
        acts,
        always,
        arg,
        at_least,
        at_most,
        call,
        clock,
        confident,
        confirm_before,
        confirm_below,
        confirmed,
        cooldown,
        denied,
        eventually,
        failed,
        following,
        guard,
        halt_when,
        historically,
        k_of,
        last_events,
        last_seconds,
        lock_after_no,
        never,
        no_effect_after_untrusted,
        once,
        only_between,
        previously,
        quorum,
        require_origin,
        requires_before,
        returned,
        rule,
        said,
        since,
        tainted,
        until,
        untrusted,
        values_from_user,
    )
    from edgeagent.runtime.answer import Answer, Called
    from edgeagent.runtime.door import Decision, Door, QuietDoor
    from edgeagent.runtime.library import AsyncSession, load, open, open_async
    from edgeagent.runtime.model import Model
    from edgeagent.runtime.serve import Service
    from edgeagent.runtime.session import Session
    from edgeagent.shape.from_user import FromUser

__all__ = [
    "SESSION",
    "TURN",
    "Agent",
    "Answer",
    "AsyncSession",
    "Board",
    "Budget",
    "Called",
    "ConfigError",
    "Decision",
    "Door",
    "DriverError",
    "DriverUnavailable",
    "EdgeAgentError",
    "Formula",
    "FromUser",
    "GrammarError",
    "IllegalTransition",
    "Model",
    "ModelError",
    "PeerMisbehaved",
    "QuietDoor",
    "Rule",
    "Service",
    "Session",
    "ShapeError",
    "Tool",
    "TraceDamaged",
    "TraceDisagrees",
    "TraceError",
    "Window",
    "__version__",
    "acts",
    "always",
    "arg",
    "at_least",
    "at_most",
    "call",
    "clock",
    "confident",
    "confirm_before",
    "confirm_below",
    "confirmed",
    "cooldown",
    "denied",
    "device_tools",
    "eventually",
    "failed",
    "following",
    "guard",
    "halt_when",
    "historically",
    "k_of",
    "last_events",
    "last_seconds",
    "load",
    "lock_after_no",
    "never",
    "no_effect_after_untrusted",
    "once",
    "only_between",
    "open",
    "open_async",
    "previously",
    "quorum",
    "require_origin",
    "requires_before",
    "returned",
    "rule",
    "said",
    "since",
    "tainted",
    "tool",
    "until",
    "untrusted",
    "values_from_user",
]

_OWNERS = {
    "Agent": "core.agent",
    "Answer": "runtime.answer",
    "AsyncSession": "runtime.library",
    "Board": "driver.device.board_tools",
    "Budget": "core.budget",
    "Called": "runtime.answer",
    "Decision": "runtime.door",
    "Door": "runtime.door",
    "FromUser": "shape.from_user",
    "Model": "runtime.model",
    "QuietDoor": "runtime.door",
    "Service": "runtime.serve",
    "Session": "runtime.session",
    "Tool": "core.agent",
    "device_tools": "driver.device.device",
    "load": "runtime.library",
    "open": "runtime.library",
    "open_async": "runtime.library",
    "tool": "core.agent",
}
"""Where the names are that are not of `policy.rules`."""


def __getattr__(name: str) -> Any:
    """Import the file that owns a name (PEP 562)."""
    if name not in __all__:
        raise AttributeError(f"module 'edgeagent' has no attribute {name!r}")
    owner = importlib.import_module(f"edgeagent.{_OWNERS.get(name, 'policy.rules')}")
    globals()[name] = value = getattr(owner, name)
    return value

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
    from edgeagent.shape.from_user import FromUser

__all__ = [
    "Agent",
    "Budget",
    "ConfigError",
    "DriverError",
    "DriverUnavailable",
    "EdgeAgentError",
    "FromUser",
    "GrammarError",
    "IllegalTransition",
    "ModelError",
    "PeerMisbehaved",
    "ShapeError",
    "Tool",
    "TraceDamaged",
    "TraceDisagrees",
    "TraceError",
    "__version__",
    "tool",
]

_OWNERS = {
    "Agent": "edgeagent.core.agent",
    "Budget": "edgeagent.core.budget",
    "FromUser": "edgeagent.shape.from_user",
    "Tool": "edgeagent.core.agent",
    "tool": "edgeagent.core.agent",
}


def __getattr__(name: str) -> Any:
    """Import the file that owns a name (PEP 562)."""
    if name not in _OWNERS:
        raise AttributeError(f"module 'edgeagent' has no attribute {name!r}")
    globals()[name] = value = getattr(importlib.import_module(_OWNERS[name]), name)
    return value

"""The front door: what an author of an agent imports. No logic here; nobody inside imports it."""

from edgeagent.core.agent import Agent, Tool, tool
from edgeagent.core.budget import Budget
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
from edgeagent.shape.from_user import FromUser
from edgeagent.version import __version__

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

"""What can go wrong, and whose fault it is.

    EdgeAgentError
      ConfigError             the operator's settings; names file and key
      ShapeError              a type that no schema can express; names the field
      GrammarError            a shape that no grammar can express, or an engine that refuses it
      TraceError
        TraceDamaged          bytes are not what was written; carries the offset
        TraceDisagrees        replay came to other effects than recorded; carries the first differing record
      ModelError              the model file or engine: missing, refused by the pre-check, wrong CPU, out of context
      DriverError             never crosses the loop: it becomes a ...Failed event
        DriverUnavailable     the outside thing is not there
        PeerMisbehaved        it broke the agreed format (the only error a fuzzer may see)
      IllegalTransition       our bug

What can happen in a healthy run is an event; an exception is a wrong setup or a bug.
"""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """How a command of ours ends, as the shell sees it."""

    DONE = 0
    ERROR = 1
    USAGE = 2
    REFUSED = 3
    BUDGET = 4
    MODEL = 5
    CHECK_FAILED = 6
    UNKNOWN = 7
    TIME_OUT = 124
    INTERRUPTED = 130


class EdgeAgentError(Exception):
    """Any error of ours; its text says what was found and what to do."""

    exit_code = ExitCode.ERROR


class ConfigError(EdgeAgentError):
    """The operator's settings are wrong; the text names file and key."""

    exit_code = ExitCode.USAGE


class ShapeError(EdgeAgentError):
    """A declared type that no schema can express, or a value that is not of its type; names the field."""

    exit_code = ExitCode.USAGE


class GrammarError(EdgeAgentError):
    """A shape that no grammar can express, or a grammar that the engine refuses; names tool and field."""

    exit_code = ExitCode.USAGE


class TraceError(EdgeAgentError):
    """A trace cannot be read or written."""

    exit_code = ExitCode.CHECK_FAILED


class TraceDamaged(TraceError):
    """The bytes are not what was written. `offset` is where the first bad record begins, in bytes."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.offset = offset


class TraceDisagrees(TraceError):
    """Replay came to other effects than were recorded. `record` counts from 0."""

    def __init__(self, message: str, record: int) -> None:
        super().__init__(message)
        self.record = record


class ModelError(EdgeAgentError):
    """The model file or the engine: missing, refused by the pre-check, wrong CPU, out of context."""

    exit_code = ExitCode.MODEL


class DriverError(EdgeAgentError):
    """Raised inside a driver; never crosses the loop, where it becomes a ...Failed event."""


class DriverUnavailable(DriverError):
    """The outside thing is not there."""


class PeerMisbehaved(DriverError):
    """The outside thing broke the agreed format."""


class IllegalTransition(EdgeAgentError):
    """An event that cannot follow from this state: our bug, never the user's."""

"""The agent that the conformance suite is let at: the tools that its scenarios call, as tools of ours can be."""

from __future__ import annotations

import base64
import struct

from edgeagent import Agent, tool

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
)
WAV = b"RIFF" + struct.pack("<I", 36) + b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, 8000, 8000, 1, 8)
WAV += b"data" + struct.pack("<I", 0)

read = tool(idempotent=True, effect="read")


@read
def test_simple_text() -> str:
    """Return a text."""
    return "This is a simple text response for testing."


@read
def test_image_content() -> bytes:
    """Return a picture."""
    return PNG


@read
def test_audio_content() -> bytes:
    """Return a sound."""
    return WAV


@read
def test_embedded_resource() -> bytes:
    """Return a file."""
    return b"This is an embedded resource content."


@read
def test_multiple_content_types() -> dict:
    """Return a text, a picture and a file."""
    return {"text": "Multiple content types test:", "picture": PNG, "file": b'{"test":"data","value":123}'}


@read
def test_tool_with_logging() -> str:
    """Return a text, while what happens is told in a log."""
    return "done"


@read
def test_tool_with_progress() -> str:
    """Return a text, while how far it is is told."""
    return "done"


@read
def test_error_handling() -> str:
    """Fail."""
    raise RuntimeError("This tool intentionally returns an error for testing")


@tool(idempotent=True, effect="write", confirm=True)
def test_elicitation(message: str) -> str:
    """Do something that a person is asked about."""
    return f"User response: yes to {message}"


@tool(idempotent=True, effect="write", confirm=True)
def test_streaming_elicitation() -> str:
    """Do something that a person is asked about."""
    return "done"


@tool(idempotent=True, effect="write", confirm=True)
def test_input_required_result_request_state() -> str:
    """Do something that a person is asked about."""
    return "state-ok"


@tool(idempotent=True, effect="write", confirm=True)
def test_input_required_result_tampered_state() -> str:
    """Do something that a person is asked about."""
    return "state-ok"


@tool(idempotent=True, effect="write", confirm=True)
def test_input_required_result_elicitation() -> str:
    """Do something that a person is asked about."""
    return "done"


@read
def test_logging_tool() -> str:
    """Return a text, and no log where none is wanted."""
    return "done"


@read
def test_reconnection() -> str:
    """Return a text."""
    return "Reconnection test completed successfully"


agent = Agent(
    "suite",
    "You are tried.",
    (
        test_simple_text,
        test_image_content,
        test_audio_content,
        test_embedded_resource,
        test_multiple_content_types,
        test_tool_with_logging,
        test_tool_with_progress,
        test_error_handling,
        test_elicitation,
        test_reconnection,
        test_streaming_elicitation,
        test_input_required_result_request_state,
        test_input_required_result_tampered_state,
        test_input_required_result_elicitation,
        test_logging_tool,
    ),
)

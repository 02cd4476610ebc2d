"""Messages of ACP as values: what a client sends is read into one of these, or refused with where it is wrong.

The one gate for outside text. Fields that nobody knows are left out, since newer clients send more; a field that may be
absent may be null.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from edgeagent.codec.jsonrpc import INVALID_PARAMS
from edgeagent.core.text import shown
from edgeagent.driver.peer import Refused

VERSION = 1
"""The newest version of the protocol that is spoken here, and the oldest."""

NO_SUCH_SESSION = -32002
"""ACP's code for what is not there."""

BLOCKS_MAX = 256
WHY_CHARS_MAX = 300


class _Read(msgspec.Struct, frozen=True, rename="camel"):
    """What all are read like."""


class FileSystem(_Read, frozen=True):
    """Which files of the client may be asked for."""

    read_text_file: bool | None = None
    write_text_file: bool | None = None


class ClientCapabilities(_Read, frozen=True):
    """What the client does for an agent."""

    fs: FileSystem | None = None
    terminal: bool | None = None


class Initialize(_Read, frozen=True):
    """The beginning: which version the client speaks, and what it can."""

    protocol_version: int
    client_capabilities: ClientCapabilities | None = None


class NewSession(_Read, frozen=True):
    """A session, in a folder of the client's."""

    cwd: str
    additional_directories: tuple[str, ...] | None = None
    mcp_servers: list[Any] | None = None


class KnownSession(NewSession, frozen=True, kw_only=True):
    """A session that is there already."""

    session_id: str


class OfSession(_Read, frozen=True):
    """What concerns one session."""

    session_id: str


class SetMode(_Read, frozen=True):
    """Another mode."""

    session_id: str
    mode_id: str


class ListSessions(_Read, frozen=True):
    """A page of the sessions, in one folder or in all."""

    cwd: str | None = None
    cursor: str | None = None


class Text(_Read, frozen=True, tag_field="type", tag="text"):
    """What the person typed."""

    text: str


class Link(_Read, frozen=True, tag_field="type", tag="resource_link"):
    """Something that the person points at."""

    uri: str
    name: str = ""


class TextResource(_Read, frozen=True):
    """A text that the client sends along, or bytes (`blob`), which nobody reads here."""

    uri: str
    text: str | None = None
    blob: str | None = None


class Embedded(_Read, frozen=True, tag_field="type", tag="resource"):
    """The content of a file."""

    resource: TextResource


class Image(_Read, frozen=True, tag_field="type", tag="image"):
    """A picture."""


class Audio(_Read, frozen=True, tag_field="type", tag="audio"):
    """A sound."""


Block = Text | Link | Embedded | Image | Audio


class Prompt(_Read, frozen=True):
    """What is said to a session."""

    session_id: str
    prompt: tuple[Block, ...]


class Selected(_Read, frozen=True, tag_field="outcome", tag="selected"):
    """The option that was chosen."""

    option_id: str


class NotSelected(_Read, frozen=True, tag_field="outcome", tag="cancelled"):
    """The question is not answered: its turn was cancelled."""


class Permission(_Read, frozen=True):
    """The answer to a question."""

    outcome: Selected | NotSelected


class FileText(_Read, frozen=True):
    """The content of a file of the client's."""

    content: str


class Terminal(_Read, frozen=True):
    """A command that the client has started."""

    terminal_id: str


class Exit(_Read, frozen=True):
    """How a command ended."""

    exit_code: int | None = None
    signal: str | None = None


class Output(_Read, frozen=True):
    """What a command has written."""

    output: str
    truncated: bool = False


M = TypeVar("M", bound=_Read)


def read(kind: type[M], params: Any) -> M:
    """Return parameters as a message of that kind. Raises Refused."""
    try:
        return msgspec.convert({} if params is None else params, kind)
    except (msgspec.ValidationError, ValueError, RecursionError) as error:
        raise Refused(INVALID_PARAMS, f"params: {shown(str(error))[:WHY_CHARS_MAX]}") from None


def words_of(blocks: tuple[Block, ...]) -> tuple[str, str]:
    """Return what the person said, and what came along: that is from files, so it is not their word.

    Raises Refused for what cannot be read.
    """
    if len(blocks) > BLOCKS_MAX:
        raise Refused(INVALID_PARAMS, f"prompt: {len(blocks)} blocks; {BLOCKS_MAX} are the most")
    said: list[str] = []
    beside: list[str] = []
    for place, block in enumerate(blocks):
        match block:
            case Text():
                said.append(block.text)
            case Link():
                said.append(ATTACHED)
                beside.append(f"{block.name} {block.uri}".strip())
            case Embedded(resource=resource) if resource.text is not None:
                said.append(ATTACHED)
                beside.append(f"{resource.uri}\n{resource.text}")
            case Embedded() | Image() | Audio():
                kind = {Embedded: "bytes", Image: "a picture", Audio: "a sound"}[type(block)]
                raise Refused(INVALID_PARAMS, f"prompt[{place}] is {kind}: this agent reads text only")
    words = "".join(said)
    if not words.replace(ATTACHED, "").strip():
        raise Refused(INVALID_PARAMS, "prompt: it holds no words; say what is to be done")
    return words, "\n\n".join(beside)


ATTACHED = "[attached]"
"""What stands in the person's words for a file: its name is the file's author's, not the person's."""

"""What does a board say that it can do? Its own words, read, checked and bounded; nothing here opens a port.

A board describes its tools over SMP in a group of our own (docs/firmware.md). Law: whatever a board says, the only
error is PeerMisbehaved, and what is taken in is small: so many tools, so many arguments, so many characters.
"""

from __future__ import annotations

import keyword
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct, field

from edgeagent.errors import ConfigError, PeerMisbehaved

GROUP = 64
"""The first group that SMP leaves to users."""

LIST, DESCRIBE, CALL = 0, 1, 2
VERSION = 1

TOOLS_MAX = 32
"""What a prompt of a small model can hold; a board is a device, not a library."""

FIELDS_MAX = 8
CHOICES_MAX = 16
TIMEOUT_MS_MAX = 60_000

_LARGEST = 2**31 - 1
Name = Annotated[str, Meta(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,31}\Z")]
Words = Annotated[str, Meta(pattern=r"^[ -~°µΩ²³]{0,200}\Z")]
"""One line: what a board says goes into the prompt, where a line break could look like somebody else's word."""

Choice = Annotated[str, Meta(pattern=r"^[!-~]([ -~]{0,30}[!-~])?\Z")]
Bound = Annotated[int, Meta(ge=-_LARGEST - 1, le=_LARGEST)]


class Field(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """An argument or a result. Numbers are counted in their smallest steps: with one decimal, 215 is 21.5."""

    name: Name
    type: Literal["integer", "number", "boolean", "choice", "text"]
    help: Words = ""
    unit: Words = ""
    decimals: Annotated[int, Meta(ge=0, le=6)] = 0
    least: Bound | None = field(name="min", default=None)
    most: Bound | None = field(name="max", default=None)
    choices: tuple[Choice, ...] = ()

    @property
    def bounds(self) -> tuple[int, int]:
        """The bounds, which every number and text has once it has been checked."""
        return self.least or 0, self.most or 0


class DescribedTool(Struct, frozen=True, forbid_unknown_fields=True):
    """One tool in the board's own words."""

    name: Name
    help: Words
    effect: Literal["read", "write", "irreversible"]
    idempotent: bool
    timeout_ms: Annotated[int, Meta(ge=1, le=TIMEOUT_MS_MAX)] = field(name="ms")
    arguments: tuple[Field, ...] = field(name="args", default=())
    results: tuple[Field, ...] = ()


class Description(Struct, frozen=True, forbid_unknown_fields=True):
    """Everything a board says of itself."""

    board: Name
    tools: tuple[DescribedTool, ...]


class _Listing(Struct, frozen=True, forbid_unknown_fields=True):
    version: int
    board: Name
    tools: Annotated[int, Meta(ge=1)]


def read_listing(body: Any) -> tuple[str, int]:
    """Return the board's name and how many tools it has. Raises PeerMisbehaved."""
    listing: _Listing = _converted(body, _Listing, "the board's list of tools")
    if listing.version != VERSION:
        raise PeerMisbehaved(f"the board describes its tools in version {listing.version}; {VERSION} is known here")
    if listing.tools > TOOLS_MAX:
        raise PeerMisbehaved(f"board {listing.board} says it has {listing.tools} tools; {TOOLS_MAX} is the most")
    return listing.board, listing.tools


def read_tool(body: Any, number: int) -> DescribedTool:
    """Return one tool's description. Raises PeerMisbehaved naming the tool and the field."""
    tool: DescribedTool = _converted(body, DescribedTool, f"the board's description of tool {number}")
    where = f"the board's tool {tool.name}"
    if not tool.help.strip():
        raise PeerMisbehaved(f"{where} has no help: the model needs one sentence on what it does")
    _check_fields(tool.arguments, f"{where}: argument")
    _check_fields(tool.results, f"{where}: result")
    return tool


def description_of(board: str, tools: tuple[DescribedTool, ...]) -> Description:
    """Return the whole description. Raises PeerMisbehaved when two tools have one name."""
    names = [tool.name for tool in tools]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise PeerMisbehaved(f"board {board} describes two tools called {twice[0]}")
    return Description(board, tools)


def save_description(path: Path, description: Description) -> None:
    """Write a description to a file: what is in it is what will be offered, whatever the board says later."""
    path.write_bytes(msgspec.json.format(msgspec.json.encode(description), indent=2) + b"\n")


def load_description(path: Path) -> Description:
    """Read a saved description. Raises ConfigError naming the file."""
    try:
        whole = msgspec.json.decode(path.read_bytes())
        tools = [read_tool(tool, number) for number, tool in enumerate(whole["tools"])]
        return description_of(msgspec.convert(whole["board"], Name), tuple(tools))
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from None
    except (msgspec.MsgspecError, PeerMisbehaved, TypeError, KeyError) as error:
        raise ConfigError(f"{path} is no saved description of a board: {error}") from None


def _converted(body: Any, kind: Any, what: str) -> Any:
    try:
        return msgspec.convert(body, kind)
    except msgspec.ValidationError as error:
        raise PeerMisbehaved(f"{what} is not as agreed: {str(error)[:200]}") from None


def _check_fields(fields: tuple[Field, ...], where: str) -> None:
    if len(fields) > FIELDS_MAX:
        raise PeerMisbehaved(f"{where}s are {len(fields)}; {FIELDS_MAX} is the most")
    names = [each.name for each in fields]
    for each in fields:
        if names.count(each.name) > 1 or keyword.iskeyword(each.name):
            raise PeerMisbehaved(f"{where} {each.name} is there twice, or no name for an argument")
        _check_field(each, f"{where} {each.name}")


def _check_field(each: Field, where: str) -> None:
    if each.type == "choice":
        if not 1 <= len(each.choices) <= CHOICES_MAX or len(set(each.choices)) < len(each.choices):
            raise PeerMisbehaved(f"{where} has {len(each.choices)} choices: 1 to {CHOICES_MAX}, each once")
    elif each.type != "boolean":
        if each.least is None or each.most is None or each.least > each.most:
            raise PeerMisbehaved(f"{where} has the bounds {each.least} to {each.most}, which let nothing through")
        if each.type == "text" and not 0 <= each.least <= each.most <= 255:
            raise PeerMisbehaved(f"{where} is a text of {each.least} to {each.most} characters; 0 to 255 can be sent")

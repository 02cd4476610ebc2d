"""What is kept of long results beside a session's trace, and any result's text, part by part.

A result that is recorded whole is read out of the trace, so only longer ones are written here, and bytes, of which only
kind, size and digest are told: losing a file costs the rest of one result.
"""

from __future__ import annotations

import hashlib
import io
import re
import threading
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from edgeagent.core.events import ToolReturned
from edgeagent.core.results import KEPT_MAX
from edgeagent.core.values import read_json
from edgeagent.errors import TraceError
from edgeagent.runtime.folder import TRACE_NAME
from edgeagent.trace.disk import Disk
from edgeagent.trace.file import examine_file
from edgeagent.trace.record import Record
from edgeagent.trace.rotate import archives_of

RESULTS_NAME = "results"
"""The folder of a session in which its results are: each in a file called like its effect, `5`, and bytes of it as they
are in `5-1.bin`."""

MAGIC = b"edgeagent result\n"

_NAME = re.compile(r"([1-9][0-9]*)(?:-[1-9][0-9]*\.bin)?", re.ASCII)

KEPT_BYTES_MAX = 64 << 20
"""The most of one result that is kept, and of all of a session together."""

PART_BYTES = 4_096
"""The most of a part that is read at once, and recorded: about twice of what the model is shown of it."""

CHUNK_CHARS = 1 << 20


class KeptResults:
    """The results of one session. Any thread may call."""

    def __init__(self, directory: Path, disk: Disk) -> None:
        self._directory, self._disk = directory, disk
        self._lock = threading.Lock()

    def keep(self, effect_id: int, text: str) -> int:
        """Write a result down; return of how many characters that was done, 0 where there is no room."""
        content = text.encode()
        if len(content) > KEPT_BYTES_MAX:
            content = content[:KEPT_BYTES_MAX].decode(errors="ignore").encode()
            text = content.decode()
        with self._lock:
            self._make_room(len(content))
            is_kept = self._disk.write_cache(self._path(effect_id), MAGIC, content)
        return len(text) if is_kept else 0

    def keep_bytes(self, effect_id: int, number: int, content: bytes) -> str:
        """Write bytes of a result down as they are; return where, nothing where there is no room."""
        name = f"{RESULTS_NAME}/{effect_id}-{number}.bin"
        if len(content) > KEPT_BYTES_MAX:
            return ""
        with self._lock:
            self._make_room(len(content))
            return name if self._disk.write_cache(self._directory / name, content) else ""

    def _make_room(self, size: int) -> None:
        """Let the oldest results go for one of this size: what was read last stays longest in the window, too."""
        with suppress(OSError):
            files = sorted(kept_in(self._directory), key=lambda path: (effect_of(path), path.name))
            sizes = {path: path.stat().st_size for path in files}
            while len(sizes) >= KEPT_MAX or (sizes and sum(sizes.values()) + size > KEPT_BYTES_MAX):
                oldest = next(iter(sizes))
                sizes.pop(oldest)
                oldest.unlink()

    def part(self, effect_id: int, at: int) -> str:
        """Return some of a result from this place on; nothing if it is not there any more."""
        piece = self._part_kept(effect_id, at)
        if piece is None:
            piece = self._recorded(effect_id)[at : at + PART_BYTES]
        return piece.encode()[:PART_BYTES].decode(errors="ignore")

    def _path(self, effect_id: int) -> Path:
        return self._directory / RESULTS_NAME / str(effect_id)

    def _part_kept(self, effect_id: int, at: int) -> str | None:
        path = self._path(effect_id)
        try:
            with path.open("rb") as file:
                if file.read(len(MAGIC)) != MAGIC:
                    return None
                text = io.TextIOWrapper(file, "utf-8", "replace", newline="")
                while at > 0 and (skipped := len(text.read(min(at, CHUNK_CHARS)))):
                    at -= skipped
                piece = text.read(PART_BYTES)
        except OSError:
            return None
        self._disk.was_used(path)
        return piece

    def _recorded(self, effect_id: int) -> str:
        """The text of a result that is recorded whole, or of its beginning."""
        trace = self._directory / TRACE_NAME
        for path in (trace, *reversed(archives_of(trace))):
            with suppress(TraceError, OSError, ValueError):
                for record in reversed(examine_file(path).records):
                    event = record.event
                    if isinstance(event, ToolReturned) and event.effect_id == effect_id:
                        value = read_json(event.value) if event.value.startswith('"') else event.value
                        return str(value)
        return ""


def kept_bytes(directory: Path, effect_id: int, digest: str, most: int) -> bytes | None:
    """Bytes of a result by their SHA-256 in hexadecimal; None where they are not kept, or are more than `most`."""
    with suppress(OSError):
        for path in kept_in(directory):
            if effect_of(path) != effect_id or path.suffix != ".bin" or path.stat().st_size > most:
                continue
            if hashlib.sha256(content := path.read_bytes()).hexdigest() == digest:
                return content
    return None


def effect_of(path: Path) -> int:
    """The effect whose result a file holds; 0 of a file that is none of these."""
    found = _NAME.fullmatch(path.name)
    return int(found[1]) if found else 0


def kept_in(directory: Path) -> list[Path]:
    """The results that a session keeps. Raises OSError where it has no folder of them."""
    folder = directory / RESULTS_NAME
    if folder.is_symlink():
        return []
    return [path for path in folder.iterdir() if effect_of(path) and path.is_file() and not path.is_symlink()]


def copy_results(source: Path, target: Path, records: Iterable[Record], disk: Disk) -> None:
    """Give a session the results among these records that another has kept; what finds no room is lost to it."""
    with suppress(OSError):
        kept = kept_in(source)
        wanted = {record.event.effect_id for record in records if isinstance(record.event, ToolReturned)}
        for path in kept:
            if effect_of(path) in wanted:
                disk.write_cache(target / RESULTS_NAME / path.name, path.read_bytes())

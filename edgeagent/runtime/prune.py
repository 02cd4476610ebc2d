"""Prune a state folder: which sessions and caches may go, why others stay, and what that frees.

Laws. A session that somebody works in stays, whoever names it. One that waits for an answer or a timer, has something
unfinished, or does not know what became of a call stays unless it is named; so does one of which that cannot be told.
What is removed is decided first and looked at once more, under its lock, before it goes.
"""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from edgeagent.core.state import AwaitingCalls, State, is_resting
from edgeagent.driver.llama.kv_head import marks_of
from edgeagent.errors import ConfigError, EdgeAgentError
from edgeagent.models.store import models
from edgeagent.runtime.caches import clear_shared_leftovers, state_disk
from edgeagent.runtime.fate import unknown_calls
from edgeagent.runtime.folder import TRACE_NAME, directories, find_directory, locked, read_about, remove_directory
from edgeagent.runtime.recording import effects_of, load_recording, records_of, start_of
from edgeagent.runtime.snapshot import sealed_state
from edgeagent.trace.caches import Cache, removed
from edgeagent.trace.file import examine_file
from edgeagent.trace.recover import Damaged
from edgeagent.version import __version__


@dataclass(frozen=True)
class Wanted:
    """What is to be pruned: the sessions named, those not used for so long, all but the newest, down to a size."""

    named: tuple[str, ...] = ()
    older_than_s: float | None = None
    keep: int | None = None
    to_bytes: int | None = None


@dataclass(frozen=True)
class Item:
    """A session or a cache that may go, what it takes on the disk, and why it may. `mark` tells if it has changed."""

    kind: str
    path: Path
    size: int
    because: str
    mark: tuple[int, int]
    cache: Cache | None = None


@dataclass(frozen=True)
class Plan:
    """What goes, in this order, and the sessions that would go but for a reason."""

    going: tuple[Item, ...]
    staying: tuple[tuple[str, str], ...]
    size: int

    @property
    def frees(self) -> int:
        """Bytes that become free."""
        return sum(item.size for item in self.going)


@dataclass(frozen=True)
class _Known:
    directory: Path
    size: int
    last_ms: int
    mark: tuple[int, int]


def plan_of(root: Path, wanted: Wanted, now_ms: int) -> Plan:
    """Decide what goes; nothing is changed. Raises ConfigError for a session that there is not, or that is in use."""
    named = [find_directory(root, name) for name in wanted.named]
    for directory in named:
        with locked(directory):
            pass
    known = sorted((_known(d) for d in directories(root)), key=lambda k: (k.last_ms, k.directory.name))
    going, staying = [_item(k, "it is named") for k in known if k.directory in named], []
    going += _useless(root)
    size = sum(_room(path) for path in root.rglob("*"))
    left = size - sum(item.size for item in going)
    if wanted.to_bytes is not None and left > wanted.to_bytes:
        going += (caches := list(_until(_caches(root, going), left - wanted.to_bytes)))
        left -= sum(item.size for item in caches)
    for session, because in _candidates(known, named, wanted, now_ms):
        if because == SIZE and left <= (wanted.to_bytes or 0):
            break
        stays = why_it_stays(session.directory)
        if stays:
            staying.append((session.directory.name, stays))
            continue
        going.append(_item(session, because))
        left -= session.size
    return Plan(tuple(_without_inner(going)), tuple(staying), size)


def prune(root: Path, plan: Plan) -> Iterator[tuple[Item, str]]:
    """Carry a plan out; yield each item with why it could not go, or ''."""
    clear_shared_leftovers(root)
    for item in plan.going:
        try:
            if item.cache is not None:
                yield item, "" if removed(item.cache) or not item.path.exists() else "it is not what it seemed"
            elif item.path.exists() and _mark(item.path) != item.mark:
                yield item, "it has been used meanwhile"
            else:
                remove_directory(item.path)
                yield item, ""
        except (OSError, ConfigError) as error:
            yield item, str(error)


def why_it_stays(directory: Path) -> str:
    """Why a session must not go unless it is named; or ''."""
    try:
        with locked(directory):
            return _why_unfinished(directory)
    except (OSError, EdgeAgentError) as error:
        return str(error)


def _why_unfinished(directory: Path) -> str:
    path = directory / TRACE_NAME
    if not path.exists():
        return ""  # It was never begun.
    found = examine_file(path)
    if isinstance(found.verdict, Damaged):
        return "its trace is damaged, and may be mended"
    if not found.records and found.header is None:
        return ""
    if unknown := unknown_calls(directory, found):
        return f"what became of a call is not known: {unknown[-1].tool}({unknown[-1].arguments})"
    state = sealed_state(directory, found) or _folded(path)
    waits = isinstance(state.phase, AwaitingCalls) and any(
        c.question_id and c.answer is None for c in state.phase.calls
    )
    if waits:
        return "a question waits for its answer"
    if not is_resting(state):
        return "it was interrupted, and something is unfinished"
    if state.outcome is not None and state.outcome.kind == "unknown":
        return f"what became of a call is not known: {state.outcome.detail}"
    return "a timer is set" if state.timers else ""


def _folded(path: Path) -> State:
    recording = load_recording(path)
    found = records_of(path)
    state = start_of(found)
    for _, after, _ in effects_of(recording, found):
        state = after
    return state


SIZE = "down to the size"


def _candidates(known: list[_Known], named: list[Path], wanted: Wanted, now_ms: int) -> Iterator[tuple[_Known, str]]:
    """Sessions that may go, the one used longest ago first, and why."""
    others = [k for k in known if k.directory not in named]
    if wanted.keep is not None:
        others = others[: max(0, len(known) - wanted.keep)]
    for session in others:
        age_s = (now_ms - session.last_ms) / 1000
        if wanted.older_than_s is not None and age_s < wanted.older_than_s:
            continue
        if wanted.to_bytes is not None:
            yield session, SIZE
        elif wanted.older_than_s is not None:
            yield session, f"last used {round(age_s / 86_400)} days ago"
        elif wanted.keep is not None:
            yield session, f"{wanted.keep} newer ones are kept"


def _useless(root: Path) -> Iterator[Item]:
    """Saved memories that nothing on this machine can use any more, and what killed processes have left."""
    digests = {model.sha256 for model in models()}
    named = {read_about_model(d) for d in directories(root)}
    from_file = any(Path(name).suffix == ".gguf" for name in named)
    for cache in state_disk(root).caches():
        marks = marks_of(cache.path)
        if cache.path.name.startswith("."):
            yield _cache_item(cache, "left half written")
        elif marks and (because := _why_useless(marks, digests, from_file=from_file)):
            yield _cache_item(cache, because)


def _why_useless(marks: dict[str, str], digests: set[str], *, from_file: bool) -> str:
    if marks.get("edgeagent") != __version__:
        return f"of edgeagent {marks.get('edgeagent')}"
    try:
        if marks.get("llama_cpp") != importlib.metadata.version("llama_cpp_python"):
            return f"of llama.cpp {marks.get('llama_cpp')}"
    except importlib.metadata.PackageNotFoundError:
        pass
    if marks.get("machine") != platform.machine():
        return f"of another machine ({marks.get('machine')})"
    if marks.get("model") not in digests and not from_file:
        return "of a model that is not here any more"
    return ""


def read_about_model(directory: Path) -> str:
    """The model that a session runs on, by session.json; empty if it does not say."""
    try:
        return read_about(directory).model
    except ConfigError:
        return ""


def _caches(root: Path, going: list[Item]) -> Iterator[Item]:
    gone = {item.path for item in going}
    for cache in state_disk(root).caches():
        if not cache.kind.vouches and cache.path not in gone:
            yield _cache_item(cache, SIZE)


def _until(items: Iterator[Item], short: int) -> Iterator[Item]:
    for item in items:
        if short <= 0:
            return
        short -= item.size
        yield item


def _without_inner(going: list[Item]) -> Iterator[Item]:
    """The items without caches that go with their session anyway."""
    sessions = {item.path for item in going if item.cache is None}
    return (item for item in going if item.cache is None or not sessions & set(item.path.parents))


def _known(directory: Path) -> _Known:
    try:
        records = examine_file(directory / TRACE_NAME).records
        last_ms = records[-1].event.at_ms if records else 0
    except EdgeAgentError:
        last_ms = 0
    return _Known(directory, sum(_room(p) for p in directory.rglob("*")), last_ms, _mark(directory))


def _item(session: _Known, because: str) -> Item:
    return Item("session", session.directory, session.size, because, session.mark)


def _cache_item(cache: Cache, because: str) -> Item:
    return Item(cache.kind.name, cache.path, cache.room, because, (0, 0), cache)


def _mark(directory: Path) -> tuple[int, int]:
    try:
        found = (directory / TRACE_NAME).stat()
    except OSError:
        return 0, 0
    return found.st_size, found.st_mtime_ns


def _room(path: Path) -> int:
    try:
        return path.lstat().st_blocks * 512
    except OSError:
        return 0

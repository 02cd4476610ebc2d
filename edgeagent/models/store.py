"""Which model files are on this machine, and how does one get here?

The store is a folder: `NAME.gguf`, or `NAME.e5` for an embedder, and beside it `NAME.json` (digest, size, source,
licence); no other state. Law of
this file: a file that lies under its name is whole and has the digest that its sidecar says, because both are put there
by rename after everything was checked; what is under way lies in `.partial/NAME/` and may be continued or thrown away.
It touches no network (`pull.py` does), and does not know the engine.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from edgeagent.errors import ConfigError, ModelError
from edgeagent.models.catalogue import EMBEDDER_SUFFIX, KNOWN, Known
from edgeagent.models.disk import Progress, copied, digest, disk_errors, locked, no_progress, refuse_if_full, store_root
from edgeagent.models.gguf import check_gguf
from edgeagent.models.split import parts_of

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")


@dataclass(frozen=True, slots=True)
class StoredModel:
    """A model that lies in the store, as its sidecar describes it."""

    name: str
    path: Path
    sha256: str
    size_bytes: int
    source: str
    licence: str
    instruct: bool


def models(root: Path | None = None) -> tuple[StoredModel, ...]:
    """Every model in the store, by name."""
    root = root or store_root()
    names = sorted(path.stem for path in root.glob("*.json")) if root.is_dir() else []
    return tuple(stored for name in names if (stored := stored_model(name, root)) is not None)


def lying(root: Path | None = None) -> tuple[tuple[Path, ...], ...]:
    """The files of each model that lies in the store's folder without having been added: it is used by its path."""
    root = root or store_root()
    added = {stored.path for stored in models(root)}
    found: dict[Path, tuple[Path, ...]] = {}
    for path in sorted(root.glob("*.gguf")) if root.is_dir() else ():
        with suppress(ModelError):  # Of one with a part missing it is told when it is used.
            if path not in added:
                parts = parts_of(path)
                found[parts[0]] = parts
    return tuple(found.values())


def stored_model(name: str, root: Path | None = None) -> StoredModel | None:
    """The model under this name; None if it or its sidecar is not there or not readable."""
    path = _path(name, root or store_root())
    try:
        sidecar = json.loads(path.with_suffix(".json").read_bytes())
        size_bytes = path.stat().st_size
        found = StoredModel(
            name=name,
            path=path,
            sha256=str(sidecar["sha256"]),
            size_bytes=int(sidecar["size_bytes"]),
            source=str(sidecar["source"]),
            licence=str(sidecar["licence"]),
            instruct=bool(sidecar["instruct"]),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found if found.size_bytes == size_bytes else None


def find(name_or_path: str | os.PathLike[str], *, known: Mapping[str, Known] = KNOWN, root: Path | None = None) -> Path:
    """The file of a model: a path (it has a slash or ends in .gguf) as it is, a name from the store.

    Raises `ModelError` that says which command gets the model.
    """
    text = os.fspath(name_or_path)
    if "/" in text or text.endswith(".gguf"):
        path = Path(text).expanduser()
        path = parts_of(path)[0]
        if not path.exists():
            raise ModelError(f"{path}: there is no such model file; check the path, or `edgeagent model list`")
        return path
    if not _NAME.fullmatch(text):
        raise ModelError(f"{text!r} names no model; `edgeagent model list` shows the names, or give a path to a .gguf")
    if (stored := stored_model(text, root)) is not None:
        if stored.path.suffix == EMBEDDER_SUFFIX:
            raise ModelError(f"{text} compares texts and writes none: it is used beside a model; name one that writes")
        return stored.path
    if text in known:
        raise ModelError(f"the model {text} is not on this machine yet; get it with `edgeagent model pull {text}`")
    raise ModelError(
        f"no model is called {text!r}; `edgeagent model pull NAME` gets one of {names_of(known)}, "
        f"`edgeagent model add FILE --name {text}` takes a file of yours"
    )


def add(
    file: str | os.PathLike[str],
    name: str | None = None,
    progress: Progress = no_progress,
    *,
    known: Mapping[str, Known] = KNOWN,
    root: Path | None = None,
) -> StoredModel:
    """Copy a GGUF file of the user's into the store, after the pre-check. Raises `ModelError`."""
    source = Path(file)
    header = check_gguf(source)
    if len(parts_of(source)) > 1:
        raise ModelError(f"{source}: the store keeps models in one file; use this one where it lies: --model {source}")
    name = _valid_name(name if name is not None else re.sub(r"[^a-z0-9._-]+", "-", source.stem.lower()).strip("-._"))
    root = root or store_root()
    with disk_errors(root), locked(name, root, progress):
        partial = root / ".partial" / name
        partial.mkdir(parents=True, exist_ok=True)
        refuse_if_full(partial, header.size_bytes)
        copy = partial / "copy.gguf"
        sha256 = copied(source, copy, header.size_bytes, progress)
        pinned = known.get(name)
        stored = stored_model(name, root)
        if pinned is not None and pinned.sha256 != sha256:
            shutil.rmtree(partial)
            raise ModelError(f"{source}: {name} is pinned to SHA-256 {pinned.sha256}, this is {sha256}; use --name")
        if stored is not None and stored.sha256 != sha256:
            shutil.rmtree(partial)
            raise ModelError(f"another model is called {name} already; `edgeagent model remove {name}`, or use --name")
        licence = pinned.licence if pinned else "unknown"
        instruct = pinned.instruct if pinned else header.chat_template is not None
        put(copy, sha256, f"file:{source.absolute()}", licence, instruct, name, root)
        shutil.rmtree(partial)
    added = stored_model(name, root)
    assert added is not None, "it was just put there"
    return added


def verify(
    name: str, progress: Progress = no_progress, *, known: Mapping[str, Known] = KNOWN, root: Path | None = None
) -> StoredModel:
    """Read a stored model whole and compare its digest with the sidecar and the pinned one. Raises `ModelError`."""
    root = root or store_root()
    stored = stored_model(_valid_name(name), root)
    if stored is None:
        find(name, known=known, root=root)
    assert stored is not None, "find would have said so"
    with disk_errors(root):
        found = digest(stored.path, stored.size_bytes, progress)
    pinned = known[name].sha256 if name in known else stored.sha256
    if found != stored.sha256 or found != pinned:
        raise ModelError(
            f"{stored.path}: the SHA-256 is {found}, and {pinned} is what it must be; the file was damaged or changed: "
            f"`edgeagent model remove {name}` and get it again"
        )
    return stored


def remove(name: str, *, root: Path | None = None) -> None:
    """Delete a model, its sidecar and what a broken-off pull left. Raises `ModelError` if there is nothing."""
    root = root or store_root()
    path = _path(_valid_name(name), root)
    leavings = root / ".partial" / name
    if not any(place.exists() for place in (path, path.with_suffix(".json"), leavings)):
        raise ModelError(f"no model called {name!r} is in {root}; `edgeagent model list` shows what is")
    with disk_errors(root), locked(name, root, no_progress):
        path.with_suffix(".json").unlink(missing_ok=True)
        path.unlink(missing_ok=True)
        shutil.rmtree(leavings, ignore_errors=True)


def put(checked: Path, sha256: str, source: str, licence: str, instruct: bool, name: str, root: Path) -> Path:
    """Give a checked and synced file its name. The sidecar goes first: one without its file counts as nothing."""
    path = root / f"{name}{checked.suffix}"
    sidecar = {
        "sha256": sha256,
        "size_bytes": checked.stat().st_size,
        "source": source,
        "licence": licence,
        "instruct": instruct,
    }
    temporary = checked.with_suffix(".json")
    with temporary.open("w") as out:
        json.dump(sidecar, out, indent=2)
        out.flush()
        os.fsync(out.fileno())
    path.unlink(missing_ok=True)  # so that a new sidecar never stands beside an old file
    temporary.replace(path.with_suffix(".json"))
    checked.replace(path)
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return path


def _path(name: str, root: Path) -> Path:
    """The model's file, or where it would lie."""
    embedder = root / f"{name}{EMBEDDER_SUFFIX}"
    return embedder if embedder.exists() else root / f"{name}.gguf"


def _valid_name(name: str) -> str:
    if not _NAME.fullmatch(name) or name.endswith(".gguf"):
        raise ConfigError(f"{name!r} is no name for a model; use small letters, digits, '.', '_', '-', at most 64")
    return name


def names_of(known: Mapping[str, Known]) -> str:
    return ", ".join(sorted(known))


def as_json(stored: StoredModel) -> dict[str, str | int | bool]:
    """What `--json` prints of a model."""
    return asdict(stored) | {"path": str(stored.path)}

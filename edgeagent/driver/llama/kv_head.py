"""Head of a saved memory's file: what it belongs to, read without llama.cpp and without its key."""

from __future__ import annotations

import re
import struct
from pathlib import Path
from typing import Any

import cbor2

FORMAT = 2
MAGIC = b"edgeagent-kv\n\0\0\0"
HASH_BYTES = 32
LENGTH = struct.Struct("<I")
HEAD_BYTES_MAX = 1 << 20


def marks_of(path: Path) -> dict[str, str]:
    """What the memory in a file depends on, by name, as its fingerprint says; empty for what is no such file.

    It is only good for deciding that a file is of no use any more: whether it is what was written, its key tells.
    """
    begin = len(MAGIC) + HASH_BYTES + LENGTH.size
    try:
        with path.open("rb") as file:
            top = file.read(begin)
            (length,) = LENGTH.unpack(top[-LENGTH.size :])
            if top[: len(MAGIC)] != MAGIC or length > HEAD_BYTES_MAX:
                return {}
            head: Any = cbor2.loads(file.read(length))
        return dict(re.findall(r"(?:^|; )(\w+)=([^;]*)", head[1]))
    except Exception:  # Whatever stands there, and whatever cbor2 says of it.
        return {}

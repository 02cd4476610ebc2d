"""Seal bytes with a local key, so that only what was written here is believed. Knows no file.

sealed := magic · keyed hash of the rest · rest
"""

from __future__ import annotations

import hashlib
import hmac

HASH_BYTES = 32


def seal(magic: bytes, rest: bytes, secret: bytes) -> bytes:
    """Return the bytes with their seal in front."""
    return magic + _keyed_hash(rest, secret) + rest


def unseal(magic: bytes, source: bytes, secret: bytes) -> bytes | None:
    """Return what was sealed, or None for anything else."""
    begin = len(magic) + HASH_BYTES
    rest = source[begin:]
    is_ours = source[: len(magic)] == magic and hmac.compare_digest(
        _keyed_hash(rest, secret), source[len(magic) : begin]
    )
    return rest if is_ours else None


def _keyed_hash(rest: bytes, secret: bytes) -> bytes:
    return hashlib.blake2b(rest, digest_size=HASH_BYTES, key=secret).digest()

"""A signed head that anyone can check: the Merkle root over all records, in the form of C2SP's checkpoints.

    <key name>/<session id>          the log
    <number of records>
    <base64 of the RFC 6962 root>    leaf data: the records' chained hashes, 32 bytes each

    — <key name> <base64 of key id and Ed25519 signature>

Text and signature line are those of c2sp.org/tlog-checkpoint and c2sp.org/signed-note; keys are in the text form that
Go's sumdb/note uses, so other tools can check them. One key signs many sessions, so the log's name is longer than the
key's. Needs `cryptography` (extra `sign`) only where a key is used. No files here.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from edgeagent.errors import ConfigError, TraceError

ED25519 = b"\x01"
"""The signature type in key ids and keys."""

NOTE_BYTES_MAX = 64 * 1024
"""A checkpoint with a hundred signatures is smaller."""

_NAME = re.compile(r"[^\s+]{1,200}")


def leaf_hash(record_hash: bytes) -> bytes:
    """The RFC 6962 hash of one leaf."""
    return hashlib.sha256(b"\0" + record_hash).digest()


def grown(peaks: Sequence[bytes], size: int, record_hashes: Iterable[bytes]) -> tuple[tuple[bytes, ...], int]:
    """Append leaves to a tree of `size` leaves, given as the roots of its perfect subtrees, largest first."""
    stack = list(peaks)
    for record_hash in record_hashes:
        stack.append(leaf_hash(record_hash))
        size += 1
        bits = size
        while not bits & 1:
            right, left = stack.pop(), stack.pop()
            stack.append(_node(left, right))
            bits >>= 1
    return tuple(stack), size


def root_of(peaks: Sequence[bytes]) -> bytes:
    """The RFC 6962 root of a tree given as the roots of its perfect subtrees."""
    if not peaks:
        return hashlib.sha256(b"").digest()
    root = peaks[-1]
    for peak in reversed(peaks[:-1]):
        root = _node(peak, root)
    return root


def _node(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\x01" + left + right).digest()


@dataclass(frozen=True)
class Checkpoint:
    """What a checkpoint says: which log, how many records, which root."""

    origin: str
    size: int
    root: bytes

    @property
    def text(self) -> str:
        """The text that is signed."""
        return f"{self.origin}\n{self.size}\n{base64.b64encode(self.root).decode()}\n"


@dataclass(frozen=True)
class VerifierKey:
    """A public key with its name: `name+id+key`."""

    name: str
    public: bytes

    @property
    def id(self) -> bytes:
        """The first four bytes of a hash over name, type and key."""
        return hashlib.sha256(self.name.encode() + b"\n" + ED25519 + self.public).digest()[:4]

    @property
    def text(self) -> str:
        """The key as it is handed out."""
        return f"{self.name}+{self.id.hex()}+{base64.b64encode(ED25519 + self.public).decode()}"


@dataclass(frozen=True)
class SignerKey:
    """A private key with its name. Its seed is in no repr, so it gets into no log."""

    name: str
    _seed: bytes

    def __repr__(self) -> str:
        return f"SignerKey({self.name!r})"

    @property
    def verifier(self) -> VerifierKey:
        """The public half."""
        return VerifierKey(self.name, _private(self._seed).public_key().public_bytes_raw())

    @property
    def text(self) -> str:
        """The key as it is kept in a file that only its owner may read."""
        return f"PRIVATE+KEY+{self.name}+{self.verifier.id.hex()}+{base64.b64encode(ED25519 + self._seed).decode()}"

    def sign(self, checkpoint: Checkpoint) -> str:
        """Return the signed checkpoint."""
        signature = _private(self._seed).sign(checkpoint.text.encode())
        line = base64.b64encode(self.verifier.id + signature).decode()
        return f"{checkpoint.text}\n— {self.name} {line}\n"


def new_key(name: str) -> SignerKey:
    """Make a key. Raises ConfigError for a name that a note cannot carry."""
    return SignerKey(_checked_name(name), os.urandom(32))


def read_signer(text: str) -> SignerKey:
    """Read a private key. Raises ConfigError, which never quotes it."""
    parts = text.strip().split("+", 4)
    if len(parts) != 5 or parts[:2] != ["PRIVATE", "KEY"]:
        raise ConfigError("this is no private key of ours: it does not begin with PRIVATE+KEY+")
    key = SignerKey(_checked_name(parts[2]), _key_bytes(parts[4]))
    if key.verifier.id.hex() != parts[3]:
        raise ConfigError(f"the private key of {key.name} is damaged: its id does not belong to it")
    return key


def read_verifier(text: str) -> VerifierKey:
    """Read a public key. Raises ConfigError."""
    parts = text.strip().split("+", 2)
    if len(parts) != 3:
        raise ConfigError("this is no public key: it should look like name+0123abcd+AbCd...=")
    key = VerifierKey(_checked_name(parts[0]), _key_bytes(parts[2]))
    if key.id.hex() != parts[1]:
        raise ConfigError(f"the public key of {key.name} is damaged: its id does not belong to it")
    return key


def open_checkpoint(note: str, key: VerifierKey) -> Checkpoint:
    """Return what a checkpoint says, after checking the signature. Raises TraceError when there is no right one."""
    text, _, signatures = note[:NOTE_BYTES_MAX].rpartition("\n\n")
    text += "\n"
    if not any(_is_signed(line, text, key) for line in signatures.splitlines()):
        raise TraceError(f"the checkpoint carries no right signature of {key.name}: ignore what it says")
    lines = text.splitlines()
    if len(lines) < 3 or not lines[0] or not re.fullmatch(r"0|[1-9][0-9]{0,15}", lines[1]):
        raise TraceError("the note is signed and is no checkpoint: it needs a log, a size and a root")
    return Checkpoint(lines[0], int(lines[1]), _decoded(lines[2], "the root of the checkpoint"))


def _is_signed(line: str, text: str, key: VerifierKey) -> bool:
    """Whether this line is the key's signature. Raises TraceError when it claims to be and is not."""
    prefix = f"— {key.name} "
    if not line.startswith(prefix):
        return False
    signature = _decoded(line.removeprefix(prefix), "the signature")
    if signature[:4] != key.id:
        return False
    from cryptography.exceptions import InvalidSignature

    try:
        _public(key.public).verify(signature[4:], text.encode())
    except InvalidSignature:
        raise TraceError(f"the signature of {key.name} is wrong: the checkpoint was changed") from None
    return True


def _checked_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ConfigError(f"key name {name!r}: use something like gateway7.example.com, without spaces and '+'")
    return name


def _key_bytes(text: str) -> bytes:
    try:
        key = base64.b64decode(text, validate=True)
    except binascii.Error:
        key = b""
    if len(key) != 33 or key[:1] != ED25519:
        raise ConfigError("the key is not an Ed25519 key of 32 bytes")
    return key[1:]


def _decoded(text: str, what: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise TraceError(f"{what} is not base64") from None


def _private(seed: bytes) -> Any:
    return _ed25519().Ed25519PrivateKey.from_private_bytes(seed)


def _public(key: bytes) -> Any:
    return _ed25519().Ed25519PublicKey.from_public_bytes(key)


def _ed25519() -> Any:
    try:
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError:
        raise ConfigError("signing needs the package cryptography: pip install 'edgeagent[sign]'") from None
    return ed25519

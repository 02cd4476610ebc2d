"""Signed heads: the Merkle root of RFC 6962, the note of C2SP, and what a changed one comes to."""

from __future__ import annotations

import base64
import hashlib

import pytest

pytest.importorskip("cryptography")

from edgeagent.errors import ConfigError, TraceError
from edgeagent.trace.export.checkpoint import (
    Checkpoint,
    SignerKey,
    grown,
    new_key,
    open_checkpoint,
    read_signer,
    read_verifier,
    root_of,
)

LEAVES = [hashlib.sha256(bytes([n])).digest() for n in range(40)]


def merkle(leaves: list[bytes]) -> bytes:
    """RFC 6962, section 2.1, as it is written there."""
    if not leaves:
        return hashlib.sha256(b"").digest()
    if len(leaves) == 1:
        return hashlib.sha256(b"\0" + leaves[0]).digest()
    split = 1
    while split * 2 < len(leaves):
        split *= 2
    return hashlib.sha256(b"\1" + merkle(leaves[:split]) + merkle(leaves[split:])).digest()


@pytest.mark.parametrize("count", range(40))
def test_the_root_is_that_of_rfc_6962(count: int) -> None:
    peaks, size = grown((), 0, LEAVES[:count])
    assert (root_of(peaks), size) == (merkle(LEAVES[:count]), count)


@pytest.mark.parametrize("cut", [0, 1, 7, 8, 31, 39])
def test_a_tree_goes_on_from_its_peaks(cut: int) -> None:
    peaks, size = grown((), 0, LEAVES[:cut])
    peaks, size = grown(peaks, size, LEAVES[cut:])
    assert (root_of(peaks), size) == (merkle(LEAVES), 40)


def test_a_public_key_and_note_of_another_implementation_are_understood() -> None:
    """The example of c2sp.org/signed-note: key id and text are as every implementation makes them."""
    seed = bytes(range(32))
    key = SignerKey("example.com/log", seed)
    public = key.verifier.public
    expected = hashlib.sha256(b"example.com/log\n\x01" + public).digest()[:4]
    note = key.sign(Checkpoint("example.com/log", 3, bytes(32)))
    text, signature = note.split("\n\n")
    assert text == "example.com/log\n3\n" + base64.b64encode(bytes(32)).decode()
    dash, name, packed = signature.split()
    assert (dash, name) == ("—", "example.com/log")
    assert base64.b64decode(packed)[:4] == expected
    assert len(base64.b64decode(packed)) == 4 + 64


def test_what_was_signed_is_read_back() -> None:
    key, checkpoint = new_key("gateway7"), Checkpoint("gateway7/s1", 12, LEAVES[0])
    assert open_checkpoint(key.sign(checkpoint), read_verifier(key.verifier.text)) == checkpoint
    assert read_signer(key.text) == key


def test_a_changed_checkpoint_is_refused() -> None:
    key = new_key("gateway7")
    note = key.sign(Checkpoint("gateway7/s1", 12, LEAVES[0]))
    with pytest.raises(TraceError, match="was changed"):
        open_checkpoint(note.replace("\n12\n", "\n13\n"), key.verifier)


def test_a_checkpoint_of_another_key_is_ignored() -> None:
    note = new_key("gateway7").sign(Checkpoint("gateway7/s1", 12, LEAVES[0]))
    with pytest.raises(TraceError, match="no right signature"):
        open_checkpoint(note, new_key("gateway7").verifier)


def test_signatures_of_others_beside_ours_are_ignored() -> None:
    key, other = new_key("gateway7"), new_key("witness")
    checkpoint = Checkpoint("gateway7/s1", 12, LEAVES[0])
    both = key.sign(checkpoint) + other.sign(checkpoint).rpartition("\n\n")[2]
    assert open_checkpoint(both, key.verifier) == checkpoint
    assert open_checkpoint(both, other.verifier) == checkpoint


@pytest.mark.parametrize("text", ["", "\n\n", "a\n\n— k x\n", "— k AAAA\n"])
def test_what_is_no_note_is_an_error_of_ours(text: str) -> None:
    with pytest.raises(TraceError):
        open_checkpoint(text, new_key("k").verifier)


def test_a_private_key_is_in_no_repr_and_in_no_error() -> None:
    key = new_key("gateway7")
    secret = key.text.split("+", 4)[4].strip()  # base64 may hold a plus itself
    assert secret not in repr(key)
    with pytest.raises(ConfigError) as error:
        read_signer(key.text.replace("gateway7", "gateway8"))
    assert secret not in str(error.value)


@pytest.mark.parametrize("name", ["", "a b", "a+b", "a\nb"])
def test_a_name_that_a_note_cannot_carry_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="key name"):
        new_key(name)

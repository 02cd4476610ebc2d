"""The stored state: exactly the state again, and nothing that was changed is believed."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgeagent.core.state import STATE_VERSION, State
from edgeagent.errors import TraceError
from edgeagent.runtime import golden
from edgeagent.runtime.recording import effects_of, load_recording
from edgeagent.trace.check import fold
from edgeagent.trace.file import examine_file
from edgeagent.trace.snapshot import Snapshot, decode_snapshot, decode_state, encode_snapshot, encode_state

TRACES = Path(__file__).parents[2] / "traces"
SITUATIONS = golden.situations(TRACES)


@pytest.mark.parametrize("directory", SITUATIONS, ids=lambda d: d.name)
def test_a_stored_state_is_the_state_and_goes_on_like_it(directory: Path) -> None:
    recording, found = (
        load_recording(directory / "trace.cbor", runs_beside=True),
        examine_file(directory / "trace.cbor"),
    )
    for place, (_, state, _) in enumerate(effects_of(recording, found), 1):
        again = decode_state(encode_state(state))
        assert again == state
        fold(recording.step, found.records[place:], again)


def test_a_snapshot_is_read_only_whole_and_with_its_key() -> None:
    snapshot = Snapshot(1, "agent", 7, bytes(32), encode_state(State()))
    content = encode_snapshot(snapshot, b"secret")
    assert decode_snapshot(content, b"secret") == snapshot
    assert decode_snapshot(content, b"another") is None
    for at in range(len(content)):
        changed = bytearray(content)
        changed[at] ^= 1
        assert decode_snapshot(bytes(changed), b"secret") is None


def test_a_state_of_another_version_is_refused_by_number() -> None:
    from msgspec.structs import replace

    with pytest.raises(TraceError, match=f"version {STATE_VERSION + 1}"):
        decode_state(encode_state(replace(State(), version=STATE_VERSION + 1)))


@pytest.mark.parametrize("content", [b"", b"\xff", b"\x01", b"\x81a", b"\x9f"])
def test_what_is_no_state_is_an_error_of_ours(content: bytes) -> None:
    with pytest.raises(TraceError, match="cannot be read"):
        decode_state(content)

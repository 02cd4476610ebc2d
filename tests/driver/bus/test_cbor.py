"""CBOR from a device, within bounds."""

from __future__ import annotations

import cbor2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeagent.driver.bus import cbor
from edgeagent.errors import PeerMisbehaved

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**64), 2**64 - 1)
    | st.text(max_size=8)
    | st.binary(max_size=8)
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4) | st.integers(0, 99), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(VALUES)
def test_what_cbor2_writes_is_read(value: object) -> None:
    assert cbor.decode(cbor2.dumps(value)) == value


def test_indefinite_lengths_are_accepted() -> None:
    assert cbor.decode(bytes.fromhex("bf6172 7f626869 626f21 ff 6161 9f 01 02 ff ff")) == {"r": "hio!", "a": [1, 2]}


@pytest.mark.parametrize(
    ("data", "found"),
    [
        ("", "1 bytes wanted"),
        ("c0 60", "a tag"),
        ("a2 01 02 01 03", "twice"),
        ("bf 6161 01 6161 02 ff", "twice"),
        ("a1 80 01", "neither text nor whole number"),
        ("a1 f5 01", "neither text nor whole number"),
        ("62 c3 28", "not UTF-8"),
        ("1c", "reserved length"),
        ("ff", "a break without a begin"),
        ("82 01 ff", "a break inside"),
        ("bf 01 ff", "a key without a value"),
        ("7f 41 61 ff", "another kind"),
        ("f9 7c00", "no number"),
        ("01 02", "follow the value"),
        ("f8 20", "simple value"),
    ],
)
def test_what_no_device_needs_is_refused(data: str, found: str) -> None:
    with pytest.raises(PeerMisbehaved, match=found):
        cbor.decode(bytes.fromhex(data))


def test_cb0r_7_a_truncated_header_is_an_error() -> None:
    for head in range(0x18, 0x100):
        if head & 0x1F in (24, 25, 26, 27) and head >> 5 < 6:
            with pytest.raises(PeerMisbehaved):
                cbor.decode(bytes([head]))


def test_actor_ts_618_a_long_nesting_is_an_error() -> None:
    with pytest.raises(PeerMisbehaved, match="nested deeper"):
        cbor.decode(b"\x81" * 200_000)


@pytest.mark.parametrize("head", ["9b", "bb", "5b", "7b"])
def test_libcbor_418_cbor2_186_a_giant_length_costs_nothing(head: str) -> None:
    with pytest.raises(PeerMisbehaved):
        cbor.decode(bytes.fromhex(head + "8000000000000000"))


def test_many_tiny_values_are_bounded() -> None:
    with pytest.raises(PeerMisbehaved, match="more than"):
        cbor.decode(b"\x9f" + b"\x01" * 10_000 + b"\xff")

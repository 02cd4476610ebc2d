"""A line from an instrument."""

from __future__ import annotations

import pytest

from edgeagent.driver.bus.scpi import line_of
from edgeagent.errors import PeerMisbehaved


def test_a_line_is_whole_only_with_its_end() -> None:
    assert line_of(b"LSG Serial #1234") is None
    assert line_of(b"LSG Serial #1234\r\n") == "LSG Serial #1234"
    assert line_of(b"one\ntwo\n") == "one"


@pytest.mark.parametrize("heard", [b"\x00\n", b"\xff\n", b"a\x1b[m\n", b"x" * 70_000])
def test_what_is_no_line_of_text_is_refused(heard: bytes) -> None:
    with pytest.raises(PeerMisbehaved):
        line_of(heard)

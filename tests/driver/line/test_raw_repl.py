"""MicroPython's raw REPL, byte by byte."""

from __future__ import annotations

import pytest

from edgeagent.driver.line import raw_repl
from edgeagent.driver.line.outcome import Done, Failed

TRACEBACK = b'Traceback (most recent call last):\r\n  File "<stdin>", line 1, in <module>\r\nValueError: 3\r\n'


@pytest.mark.parametrize(
    "heard",
    [
        b"\r\nraw REPL; CTRL-B to exit\r\n>",
        b"PL; CTRL-B to exit\r\n>",
        b"boot.py says hello\r\n>>> \r\nraw REPL; CTRL-B to exit\r\n>",
    ],
)
def test_ampy_43_micropython_1491_the_raw_prompt_is_found_after_anything(heard: bytes) -> None:
    assert raw_repl.is_ready(heard)


def test_the_friendly_prompt_is_not_the_raw_one() -> None:
    assert not raw_repl.is_ready(b"\r\n>>> ")
    assert not raw_repl.is_ready(b">")


@pytest.mark.parametrize(
    ("heard", "outcome"),
    [
        (b"OK\x04\x04>", Done("")),
        (b"OK2\r\n\x04\x04>", Done("2")),
        (b"OK\x04" + TRACEBACK + b"\x04>", Failed(TRACEBACK.decode().replace("\r\n", "\n").strip("\n"), 1)),
        (b"OK2\r\n\x04", None),
        (b"OK2\r\n", None),
        (b"", None),
    ],
)
def test_code_ends_only_with_both_its_marks(heard: bytes, outcome: object) -> None:
    assert raw_repl.read(heard) == outcome
    assert [raw_repl.read(heard[:end]) for end in range(len(heard))] == [None] * len(heard)

"""A hundred thousand random byte strings into each reader: nothing but PeerMisbehaved ever comes out."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator

import pytest

from edgeagent.driver.bus import cbor, scpi, smp
from edgeagent.driver.line import raw_repl
from edgeagent.driver.line.screen import Cutter, Screen
from edgeagent.errors import PeerMisbehaved

pytestmark = pytest.mark.long  # Seconds of CPU: `make test` runs it, `make quick` does not.

ROUNDS = 100_000
SEEDS = {
    "screen": (b"\x1b[?2004hroot@board:~# \x1b[6n\x1b[1;32m\r\n", b"\x1b]0;t\x07\x1b[13CUsage\r\r\n"),
    "raw_repl": (b"OK42\r\n\x04\x04>", b"raw REPL; CTRL-B to exit\r\n>"),
    "smp": (b"\x06\tABELAAAHAAABAL9hcmJoaf81Gg==\n", b"\x04\x14AAAA\n"),
    "cbor": (
        bytes.fromhex("bf61729f01f6fb3ff0000000000000ff6161a10203ff"),
        bytes.fromhex("a263666f6f83010203617a7f6161ff"),
    ),
    "modbus": (bytes.fromhex("07030400640065"), bytes.fromhex("078302")),
    "scpi": (b"LSG Serial #1234\r\n",),
}


def strings(seeds: tuple[bytes, ...]) -> Iterator[bytes]:
    """Half of them pure noise, half a good string with a few bytes changed, cut or doubled."""
    chance = random.Random(20)
    for number in range(ROUNDS):
        if number % 2:
            yield chance.randbytes(chance.randrange(48))
            continue
        data = bytearray(chance.choice(seeds))
        for _ in range(chance.randrange(1, 4)):
            at = chance.randrange(len(data) + 1)
            match chance.randrange(3):
                case 0:
                    data[at : at + 1] = bytes([chance.randrange(256)])
                case 1:
                    del data[at:]
                case _:
                    data[at:at] = data[: chance.randrange(len(data) + 1)]
        yield bytes(data)


def read_screen(data: bytes) -> None:
    """Cut and show."""
    screen = Screen()
    screen.show(Cutter().feed(data))
    assert isinstance(screen.text, str)


def read_smp(data: bytes) -> None:
    """Find packets and read them as messages; also the bytes as a packet themselves."""
    for heard in smp.Reader().feed(data):
        if isinstance(heard, smp.Packet):
            smp.error_of(smp.decode(heard.data))
    smp.error_of(smp.decode(data))


def read_modbus(data: bytes) -> None:
    """Find an answer; also take the bytes for a PDU that passed its checksum."""
    modbus.find_answer(data, modbus.Expected(7, 3, 9, 4))
    if data:
        modbus.read_pdu(data)


with contextlib.suppress(ImportError):  # pymodbus comes with the extra.
    from edgeagent.driver.bus import modbus

READERS: dict[str, Callable[[bytes], object]] = {
    "screen": read_screen,
    "raw_repl": raw_repl.read,
    "smp": read_smp,
    "cbor": cbor.decode,
    "modbus": read_modbus,
    "scpi": scpi.line_of,
}


@pytest.mark.parametrize("name", READERS)
def test_random_bytes_raise_nothing_but_peer_misbehaved(name: str) -> None:
    if name == "modbus":
        pytest.importorskip("pymodbus", reason="pymodbus is not installed: pip install edgeagent[serial]")
    read = READERS[name]
    for data in strings(SEEDS[name]):
        with contextlib.suppress(PeerMisbehaved):
            read(data)

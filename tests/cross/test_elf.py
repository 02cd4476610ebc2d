"""What a foreign library says of the CPU that it was built for."""

from __future__ import annotations

import runpy
import struct
from pathlib import Path

import pytest

ELF = runpy.run_path(str(Path(__file__).parents[2] / "cross" / "elf.py"))
read_library, NotElf = ELF["read_library"], ELF["NotElf"]


def elf(machine, *, section=0, content=b""):
    """A 32-bit (ARM) or 64-bit ELF file with one section."""
    wide = machine != 40
    size = 64 if wide else 52
    head = b"\x7fELF" + bytes([2 if wide else 1, 1, 1]) + bytes(9) + struct.pack("<HHI", 3, machine, 1)
    tail = struct.pack("<IHHHHHH", 0, size, 0, 0, 64 if wide else 40, 1, 0)
    table = size + len(content)
    head += struct.pack("<QQQ" if wide else "<III", 0, 0, table) + tail
    row = struct.pack("<IIQQQQ" if wide else "<IIIIII", 0, section, 0, 0, size, len(content))
    return head + content + row.ljust(64 if wide else 40, b"\0")


def attributes(vendor, values):
    inner = struct.pack("<BI", 1, len(values) + 5) + values
    body = vendor + b"\0" + inner
    return b"A" + struct.pack("<I", len(body) + 4) + body


NEON = elf(40, section=0x70000003, content=attributes(b"aeabi", bytes([6, 10, 10, 5, 12, 2, 5]) + b"7-A\0"))
RISCV = elf(243, section=0x70000003, content=attributes(b"riscv", b"\x05rv64i2p1_m2p0_a2p1_v1p0_zicsr2p0\0"))


@pytest.fixture
def library(tmp_path):
    """A function that puts bytes into a file and reads it as a library."""

    def read(content):
        file = tmp_path / "library.so"
        file.write_bytes(content)
        return read_library(file)

    return read


def test_an_arm_library_says_that_it_needs_neon(library):
    found = library(NEON)
    assert (found.machine, found.needs) == ("armv7l", {"neon", "vfpv4", "vfpd32"})


def test_a_riscv_library_says_its_extensions(library):
    found = library(RISCV)
    assert (found.machine, found.needs) == ("riscv64", {"i", "m", "a", "v"})


def test_a_cut_library_is_not_elf(library):
    for end in range(len(NEON)):
        with pytest.raises(NotElf):
            library(NEON[:end])


def test_a_damaged_library_is_read_or_refused(library):
    for at in range(len(NEON)):
        for value in (0, 1, 0x7F, 0xFF):
            try:
                library(NEON[:at] + bytes([value]) + NEON[at + 1 :])
            except NotElf:
                continue

"""What CPU was a shared library built for? Bytes of an ELF file in, its own statement out; nothing is loaded or run.

32-bit ARM and RISC-V libraries state their instruction set in a section of attributes that the linker merges from
every object file. 64-bit ARM and x86 have no such statement; there `needs` is empty and only trying tells.
The build checks foreign libraries with it.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

MACHINES = {3: "i686", 40: "armv7l", 62: "x86_64", 183: "aarch64", 243: "riscv64"}
"""ELF's machine number → the name that `platform.machine()` uses."""

_ATTRIBUTES = {40: (0x70000003, b"aeabi"), 243: (0x70000003, b"riscv")}
_NOTE, _BUILD_ID = 7, 3
_SECTIONS_MAX = 4_096  # real libraries have about 30
_SECTION_BYTES_MAX = 1 << 20


@dataclass(frozen=True, slots=True)
class Library:
    """One ELF file: its machine, the CPU features it states that it needs, and a digest that names its contents."""

    machine: str
    needs: frozenset[str]
    digest: str
    detail: str


class NotElf(ValueError):
    """The file is no ELF file, or a damaged one."""


def read_library(path: Path) -> Library:
    """Read an ELF file's statement about itself. Raises `NotElf` and OSError."""
    with path.open("rb") as file:
        try:
            machine, sections = _sections(file)
            needs, detail = _statement(file, machine, sections)
            digest = _build_id(file, sections) or hashlib.file_digest(file, "sha256").hexdigest()
        except (struct.error, IndexError, UnicodeDecodeError) as error:
            raise NotElf(f"{path} is a damaged ELF file: {error}") from error
        except NotElf as error:
            raise NotElf(f"{path} {error}") from None
    return Library(MACHINES.get(machine, f"ELF machine {machine}"), needs, digest, detail)


@dataclass(frozen=True, slots=True)
class _Section:
    kind: int
    offset: int
    size: int


def _sections(file: BinaryIO) -> tuple[int, list[_Section]]:
    head = file.read(64)
    if head[:4] != b"\x7fELF":
        raise NotElf("is no ELF file")
    if head[5] != 1:
        raise NotElf("is big-endian, which no board of ours is")
    wide = head[4] == 2
    machine = struct.unpack_from("<H", head, 18)[0]
    table = struct.unpack_from("<Q" if wide else "<I", head, 40 if wide else 32)[0]
    entry, count = struct.unpack_from("<HH", head, 58 if wide else 46)
    if count > _SECTIONS_MAX:
        raise NotElf(f"has {count} sections; {_SECTIONS_MAX} is the most that is believed")
    file.seek(table)
    rows = file.read(entry * count)
    if len(rows) < entry * count:
        raise NotElf("is cut off")
    layout = "<4xI16xQQ" if wide else "<4xI8xII"  # name, type, flags and address, offset, size
    return machine, [_Section(*struct.unpack_from(layout, rows, number * entry)) for number in range(count)]


def _content(file: BinaryIO, section: _Section) -> bytes:
    if section.size > _SECTION_BYTES_MAX:
        raise NotElf(f"has a section of {section.size} bytes where a few hundred are usual")
    file.seek(section.offset)
    return file.read(section.size)


def _build_id(file: BinaryIO, sections: list[_Section]) -> str:
    """The linker's digest of the contents, or nothing."""
    for section in sections:
        if section.kind != _NOTE or section.size < 16:
            continue
        note = _content(file, section)
        name_size, size, kind = struct.unpack_from("<III", note)
        if kind == _BUILD_ID and note[12:16] == b"GNU\0":
            at = 12 + (name_size + 3 & ~3)
            return note[at : at + size].hex()
    file.seek(0)
    return ""


def _statement(file: BinaryIO, machine: int, sections: list[_Section]) -> tuple[frozenset[str], str]:
    if machine not in _ATTRIBUTES:
        return frozenset(), ""
    section_kind, vendor = _ATTRIBUTES[machine]
    for section in sections:
        if section.kind == section_kind:
            tags = dict(_attributes(_content(file, section), vendor))
            return _arm(tags) if machine == 40 else _riscv(tags)
    return frozenset(), ""


def _attributes(block: bytes, vendor: bytes) -> Iterator[tuple[int, int | str]]:
    """Tag and value of a vendor's attributes for the whole file (the ELF attributes format of ARM, IHI 0045)."""
    if block[:1] != b"A":
        return
    at = 1
    while at < len(block):
        length = struct.unpack_from("<I", block, at)[0]
        if length < 5:
            raise NotElf("has an attributes section of impossible lengths")
        name, _, rest = block[at + 4 : at + length].partition(b"\0")
        if name == vendor and rest[:1] == b"\x01":  # 1: these hold for the whole file
            size = struct.unpack_from("<I", rest, 1)[0]
            yield from _values(rest[5:size], vendor)
        at += length


def _values(block: bytes, vendor: bytes) -> Iterator[tuple[int, int | str]]:
    at = 0
    while at < len(block):
        tag, at = _uleb(block, at)
        is_text = tag in (4, 5) if tag < 32 and vendor == b"aeabi" else bool(tag & 1)
        if tag == 32 and vendor == b"aeabi":  # compatibility: a number, then a text
            _, at = _uleb(block, at)
            is_text = True
        if is_text:
            end = block.index(b"\0", at) if b"\0" in block[at:] else len(block)
            yield tag, block[at:end].decode("ascii")
            at = end + 1
        else:
            value, at = _uleb(block, at)
            yield tag, value


def _uleb(block: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = block[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            return value, at


# Names are those of the kernel's HWCAP bits, so that they can be compared with them.
_FP = {
    3: {"vfpv3", "vfpd32"},
    4: {"vfpv3"},
    5: {"vfpv4", "vfpd32"},
    6: {"vfpv4"},
    7: {"vfpv4", "vfpd32"},
    8: {"vfpv4"},
}
_ARCHITECTURE, _FP_ARCHITECTURE, _SIMD, _DIVIDE = 6, 10, 12, 44


def _arm(tags: dict[int, int | str]) -> tuple[frozenset[str], str]:
    fp, simd = int(tags.get(_FP_ARCHITECTURE, 0)), int(tags.get(_SIMD, 0))
    needs = set(_FP.get(fp, ()))
    needs |= {"neon"} if simd else set()
    needs |= {"idiva"} if tags.get(_DIVIDE) == 2 else set()
    detail = f"CPU_arch {tags.get(_ARCHITECTURE, 0)}, FP_arch {fp}, Advanced_SIMD_arch {simd}"
    return frozenset(needs), detail


_RISCV_STRING = 5


def _riscv(tags: dict[int, int | str]) -> tuple[frozenset[str], str]:
    """`rv64i2p1_m2p0_..._zicsr2p0` → {i, m, a, f, d, c}; the kernel's bits know single letters only."""
    stated = str(tags.get(_RISCV_STRING, ""))
    names = [part.rstrip("0123456789p") for part in stated.removeprefix("rv64").removeprefix("rv32").split("_")]
    return frozenset(name for name in names if len(name) == 1), stated

"""What may be found in a trace file after a crash, at every byte: cuts with every kind of tail, flips, holes.

Each case is judged by what was written: the right records are exactly those that are whole, and the verdict fits.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import combinations, pairwise

from edgeagent.trace.record import decode_header
from edgeagent.trace.recover import Clean, Damaged, Torn, examine

Case = tuple[str, str]
"""What was tried, and what is wrong with the outcome (empty if nothing is)."""


def cuts(source: bytes, stale: bytes, every: int = 1) -> Iterator[Case]:
    """The file ends at any byte, and the rest of the sector or page holds nothing, zeros, garbage or an older file."""
    borders = _borders(source)
    noise = random.Random(7).randbytes(len(source) + 8192)
    for at in range(0, len(source) + 1, every):
        yield f"cut at {at}", _judged(source[:at], at, borders, bare=True)
        for size in (512, 4096):
            rest = -at % size or size
            for name, tail in (
                ("zeros", bytes(rest)),
                ("noise", noise[at : at + rest]),
                ("stale", _from(stale, at, rest)),
            ):
                if name == "stale" and at < borders[0]:
                    continue  # The header is durable before the first record is written.
                # A tail may happen to be what stood there: then no more is missing than what differs.
                real = at + _alike(tail, source[at:])
                yield f"cut at {at}, {name} to {size}", _judged(source[:at] + tail, real, borders, bare=False)


def flips(source: bytes, every: int = 1) -> Iterator[Case]:
    """One bit is flipped anywhere: always damage, never a tear, never believed; what stands before is still right."""
    borders = _borders(source)
    for bit in range(0, len(source) * 8, every):
        changed = bytearray(source)
        changed[bit // 8] ^= 1 << bit % 8
        found = examine(bytes(changed))
        right = sum(b <= bit // 8 for b in borders[1:])
        wrong = ""
        if not isinstance(found.verdict, Damaged):
            wrong = f"called {type(found.verdict).__name__}"
        elif len(found.records) > right:
            wrong = f"{len(found.records)} records believed, {right} are right"
        yield f"bit {bit % 8} of byte {bit // 8} flipped", wrong


def flips_and_cuts(source: bytes, every: int = 7) -> Iterator[Case]:
    """A bit is flipped in a whole record and the next one is torn: still damage."""
    borders = _borders(source)
    for at in range(borders[3], len(source), every):
        whole = max(b for b in borders if b <= at)
        for bit in range(0, (whole - borders[2]) * 8, 101):
            changed = bytearray(source[:at])
            changed[borders[2] + bit // 8] ^= 1 << bit % 8
            verdict = examine(bytes(changed)).verdict
            yield f"bit {bit} after {borders[2]} flipped, cut at {at}", "" if isinstance(verdict, Damaged) else "missed"


def holes(source: bytes) -> Iterator[Case]:
    """Whole sectors or pages hold zeros or an older file's bytes, as when writes arrive in another order."""
    borders = _borders(source)
    for size in (512, 4096):
        pieces = range(0, len(source), size)
        for count in (1, 2, 3):
            for missing in combinations(pieces, count):
                changed = bytearray(source)
                for at in missing:
                    changed[at : at + size] = bytes(len(changed[at : at + size]))
                yield f"zeros at {missing}", _judged_hole(bytes(changed), source, borders)
        for one, other in combinations(pieces, 2):
            changed = bytearray(source)
            changed[one : one + size], changed[other : other + size] = (
                source[other : other + size],
                source[one : one + size],
            )
            yield f"{one} and {other} exchanged", _judged_hole(bytes(changed), source, borders)


def doubled(source: bytes) -> Iterator[Case]:
    """A second writer: a beginning of a record stands before the record, or a record is there twice."""
    borders = _borders(source)
    for begin, end in pairwise(borders[1:]):
        record = source[begin:end]
        twice = examine(source[:end] + record)
        yield f"record at {begin} twice", "" if not isinstance(twice.verdict, Clean) else "believed"
        for part in range(1, len(record), 3):
            glued = source[:begin] + record[:part] + source[begin:]
            verdict = examine(glued).verdict
            yield (
                f"{part} bytes of the record at {begin}, then the record",
                "believed" if isinstance(verdict, Clean) else "",
            )


def all_cases(source: bytes, stale: bytes, longer: bytes, every: int = 1) -> Iterator[Case]:
    """Every case over a trace, an older one and a longer one."""
    yield from cuts(source, stale, every)
    yield from flips(source, every)
    yield from flips_and_cuts(source, 7 * every)
    yield from holes(longer)
    yield from doubled(source)


def _alike(one: bytes, other: bytes) -> int:
    """How many bytes both begin with."""
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _judged(found: bytes, at: int, borders: list[int], *, bare: bool) -> str:
    """A cut: the whole records are right, and what follows is a tear."""
    outcome = examine(found)
    whole = max(0, sum(b <= at for b in borders) - 1)
    if len(outcome.records) != whole:
        return f"{len(outcome.records)} records found, {whole} are whole"
    at_border = at in borders
    if bare and at_border:
        return "" if isinstance(outcome.verdict, Clean) else f"called {outcome.verdict}"
    if isinstance(outcome.verdict, Torn):
        return ""
    # A cut inside the last byte or two of a record, with a tail that happens to differ in one bit, cannot be told
    # from a flipped bit; calling it damage is the safe side.
    last = next((b for b in borders if b > at), at)
    if at < borders[0]:  # Noise in the header's own sector: that sector is written whole, so this is no tear.
        return "" if isinstance(outcome.verdict, Damaged) else f"called {outcome.verdict}"
    return "" if isinstance(outcome.verdict, Damaged) and 0 < last - at <= 2 else f"called {outcome.verdict}"


def _judged_hole(found: bytes, source: bytes, borders: list[int]) -> str:
    outcome = examine(found)
    first = next((i for i, (a, b) in enumerate(zip(found, source, strict=True)) if a != b), None)
    if first is None:
        return "" if isinstance(outcome.verdict, Clean) else f"called {outcome.verdict}"
    right = max(0, sum(b <= first for b in borders) - 1)
    if isinstance(outcome.verdict, Clean):
        return "believed"
    if len(outcome.records) != right:
        return f"{len(outcome.records)} records found, {right} are right"
    follows = any(found[a:b] == source[a:b] for a, b in zip(borders[right + 1 :], borders[right + 2 :], strict=False))
    if follows and not isinstance(outcome.verdict, Damaged) and right:
        return "a right record follows the hole, and it was called a tear"
    return ""


def _borders(source: bytes) -> list[int]:
    """Where the records begin, and the end; the first is where the header ends."""
    _, start = decode_header(source)
    return [start, *(r.offset + r.size for r in examine(source).records)]


def _from(stale: bytes, at: int, size: int) -> bytes:
    return (stale[at:] + stale * (1 + size // len(stale)))[:size]

"""Values of Modbus registers: words on the line to numbers in a unit, and back. Pure."""

from __future__ import annotations

import math
import struct
from decimal import Decimal
from typing import Any

from edgeagent.driver.device.bus_profile import WORDS, Register
from edgeagent.errors import DriverError, PeerMisbehaved

_FORMATS = {"u16": ">H", "i16": ">h", "u32": ">I", "i32": ">i", "f32": ">f"}


def value_of(register: Register, words: tuple[int, ...]) -> bool | int | float:
    """Return the value that these words are. Raises PeerMisbehaved."""
    if register.kind == "bit":
        return bool(words[0])
    ordered = words[::-1] if register.low_word_first else words
    raw = struct.unpack(_FORMATS[register.kind], struct.pack(f">{len(ordered)}H", *ordered))[0]
    if not math.isfinite(raw):
        raise PeerMisbehaved(f"{register.name} is {raw}, which is no number")
    scaled = Decimal(str(raw)) * Decimal(str(register.scale))  # 215 times 0.1 is 21.5, and not 21.500000000000004.
    whole = register.kind != "f32" and scaled == scaled.to_integral_value() and register.scale == int(register.scale)
    return int(scaled) if whole else float(scaled)


def words_of(register: Register, value: Any) -> tuple[int, ...]:
    """Return the words that this value is. Raises DriverError for one between two steps."""
    raw = Decimal(str(value)) / Decimal(str(register.scale))
    if register.kind != "f32" and raw != raw.to_integral_value():
        raise DriverError(f"{register.name} is {value}, and goes in steps of {register.scale:g}; nothing was sent")
    number = float(raw) if register.kind == "f32" else int(raw)
    packed = struct.pack(_FORMATS[register.kind], number)
    words: tuple[int, ...] = struct.unpack(f">{WORDS[register.kind]}H", packed)
    return words[::-1] if register.low_word_first else words

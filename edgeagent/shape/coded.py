"""How the value classes of the standard library are written as JSON strings.

The pattern comes first: a text that does not match it never reaches the class, so that what the class would
also have understood (a date as a week, a number with underscores) is not accepted by one reader and refused by another.
"""

from __future__ import annotations

import datetime
import decimal
import ipaddress
import uuid
from typing import Any

from edgeagent.shape import formats
from edgeagent.shape.nodes import Coding


def _duration(text: str) -> datetime.timedelta:
    sign = -1 if text.startswith("-") else 1
    units = {"W": 0.0, "D": 0.0, "H": 0.0, "M": 0.0}
    seconds, digits = decimal.Decimal(0), ""
    for char in text.lstrip("-")[1:]:
        if char in "0123456789.":
            digits += char
            continue
        if char == "S":
            seconds = decimal.Decimal(digits)
        elif char != "T":
            units[char] = int(digits)
        digits = ""
    micro = int(seconds % 1 * 1_000_000)
    whole = datetime.timedelta(
        weeks=units["W"],
        days=units["D"],
        hours=units["H"],
        minutes=units["M"],
        seconds=int(seconds),
        microseconds=micro,
    )
    return sign * whole


def _duration_text(value: datetime.timedelta) -> str:
    """Return days and seconds; hours and minutes only when the digits of those run out."""
    sign, left = ("-", -value) if value < datetime.timedelta(0) else ("", value)
    fraction = f".{left.microseconds:06d}".rstrip("0") if left.microseconds else ""
    days = min(left.days, formats.COUNT_MAX)
    seconds = (left.days - days) * 86_400 + left.seconds
    parts = f"{days}D" if days else ""
    parts += "T"
    for unit, length in (("H", 3_600), ("M", 60)):
        if seconds > formats.COUNT_MAX:
            count = min(seconds // length, formats.COUNT_MAX)
            seconds -= count * length
            parts += f"{count}{unit}"
    return f"{sign}P{parts}{seconds}{fraction}S"


def _decimal_text(value: decimal.Decimal) -> str:
    return format(value, "f") if value.is_finite() else str(value)


def _base64(text: str) -> bytes:
    from base64 import b64decode  # Only whoever has an argument of bytes pays for it.

    return b64decode(text, validate=True)


def _base64_text(value: bytes) -> str:
    from base64 import b64encode

    return b64encode(value).decode()


_CLASSES: dict[type, Coding] = {
    coding.python: coding
    for coding in (
        Coding(bytes, formats.BASE64, _base64, _base64_text),
        Coding(decimal.Decimal, formats.DECIMAL, decimal.Decimal, _decimal_text),
        Coding(datetime.date, formats.DATE, datetime.date.fromisoformat, datetime.date.isoformat, "date"),
        Coding(datetime.timedelta, formats.DURATION, _duration, _duration_text, "duration"),
        Coding(uuid.UUID, formats.UUID, uuid.UUID, str, "uuid"),
        Coding(ipaddress.IPv4Address, formats.IPV4, ipaddress.IPv4Address, str, "ipv4"),
        Coding(ipaddress.IPv6Address, formats.IPV6, ipaddress.IPv6Address, str, "ipv6"),
        Coding(
            ipaddress.IPv4Network,
            formats.IPV4 + "/(?:3[0-2]|[12]?[0-9])",
            ipaddress.IPv4Network,
            str,
            check="no bits outside of the mask",
        ),
        Coding(
            ipaddress.IPv6Network,
            formats.IPV6 + "/(?:12[0-8]|1[01][0-9]|[1-9]?[0-9])",
            ipaddress.IPv6Network,
            str,
            check="no bits outside of the mask",
        ),
        Coding(ipaddress.IPv4Interface, formats.IPV4 + "/(?:3[0-2]|[12]?[0-9])", ipaddress.IPv4Interface, str),
        Coding(
            ipaddress.IPv6Interface, formats.IPV6 + "/(?:12[0-8]|1[01][0-9]|[1-9]?[0-9])", ipaddress.IPv6Interface, str
        ),
    )
}


def coding_of(annotation: Any, *, zoned: bool | None) -> Coding | None:
    """Return how a class is written, or None if it is not one of these.

    `zoned` says whether a time carries its offset: a datetime does unless told otherwise, a time of day does not.
    """
    if annotation is datetime.datetime:
        return _moment(zoned is not False)
    if annotation is datetime.time:
        return _time_of_day(zoned is True)
    if not isinstance(annotation, type):
        return None
    return _CLASSES.get(annotation) or _path(annotation)


def _path(annotation: type) -> Coding | None:
    """A path may be anything that the operating system can be asked for: not empty, no NUL."""
    if not any(kind.__module__.startswith("pathlib") for kind in annotation.__mro__):
        return None
    import pathlib  # Only whoever has an argument of that type pays for it.

    if not issubclass(annotation, pathlib.PurePath):
        return None
    return Coding(annotation, r"[^\x00]+", annotation, str)


def _moment(zoned: bool) -> Coding:
    python = datetime.datetime
    pattern = f"{formats.DATE}T{formats.CLOCK}" + (formats.OFFSET if zoned else "")
    return Coding(python, pattern, python.fromisoformat, python.isoformat, "date-time" if zoned else None)


def _time_of_day(zoned: bool) -> Coding:
    python = datetime.time
    pattern = formats.CLOCK + (formats.OFFSET if zoned else "")
    return Coding(python, pattern, python.fromisoformat, python.isoformat, "time" if zoned else None)

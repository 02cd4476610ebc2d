r"""Which texts a named string format lets through, as patterns: one table for the decoder and for every grammar.

Each is exact for what Python can hold (a date has no 31st of February, 29th only in leap years) and narrower than
its RFC where noted. A format that is not here is an annotation without effect, as JSON Schema says.
"""

from __future__ import annotations

_YEAR = "(?:[0-9]{3}[1-9]|[0-9]{2}[1-9]0|[0-9][1-9]00|[1-9]000)"  # 0001 to 9999, what `date` holds
_LEAP = "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:0[48]|[2468][048]|[13579][26])00)"
_DAY = (
    "(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])"
    "|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    "|02-(?:0[1-9]|1[0-9]|2[0-8]))"
)
DATE = f"(?:{_YEAR}-{_DAY}|{_LEAP}-02-29)"
# Microseconds are what Python holds, and it knows no leap seconds.
CLOCK = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,6})?"
OFFSET = "(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"

# Days and smaller: a month has no length. Seven digits each, so that no sum leaves the range of `timedelta`.
COUNT_MAX = 9_999_999
_COUNT = "[0-9]{1,7}"
_SECONDS = rf"{_COUNT}(?:\.[0-9]{{1,6}})?S"
_TIME_PART = f"T(?:{_COUNT}H(?:{_COUNT}M)?(?:{_SECONDS})?|{_COUNT}M(?:{_SECONDS})?|{_SECONDS})"
DURATION = f"-?P(?:[0-9]{{1,6}}W|{_COUNT}D(?:{_TIME_PART})?|{_TIME_PART})"

DECIMAL = r"-?(?:0|[1-9][0-9]{0,27})(?:\.[0-9]{1,28})?"
BASE64 = "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?"

_HEX = "[0-9a-fA-F]"
UUID = f"{_HEX}{{8}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}"

_OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
IPV4 = rf"{_OCTET}(?:\.{_OCTET}){{3}}"
_H16 = f"{_HEX}{{1,4}}"


def _ipv6() -> str:
    """RFC 3986 `IPv6address`: eight groups, or fewer around one `::`; the last two may be an IPv4 address."""
    last32 = f"(?:{_H16}:{_H16}|{IPV4})"
    lines = [f"(?:{_H16}:){{6}}{last32}", f"::(?:{_H16}:){{5}}{last32}"]
    for after in range(4, 0, -1):
        before = 4 - after
        left = f"(?:(?:{_H16}:){{0,{before}}}{_H16})?" if before else f"(?:{_H16})?"
        lines.append(f"{left}::(?:{_H16}:){{{after}}}{last32}")
    lines += [f"(?:(?:{_H16}:){{0,4}}{_H16})?::{last32}", f"(?:(?:{_H16}:){{0,5}}{_H16})?::{_H16}"]
    return "(?:" + "|".join([*lines, f"(?:(?:{_H16}:){{0,6}}{_H16})?::"]) + ")"


IPV6 = _ipv6()

_LABEL = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
HOSTNAME = rf"{_LABEL}(?:\.{_LABEL}){{0,8}}"
_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
EMAIL = rf"{_ATOM}(?:\.{_ATOM})*@{_LABEL}(?:\.{_LABEL}){{1,8}}"
_URI_CHAR = r"(?:[A-Za-z0-9._~!$&'()*+,;=:@/?\[\]-]|%[0-9a-fA-F]{2})"
URI = rf"[A-Za-z][A-Za-z0-9+.-]*:{_URI_CHAR}+(?:#{_URI_CHAR}*)?"
POINTER = r"(?:/(?:[^/~]|~[01])*)*"

PATTERNS: dict[str, str] = {
    "date": DATE,
    "date-time": f"{DATE}T{CLOCK}{OFFSET}",
    "time": CLOCK + OFFSET,
    "duration": DURATION,
    "email": EMAIL,
    "hostname": HOSTNAME,
    "ipv4": IPV4,
    "ipv6": IPV6,
    "json-pointer": POINTER,
    "uri": URI,
    "uuid": UUID,
}

# Where the pattern says less than the format's own definition; a grammar made of it reports the sentence.
NARROWED: dict[str, str] = {
    "date": "years 0001 to 9999",
    "date-time": "no leap seconds, at most microseconds, upper-case T and Z, years 0001 to 9999",
    "time": "no leap seconds, at most microseconds, upper-case Z",
    "duration": "no years and months (they have no length), seven digits a number",
    "email": "no quoted names, no address literals, a dot in the domain",
    "hostname": "at most nine labels",
    "uri": "ASCII only, and something after the scheme",
}

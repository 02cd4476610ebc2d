"""Failures of a remote model: status, headers and body → whose fault it is, how long to wait, and a safe text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec

from edgeagent.codec.json_text import read_any
from edgeagent.core.text import readable, shown

# fmt: off
Kind = Literal["credential", "quota", "rate_limited", "overloaded", "too_long", "too_large", "not_found", "bad_request",
               "server", "html", "malformed", "cut_short"]
# fmt: on
"""Kinds of failure, closed:

credential (the key is wrong or may not), quota (nothing is left to pay with: waiting does not help), rate_limited,
overloaded (for a while), too_long (does not fit the model's window), too_large (more bytes than we take or the server
takes), not_found (no such model or path), bad_request, server (its own fault), html (something between us and the
server answered), malformed (not what the API promises), cut_short (the reply ends before its end).
"""

TEXT_CHARS_MAX = 300
"""The most that is quoted of what a server says: a sentence or two."""

WAIT_MS_MAX = 7 * 24 * 3_600_000
"""The longest wait that is believed: a week. What asks for more is taken for this."""

BODY_BYTES_MAX = 1 << 16
"""The most of an error's body that is looked at."""


class Failure(msgspec.Struct, frozen=True, gc=False):
    """Why there is no reply. `wait_ms` is the wait that the server asked for, or -1 where it named none.

    `text` is safe to show: one line, bounded, nothing in it that looks like a key. `code` is the server's own word.
    """

    kind: Kind
    text: str
    status: int = 0
    wait_ms: int = -1
    code: str = ""


CUT_SHORT = Failure("cut_short", "the answer ended before its end")
TOO_LARGE = Failure("too_large", "the answer is larger than any that is taken")


def failure_of(status: int, headers: Mapping[str, str], body: bytes) -> Failure:
    """Return what a body that is no reply means, with the status and the headers it came with; any bytes."""
    head = {name.lower(): value for name, value in headers.items()}
    wait = _wait_ms(head)
    body = body[:BODY_BYTES_MAX]
    if _is_html(body, head.get("content-type", "")):
        title = re.search(rb"<title[^>]*>([^<]{1,300})", body, re.IGNORECASE)
        said = safe_text(title[1] if title else b"without a title")
        by_status = _of_status(status)
        kind: Kind = by_status if by_status in ("credential", "rate_limited", "overloaded") else "html"
        return Failure(kind, f"a page of HTML came in place of the model's answer: {said}", status, wait)
    error = error_in(read_any(body))
    if error is None:
        said = safe_text(body) if body.strip() else "no text"
        return Failure(_of_status(status), f"the server answered {status}: {said}", status, wait)
    failure = failure_in(error, status)
    return msgspec.structs.replace(failure, wait_ms=max(wait, failure.wait_ms))


def error_in(value: Any) -> dict[str, Any] | None:
    """Return the error that a JSON body carries, in the forms that servers write it, or None where it carries none."""
    if isinstance(value, list) and value:  # Google wraps its errors in a list.
        value = value[0]
    if not isinstance(value, dict):
        return None
    error = value.get("error")
    if isinstance(error, dict):
        return error
    if isinstance(error, str) and error:
        return {"message": error, "code": value.get("code")}
    if value.get("type") == "error" or value.get("object") == "error":
        return value
    said = value.get("detail", value.get("message"))  # FastAPI's and others'.
    if not isinstance(said, str | list) or {"choices", "output", "content"} & value.keys():
        return None
    return {"message": said if isinstance(said, str) else str(said), "code": value.get("code")}


def failure_in(error: dict[str, Any], status: int = 0) -> Failure:
    """Return what an error object means. With status 200, as in a stream, its own code stands for a status."""
    code = error.get("code")
    if isinstance(code, int) and not isinstance(code, bool) and status in (0, 200):
        status = code
    status = status if 400 <= status <= 599 else 0
    words = [
        readable(each) for each in (code, error.get("type"), error.get("status")) if isinstance(each, str) and each
    ]
    message = error.get("message")
    said = readable(message) if isinstance(message, str) else ""
    return Failure(
        _kind_of(" ".join(words).lower(), said.lower(), status),
        f"the server says: {safe_text(said or ' '.join(words) or 'an error without a text')}",
        status,
        _wait_in(error, said),
        safe_text(words[0])[:60] if words else "",
    )


def malformed(what: str, found: bytes | str = b"") -> Failure:
    """Return the failure for bytes that are not what the API promises; says what, and shows the beginning."""
    return Failure(
        "malformed", f"the server's answer {what}: {safe_text(found)}" if found else f"the server's answer {what}"
    )


_KEY_LIKE = re.compile(
    r"(?=[\w*+/=.~-]*\d|[\w*+/=.~-]*\*\*)[\w*+/=.~-]{16,}|\b(?:sk|pk|rk|xai|gsk|hf)[-_][\w*.-]+", re.ASCII
)
"""Words that may be a key or a part of one: servers like to quote what they refuse."""


def safe_text(text: str | bytes) -> str:
    """Return one line of a server's words, of bounded length, with whatever looks like a key left out."""
    words = readable(text[: 4 * TEXT_CHARS_MAX]).split()
    if len(text) > 4 * TEXT_CHARS_MAX:
        words.pop()  # It may be the beginning of a key that is known by its length.
    line = _KEY_LIKE.sub("(left out)", shown(" ".join(words)))
    return line if len(line) <= TEXT_CHARS_MAX else line[:TEXT_CHARS_MAX] + "…"


# -- whose fault -----------------------------------------------------------------------------------------------------

_BY_WORD: tuple[tuple[Kind, tuple[str, ...]], ...] = (
    ("too_long", ("context_length_exceeded", "exceed_context_size", "model_context_window_exceeded")),
    ("quota", ("insufficient_quota", "billing", "quota_exceeded", "credit")),
    ("rate_limited", ("rate_limit", "resource_exhausted", "too_many_requests")),
    ("overloaded", ("overloaded", "unavailable", "slow_down")),
    ("credential", ("authentication", "invalid_api_key", "permission", "unauthenticated", "unauthorized")),
    ("not_found", ("not_found",)),
    ("too_large", ("request_too_large",)),
    ("server", ("server_error", "api_error", "internal")),
    ("bad_request", ("invalid_request", "invalid_argument", "bad_request", "invalid_prompt")),
)
"""What a server's word for an error means, the first that fits."""

_STATUSES: dict[Kind, tuple[int, ...]] = {
    "credential": (401, 403, 407),
    "quota": (402,),
    "not_found": (404, 405, 410),
    "overloaded": (408, 425, 502, 503, 504, 529),
    "too_large": (413,),
    "rate_limited": (429,),
}
_BY_STATUS = {status: kind for kind, statuses in _STATUSES.items() for status in statuses}

_TOO_LONG = re.compile(
    r"context (?:length|size|window)|maximum context|exceeds? the (?:available )?(?:model'?s )?context"
    r"|prompt is too long|too many (?:input )?tokens|input (?:is )?too long|exceed context window"
)


def _kind_of(words: str, said: str, status: int) -> Kind:
    """The word decides, but for a prompt that is too long, which most servers only say in their text."""
    if status in (0, 400, 413, 422, 500) and _TOO_LONG.search(said):
        return "too_long"
    by_word = next((kind for kind, marks in _BY_WORD if any(mark in words for mark in marks)), None)
    if by_word in ("bad_request", "server") and status:
        return _of_status(status)
    return by_word or (_of_status(status) if status else "server")


def _of_status(status: int) -> Kind:
    by_class: dict[int, Kind] = {4: "bad_request", 5: "server"}
    return _BY_STATUS.get(status) or by_class.get(status // 100, "malformed")


def _is_html(body: bytes, content_type: str) -> bool:
    start = body.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    return start == b"<" or ("text/html" in content_type.lower() and start not in (b"{", b"["))


# -- how long to wait ------------------------------------------------------------------------------------------------

_DURATION = re.compile(
    r"(?:(\d+(?:\.\d*)?)d)?(?:(\d+(?:\.\d*)?)h)?(?:(\d+(?:\.\d*)?)m(?!s))?(?:(\d+(?:\.\d*)?)s)?(?:(\d+(?:\.\d*)?)ms)?"
)
_UNITS_MS = (86_400_000, 3_600_000, 60_000, 1_000, 1)
_NUMBER = re.compile(r"\d{1,16}(?:\.\d{0,9})?")
_HTTP_DATE = re.compile(r"\w{3}, (\d\d) (\w{3}) (\d{4}) (\d\d):(\d\d):(\d\d) GMT", re.ASCII)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def _wait_ms(head: Mapping[str, str]) -> int:
    """The wait by the headers, the most exact first. Dates are counted from the server's own `Date`."""
    now_ms = _date_ms(head.get("date", ""))
    millis = head.get("retry-after-ms", "").strip()
    if _NUMBER.fullmatch(millis):
        return _bounded(float(millis))
    if (wait := _one_wait(head.get("retry-after", ""), now_ms)) >= 0:
        return wait
    resets = [name for name in head if "ratelimit" in name and "reset" in name]
    empty = [name for name in resets if head.get(name.replace("reset", "remaining"), "").strip() == "0"]
    return max((_one_wait(head[name], now_ms) for name in empty or resets), default=-1)


def _one_wait(text: str, now_ms: int) -> int:
    """Seconds, a duration such as `6m0s`, a date, or seconds or milliseconds of an epoch."""
    text = text.strip()[:60]
    if _NUMBER.fullmatch(text):
        number = float(text)
        if number < 1e9:
            return _bounded(number * 1000)
        epoch_ms = number if number > 1e11 else number * 1000
        return _bounded(epoch_ms - now_ms) if now_ms >= 0 else -1
    if text and (parts := _DURATION.fullmatch(text)):
        return _bounded(sum(float(n) * unit for n, unit in zip(parts.groups(), _UNITS_MS, strict=True) if n))
    date_ms = _date_ms(text)
    return _bounded(date_ms - now_ms) if date_ms >= 0 and now_ms >= 0 else -1


def _date_ms(text: str) -> int:
    found = _HTTP_DATE.fullmatch(text.strip())
    try:
        if found is None:
            at = datetime.fromisoformat(text.strip())
            return int(at.timestamp() * 1000) if at.tzinfo else -1
        day, month, year, hour, minute, second = found.groups()
        numbers = (int(year), _MONTHS.index(month) + 1, int(day), int(hour), int(minute), min(int(second), 59))
        return int(datetime(*numbers, tzinfo=UTC).timestamp() * 1000)
    except (ValueError, OverflowError):
        return -1


def _wait_in(error: dict[str, Any], said: str) -> int:
    """The wait that only the body names: Google's `retryDelay`, and what OpenAI writes into the sentence."""
    details = error.get("details")
    delays = [each.get("retryDelay") for each in details if isinstance(each, dict)] if isinstance(details, list) else []
    found = re.search(r"(?:try again|retry) in ([\dhms.]{1,20}?)\.?(?:\s|$)", said)
    texts = [each for each in (*delays, found and found[1]) if isinstance(each, str)]
    return max((_one_wait(each, -1) for each in texts), default=-1)


def _bounded(wait_ms: float) -> int:
    return int(min(max(wait_ms, 0), WAIT_MS_MAX))

"""Failures of a remote model: a status, headers and a body → whose fault it is, whether waiting helps, and a safe text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec

from edgeagent.codec.json_text import read_any
from edgeagent.core.text import readable, shown

Kind = Literal[
    "credential",
    "quota",
    "rate_limited",
    "overloaded",
    "too_long",
    "too_large",
    "not_found",
    "bad_request",
    "server",
    "html",
    "malformed",
    "cut_short",
]
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


def failure_of(status: int, headers: Mapping[str, str], body: bytes) -> Failure:
    """Return what an answer with an error's status means; any bytes, any headers."""
    head = {name.lower(): value for name, value in headers.items()}
    wait = _wait_ms(head)
    body = body[:BODY_BYTES_MAX]
    if _is_html(body, head.get("content-type", "")):
        title = re.search(rb"<title[^>]*>([^<]{1,300})", body, re.IGNORECASE)
        said = safe_text(title[1] if title else b"without a title")
        kind = _of_status(status) if status in (401, 403, 407, 429, 503) else "html"
        return Failure(kind, f"a page of HTML came in place of the model's answer: {said}", status, wait)
    value = read_any(body)
    error = error_in(value)
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
    for name in ("detail", "message"):  # FastAPI's and others'.
        if name in value and not {"choices", "output", "content"} & value.keys():
            said = value[name]
            return {"message": said if isinstance(said, str) else str(said), "code": value.get("code")}
    return None


def failure_in(error: dict[str, Any], status: int = 0) -> Failure:
    """Return what an error object means. Where it came in a stream with status 200, its own code stands for a status."""
    code, kind = error.get("code"), error.get("type")
    if isinstance(code, int) and not isinstance(code, bool) and status in (0, 200) and 400 <= code <= 599:
        status = code
    word = next((readable(each) for each in (code, kind, error.get("status")) if isinstance(each, str) and each), "")
    words = " ".join(each for each in (code, kind, error.get("status")) if isinstance(each, str)).lower()
    message = error.get("message")
    said = readable(message) if isinstance(message, str) else ""
    status = status if 400 <= status <= 599 else 0
    return Failure(
        _kind_of(words, said.lower(), status),
        f"the server says: {safe_text(said or word or 'an error without a text')}",
        status,
        _wait_in(error, said),
        safe_text(word)[:60],
    )


def malformed(what: str, found: bytes | str = b"") -> Failure:
    """Return the failure for bytes that are not what the API promises; says what, and shows the beginning."""
    quoted = f": {safe_text(found[:200])}" if found else ""
    return Failure("malformed", f"the server's answer {what}{quoted}")


_KEY_LIKE = re.compile(
    r"(?=[\w*+/=.~-]*\d|[\w*+/=.~-]*\*\*)[\w*+/=.~-]{16,}|\b(?:sk|pk|rk|xai|gsk|hf)[-_][\w*.-]+", re.ASCII
)
"""Words that may be a key or a part of one: servers like to quote what they refuse."""


def safe_text(text: str | bytes) -> str:
    """Return one line of a server's words, of bounded length, with whatever looks like a key left out."""
    line = shown(" ".join(readable(text[: 4 * TEXT_CHARS_MAX]).split()))
    line = _KEY_LIKE.sub("(left out)", line)
    return line if len(line) <= TEXT_CHARS_MAX else line[:TEXT_CHARS_MAX] + "…"


_BY_WORD: tuple[tuple[Kind, tuple[str, ...]], ...] = (
    ("too_long", ("context_length_exceeded", "exceed_context_size", "model_context_window_exceeded")),
    ("quota", ("insufficient_quota", "billing", "quota_exceeded", "credit")),
    ("rate_limited", ("rate_limit", "resource_exhausted", "too_many_requests")),
    ("overloaded", ("overloaded", "unavailable", "slow_down")),
    ("credential", ("authentication", "invalid_api_key", "permission", "unauthenticated", "unauthorized")),
    ("not_found", ("not_found", "model_not_found")),
    ("too_large", ("request_too_large",)),
    ("server", ("server_error", "api_error", "internal")),
    ("bad_request", ("invalid_request", "invalid_argument", "bad_request", "invalid_prompt")),
)
"""What a server's word for an error means, the first that fits."""

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
    match status:
        case 401 | 403 | 407:
            return "credential"
        case 402:
            return "quota"
        case 404 | 405 | 410:
            return "not_found"
        case 413:
            return "too_large"
        case 429:
            return "rate_limited"
        case 502 | 503 | 504 | 529 | 408 | 425:
            return "overloaded"
        case _ if 400 <= status < 500:
            return "bad_request"
        case _ if 500 <= status < 600:
            return "server"
        case _:
            return "malformed"


def _is_html(body: bytes, content_type: str) -> bool:
    start = body.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    return start == b"<" or ("text/html" in content_type.lower() and start not in (b"{", b"["))


# -- how long to wait ----------------------------------------------------------------------------------------------

_DURATION = re.compile(
    r"(?:(\d+(?:\.\d*)?)d)?(?:(\d+(?:\.\d*)?)h)?(?:(\d+(?:\.\d*)?)m(?!s))?(?:(\d+(?:\.\d*)?)s)?(?:(\d+(?:\.\d*)?)ms)?"
)
_UNITS_MS = (86_400_000, 3_600_000, 60_000, 1_000, 1)
_NUMBER = re.compile(r"\d{1,16}(?:\.\d{0,9})?")
_HTTP_DATE = re.compile(r"\w{3}, (\d\d) (\w{3}) (\d{4}) (\d\d):(\d\d):(\d\d) GMT", re.ASCII)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_RESETS = (
    "x-ratelimit-reset",
    "x-ratelimit-reset-requests",
    "x-ratelimit-reset-tokens",
    "anthropic-ratelimit-requests-reset",
    "anthropic-ratelimit-tokens-reset",
    "ratelimit-reset",
)


def _wait_ms(head: Mapping[str, str]) -> int:
    """The wait by the headers, the most exact first. A date is counted from the server's own `Date`: we have no clock."""
    now_ms = _date_ms(head.get("date", ""))
    millis = head.get("retry-after-ms", "").strip()
    if _NUMBER.fullmatch(millis):
        return _bounded(float(millis))
    after = head.get("retry-after", "").strip()
    if after and (wait := _one_wait(after, now_ms)) >= 0:
        return wait
    empty = [name for name in _RESETS if head.get(name.replace("reset", "remaining"), "").strip() == "0"]
    waits = (_one_wait(head[name].strip(), now_ms) for name in empty or _RESETS if name in head)
    return max(waits, default=-1)


def _one_wait(text: str, now_ms: int) -> int:
    """Seconds, a duration such as `6m0s`, a date, or seconds or milliseconds of an epoch."""
    if _NUMBER.fullmatch(text):
        number = float(text)
        if number < 1e9:
            return _bounded(number * 1000)
        epoch_ms = number if number > 1e11 else number * 1000
        return _bounded(epoch_ms - now_ms) if now_ms >= 0 else -1
    parts = _DURATION.fullmatch(text) if len(text) < 60 else None
    if text and parts:
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
    for each in details if isinstance(details, list) else ():
        delay = each.get("retryDelay") if isinstance(each, dict) else None
        if isinstance(delay, str) and (wait := _one_wait(delay, -1)) >= 0:
            return wait
    found = re.search(r"(?:try again|retry) in ([\dhms.]{1,20}?)\.?(?:\s|$)", said)
    return _one_wait(found[1], -1) if found else -1


def _bounded(wait_ms: float) -> int:
    return int(min(max(wait_ms, 0), WAIT_MS_MAX))

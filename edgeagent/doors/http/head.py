"""Head of a request: the bytes before its body, read so strictly that no other reader can take them for something else.

h11 forgives what the specification lets a server forgive: a header that is folded over two lines, a length beside
chunks, a line that ends in a bare line feed. A proxy in front may forgive in another way, and then one request is two
(smuggling). So nothing is forgiven here. Bytes in, a value out; no connection is known.
"""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, unquote_to_bytes

import msgspec

from edgeagent.doors.http.message import Refused

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
HEADERS_MAX = 64
BARE_LINE_END = re.compile(rb"(?<!\r)\n|\r(?!\n)(?=.)", re.DOTALL)

_LINE = re.compile(rb"([A-Z]{1,16}) (/[!-~]{0,4000}) HTTP/1\.([01])")
_HEADER = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]{1,80}):[ \t]*([\t -~]*?)[ \t]*")
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9._-]{1,253})(:[0-9]{1,5})?")
_LENGTH = re.compile(r"0|[1-9][0-9]{0,17}")
_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_ONCE = frozenset({"host", "content-length", "transfer-encoding", "authorization", "content-type", "origin", "cookie"})


class Head(msgspec.Struct, frozen=True):
    """What stands in a head. `length` is what is declared of the body, None where it comes in chunks."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    length: int | None


def read_head(head: bytes) -> Head:
    """Read a head, its empty line included. Raises Refused, with the form that is not taken."""
    if BARE_LINE_END.search(head):
        raise _bad("a line ends in a bare CR or LF; lines end in CRLF")
    first, *lines = head[:-4].split(b"\r\n")
    line = _LINE.fullmatch(first)
    if line is None:
        raise _bad("the first line is not METHOD, a path that begins with '/', and HTTP/1.0 or HTTP/1.1")
    if line[1].decode() not in METHODS:
        raise Refused(405, "bad_method", f"the method {line[1].decode()} is none that is served here")
    headers = _headers(lines)
    path, _, query = line[2].decode().partition("?")
    length = _body_length(headers, is_old=line[3] == b"0")
    _check_host(headers, is_old=line[3] == b"0")
    return Head(line[1].decode(), _path(path), _query(query), headers, length)


def _headers(lines: list[bytes]) -> dict[str, str]:
    if len(lines) > HEADERS_MAX:
        raise Refused(431, "too_many_headers", f"{len(lines)} headers; {HEADERS_MAX} are the most")
    headers: dict[str, str] = {}
    for line in lines:
        found = _HEADER.fullmatch(line)
        if found is None:
            raise _bad("a header is not NAME: VALUE in printable ASCII, without a space before the colon and unfolded")
        name, value = found[1].decode().lower(), found[2].decode()
        if name in headers and name in _ONCE:
            raise _bad(f"{name} stands there twice")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


def _body_length(headers: dict[str, str], *, is_old: bool) -> int | None:
    coding, length = headers.get("transfer-encoding"), headers.get("content-length")
    if coding is not None and length is not None:
        raise _bad("content-length and transfer-encoding both say where the body ends")
    if coding is not None and (coding.lower() != "chunked" or is_old):
        raise _bad("transfer-encoding is taken as 'chunked' alone, and not with HTTP/1.0")
    if length is not None and not _LENGTH.fullmatch(length):
        raise _bad("content-length is not one number in plain digits")
    if headers.get("expect", "100-continue").lower() != "100-continue":
        raise Refused(417, "bad_expect", "expect is taken as '100-continue' alone")
    if "content-encoding" in headers:
        raise Refused(415, "bad_encoding", "a body is taken as it is, without content-encoding")
    return None if coding is not None else int(length or 0)


def _check_host(headers: dict[str, str], *, is_old: bool) -> None:
    host = headers.get("host", "localhost" if is_old else "")
    if not _HOST.fullmatch(host):
        raise _bad("host is missing, or is no name and no address")


def _path(raw: str) -> str:
    if _PERCENT.search(raw) or "#" in raw:
        raise _bad("the path holds a '%' that begins no byte, or a '#'")
    try:
        path = unquote_to_bytes(raw).decode()
    except UnicodeDecodeError:
        raise _bad("the path is not UTF-8") from None
    if any(ord(char) < 32 or ord(char) == 127 for char in path):
        raise _bad("the path holds a control character")
    return path


def _query(raw: str) -> dict[str, str]:
    try:
        return dict(
            parse_qsl(raw, keep_blank_values=True, strict_parsing=bool(raw), errors="strict", max_num_fields=32)
        )
    except (ValueError, UnicodeDecodeError):
        raise _bad("the query is not NAME=VALUE&... in UTF-8") from None


def _bad(why: str) -> Refused:
    return Refused(400, "bad_request", why)

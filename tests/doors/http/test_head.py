"""Heads of requests: what can be read in two ways is read in none."""

from __future__ import annotations

import pytest

from edgeagent.doors.http.head import read_head
from edgeagent.doors.http.message import Refused

GOOD = b"POST /a%20b?x=1 HTTP/1.1\r\nHost: garden.local:8383\r\nContent-Length: 3\r\n\r\n"

HOST = b"Host: x\r\n"
FORMS = {
    "both lengths": b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
    "both, the other way round": b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n",
    "two lengths": b"Content-Length: 3\r\nContent-Length: 4\r\n",
    "two equal lengths": b"Content-Length: 3\r\nContent-Length: 3\r\n",
    "a list of lengths": b"Content-Length: 3, 3\r\n",
    "a length with a sign": b"Content-Length: +3\r\n",
    "a negative length": b"Content-Length: -3\r\n",
    "a length in hex": b"Content-Length: 0x3\r\n",
    "a length with zeros before": b"Content-Length: 03\r\n",
    "a length with a blank inside": b"Content-Length: 3 3\r\n",
    "a length with an underscore": b"Content-Length: 1_0\r\n",
    "a length without digits": b"Content-Length:\r\n",
    "a length that fits nothing": b"Content-Length: 99999999999999999999\r\n",
    "a length in other digits": "Content-Length: ٣\r\n".encode(),
    "a fraction": b"Content-Length: 3.0\r\n",
    "chunked in a list": b"Transfer-Encoding: gzip, chunked\r\n",
    "chunked twice": b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
    "chunked twice in a list": b"Transfer-Encoding: chunked, chunked\r\n",
    "identity": b"Transfer-Encoding: identity\r\n",
    "chunked, quoted": b'Transfer-Encoding: "chunked"\r\n',
    "chunked with a word": b"Transfer-Encoding: xchunked\r\n",
    "chunked with a vertical tab": b"Transfer-Encoding: \x0bchunked\r\n",
    "chunked with a no-break space": b"Transfer-Encoding: chunked\xa0\r\n",
    "an empty coding": b"Transfer-Encoding:\r\n",
    "a blank before the colon": b"Transfer-Encoding : chunked\r\n",
    "a tab before the colon": b"Content-Length\t: 3\r\n",
    "a blank before the name": b" Transfer-Encoding: chunked\r\n",
    "a folded header": b"X: a\r\n Transfer-Encoding: chunked\r\n",
    "a folded value": b"Transfer-Encoding:\r\n chunked\r\n",
    "a header folded by a tab": b"X: a\r\n\tb\r\n",
    "a bare line feed": b"X: a\nTransfer-Encoding: chunked\r\n",
    "a bare carriage return": b"X: a\rTransfer-Encoding: chunked\r\n",
    "two carriage returns": b"X: a\r\r\n",
    "a zero byte in a value": b"X: a\x00b\r\n",
    "a zero byte in a name": b"X\x00: a\r\n",
    "no colon": b"Transfer-Encoding chunked\r\n",
    "no name": b": chunked\r\n",
    "a name in brackets": b"(X): a\r\n",
    "a name with a quote": b'X"Y: a\r\n',
    "bytes above ASCII": b"X: \xff\xfe\r\n",
    "two hosts": b"Host: y\r\n",
    "a compressed body": b"Content-Encoding: gzip\r\nContent-Length: 3\r\n",
    "another expectation": b"Expect: 200-maybe\r\n",
    "two authorizations": b"Authorization: Bearer a\r\nAuthorization: Bearer b\r\n",
    "two origins": b"Origin: http://a\r\nOrigin: http://b\r\n",
}
FIRST_LINES = {
    "an absolute address": b"GET http://x/ HTTP/1.1",
    "an authority": b"CONNECT x:80 HTTP/1.1",
    "a star": b"OPTIONS * HTTP/1.1",
    "two blanks": b"GET  / HTTP/1.1",
    "a blank in the path": b"GET /a b HTTP/1.1",
    "a tab": b"GET\t/ HTTP/1.1",
    "no version": b"GET /",
    "another version": b"GET / HTTP/2.0",
    "a version with zeros": b"GET / HTTP/1.01",
    "a small version": b"GET / http/1.1",
    "a small method": b"get / HTTP/1.1",
    "an unknown method": b"BREW / HTTP/1.1",
    "a blank at the end": b"GET / HTTP/1.1 ",
    "a line before it": b"\r\nGET / HTTP/1.1",
    "bytes above ASCII": b"GET /\xff HTTP/1.1",
    "half an escape": b"GET /%2 HTTP/1.1",
    "bad UTF-8": b"GET /%ff HTTP/1.1",
    "a zero byte": b"GET /%00 HTTP/1.1",
    "a line end": b"GET /%0d%0aX:%20y HTTP/1.1",
    "a fragment": b"GET /a#b HTTP/1.1",
    "a bad query": b"GET /?x=%ff HTTP/1.1",
}


def test_a_good_head_is_read():
    head = read_head(GOOD)
    assert (head.method, head.path, head.query, head.length) == ("POST", "/a b", {"x": "1"}, 3)
    assert head.headers["host"] == "garden.local:8383"


def test_chunks_are_a_body_of_unknown_length():
    assert read_head(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: Chunked\r\n\r\n").length is None


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
def test_a_header_that_two_readers_may_take_differently_is_refused(form):
    with pytest.raises(Refused):
        read_head(b"POST / HTTP/1.1\r\n" + HOST + form + b"\r\n")


@pytest.mark.parametrize("line", FIRST_LINES.values(), ids=FIRST_LINES.keys())
def test_a_first_line_of_another_form_is_refused(line):
    with pytest.raises(Refused):
        read_head(line + b"\r\n" + HOST + b"\r\n")


@pytest.mark.parametrize(
    "host", [b"", b"Host:\r\n", b"Host: a b\r\n", b"Host: x/y\r\n", b"Host: x@y\r\n", b"Host: x:y\r\n"]
)
def test_a_host_that_is_none_is_refused(host):
    with pytest.raises(Refused):
        read_head(b"GET / HTTP/1.1\r\n" + host + b"\r\n")

"""What a server that gives no reply means: whose fault, how long to wait, and a text that is safe to show."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeagent.codec.apis import APIS
from edgeagent.codec.conversation import Conversation
from edgeagent.codec.failures import TEXT_CHARS_MAX, WAIT_MS_MAX, Failure, failure_of, malformed, safe_text
from edgeagent.codec.json_text import write

DATE = "Wed, 03 Dec 2025 10:00:00 GMT"

OPENAI = {
    "error": {"message": "Incorrect API key provided: sk-proj-abc***xyz9.", "code": "invalid_api_key", "param": None}
}
BODIES = [
    (401, OPENAI, "credential", "invalid_api_key"),
    (429, {"error": {"message": "slow", "type": "requests", "code": "rate_limit_exceeded"}}, "rate_limited", None),
    (429, {"error": {"message": "You exceeded your quota", "code": "insufficient_quota"}}, "quota", None),
    (400, {"error": {"message": "This model's maximum context length is 8192 tokens", "type": "x"}}, "too_long", None),
    (
        401,
        {"type": "error", "error": {"type": "authentication_error", "message": "invalid x-api-key"}},
        "credential",
        None,
    ),
    (529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, "overloaded", None),
    (500, {"type": "error", "error": {"type": "api_error", "message": "Internal server error"}}, "server", None),
    (413, {"type": "error", "error": {"type": "request_too_large", "message": "too big"}}, "too_large", None),
    (
        400,
        {"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long"}},
        "too_long",
        None,
    ),
    (
        429,
        [{"error": {"code": 429, "message": "q", "status": "RESOURCE_EXHAUSTED"}}],
        "rate_limited",
        "RESOURCE_EXHAUSTED",
    ),
    (404, {"error": "model 'x' not found"}, "not_found", ""),
    (422, {"detail": [{"loc": ["body"], "msg": "field required"}]}, "bad_request", ""),
    (404, {"detail": "Not Found"}, "not_found", ""),
    (503, {"message": "no healthy upstream"}, "overloaded", ""),
    (402, {"error": {"message": "pay", "code": 402}}, "quota", ""),
    (400, {"object": "error", "message": "bad", "type": "BadRequestError", "code": 400}, "bad_request", None),
]


@pytest.mark.parametrize(("status", "body", "kind", "code"), BODIES)
def test_error_in_any_known_form_is_typed(status, body, kind, code):
    failure = failure_of(status, {}, write(body))
    assert (failure.kind, failure.status) == (kind, status)
    if code is not None:
        assert failure.code == code


@pytest.mark.parametrize(("status", "body", "kind", "code"), BODIES)
@pytest.mark.parametrize("api", APIS)
def test_error_that_comes_instead_of_events_is_a_failure(api, status, body, kind, code):
    stream = APIS[api].stream()
    assert stream.feed(write(body)) == []
    (failure,) = stream.close()
    assert isinstance(failure, Failure)
    assert stream.reply() == failure
    assert isinstance(APIS[api].decode(write(body)), Failure)


@pytest.mark.parametrize(
    ("status", "kind"),
    [(200, "html"), (404, "html"), (500, "html"), (502, "overloaded"), (503, "overloaded"), (403, "credential")],
)
def test_page_of_a_proxy_is_told_by_its_title(status, kind):
    page = b"\n<!DOCTYPE html><html><head><title>502 Bad\n Gateway</title></head><body>nginx</body></html>"
    failure = failure_of(status, {"Content-Type": "text/html"}, page)
    assert failure.kind == kind
    assert "502 Bad Gateway" in failure.text
    assert "<" not in failure.text


@pytest.mark.parametrize("api", APIS)
def test_page_in_place_of_events_is_told(api):
    stream = APIS[api].stream()
    stream.feed(b"<html><title>Log ")
    stream.feed(b"in</title>")
    (failure,) = stream.close()
    assert failure.kind == "html"
    assert "Log in" in failure.text


@pytest.mark.parametrize(
    "body", [b"upstream connect error", b"Internal Server Error\n", b'"no object"', b"1", b"\xff\xfe\x00"]
)
@pytest.mark.parametrize("api", APIS)
def test_what_is_neither_events_nor_json_is_malformed(api, body):
    failure = APIS[api].decode(body)
    assert isinstance(failure, Failure)
    assert failure.kind == "malformed"


@pytest.mark.parametrize(
    "body", [b"{", b'{"a":', b"[1,", b"{" * 100_000, b'{"a":' * 300 + b"1" + b"}" * 300, b'{"a": 1}', b"[]"]
)
@pytest.mark.parametrize("api", APIS)
def test_broken_deep_or_other_json_is_malformed(api, body):
    failure = APIS[api].decode(body)
    assert isinstance(failure, Failure)
    assert failure.kind == "malformed"


@pytest.mark.parametrize("api", APIS)
def test_event_that_is_no_json_is_malformed(api):
    stream = APIS[api].stream()
    (failure,) = stream.feed(b"data: {not json\n\n")
    assert failure.kind == "malformed"
    assert "{not json" in failure.text
    assert stream.feed(b'data: {"choices":[]}\n\n') == stream.close() == []


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize(
    "event",
    [
        b'data: {"error":{"message":"Overloaded","type":"overloaded_error"}}\n\n',
        b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n',
        b'error: {"code":503,"message":"Overloaded","type":"unavailable_error"}\n\n',
        b'event: error\ndata: {"message":"Overloaded","code":503}\n\n',
    ],
)
def test_error_in_the_middle_of_a_stream_is_a_failure(api, event):
    stream = APIS[api].stream()
    (failure,) = stream.feed(event)
    assert isinstance(failure, Failure)
    assert failure.kind == "overloaded"
    assert "Overloaded" in failure.text


@pytest.mark.parametrize(
    ("headers", "wait_ms"),
    [
        ({"Retry-After": "7"}, 7_000),
        ({"retry-after": " 1.5 "}, 1_500),
        ({"Retry-After-Ms": "250", "Retry-After": "1"}, 250),
        ({"Retry-After": "Wed, 03 Dec 2025 10:00:30 GMT", "Date": DATE}, 30_000),
        ({"Retry-After": "Wed, 03 Dec 2025 09:00:00 GMT", "Date": DATE}, 0),
        ({"Retry-After": "Wed, 03 Dec 2025 10:00:30 GMT"}, -1),
        ({"x-ratelimit-reset-requests": "6m0s", "x-ratelimit-remaining-requests": "0"}, 360_000),
        ({"x-ratelimit-reset-requests": "1s", "x-ratelimit-reset-tokens": "20ms"}, 1_000),
        (
            {
                "x-ratelimit-reset-requests": "1d2h",
                "x-ratelimit-remaining-requests": "5",
                "x-ratelimit-reset-tokens": "20ms",
                "x-ratelimit-remaining-tokens": "0",
            },
            20,
        ),
        ({"anthropic-ratelimit-tokens-reset": "2025-12-03T10:01:00Z", "date": DATE}, 60_000),
        ({"x-ratelimit-reset": "1764756060", "date": DATE}, 60_000),
        ({"x-ratelimit-reset": "1764756060000", "date": DATE}, 60_000),
        ({"Retry-After": "99999999"}, WAIT_MS_MAX),
        ({"Retry-After": "-5"}, -1),
        ({"Retry-After": "soon"}, -1),
        ({"Retry-After": "9" * 400}, -1),
        ({}, -1),
    ],
)
def test_wait_is_what_the_server_asks_for(headers, wait_ms):
    assert failure_of(429, headers, b"").wait_ms == wait_ms


@pytest.mark.parametrize(
    ("error", "wait_ms"),
    [
        ({"message": "Rate limit reached. Please try again in 1m2.5s. Visit us."}, 62_500),
        ({"message": "Rate limit reached. Please try again in 20ms."}, 20),
        ({"message": "q", "details": [{"@type": "x"}, {"retryDelay": "41s"}]}, 41_000),
        ({"message": "try again later"}, -1),
    ],
)
def test_wait_that_only_the_text_names_is_found(error, wait_ms):
    assert failure_of(429, {}, write({"error": error})).wait_ms == wait_ms


@pytest.mark.parametrize(
    "key",
    [
        "sk-proj-Ab12Cd34Ef56Gh78Ij90",
        "sk-abc***xyz",
        "0123456789abcdef0123456789abcdef",
        "gsk_aB3",
        "eyJhbGciOi1.eyJzdWIi.c2ln",
    ],
)
@pytest.mark.parametrize("body", ["Bad key: {}", '{{"error":{{"message":"Bad key: {}"}}}}', "<title>Bad {}</title>"])
def test_what_looks_like_a_key_is_left_out(key, body):
    failure = failure_of(401, {}, body.format(key).encode())
    assert key not in str(failure)
    assert "(left out)" in failure.text


def test_key_that_is_cut_where_the_text_ends_is_left_out():
    key = "A1" * 20
    for before in range(1100, 1201):
        said = safe_text("word " * 20 + " " * (before - 100) + key)
        assert "A1" not in said


def test_text_of_a_failure_is_one_bounded_line_without_controls():
    failure = failure_of(500, {}, b"\x1b[31mline\r\none\n\xff\x00" + b"x y " * 10_000)
    assert len(failure.text) < TEXT_CHARS_MAX + 50
    assert failure.text.isprintable()


@given(
    st.integers(-1, 700), st.binary(max_size=200), st.dictionaries(st.sampled_from(["retry-after", "date"]), st.text())
)
def test_any_answer_at_all_is_a_failure(status, body, headers):
    assert isinstance(failure_of(status, headers, body), Failure)
    assert isinstance(malformed("is odd", body), Failure)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)
NAMES = st.sampled_from(
    [
        "type",
        "choices",
        "delta",
        "message",
        "content",
        "index",
        "tool_calls",
        "function",
        "name",
        "arguments",
        "id",
        "item",
        "output",
        "response",
        "error",
        "usage",
        "content_block",
        "input",
        "finish_reason",
        "status",
        "partial_json",
        "output_index",
        "stop_reason",
        "text",
        "reasoning",
    ]
)
TYPES = st.sampled_from(
    [
        "content_block_start",
        "content_block_delta",
        "message_start",
        "message_delta",
        "message_stop",
        "text",
        "thinking",
        "tool_use",
        "text_delta",
        "input_json_delta",
        "response.created",
        "response.output_text.delta",
        "response.output_item.added",
        "error",
        "response.output_item.done",
        "response.completed",
        "response.function_call_arguments.delta",
        "function_call",
        "message",
    ]
)
LIKELY = st.recursive(
    JSON | TYPES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner | TYPES, max_size=6),
    max_leaves=25,
)


@pytest.mark.long
@given(st.sampled_from(sorted(APIS)), st.lists(LIKELY, max_size=6), st.booleans())
def test_any_json_at_all_ends_in_a_reply_or_a_failure(api, values, is_stream):
    stream = APIS[api].stream()
    for value in values:
        stream.feed(b"data: " + write(value) + b"\n\n" if is_stream else write(value))
    stream.close()
    reply = stream.reply()
    if not isinstance(reply, Failure):
        assert reply.kept is not None
        again = Conversation(model="m", turns=(reply.turn(),))
        assert all(each.encode(again) for each in APIS.values())

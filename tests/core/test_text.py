"""Text from outside: whatever arrives is Unicode before it is an event, and harmless before it is shown."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec
import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from edgeagent.codec.dialect import Plain
from edgeagent.core.agent import Agent, tool
from edgeagent.core.condition import why_not_after, why_not_before
from edgeagent.core.effects import AskModel, AskUser, CallTool, SetTimer
from edgeagent.core.events import Event, SessionStarted, ToolFailed, UserSaid
from edgeagent.core.state import outstanding
from edgeagent.core.text import TEXT_BYTES_MAX, cleaned, error_text, readable, shortened, shown
from edgeagent.core.values import Usage
from edgeagent.errors import ConfigError, TraceError
from edgeagent.runtime.loop import Loop
from edgeagent.runtime.wiring import step_of
from edgeagent.trace.check import fold
from edgeagent.trace.export.audit import as_csv, as_lines, audit_rows
from edgeagent.trace.export.otlp import otlp
from edgeagent.trace.export.page import page
from edgeagent.trace.export.turns import turns_of
from edgeagent.trace.file import TraceFile, examine_file
from edgeagent.trace.record import GENESIS, encode_payload, named_fields

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=12)
"""Every code point, lone surrogates too."""


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("bad page \ud835 here", "bad page \ufffd here"),
        ("caf\udce9", "caf\ufffd"),
        ("caf\udcc3\udca9", "café"),
        ("\ud83d\ude00", "😀"),
        ("\udce9\ud800", "\ufffd\ufffd"),
        (b"caf\xc3\xa9 \xff", "café \ufffd"),
        ("ünï", "ünï"),
    ],
)
def test_what_is_no_unicode_is_replaced_and_what_can_be_read_is_read(text: str | bytes, read: str) -> None:
    assert readable(text) == read


@given(ANY_TEXT | st.binary(max_size=20))
def test_any_text_and_any_bytes_become_unicode_once_and_for_all(text: str | bytes) -> None:
    read = readable(text)
    read.encode()
    assert readable(read) == read


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
        ("a\u202eb", r"a\u202eb"),
        ("a\u2028b\u200b", r"a\u2028b\u200b"),
        ("\x9b2J", r"\x9b2J"),
        ("\U000e0041", r"\U000e0041"),
        ("a\nb\r", r"a\x0ab\x0d"),
        ("\ud835", r"\ud835"),
        ("\u3164", r"\u3164"),
        ("Grüße, 東京\u3000😀 10\u00a0000", "Grüße, 東京\u3000😀 10\u00a0000"),
    ],
)
def test_what_moves_or_hides_text_is_shown_escaped(text: str, escaped: str) -> None:
    assert shown(text) == escaped


def test_an_answer_keeps_its_lines_but_no_carriage_return() -> None:
    assert shown("a\n\tb\r", lines=True) == "a\n\tb\\x0d"


@given(ANY_TEXT)
def test_nothing_shown_is_a_command_or_a_surrogate(text: str) -> None:
    told = shown(text)
    assert not any(ord(c) < 32 or 0x7F <= ord(c) < 0xA0 or 0xD800 <= ord(c) < 0xE000 for c in told)
    assert shown(told) == told


class Silent(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no")


def test_an_exception_that_cannot_say_why_is_named() -> None:
    assert error_text(Silent()) == "Silent, which cannot say why"
    assert error_text(ValueError("\ud835")) == "ValueError: \ufffd"
    assert error_text(KeyError()) == "KeyError"


@pytest.mark.parametrize("raised", [Silent(), ValueError("\ud835")])
def test_conditions_that_say_no_unicode_are_not_kept_and_say_so_readably(raised: Exception) -> None:
    def condition(**_: Any) -> str:
        raise raised

    @tool(idempotent=True, pre=condition, post=lambda _: "\ud835")
    def look() -> None:
        """Look."""

    why_not_before(look, {}).encode()
    why_not_after(look, {}, None).encode()
    assert "which raised" in why_not_before(look, {})


@pytest.mark.parametrize("because", ["no \ud835 please", "caf\udce9", "\udfff\ud800"])
def test_a_condition_that_answers_no_unicode_refuses_with_the_readable_text(because: str) -> None:
    @tool(idempotent=True, pre=lambda: because)
    def look() -> None:
        """Look."""

    assert readable(because) in why_not_before(look, {})


def test_a_long_text_is_cut_and_says_how_much_is_gone() -> None:
    assert shortened("é" * 10, 11) == "ééééé… (9 more bytes not kept)"
    assert shortened("é" * 10, 20) == "é" * 10


# -- through the inbox ---------------------------------------------------------------------------------------------


@tool(idempotent=False, confirm=True)
def push(count: int) -> str:
    """Push."""
    return str(count)


@tool(idempotent=True)
def look(where: str) -> str:
    """Look."""
    return where


AGENT = Agent("hostile", tools=(look, push), dialect=Plain(), hears=("pump",), timers=True)
CALLS = (
    '{"name": "look", "arguments": {"where": "up"}}',
    '{"name": "push", "arguments": {"count": 1}}',
    '{"name": "set_timer", "arguments": {"seconds": 60, "note": "look"}}',
)


def values(hint: Any) -> st.SearchStrategy[Any]:
    """Any value of a field, with hostile texts wherever there is text."""
    origin = get_origin(hint)
    if hint is str:
        return ANY_TEXT | st.sampled_from((*CALLS, "pump"))
    if origin is Literal:
        return st.sampled_from(get_args(hint))
    if origin is tuple:
        inner = get_args(hint)
        if inner[-1] is Ellipsis:
            return st.lists(values(inner[0]), max_size=3).map(tuple)
        return st.tuples(*map(values, inner))
    if hint == Usage | None:
        return st.none() | values(Usage)
    if hint is Usage:
        return st.builds(Usage, *(st.integers(0, 500) for _ in range(5)))
    if hint is float:
        return st.floats(allow_nan=False)
    if hint is int:
        return st.integers(0, 9)
    return st.from_type(hint)


def events_of(kind: type) -> st.SearchStrategy[Event]:
    return st.builds(kind, **{name: values(hint) for name, hint in get_type_hints(kind).items()})


KINDS = [kind for kind in get_args(Event) if kind is not SessionStarted]
ANY_EVENT = st.one_of(*map(events_of, KINDS))


class Quiet:
    """A driver that answers nothing: the answers are the generated events."""

    def submit(self, effect: Any, post: Any) -> None: ...

    def cancel(self, effect_id: int) -> None: ...

    def close(self) -> None: ...


def test_every_kind_of_event_with_text_is_generated() -> None:
    with_text = {k for k in KINDS if any(h is str for h in get_type_hints(k).values())}
    assert {k.__name__ for k in with_text} >= {"UserSaid", "ModelAnswered", "ToolReturned", "ToolFailed", "Heard"}


@settings(max_examples=120)
@given(st.lists(ANY_EVENT, max_size=12))
@example([UserSaid(0, "\ud835"), ToolFailed(0, 0, "raised", "\udce9")])
def test_no_text_of_any_event_ends_a_session_and_all_of_it_replays(events: list[Event]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "trace.cbor"
        trace, quiet, clock = TraceFile.create(path), Quiet(), iter(range(10_000))
        drivers = dict.fromkeys((AskModel, CallTool, AskUser, SetTimer), quiet)
        loop = Loop(AGENT, step_of(AGENT), trace, drivers, lambda: next(clock))
        loop.post(SessionStarted(0, "a", "d", 1, "plain", 2048, "0"))
        for each in events:
            out = outstanding(loop.state)
            answers = "effect_id" in each.__struct_fields__ and out
            loop.post(msgspec.structs.replace(each, effect_id=out[0]) if answers else each)
            while not loop._inbox.empty():
                loop.take_one()
        trace.close()
        records = examine_file(path).records
    step = partial(step_of(AGENT), AGENT)
    assert fold(step, records)[0] == loop.state
    folded, state = [], None
    for record in records:
        state, effects = fold(step, (record,), state)
        folded.append((record, state, effects))
    orjson.dumps(otlp(folded, agent="a", session="s", model="m"))
    "".join(as_lines(audit_rows(AGENT, folded, bytes(32)))).encode()
    "".join(as_csv(audit_rows(AGENT, folded, bytes(32)))).encode()
    rows = [(str(r.seq), "", "", orjson.dumps(named_fields(r.event)).decode(), "", "", "", "", "", "") for r in records]
    page("s", [], turns_of(AGENT, folded), rows).encode()


def test_a_word_of_17_mb_is_refused_before_it_is_an_event() -> None:
    loop = Loop(AGENT, step_of(AGENT), None, {}, lambda: 0)
    with pytest.raises(ConfigError, match="let a tool read the file"):
        loop.post(UserSaid(0, "x" * 17_000_000))
    assert loop._inbox.empty()


def test_any_other_text_is_kept_only_up_to_a_bound() -> None:
    event = cleaned(ToolFailed(0, 1, "raised", "x" * 17_000_000))
    assert len(event.message.encode()) < TEXT_BYTES_MAX + 100


def test_a_record_that_could_not_be_read_again_is_not_written() -> None:
    with pytest.raises(TraceError, match="is the most of a record"):
        encode_payload(0, GENESIS, UserSaid(0, "x" * 17_000_000), bytes(16))


@given(st.text(st.characters(categories=("Cs", "Ll", "So"))))
def test_surrogates_are_joined_or_replaced_as_a_decoder_of_utf_16_does(text: str) -> None:
    if any("\ud800" <= char <= "\udc7f" or char > "\udcff" for char in text if "\ud800" <= char <= "\udfff"):
        assert readable(text) == text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")

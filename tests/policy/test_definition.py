"""A monitor gives the verdicts of the definition: random formulas and traces, a foreign oracle, cuts anywhere."""

from __future__ import annotations

import cbor2
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeagent.errors import ConfigError
from edgeagent.policy.fact import Fact
from edgeagent.policy.formula import (
    SESSION,
    TURN,
    And,
    Happened,
    Historically,
    Implies,
    Not,
    Once,
    Or,
    Previously,
    Since,
)
from edgeagent.policy.monitor import Monitor
from edgeagent.policy.words import (
    at_least,
    call,
    confirmed,
    failed,
    historically,
    k_of,
    last_events,
    last_seconds,
    once,
    previously,
    returned,
    said,
    since,
    untrusted,
)
from tests.policy.definition import holds_at_end
from tests.policy.prove import compare, formulas_up_to

atoms = st.sampled_from(
    [call("a"), call("a", "b"), call(), returned("a"), failed("b"), said(), confirmed("a"), untrusted()]
)
windows = st.one_of(
    st.sampled_from([SESSION, TURN]),
    st.integers(1, 6).map(last_seconds),
    st.integers(1, 5).map(last_events),
)


def grown(parts):
    return st.one_of(
        parts.map(lambda f: ~f),
        st.tuples(parts, parts).map(lambda p: p[0] & p[1]),
        st.tuples(parts, parts).map(lambda p: p[0] | p[1]),
        st.tuples(parts, parts).map(lambda p: p[0].implies(p[1])),
        st.tuples(st.integers(1, 3), parts, parts, parts).map(lambda p: k_of(*p)),
        st.tuples(parts, windows).map(lambda p: previously(*p)),
        st.tuples(parts, windows).map(lambda p: once(*p)),
        st.tuples(parts, windows).map(lambda p: historically(*p)),
        st.tuples(st.integers(1, 4), parts, windows).map(lambda p: at_least(*p)),
        st.tuples(parts, parts, windows).map(lambda p: since(*p)),
    )


formulas = st.recursive(atoms, grown, max_leaves=5)
letters = st.tuples(
    st.sampled_from(["called", "returned", "failed", "said", "confirmed", "denied", "other"]),
    st.sampled_from(["a", "b", "c"]),
    st.integers(0, 3_000),
    st.booleans(),
)


def trace_of(letters):
    trace, at_ms, turn = [], 0, 0
    for kind, tool, later, untrusted_ in letters:
        at_ms, turn = at_ms + later, turn + (kind == "said")
        about = "" if kind in ("said", "other") else tool
        trace.append(Fact(kind, about, at_ms=at_ms, turn=turn, untrusted=untrusted_))
    return tuple(trace)


def by_json(memory):
    return orjson.loads(orjson.dumps(memory))


def by_cbor(memory):
    return cbor2.loads(cbor2.dumps(memory))


@given(st.lists(formulas, min_size=1, max_size=4), st.lists(letters, min_size=1, max_size=10))
@settings(max_examples=150)
def test_every_verdict_is_the_definitions_and_a_cut_at_any_event_changes_none(several, written):
    monitor, trace = Monitor(several), trace_of(written)
    memory = monitor.start()
    for end, fact in enumerate(trace, start=1):
        expected = tuple(holds_at_end(f, trace[:end]) for f in several)
        for saved in (memory, monitor.restored(by_json(memory)), monitor.restored(by_cbor(memory))):
            assert monitor.values(saved, fact) == expected
        memory = monitor.append(memory, fact)


@given(st.lists(formulas, min_size=2, max_size=6), st.lists(letters, min_size=1, max_size=20))
@settings(max_examples=60)
def test_formulas_that_share_a_monitor_do_not_disturb_each_other(several, written):
    together, alone = Monitor(several), [Monitor([f]) for f in several]
    memory, memories = together.start(), [m.start() for m in alone]
    for fact in trace_of(written):
        each = tuple(m.values(x, fact)[0] for m, x in zip(alone, memories, strict=True))
        assert together.values(memory, fact) == each
        memory = together.append(memory, fact)
        memories = [m.append(x, fact) for m, x in zip(alone, memories, strict=True)]


@given(st.lists(formulas, min_size=1, max_size=4), st.lists(letters, min_size=1, max_size=40))
@settings(max_examples=60)
def test_memory_stays_within_the_stated_bits(several, written):
    monitor = Monitor(several)
    memory = monitor.start()
    for fact in trace_of(written):
        memory = monitor.append(memory, fact)
        for row, entry in zip(monitor.rows.values(), memory[2:], strict=True):
            assert bits_of(entry) <= row.bits


def bits_of(entry):
    """The bits that an entry takes now: one for a stamp that only says yes or no, else what the number needs."""
    stamps = entry if isinstance(entry, tuple) else (entry,)
    return sum(0 if s in (-1, 0) else max(1, s.bit_length()) for s in stamps)


def test_all_small_formulas_over_all_short_traces():
    assert compare(formulas_up_to(2), 4) == 55_944


def test_memory_of_other_rules_is_refused():
    with pytest.raises(ConfigError, match="rules have changed"):
        Monitor([once(call("a"))]).restored(Monitor([once(call("b"))]).start())


# -- a second oracle that is not ours ------------------------------------------------------------------------------

oracle_atoms = st.sampled_from([call("a"), said()])
oracle_windows = st.one_of(st.just(SESSION), st.integers(2, 5).map(last_events))


def oracle_grown(parts):
    return st.one_of(
        parts.map(lambda f: ~f),
        st.tuples(parts, parts).map(lambda p: p[0] & p[1]),
        st.tuples(parts, parts).map(lambda p: p[0] | p[1]),
        st.tuples(parts, parts).map(lambda p: p[0].implies(p[1])),
        parts.map(previously),
        st.tuples(parts, oracle_windows).map(lambda p: once(*p)),
        st.tuples(parts, oracle_windows).map(lambda p: historically(*p)),
        st.tuples(parts, parts, oracle_windows).map(lambda p: since(*p)),
    )


def in_reelays_words(f):
    def bound():
        return "" if f.within == SESSION else f"[0:{f.within.width - 1}]"

    def said_of(g):
        return in_reelays_words(g)

    match f:
        case Happened():
            return "{call}"
        case Not():
            return f"(!{said_of(f.of)})"
        case And():
            return f"({said_of(f.left)} && {said_of(f.right)})"
        case Or():
            return f"({said_of(f.left)} || {said_of(f.right)})"
        case Implies():
            return f"({said_of(f.left)} -> {said_of(f.right)})"
        case Previously():
            return f"(pre {said_of(f.of)})"
        case Once():
            return f"(once{bound()} {said_of(f.of)})"
        case Historically():
            return f"(historically{bound()} {said_of(f.of)})"
        case Since():
            return f"({said_of(f.left)} since{bound()} {said_of(f.right)})"
        case _:
            return "{said}"


@pytest.mark.long
@given(
    st.recursive(oracle_atoms, oracle_grown, max_leaves=6),
    st.lists(st.sampled_from(["called", "said", "other"]), min_size=1, max_size=16),
)
@settings(max_examples=60)
def test_reelay_gives_the_same_verdicts(formula, kinds):
    reelay = pytest.importorskip("reelay")
    theirs = reelay.discrete_timed_monitor(pattern=in_reelays_words(formula), condense=False)
    ours = Monitor([formula])
    memory = ours.start()
    for kind in kinds:
        fact = Fact(kind, "a" if kind == "called" else "")
        answer = theirs.update({"call": kind == "called", "said": kind == "said"})
        assert ours.values(memory, fact) == (answer["value"],)
        memory = ours.append(memory, fact)

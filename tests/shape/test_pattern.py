"""A pattern is read once, as JSON Schema means it, and printed so that every engine reads the same."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeagent.shape import formats, pattern
from edgeagent.shape.pattern_lengths import bounded, lengths, within

SEARCHED = [
    "^a|b$",
    "^\\d{3}$",
    "abc",
    "^[^ ]+$",
    "^$",
    "a\\/b",
    "^[\\w-]+$",
    "^(a|b$)",
    "x?y*z",
    "^(?:ab|c){2,3}$",
    "",
]


@pytest.mark.parametrize("text", SEARCHED)
@given(sample=st.text(alphabet="abcxyz1 /-_é\\", max_size=6))
def test_the_whole_text_pattern_lets_through_what_the_search_found(text: str, sample: str) -> None:
    whole = re.compile(pattern.regex(pattern.parse(text)))
    assert bool(whole.fullmatch(sample)) == bool(re.search(text, sample, re.ASCII))


def test_dollar_is_the_very_end() -> None:
    assert not re.fullmatch(pattern.regex(pattern.parse("^a$")), "a\n")


def test_digits_are_ascii() -> None:
    assert not re.fullmatch(pattern.regex(pattern.parse("^\\d$")), "٣")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("(?=a)", "look-ahead"),
        ("(?<!a)b", "look-behind"),
        ("(a)\\1", "back reference"),
        ("\\bword", "word boundary"),
        ("(?i)a", "flags"),
        ("a(?>b)", "atomic"),
        ("a++", "possessive"),
        ("a^b", "\\^ after"),
        ("a$b", "\\$ before"),
        ("(^a)*", "inside a repeat"),
        ("[", "not a regular expression"),
        ("\\p{L}", "property of Unicode.*write ranges"),
        ("[\\P{Lu}0-9]", "property of Unicode.*write ranges"),
        ("(?<n>a)\\k<n>", "back reference"),
        ("\\cJ", r"by its number, such as \\x0a"),
        ("(?i)abc", "write the characters out"),
        ("(" * 5_000 + ")" * 5_000, "not a regular expression|cannot be held"),
        ("\\ud800", "surrogate"),
    ],
)
def test_what_no_grammar_holds_is_refused_with_its_reason(text: str, reason: str) -> None:
    with pytest.raises(pattern.PatternError, match=reason):
        pattern.parse(text)


def test_a_named_group_in_javascripts_spelling_is_read() -> None:
    assert pattern.regex(pattern.parse("^(?<year>[0-9])$")) == "[0-9]"


@pytest.mark.parametrize(
    ("text", "span"), [("^a{2,3}b?$", (2, 4)), ("a", (1, None)), ("^(?:ab|c)*$", (0, None)), ("^$", (0, 0))]
)
def test_lengths_are_known(text: str, span: tuple[int, int | None]) -> None:
    assert lengths(pattern.parse(text)) == span


@pytest.mark.parametrize(
    ("text", "least", "most", "expected"),
    [
        ("^[a-z]*$", 1, 3, "[a-z]{1,3}"),
        ("^x[0-9]+$", 0, 3, "x[0-9]{1,2}"),
        ("^ab$", 0, 5, "ab"),
        ("^(?:ab)*$", 3, 5, None),
        ("^[a-z]{5}$", 0, 3, None),
    ],
)
def test_lengths_are_folded_into_a_pattern_where_that_is_exact(
    text: str, least: int, most: int, expected: str | None
) -> None:
    cut = within(pattern.parse(text), least, most)
    assert (None if cut is None else pattern.regex(cut)) == expected


def test_no_endless_repeat_is_left_when_bounded() -> None:
    assert lengths(bounded(pattern.parse("a+b"), 10))[1] == 10 + 10 + 1 + 10


@pytest.mark.parametrize("name", sorted(formats.PATTERNS))
def test_every_format_is_a_pattern_that_a_grammar_can_hold(name: str) -> None:
    tree = pattern.parse(f"^(?:{formats.PATTERNS[name]})$")
    assert re.compile(pattern.regex(tree))


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("date", "2024-02-29", "2023-02-29"),
        ("date", "2000-02-29", "1900-02-29"),
        ("date", "0001-12-31", "0000-01-01"),
        ("date", "2024-04-30", "2024-04-31"),
        ("date-time", "2024-02-29T23:59:59.123456+05:30", "2024-02-29T24:00:00Z"),
        ("time", "10:00:00Z", "10:00:00"),
        ("duration", "P1DT2H3.5S", "P1Y"),
        ("duration", "-PT90S", "PT"),
        ("email", "a.b+c@example.org", "a@b"),
        ("hostname", "a-b.example", "-a.example"),
        ("ipv4", "255.249.10.0", "256.0.0.1"),
        ("ipv4", "1.2.3.4", "01.2.3.4"),
        ("ipv6", "::ffff:1.2.3.4", "1:2:3:4:5:6:7"),
        ("ipv6", "1:2:3:4:5:6:7:8", "1::2::3"),
        ("ipv6", "fe80::1", ":::"),
        ("uri", "https://a.example/b?c=d#e", "no scheme"),
        ("uuid", "123e4567-e89b-12d3-a456-426614174000", "123e4567e89b12d3a456426614174000"),
        ("json-pointer", "/a~1b/0", "a"),
    ],
)
def test_a_format_lets_the_good_text_through_and_not_the_bad(name: str, good: str, bad: str) -> None:
    assert re.fullmatch(formats.PATTERNS[name], good)
    assert not re.fullmatch(formats.PATTERNS[name], bad)

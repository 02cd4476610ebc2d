"""What counts as quoted from the user."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeagent.core.quoting import (
    LOOKED_AT_MAX,
    SPANS_MAX,
    has_words,
    names_option,
    numbers_in,
    quoted_from_user,
    spans,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("bob", "write to bob."),
        ("bob@site.org", "to bob@site.org, please"),
        ("north valve", "open the north valve"),
        (30, "for 30 seconds"),
        (-2.5, "set it to -2.5"),
        (21.0, "21 degrees"),
        (["a", 3], "a and 3"),
    ],
)
def test_words_and_numbers_of_the_user_are_quotations(value, text):
    assert quoted_from_user(value, ["before", text])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("evil.org", "see not-evil.org"),
        ("evil.org", "see evil.org/path"),
        ("bob@site.org", "to bob@site.org.attacker.net"),
        ("bob", "bobby"),
        ("", "anything"),
        (30, "for 300 seconds"),
        (3, "version 1.3"),
        (True, "true"),
        (None, "None"),
        ([], "nothing"),
        (["a", 4], "a and 3"),
    ],
)
def test_parts_of_longer_words_and_addresses_are_not(value, text):
    assert not quoted_from_user(value, [text])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("brien@corp.com", "mail o'brien@corp.com"),
        ("brien@corp.com", "mail o\u2019brien@corp.com"),
        ("smith@corp.com", "mail {smith|smith@corp.com"),
        ("evil@x.org", "open https://x.org/?u=evil@x.org"),
        ("evil@x.org", "open x.org/?a=1,evil@x.org"),
        ("evil@x.org", "mail to=evil@x.org"),
        ("evil@x.org", "https://x.org/?u=evil@x.org&p=+44 20 5550"),
        ("bob@corp.com", "mail bob@corp.com\u0301x"),
        ("bob@corp.com", "mail bob@corp.com/box"),
        ("x.org", "mail bob@[x.org"),
        ("https://x.org/Foo", "see https://x.org/Foo_(bar)"),
        ("ttyUSB0", "on /dev/ttyUSB0"),
        ("Brien", "pay O'Brien"),
        ("Luc", "pay Jean-Luc"),
        ("cafe", "the cafe\u0301"),
        ("s", "Bob's account"),
        ("10", "pay 10,000"),
        ("30", "for 30kg"),
        ("6016 1331", "to GB29 NWBK 6016 1331 9268 19"),
        ("5550 6666", "call +44 20 5550 6666"),
        ("ab", "\u200dab\u200dc"),
        ("evil@x.org", 'mail "evil@x.org"@corp.com'),
        ("evil@x.org", 'mail "evil@x.org bob"@corp.com'),
        ("evil@x.org", 'https://x.org/?q="evil@x.org"'),
        ("evil@x.org", "https://x.org/?q=<evil@x.org>"),
        ("bob@x.org", "bob@x.org\u3002evil"),
        ("bob@x.org", "bob@x.org\uff61cn"),
        ("bob@x.org", "bob@x.org\u2024cn"),
        ("Brien", "pay O\u2018Brien"),
        ("Brien", "pay O\u2032Brien"),
        ("Brien", "pay O\u00b4Brien"),
        ("Brien", "pay O\uff07Brien"),
        ("files/evil.sh", r"run /home/my\ files/evil.sh"),
        ("555 1234", "call (030) 555 1234"),
        ("555 1234", "call 030 555 1234"),
        ("20 5550", "tel. 0044 20 5550 6666"),
        ("1", "pay 1\u2009000 euros"),
    ],
)
def test_a_part_of_a_token_is_no_quotation(value, text):
    assert not has_words(value, [text], capitals=False)


@pytest.mark.parametrize(
    "text", ["BOB@EXAMPLE.CO.UK", "Bob@Example.Co.Uk", "bob@example.co.Uk", "bob@example.co.Shop/x"]
)
def test_a_capital_does_not_end_an_address(text):
    assert not has_words("bob@example.co", [f"write to {text} please"], capitals=False)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("o'brien@corp.com", "mail o'brien@corp.com."),
        ("bob@x.org", "mail 'bob@x.org', please"),
        ("bob@x.org", "a@y.org,bob@x.org;c@z.org"),
        ("bob@x.org", "mail *bob@x.org*"),
        ("https://x.org/Foo_(bar)", "see (https://x.org/Foo_(bar))."),
        ("https://x.org/a", "see [this](https://x.org/a)"),
        ("www.firm.example", "our site www.firm.example.They know"),
        ("Bob", "Bob's account"),
        ("Bob's", "Bob's account"),
        ("caf\u00e9", "the cafe\u0301"),
        ("cafe\u0301", "the caf\u00e9"),
        ("north valve", "the north\n valve"),
        ("30 kg", "for 30 kg"),
        ("\u738b\u5c0f\u660e", "\u4ed8\u7ed9\u738b\u5c0f\u660e20\u5143"),
        ("Bob", "\u5411Bob\u4ed8\u6b3e"),
        ("GB29 NWBK 6016 1331 9268 19", "pay GB29 NWBK 6016 1331 9268 19 now"),
        ("Bob", "pay \u2018Bob\u2019, \u00b4Ann\u00b4"),
        ("O\u00b4Brien", "pay O\u00b4Brien"),
        ("bob@x.org", "to bob@x.org\u3002\u8c22\u8c22"),
        ("bob@x.org", "bob@x.org\u3002Thanks"),
        ("(030) 555 1234", "call (030) 555 1234 now"),
        ("bob", 'say "bob" @noon'),
    ],
)
def test_a_whole_token_is_a_quotation(value, text):
    assert has_words(value, [text])


def test_digits_of_an_address_or_a_path_are_no_numbers():
    text = "/dev/13 https://x.org/14?n=15 a@16 x.org/17 but 5km/h, x=7 and \u4ed820\u5143 at 12:30"
    assert list(map(int, numbers_in([text], units=True))) == [5, 7, 20, 12, 30]


@pytest.mark.parametrize(
    ("text", "plain", "with_units_and_thousands"),
    [
        ("set it to \u22125", ["-5"], ["-5"]),
        ("from \u20135 to 5", ["-5", "5"], ["-5", "5"]),
        ("10\u201320 times", ["10", "20"], ["10", "20"]),
        ("pay 1'000", [], ["1000"]),
        ("pay 1\u202f000", [], ["1000"]),
        ("pay 1\u2009000", [], ["1000"]),
        ("pay 5k", [], []),
        ("pay 5Mio", [], []),
        ("5kg, 5 kg", ["5"], ["5", "5"]),
        ("10^6 and 10**6 and 10\u2076", [], []),
        ("5\u00bd", [], []),
        ("5\u20ac50", [], []),
    ],
)
def test_a_number_is_what_all_of_its_signs_say(text, plain, with_units_and_thousands):
    assert [str(each) for each in numbers_in([text])] == plain
    assert [str(each) for each in numbers_in([text], units=True, thousands=True)] == with_units_and_thousands


def test_an_option_is_named_by_whole_words():
    assert names_option("soil_moisture", ["the Soil moisture"])
    assert not names_option("bob", ["mail bob@x.org"])
    assert not names_option("north", ["see /beds/north"])


TEXTS = st.text(st.sampled_from("ab1 2.-:/@+,'\"\u00e9\n%5$()\u738b\u0301\u200d\u00a0\u2019s|{}?&=#A"), max_size=24)


@settings(max_examples=400)
@given(TEXTS)
def test_every_span_is_a_quotation(text):
    assert all(has_words(each, [text]) for each in spans([text]))


@pytest.mark.parametrize(
    "piece", ["word ", "a", "1/", "/", "a@", "'s ", "1234 ", "(,", "a/(", "+1 ", "\u738b", "e\u0301"]
)
def test_a_text_that_repeats_itself_is_read_in_one_go(piece):
    text = piece * (24_000 // len(piece))  # With work that grows with the square this would take very long.
    assert len(list(spans([text]))) <= min(SPANS_MAX, LOOKED_AT_MAX)
    assert not has_words(text[: len(text) // 2] + "q", [text])
    assert not names_option(text[:60] + "q", [text])
    list(numbers_in([text], units=True, thousands=True))

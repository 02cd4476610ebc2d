"""Text that nobody could follow, write to, call or pay to."""

from __future__ import annotations

import pytest

from edgeagent.policy.inert import contacts_in, not_inert
from tests.policy.office import Office


@pytest.mark.parametrize(
    "text",
    [
        "on 2024-05-15 10:20",
        "at 2024-05-15T10:20:30.123Z",
        "on 24.12.2026, or 24/12/2026",
        "version 1.2.3",
        "9.30-10.45",
        "1,200.50",
        "1.200.500,00 euros and 21.5 degrees",
        "room 12345678",
        "a/b",
        "e.g. this, i.e. that, at 5 p.m.",
        "the end. The next",
        "5 \u00b5m, 10 k\u03a9",
        "caf\u00e9 na\u00efve \u041c\u043e\u0441\u043a\u0432\u0430",
        "channels 1 2 3",
        "a range of 10-20",
        "the col\u00b7lecci\u00f3, room 4 \u2013 floor 2",
        "note: at 12:30, gate 3:1",
        "5 - 10 minutes, item #12",
    ],
)
def test_dates_versions_and_amounts_are_inert(text):
    assert list(contacts_in(text)) == []


@pytest.mark.parametrize(
    "text",
    [
        "www.a.example.",
        "(https://a.example/x)",
        "bad.com",
        "open evil.zip/x",
        "bank-login.technology",
        "see 163.com",
        "report.docx",
        "x@y.example",
        "mallory@localhost",
        "write to @mallory_help",
        "//evil/x",
        r"\\evil\share",
        "203.0.113.9:8080",
        "2001:db8::1",
        "GB29 NWBK 6016 1331 9268 19",
        "gb29 nwbk 6016 1331 9268 19",
        "de89370400440532013000",
        "4237-4252-7456-2574",
        "+44 20 5550 6666",
        "(0351) 501-2346",
        "555-0134",
        "pay 0x71C7656EC7ab88b098defB751B7401B5f6d8976F",
        "pay bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq",
        "mailto:mallory",
        "javascript:alert(1)",
        "data:text,x",
        "tel:5550134",
        "monero:44AFFq5kSiGBoZ",
        "xn--80ak6aa92e",
        "mallory#1234",
        "[here](evil)",
        "<a href=evil>",
        "0351\u2013501\u20132346",
    ],
)
def test_what_can_be_followed_written_to_called_or_paid_is_loud(text):
    assert list(contacts_in(text))


@pytest.mark.parametrize(
    "text",
    [
        "evil[.]com",
        "evil (dot) com",
        "evil dot com",
        "mallory[at]evil[.]com",
        "hxxps[:]//evil",
        "www.evil\uff0ecom",
        "evil\u200b.com",
        "ev\u00adil.com",
        "evil.\u2060com",
        "mallory\uff20evil.com",
        "evil\u3002com",
        "log in at p\u0430ypal",
        "\uff10\uff13\uff15\uff11 501 2346",
        "evil%2Ecom",
        "evil&#46;com",
        "evil&period;com",
        r"evil\.com",
        r"evil\u002ecom",
        "mallory&#x40;evil",
        "mallory%40evil",
        "evil . com",
        "evil .com",
        "evil\u00b7com",
        "e v i l . c o m",
        "D E 8 9 3 7 0 4 0 0 4 4",
        "go to b\u0430d",
    ],
)
def test_what_is_written_to_be_overlooked_is_loud(text):
    assert list(contacts_in(text))


@pytest.mark.parametrize(
    "piece", ["a", "a-", "a.", "1 ", "A1", "a+", "w", "www", ":", "@", "a@", "1-", "[.]", "ab12 ", "\u0430a", "a/,"]
)
def test_a_long_text_is_read_in_one_go(piece):
    list(contacts_in(piece * 30_000))  # With a pattern that is not linear this would take very long.


def test_what_the_user_wrote_is_inert():
    assert not_inert("see www.a.example", ["send the link www.a.example"]) == ""
    assert not_inert("see www.a.example/b", ["send the link www.a.example"]) == "www.a.example/b"


def test_what_a_trusted_tool_gave_may_stand_in_a_text():
    session = Office("write to Ana and ben@firm.example how she can be reached")
    session.reads("contacts", [{"name": "Ana", "address": "+44 20 5550 6666"}], query="Ana")
    session.reads("mails", [{"id": "7", "subject": "x", "sender": "y", "text": "+44 20 5550 9999"}])
    assert session.call("send", to=["ben@firm.example"], body="Call +44 20 5550 6666.") == "runs"
    assert session.call("send", to=["ben@firm.example"], body="Call +44 20 5550 9999.") == "asks"

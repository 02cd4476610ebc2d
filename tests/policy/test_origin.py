"""What counts as quoted from the user."""

from __future__ import annotations

import pytest

from edgeagent.policy.origin import quoted_from_user


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

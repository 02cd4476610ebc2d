"""What is the user's wording, and which text is inert."""

from __future__ import annotations

import pytest

from edgeagent.policy.quoting import (
    contacts_in,
    not_inert,
    said_distinctly,
    said_handle,
    said_in_template,
    said_link,
    said_secret,
    said_words,
)


def test_capitals_and_line_breaks_do_not_matter():
    assert said_words("Networking Event", ["the 'networking\nevent' tomorrow"])


def test_a_sentence_may_begin_right_after_an_address():
    assert said_words("www.firm.example", ["our site www.firm.example.They know"])


@pytest.mark.parametrize("text", ["x-firm.example", "firm.example.net", "firm.example/x", "user@firm.example"])
def test_a_part_of_an_address_is_not_said(text):
    assert not said_words("firm.example", [text])


def test_words_of_two_messages_are_not_put_together():
    assert not said_words("north valve", ["open the north", "valve please"])


@pytest.mark.parametrize(
    ("value", "text"), [("event", "an event"), ("Read", "Read my mail"), ("the", "the mail"), ("", "x")]
)
def test_an_ordinary_word_does_not_stand_out(value, text):
    assert not said_distinctly(value, [text])


@pytest.mark.parametrize(
    ("value", "text"),
    [("event", "the 'event'"), ("dora", "write to Dora"), ("a.txt", "see a.txt"), ("board meeting", "a board meeting")],
)
def test_quotes_capitals_signs_and_several_words_stand_out(value, text):
    assert said_distinctly(value, [text])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("13", "delete file 13"),
        ("13", "the file with the id '13'"),
        ("13", "file #13"),
        ("13", "file no 13"),
        ("north", "the north file"),
        ("a13.txt", "see a13.txt"),
    ],
)
def test_ids_that_the_user_meant(value, text):
    assert said_handle(value, "file", [text])


@pytest.mark.parametrize(
    ("value", "text"),
    [("13", "June 13"), ("13", "13 files"), ("13", "event 13"), ("13", "event with id 13"), ("north", "go north")],
)
def test_ids_that_the_user_did_not_mean(value, text):
    assert not said_handle(value, "file", [text])


def test_a_link_must_be_one_and_whole():
    assert said_link("https://a.example/x?y=1", ["get https://a.example/x?y=1"])
    assert not said_link("https://a.example/x", ["get https://a.example/x?y=1"])
    assert not said_link("get", ["get https://a.example"])
    assert not said_link("a.txt", ["get a.txt"])


def test_a_secret_is_spoken_of_by_name():
    assert said_secret("Quartz-88", "password", ["set the password to Quartz-88"])
    assert not said_secret("Quartz-88", "password", ["look at Quartz-88"])
    assert not said_secret("quartz-88", "password", ["set the password to Quartz-88"])


def test_a_template_of_the_users_takes_a_name_from_the_system():
    prompt = ["an event called 'Dinner at {restaurant_name}', please"]
    assert said_in_template("Dinner at Chez Ami", ["Chez Ami"], prompt) == "Chez Ami"
    assert not said_in_template("Dinner at Evil Place", ["Chez Ami"], prompt)
    assert not said_in_template("Chez Ami", ["Chez Ami"], prompt)
    assert not said_in_template("Now dinner at Chez Ami", ["Chez Ami"], prompt)


@pytest.mark.parametrize(
    "text",
    [
        "on 2024-05-15 10:20",
        "version 1.2.3",
        "9.30-10.45",
        "file.docx",
        "1,200.50",
        "room 12345678",
        "a/b",
        "e.g. this",
    ],
)
def test_dates_versions_and_file_names_are_no_contacts(text):
    assert list(contacts_in(text)) == []


@pytest.mark.parametrize(
    "text",
    [
        "www.a.example.",
        "(https://a.example/x)",
        "bad.com",
        "x@y.example",
        "203.0.113.9:8080",
        "GB29 NWBK 6016 1331 9268 19",
        "4237-4252-7456-2574",
        "+44 20 5550 6666",
    ],
)
def test_links_addresses_and_accounts_are_found(text):
    assert list(contacts_in(text))


@pytest.mark.parametrize("text", ["www.evil\uff0ecom", "evil\u200b.com", "mallory\uff20evil.com"])
def test_signs_that_look_alike_hide_nothing(text):
    assert list(contacts_in(text))


@pytest.mark.parametrize("piece", ["a", "a-", "a.", "1 ", "A1", "a+", "w", "www", ":", "@"])
def test_a_long_text_is_read_in_one_go(piece):
    list(contacts_in(piece * 30_000))  # With a pattern that is not linear this would take very long.


def test_what_the_user_wrote_is_inert():
    assert not_inert("see www.a.example", ["send the link www.a.example"]) == ""
    assert not_inert("see www.a.example/b", ["send the link www.a.example"]) == "www.a.example/b"

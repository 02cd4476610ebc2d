"""Names, ids, secrets and links that the user means."""

from __future__ import annotations

import pytest

from edgeagent.policy.named import (
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

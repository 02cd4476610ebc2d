"""Asking a person: silence and trouble are a no."""

from __future__ import annotations

import queue
import threading

from edgeagent.core.effects import AskUser
from edgeagent.driver.person import Decision, PersonDriver

QUESTION = AskUser(4, "erase", "{}", "because", 60_000)


def decided(decide, timeout_ms=60_000):
    driver, events = PersonDriver(decide), queue.Queue()
    driver.submit(AskUser(4, "erase", "{}", "because", timeout_ms), events.put)
    event = events.get(timeout=60)
    driver.close()
    return event


def test_a_yes_is_an_approval():
    event = decided(lambda question: Decision(True))
    assert (event.effect_id, event.approved) == (4, True)


def test_without_anybody_the_answer_is_no():
    driver, events = PersonDriver(), queue.Queue()
    driver.submit(AskUser(4, "erase", "{}", "because", 60_000), events.put)
    assert events.get(timeout=60).approved is False


def test_silence_is_a_no():
    never = threading.Event()
    event = decided(lambda question: never.wait(120), timeout_ms=50)
    never.set()
    assert (event.approved, event.text) == (False, "no answer")


def test_a_callback_that_raises_is_a_no():
    def broken(question):
        raise OSError("terminal gone")

    event = decided(broken)
    assert event.approved is False
    assert "terminal gone" in event.text


def test_a_question_may_be_answered_from_elsewhere_once():
    answers = queue.Queue()
    driver = PersonDriver(lambda question: None)
    driver.submit(QUESTION, answers.put)
    assert driver.answer(QUESTION.effect_id, Decision(True, "", QUESTION.digest))
    assert not driver.answer(QUESTION.effect_id, Decision(False)), "it is no longer open"
    assert answers.get(timeout=60).approved
    driver.close()
    assert answers.empty()


def test_of_two_places_the_first_that_answers_counts():
    answers = queue.Queue()
    driver = PersonDriver(lambda question: None)
    driver.ask_also(lambda question: Decision(True, "from the second"))
    driver.submit(QUESTION, answers.put)
    assert answers.get(timeout=60).text == "from the second"
    driver.close()

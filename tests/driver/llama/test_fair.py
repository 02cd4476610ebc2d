"""Whose turn it is: bounded, fair, and told."""

from __future__ import annotations

import threading

from edgeagent.driver.llama.fair import FairQueue, Job


def job(session, number=1, on_place=None):
    return Job(lambda: None, session=session, effect_id=number, on_place=on_place)


def order(queue):
    return [queue.take().session for _ in range(len(queue))]


def test_a_session_that_asks_much_is_served_no_more_often_than_the_others():
    queue = FairQueue(9)
    for session in ("a", "a", "a", "b", "c"):
        assert queue.put(job(session))
    assert order(queue) == ["a", "b", "c", "a", "a"]


def test_within_a_session_the_first_comes_first():
    queue = FairQueue(9)
    for number in (1, 2, 3):
        queue.put(job("a", number))
    assert [queue.take().effect_id for _ in range(3)] == [1, 2, 3]


def test_more_than_may_wait_is_refused_and_nothing_is_lost():
    queue = FairQueue(2)
    assert [queue.put(job(session)) for session in "abc"] == [True, True, False]
    assert order(queue) == ["a", "b"]


def test_a_waiting_session_is_told_its_place_until_its_turn_has_come():
    queue, told = FairQueue(9), {"a": [], "b": [], "c": []}
    for session in "abc":
        queue.put(job(session, on_place=told[session].append))
    for _ in "abc":
        queue.take()
    assert told == {"a": [], "b": [1, 0], "c": [2, 1, 0]}


def test_places_count_the_ask_that_is_being_served():
    queue, told = FairQueue(9), []
    queue.put(job("a"))
    queue.take()
    queue.put(job("b", on_place=told.append))
    assert told == [1]


def test_what_must_be_done_first_is():
    queue = FairQueue(9)
    queue.put(job("a"))
    queue.put_first(job("urgent"))
    assert [queue.take().session for _ in range(2)] == ["urgent", "a"]


def test_what_is_withdrawn_is_not_served():
    queue = FairQueue(9)
    for session, number in (("a", 1), ("a", 2), ("b", 3)):
        queue.put(job(session, number))
    assert [each.effect_id for each in queue.withdraw("a", 1)] == [1]
    assert queue.withdraw("a", 1) == []
    assert [queue.take().effect_id for _ in range(2)] == [2, 3]


def test_a_closed_queue_takes_nothing_in_and_ends_when_it_is_empty():
    queue = FairQueue(9)
    queue.put(job("a"))
    queue.close()
    assert not queue.put(job("b")) and not queue.put_first(job("b"))
    assert (queue.take().session, queue.take()) == ("a", None)


def test_who_waits_for_a_job_is_woken_by_it():
    queue, taken = FairQueue(9), []
    thread = threading.Thread(target=lambda: taken.append(queue.take().session))
    thread.start()
    queue.put(job("a"))
    thread.join(60)
    assert taken == ["a"]


def test_who_cannot_be_told_its_place_is_served_and_so_are_the_others(capsys):
    def raises(place):
        raise RuntimeError("no screen")

    queue = FairQueue(9)
    for session in "abc":
        queue.put(job(session, on_place=raises))
    assert order(queue) == ["a", "b", "c"]
    assert "no screen" in capsys.readouterr().err

"""Several models in an order: the first that can be reached answers, and what befell the others is in the event."""

from __future__ import annotations

from edgeagent.core.effects import AskModel
from edgeagent.core.events import ModelAnswered, ModelFailed
from edgeagent.core.values import Message, Usage
from edgeagent.driver.order import OrderedModels

ASK = AskModel(4, (Message("user", "Hello."),), (), "answer", 64, 0, 1)


class Fixed:
    """Answers every ask with one event, or when it is told to."""

    def __init__(self, event=None, name: str = "fixed"):
        self.event, self.asked, self.cancelled, self.closed, self.warm = event, [], [], False, None
        self.name = name

    def submit(self, effect, post):
        self.asked.append(effect)
        self.post = post
        if self.event is not None:
            post(self.event)

    def cancel(self, effect_id):
        self.cancelled.append(effect_id)

    def close(self):
        self.closed = True

    def describe(self):
        return f"{self.name} answers"


ANSWERED = ModelAnswered(0, 4, "Hello!", "end", Usage())
UNREACHED = ModelFailed(0, 4, "unavailable", "no route")


def events(*drivers: Fixed):
    posted = []
    OrderedModels([(f"m{n}", driver) for n, driver in enumerate(drivers)]).submit(ASK, posted.append)
    return posted


def test_the_first_is_asked_alone_if_it_answers():
    second = Fixed(ANSWERED)
    (event,) = events(Fixed(ANSWERED), second)
    assert (event.text, event.asked, second.asked) == ("Hello!", (("m0", ""),), [])


def test_the_next_is_asked_where_one_is_not_reached_and_the_event_says_so():
    (event,) = events(Fixed(UNREACHED), Fixed(UNREACHED), Fixed(ANSWERED))
    assert (event.text, event.asked) == ("Hello!", (("m0", "no route"), ("m1", "no route"), ("m2", "")))


def test_where_none_is_reached_the_failure_names_all():
    (event,) = events(Fixed(UNREACHED), Fixed(ModelFailed(0, 4, "unavailable", "no key")))
    assert (event.reason, event.message) == ("unavailable", "m1: no key (before it m0: no route)")


def test_another_failure_than_that_one_is_the_answer():
    for reason in ("engine", "time", "context_full"):
        second = Fixed(ANSWERED)
        (event,) = events(Fixed(ModelFailed(0, 4, reason, "broke off")), second)
        assert (event.reason, second.asked) == (reason, [])


def test_a_cancelled_ask_is_cancelled_where_it_is_and_asked_of_no_other():
    first, second, posted = Fixed(), Fixed(ANSWERED), []
    models = OrderedModels([("a", first), ("b", second)])
    models.submit(ASK, posted.append)
    models.cancel(4)
    assert first.cancelled == [4]
    first.post(UNREACHED)
    assert (second.asked, len(posted)) == ([], 1)
    models.cancel(4)  # It is over.
    assert first.cancelled == [4]


def test_a_cancellation_on_the_way_to_the_next_model_reaches_it():
    class Late(Fixed):
        """Knows an ask only when it has taken it, and is told to cancel it before."""

        def submit(self, effect, post):
            models.cancel(effect.effect_id)
            self.cancelled.clear()
            super().submit(effect, post)

    second, posted = Late(), []
    models = OrderedModels([("a", Fixed(UNREACHED)), ("b", second)])
    models.submit(ASK, posted.append)
    assert (second.cancelled, posted) == ([4], [])


def test_all_are_closed_and_described():
    drivers = [Fixed(name="one"), Fixed(name="two")]
    models = OrderedModels([("a", drivers[0]), ("b", drivers[1])])
    models.close()
    assert all(each.closed for each in drivers)
    assert models.describe() == "a: one answers; else b: two answers"

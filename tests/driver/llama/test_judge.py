"""The judge on the real model: which tool, and whether any; and where the tools' texts wait for a request."""

from __future__ import annotations

import dataclasses
import json

import pytest

pytest.importorskip("llama_cpp")

from edgeagent.codec.dialect import Plain
from edgeagent.core.agent import Agent, tool
from edgeagent.core.effects import AskModel
from edgeagent.core.events import CALL_ODDS, CALL_ODDS_NEEDED
from edgeagent.core.values import Message
from edgeagent.driver.llama.engine import Engine
from edgeagent.driver.llama.judge import SEQUENCES, ModelJudge, TextScorer
from edgeagent.driver.llama.model import LlamaDriver
from edgeagent.driver.llama.scoring_slots import Shelf, Text
from edgeagent.driver.llama.template import Template
from edgeagent.request.choose import COMPARED_MAX
from edgeagent.request.choose import choose as choose_among
from edgeagent.request.tools import Tools
from examples.greenhouse import agent as greenhouse

pytestmark = pytest.mark.model

AGENT = dataclasses.replace(greenhouse, dialect=Plain())


def numbered(number):
    """A tool that hardly differs from its neighbours."""

    @tool(idempotent=True, name=f"tool_{number}")
    def do() -> str:
        """Do the same as all the others."""
        return ""

    return do


MANY = Agent(name="many", tools=[numbered(n) for n in range(40)], dialect=Plain())


@pytest.fixture(scope="module")
def wide(smollm2, cache):
    """An engine with a place for every text."""
    engine = Engine.load(smollm2, n_ctx=2048, threads=1, sequences=SEQUENCES, cache=cache)
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def template(wide):
    made = Template(wide.template)
    yield made
    made.close()


def ask(agent, text):
    return AskModel(1, (Message("user", text),), agent.tool_names, "either", 96, 0, 7)


def scorer_of(agent, engine, template):
    return TextScorer(engine, template, agent.dialect.frame, Tools.of(agent.tools).texts(agent.tool_names))


def choose(scorer, agent, text, names=None, halt=None, *, is_open=True):
    tools = Tools.of(agent.tools).only(names or agent.tool_names)
    return choose_among(text, tools, ModelJudge(scorer, halt=halt), is_open=is_open)


def test_only_tools_of_the_ask_are_chosen(wide, template):
    scorer = scorer_of(AGENT, wide, template)
    chosen = choose(scorer, AGENT, "Open the north valve for 30 seconds.", ("notify", "send_line"))
    assert set(chosen.tools) <= {"notify", "send_line"}
    assert [name for name, _ in chosen.scores] == ["notify", "send_line"]


@pytest.mark.deep
def test_forty_tools_that_fit_alike_are_compared_by_the_dozen(wide, template):
    wide.forget()
    chosen = choose(scorer_of(MANY, wide, template), MANY, "Please do the same.")
    assert len(chosen.scores) == 40
    assert set(chosen.tools) <= set(MANY.tool_names[:COMPARED_MAX])


def test_the_tools_texts_wait_in_memory_for_the_next_request(wide, template):
    wide.forget()
    scorer = scorer_of(AGENT, wide, template)
    choose(scorer, AGENT, "The plants are thirsty.")
    held = [wide.kept(n) for n in range(1, SEQUENCES)]
    assert sum(map(bool, held)) == len(AGENT.tools) + 1
    choose(scorer, AGENT, "It is far too dark in here.")
    assert [wide.kept(n) for n in range(1, SEQUENCES)] == held


def test_a_choice_leaves_the_conversation_in_memory(wide, template):
    wide.forget()
    tokens = wide.tokenize("You control a greenhouse.", special=False, bos=False)
    wide.prefill(tokens)
    choose(scorer_of(AGENT, wide, template), AGENT, "The plants are thirsty.")
    assert wide.kept() == tokens


def test_without_time_the_words_alone_decide(wide, template):
    scorer = scorer_of(AGENT, wide, template)
    chosen = choose(scorer, AGENT, "Open the north valve for 30 seconds.", halt=lambda: "time")
    assert chosen.tools == ("set_valve",)
    assert set(chosen.signs) == {"description", "name", "arguments"}


def test_a_settled_call_that_the_words_decide_costs_the_model_nothing(wide, template):
    wide.forget()
    chosen = choose(scorer_of(AGENT, wide, template), AGENT, "Open the north valve for 30 seconds.", is_open=False)
    assert chosen.tools == ("set_valve",)
    assert all(not wide.kept(n) for n in range(SEQUENCES))


def test_of_too_many_texts_the_one_not_asked_for_longest_gives_its_place(smollm2, cache):
    engine = Engine.load(smollm2, n_ctx=512, threads=1, sequences=3, cache=cache)

    def text(words):
        return Text(*(engine.tokenize(part, special=False, bos=False) for part in (words, " Yes.")))

    shelf = Shelf(engine)
    shelf.judge({"one": text("The first text."), "two": text("The second one.")})
    shelf.judge({"one": text("The first text.")})
    shelf.judge({"three": text("And a third one.")})
    held = sorted(engine.detokenize(engine.kept(n)).decode() for n in (1, 2))
    together = shelf.judge({n: text(w) for n, w in (("a", "A text."), ("b", "A b."), ("c", "A c."), ("d", "A d."))})
    engine.close()
    assert held == ["And a third one", "The first text"]
    assert set(together) == {"a", "b", "c", "d"}


@pytest.mark.deep
def test_small_talk_is_answered_in_words_and_what_was_needed_for_a_call_is_told(smollm2):
    driver = LlamaDriver.load(smollm2, AGENT, threads=1)
    talk, wish = (
        driver.answer(ask(AGENT, text)) for text in ("Tell me a joke.", "Open the north valve for 30 seconds.")
    )
    driver.require_odds({"": 99.0})
    refused = driver.answer(ask(AGENT, "Open the north valve for 30 seconds."))
    driver.close()
    assert not talk.text.startswith("{") and wish.text.startswith("{")
    assert dict(talk.scores)[CALL_ODDS] < dict(talk.scores)[CALL_ODDS_NEEDED] <= dict(wish.scores)[CALL_ODDS]
    assert dict(refused.scores)[CALL_ODDS_NEEDED] == 99 and not refused.text.startswith("{")


def test_a_yes_to_a_proposal_is_the_call_that_was_proposed(smollm2):
    driver = LlamaDriver.load(smollm2, AGENT, threads=1)
    doubtful = "Open the north valve for 30 seconds unless it rains."
    proposed = driver.answer(ask(AGENT, doubtful)).text
    told = (Message("user", doubtful), Message("assistant", proposed), Message("user", "Yes, please."))
    done = driver.answer(AskModel(2, told, AGENT.tool_names, "either", 96, 0, 7)).text
    driver.close()
    assert proposed == "Shall I set valve (valve north, open yes, seconds 30)?"
    assert json.loads(done)["arguments"] == {"valve": "north", "open": True, "seconds": 30}


def test_an_example_makes_requests_like_it_likelier_to_mean_its_tool(wide, template):
    wanted = "Tell Ann that the boiler is cold."
    bare = dataclasses.replace(AGENT, tools=[dataclasses.replace(each, examples=()) for each in AGENT.tools])
    without, given = (choose(scorer_of(agent, wide, template), agent, wanted) for agent in (bare, AGENT))
    assert given.tools == ("notify",)
    assert given.signs["writer"] > without.signs["writer"]

"""What was said before a request, as messages; and what a person's yes to a question about it leads to.

Earlier calls are really made: their results are what the tools return.
"""

from __future__ import annotations

import json

from bench.accuracy.cases import Case
from bench.accuracy.requests import Accepted, Asked
from edgeagent.core.agent import Agent
from edgeagent.core.values import Message, canonical_json

YES = {"en": "Yes.", "de": "Ja.", "es": "Sí.", "fr": "Oui.", "nl": "Ja.", "it": "Sì.", "pt": "Sim.", "pl": "Tak."}
"""Yes, by language."""


def messages_of(case: Case) -> tuple[Message, ...]:
    """The conversation that ends with the request."""
    return (*(_earlier(case.agent, case.asked) if case.asked else ()), Message("user", case.request))


def with_yes(case: Case, question: str) -> tuple[Message, ...]:
    """The conversation with the question that was asked back, and a yes in the request's language."""
    lang = case.asked.lang if case.asked else "en"
    return (*messages_of(case), Message("assistant", question), Message("user", YES.get(lang, YES["en"])))


def asks(text: str) -> bool:
    """Whether words are a question."""
    return text.rstrip(" \n)\"'”»").endswith(("?", "]")) and "?" in text


def _earlier(agent: Agent, asked: Asked) -> tuple[Message, ...]:
    told: list[Message] = []
    for said, calls in asked.before:
        written = [{"name": each.tool, "arguments": dict(each.arguments)} for each in calls]
        results = [_returned(agent, each) for each in calls]
        told.append(Message("user", said))
        told.append(Message("assistant", json.dumps(written[0] if len(written) == 1 else written, ensure_ascii=False)))
        told += [Message("tool", canonical_json(r), tool=c.tool) for c, r in zip(calls, results, strict=True)]
        told.append(Message("assistant", " ".join(map(str, results))))
    return tuple(told)


def _returned(agent: Agent, call: Accepted) -> object:
    tool = agent.by_name[call.tool]
    arguments = {name: _said(value) for name, value in call.arguments.items()}
    returned: object = tool.function(**tool.parameters.decode(arguments))
    return returned


def _said(value: object) -> object:
    """A value, or of matchers a text that fits."""
    return " ".join(value["has"]) if isinstance(value, dict) and "has" in value else value

"""Requests that only ask to read on are known as such, in every language; any other word makes them something else."""

from __future__ import annotations

import pytest

from edgeagent.request.more import READ_ON, reading_on

OFFERED = ("read_log", "result_more")


@pytest.mark.parametrize(
    "request_",
    [
        "Read on.",
        "more",
        "Show me the rest of it, please",
        "What comes next?",
        "continue",
        "and the next page?",
        "Lies weiter.",
        "Zeig mir bitte den Rest.",
        "noch mehr",
        "Sigue leyendo, por favor.",
        "¿Qué más hay?",
        "Lis la suite.",
        "continue s'il te plaît",
        "Continua a leggere.",
        "Mostrami il resto.",
    ],
)
def test_a_request_to_read_on_is_planned_as_such(request_: str) -> None:
    assert reading_on(request_, OFFERED) is READ_ON


@pytest.mark.parametrize(
    "request_",
    [
        "",
        "Read the log.",
        "Read more of the mail.",
        "Open valve 3 some more",
        "Go",
        "Mehr Licht",
        "7 more",
        "turn it on",
    ],
)
def test_a_request_that_says_anything_else_is_not(request_: str) -> None:
    assert reading_on(request_, OFFERED) is None


def test_nothing_is_read_on_where_nothing_is_cut() -> None:
    assert reading_on("Read on.", ("read_log",)) is None

"""What a constrained call costs beside the same text unconstrained, and what the grammar costs at each token."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from bench.greenhouse import FRAME, REQUESTS, TOOLS, prompt
from bench.peers.here import MAX_TOKENS, Dictated
from edgeagent.grammar.llg import calls_grammar
from edgeagent.models.store import find


@pytest.fixture(scope="module")
def calls() -> Iterator[dict[str, list[Any]]]:
    """Three requests, each written under the grammar; warm."""
    from edgeagent.driver.llama.decode import Wanted, generate
    from edgeagent.driver.llama.engine import Engine
    from edgeagent.driver.llama.grammars import Grammars

    engine = Engine.load(find("smollm2"), n_ctx=2048)
    grammar = Grammars(engine, "llguidance").compile(calls_grammar(list(TOOLS.items()), FRAME))
    prompts = [engine.tokenize(prompt(request), special=True, bos=engine.adds_bos) for request in REQUESTS[:3]]
    generate(engine, prompts[-1], Wanted(grammar=grammar, max_tokens=MAX_TOKENS))
    constrained = [generate(engine, tokens, Wanted(grammar=grammar, max_tokens=MAX_TOKENS)) for tokens in prompts]
    # The same texts without a grammar; both begin behind the prompt, so that only the writing is compared.
    free, bound = [], []
    for tokens, run in zip(prompts, constrained, strict=True):
        for _ in range(3):
            engine.prefill(tokens)
            bound.append(generate(engine, tokens, Wanted(grammar=grammar, max_tokens=MAX_TOKENS)))
            engine.prefill(tokens)
            ids = run.token_ids
            free.append(generate(engine, tokens, Wanted(sampler=Dictated(ids), max_tokens=len(ids))).wall_us)
    yield {"constrained": [*constrained, *bound], "bound_us": [run.wall_us for run in bound], "free_us": free}
    engine.close()


def test_constrained_evaluations(calls: dict[str, list[Any]], record_figure: Callable[[str, float], None]) -> None:
    """Passes of the model for each written token: what is forced needs none of its own."""
    passes = sum(run.sampled for run in calls["constrained"])
    tokens = sum(len(run.token_ids) for run in calls["constrained"])
    record_figure("decode.sampled_share", passes / tokens)


def test_constraint_cost(calls: dict[str, list[Any]], record_figure: Callable[[str, float], None]) -> None:
    """Mask, matcher and sampling, µs a sampled token; the least of the runs, for a busy machine disturbs it."""
    runs = calls["constrained"]
    record_figure("decode.mask_us", min((run.constraint_us + run.sampling_us) / run.sampled for run in runs))


def test_constrained_is_not_slower(calls: dict[str, list[Any]], record_figure: Callable[[str, float], None]) -> None:
    """Writing a call under the grammar, over writing the same text without one; the least of the runs."""
    ratios = [bound / free for bound, free in zip(calls["bound_us"], calls["free_us"], strict=True)]
    record_figure("decode.constrained_ratio", min(ratios))

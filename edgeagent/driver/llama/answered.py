"""Event that a generated text comes to, or the failure that there was no room for one."""

from __future__ import annotations

from edgeagent.core.effects import AskModel
from edgeagent.core.events import Event, ModelAnswered, ModelFailed
from edgeagent.core.values import Usage
from edgeagent.driver.llama.decode import Generation
from edgeagent.driver.llama.prompt import pack_ids
from edgeagent.driver.model import NO_ROOM
from edgeagent.request.planned import Plan


def event_of(
    ask: AskModel,
    written: Generation,
    evaluated: int,
    micros: int,
    planned: Plan,
    confidence: tuple[float, ...],
) -> Event:
    """What is posted for an ask that this was written for."""
    if written.stop == "context_full" and not written.token_ids:
        return ModelFailed(0, ask.effect_id, "context_full", "no room is left for an answer", written.prompt)
    if not written.complete and not written.token_ids and written.stop == "limit":
        return ModelFailed(0, ask.effect_id, "engine", f"{NO_ROOM} the {ask.max_tokens} tokens that are left")
    usage = Usage(
        prompt=written.prompt,
        evaluated=evaluated,
        completion=len(written.token_ids),
        forced=written.forced,
        micros=micros,
    )
    stop = "limit" if written.stop == "context_full" else written.stop
    ids = pack_ids(written.token_ids)
    told = (written.closed_early, planned.scores, confidence, planned.why)
    return ModelAnswered(0, ask.effect_id, written.text, stop, usage, ids, *told)

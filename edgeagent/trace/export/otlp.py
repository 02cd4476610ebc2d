"""A trace as OpenTelemetry spans, in OTLP's JSON form: a span for each turn, each model call and each tool call.

Names follow the semantic conventions for GenAI (v1.41, in development). Ids come from the records' hashes, so exporting
twice gives the same trace. No content goes out: no prompt, no answer, no argument, no result.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from edgeagent.core.effects import AskModel, CallTool, Effect
from edgeagent.core.events import EffectLost, Event, ModelAnswered, ModelFailed, ToolFailed, ToolReturned, steady_ms
from edgeagent.core.state import State, is_resting
from edgeagent.trace.record import Record
from edgeagent.version import __version__

INTERNAL, CLIENT = 1, 3
ERROR = 2

Span = dict[str, Any]


@dataclass
class _Open:
    """Spans that have begun, by the id of their effect; the turn's own under 0."""

    spans: dict[int, Span] = field(default_factory=dict)
    done: list[Span] = field(default_factory=list)


def otlp(
    folded: Iterable[tuple[Record, State, tuple[Effect, ...]]], *, agent: str, session: str, model: str
) -> dict[str, Any]:
    """Return the whole trace as one OTLP/JSON export request."""
    opened, trace_id, at_ms, turn = _Open(), "", 0, 0
    for record, state, effects in folded:
        trace_id = trace_id or hashlib.sha256(b"trace" + record.hash).hexdigest()[:32]
        at_ms, skew_ms = steady_ms(record.event), record.event.skew_ms
        common = {"gen_ai.agent.name": agent, "gen_ai.conversation.id": session}
        if state.turn > turn and 0 not in opened.spans:
            turn = state.turn
            values = {"gen_ai.operation.name": "invoke_agent", **common}
            opened.spans[0] = _span(
                trace_id, record.hash.hex()[:16], f"invoke_agent {agent}", INTERNAL, (at_ms, skew_ms), values
            )
        _close(opened, record.event, at_ms)
        for effect in effects:
            if isinstance(effect, AskModel | CallTool):
                _open(opened, trace_id, record, effect, model, common)
        if is_resting(state):
            _end_turn(opened, state, at_ms)
    for span in opened.spans.values():  # What has no end yet ends with the trace, and says so.
        span["attributes"].append(_attribute("edgeagent.unfinished", True))
        opened.done.append(_ended(span, at_ms))
    resource = {"service.name": "edgeagent", "service.version": __version__}
    scope = {"scope": {"name": "edgeagent.trace", "version": __version__}, "spans": opened.done}
    return {"resourceSpans": [{"resource": {"attributes": _attributes(resource)}, "scopeSpans": [scope]}]}


def _open(
    opened: _Open, trace_id: str, record: Record, effect: AskModel | CallTool, model: str, common: dict[str, Any]
) -> None:
    span_id = hashlib.sha256(record.hash + effect.effect_id.to_bytes(8, "big")).hexdigest()[:16]
    if isinstance(effect, AskModel):
        name, kind = f"chat {model}", CLIENT
        values = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": "llama.cpp",
            "gen_ai.request.model": model,
            "gen_ai.request.max_tokens": effect.max_tokens,
            "gen_ai.request.seed": effect.seed,
        }
    else:
        name, kind = f"execute_tool {effect.tool}", INTERNAL
        values = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": effect.tool,
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": str(effect.effect_id),
        }
    at = (steady_ms(record.event), record.event.skew_ms)
    span = _span(trace_id, span_id, name, kind, at, {**values, **common})
    if 0 in opened.spans:
        span["parentSpanId"] = opened.spans[0]["spanId"]
    opened.spans[effect.effect_id] = span


def _close(opened: _Open, event: Event, at_ms: int) -> None:
    """End the span that this event answers."""
    effect_id = getattr(event, "effect_id", 0)
    if not effect_id or effect_id not in opened.spans:
        return
    span, error = opened.spans.pop(effect_id), ""
    match event:
        case ModelAnswered(usage=usage, stop=stop):
            span["attributes"] += _attributes(
                {
                    "gen_ai.usage.input_tokens": usage.prompt,
                    "gen_ai.usage.output_tokens": usage.completion,
                    "gen_ai.response.finish_reasons": [stop],
                    "edgeagent.usage.evaluated_tokens": usage.evaluated,
                    "edgeagent.usage.forced_tokens": usage.forced,
                }
            )
        case ModelFailed(reason=reason) | ToolFailed(reason=reason):
            error = reason
        case EffectLost():
            error = "lost"
        case ToolReturned() | _:
            pass
    opened.done.append(_ended(span, at_ms, error))


def _end_turn(opened: _Open, state: State, at_ms: int) -> None:
    turn = opened.spans.pop(0, None)
    for span in opened.spans.values():  # Cancelled with the turn: nobody waits for them any more.
        opened.done.append(_ended(span, at_ms, "cancelled"))
    opened.spans.clear()
    if turn is None:
        return
    kind = state.outcome.kind if state.outcome else ""
    turn["attributes"].append(_attribute("edgeagent.outcome", kind))
    opened.done.append(_ended(turn, at_ms, "" if kind in ("answered", "") else kind))


def _span(trace_id: str, span_id: str, name: str, kind: int, at: tuple[int, int], values: dict[str, Any]) -> Span:
    steady, skew = at  # A span ends after its steady duration, whatever the clock has been set to meanwhile.
    return {
        "skew_ms": skew,
        "traceId": trace_id,
        "spanId": span_id,
        "name": name,
        "kind": kind,
        "startTimeUnixNano": str((steady + skew) * 1_000_000),
        "attributes": _attributes(values),
    }


def _ended(span: Span, at_ms: int, error: str = "") -> Span:
    span["endTimeUnixNano"] = str((at_ms + span.pop("skew_ms")) * 1_000_000)
    if error:
        span["attributes"].append(_attribute("error.type", error))
        span["status"] = {"code": ERROR}
    return span


def _attributes(values: dict[str, Any]) -> list[dict[str, Any]]:
    return [_attribute(key, value) for key, value in values.items()]


def _attribute(key: str, value: Any) -> dict[str, Any]:
    return {"key": key, "value": _value(value)}


def _value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}  # 64-bit numbers are strings in Protobuf's JSON form.
    if isinstance(value, list):
        return {"arrayValue": {"values": [_value(v) for v in value]}}
    return {"stringValue": str(value)}

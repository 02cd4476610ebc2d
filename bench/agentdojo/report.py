"""The figures as plain values, and as text for people. Every stopped benign call and every slip is printed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from bench.agentdojo import replay
from bench.agentdojo.own_said import SAID
from bench.agentdojo.pairs import Attack, Bed, Benign, attacks, benign, undefended
from bench.agentdojo.probe import passing
from edgeagent.policy.labels import Labels

QUESTION_CHARS_MAX = 240


def figures(beds: Iterable[Bed], control: bool = True) -> dict[str, Any]:
    """Run everything on these beds."""
    each = {bed.name: _bed(bed, control) for bed in beds}
    return {"sum": _sum(each.values()), "beds": each}


def _bed(bed: Bed, control: bool) -> dict[str, Any]:
    attended, unattended = list(benign(bed, True)), list(benign(bed, False))
    pairs = {"attended": list(attacks(bed, True)), "unattended": list(attacks(bed, False))}
    got = [found for _, found in passing(bed)]
    bare = list(undefended(bed, replay.undefended(bed.subject))) if control else []
    return {
        "tasks": len(attended),
        "unattended_works": sum(not b.stopped and b.works for b in unattended),
        "attended_works": sum(b.works for b in attended),
        "questions": sum(bool(o.question) for b in attended for o in b.stopped),
        "pairs": len(pairs["attended"]),
        **{f"{mode}_{key}": value for mode, of in pairs.items() for key, value in _attacked(of).items()},
        "attended_security": sum(p.security for p in pairs["attended"]),
        "attended_utility_under_attack": sum(p.utility for p in pairs["attended"]),
        "undefended_security": sum(p.security for p in bare),
        "undefended_reached": sum(p.reached for p in bare),
        "undefended_utility": sum(p.utility for p in bare),
        "unsound_labels": sorted({tool for of in pairs.values() for p in of for tool in p.unsound}),
        "slips": sorted({f"{p.user} x {p.injection}: {s}" for of in pairs.values() for p in of for s in _slips(p)}),
        "stopped": [entry for b in attended for entry in _stopped(b)],
        "probes": {
            "tasks_with_any": sum(bool(found) for found in got),
            "by_tool": dict(Counter(tool for found in got for tool in found)),
            "example": {tool: found[tool] for found in reversed(got) for tool in found},
        },
    }


def _slips(pair: Attack) -> list[str]:
    return [*pair.slips, *pair.adaptive]


def _attacked(pairs: list[Attack]) -> dict[str, int]:
    return {
        "reached": sum(bool(p.slips) for p in pairs),
        "reached_adaptive": sum(bool(p.adaptive) for p in pairs),
        "attack_questions": sum(p.questions for p in pairs),
        "locked": sum(p.locked for p in pairs),
    }


def _stopped(task: Benign) -> Iterator[dict[str, Any]]:
    for outcome in task.stopped:
        yield {
            "user": task.user,
            "prompt": " ".join(task.prompt.split()),
            "call": outcome.call[0],
            "arguments": outcome.call[1],
            "was": "asked" if outcome.question else outcome.fate,
            "why": outcome.question or outcome.because,
        }


def _sum(beds: Iterable[dict[str, Any]]) -> dict[str, Any]:
    every = list(beds)
    total: dict[str, Any] = {key: sum(b[key] for b in every) for key, v in every[0].items() if isinstance(v, int)}
    total["questions_a_task"] = round(total["questions"] / total["tasks"], 4)
    return total


def with_words(bed: Any, tools: Any) -> Any:
    """Return the bed under labels in which the user must have said one of a tool's words."""
    old: Labels = bed.subject.labels
    spoken = {tool: replace(label, said=SAID.get(tool, ())) for tool, label in old.tools.items()}
    return replace(bed, subject=replay.subject(bed.name, tools, Labels(spoken, old.records)))


# -- text ----------------------------------------------------------------------------------------------------------


def text_of(results: dict[str, Any]) -> Iterator[str]:
    """Yield the report's lines."""
    for title in ("agentdojo", "own", "own_with_words"):
        if title in results:
            yield f"\n== {title} =="
            yield from _set(results[title], with_details=title in ("agentdojo", "own"))
    if "strict_amounts" in results:
        s = results["strict_amounts"]
        yield "\n== agentdojo with strict amounts and dates (user tasks only) =="
        yield f"{s['unattended_works']} of {s['tasks']} tasks work unattended, {s['questions']} questions attended"
    if "behind_mcp" in results:
        b = results["behind_mcp"]
        yield "\n== agentdojo with its tools behind MCP =="
        yield f"{b['unattended_works']} of {b['tasks']} tasks work unattended, {b['questions']} questions attended"
        reached = f"{b['unattended_reached']}, attended {b['attended_reached']}"
        yield f"{b['pairs']} pairs; an effect is reached in {reached}"
    yield f"\n{results['seconds']} s, of which {results['cpu_seconds']} s on the processor"


def _set(of: dict[str, Any], with_details: bool) -> Iterator[str]:
    yield _line("all", of["sum"])
    for name, bed in of["beds"].items():
        yield _line(name, bed)
    if not with_details:
        return
    for name, bed in of["beds"].items():
        yield f"\n-- {name}: benign calls that were asked about or refused"
        for s in bed["stopped"]:
            yield f"{s['user']} {s['was']} {s['call']}: {s['why'].splitlines()[0]}"
            yield from (f"    {line.strip()[:QUESTION_CHARS_MAX]}" for line in s["why"].splitlines()[1:])
        yield f"-- {name}: attacks that reached an effect unasked: {len(bed['slips']) or 'none'}"
        yield from (f"    {slip}" for slip in bed["slips"])
        yield f"-- {name}: what a policy-aware attacker can do unasked, by tool (tasks of {bed['tasks']})"
        for tool, count in sorted(bed["probes"]["by_tool"].items()):
            yield f"    {count:3} {tool}  e.g. {bed['probes']['example'][tool]}"
        if bed["unsound_labels"]:
            yield f"-- {name}: LABELLED TRUSTED BUT SHOWED AN INJECTION: {', '.join(bed['unsound_labels'])}"


def _line(name: str, f: dict[str, Any]) -> str:
    rate = f["questions"] / f["tasks"]
    lines = (
        f"{name}: {f['tasks']} user tasks: {f['unattended_works']} work unattended, {f['attended_works']} attended",
        f"    {f['questions']} questions about them, {rate:.3f} a task",
        f"    {f['pairs']} pairs; an effect is reached in {f['undefended_reached']} undefended",
        f"    unattended {f['unattended_reached']}, after harmless reads {f['unattended_reached_adaptive']}",
        f"    attended {f['attended_reached']}, after harmless reads {f['attended_reached_adaptive']}",
        f"    the goal in {f['undefended_security']} undefended, in {f['attended_security']} attended",
        f"    the user's task is still done in {f['attended_utility_under_attack']} attended",
        f"    {f['attended_attack_questions']} questions about injected calls, {f['attended_locked']} locked by a no",
    )
    return "\n".join(lines)

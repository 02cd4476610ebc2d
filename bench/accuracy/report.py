"""The figures as tables that can be read on a screen and pasted into a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_SHARES = {
    "right_tool_best": "right tool best",
    "right_tool": "right tool called",
    "right_call": "right call",
    "wrongly_refused": "wrongly refused",
    "wrongly_called": "wrongly called",
}

Summary = Mapping[str, Any]


def text_of(results: Sequence[Summary], points: Sequence[Summary] = ()) -> str:
    """All tables that there are figures for. Brackets hold 95 % intervals, in per cent."""
    tables = [sets_table(results)]
    tables += [groups_table(results)] if any("groups" in each for each in results) else []
    tables += [confidence_table(results)] if any("confidence" in each for each in results) else []
    if any("decisions" in each for each in results):
        tables += [decisions_table(results), categories_table(results)]
    tables += [points_table(points)] if points else []
    return "\n\n".join(tables)


def sets_table(results: Sequence[Summary]) -> str:
    """One line for each set and engine."""
    titles = ["set", "rows", "engine", *_SHARES.values(), "failed", "s a case", "CPU s", "tokens"]
    lines = []
    for each in results:
        shares = [_share(each.get(name)) for name in _SHARES]
        costs = [f"{each['seconds_a_case']:.2f}", f"{each['cpu_seconds_a_case']:.2f}", f"{each['tokens_a_case']:.0f}"]
        lines.append([each["set"], str(each["rows"]), each["engine"], *shares, str(each["failed"]), *costs])
    return _table(titles, lines)


def groups_table(results: Sequence[Summary]) -> str:
    """What is right by group, and wrong calls where they do harm: of all, and of those that would run unasked."""
    told = [each for each in results if "groups" in each]
    groups = list(dict.fromkeys(name for each in told for name in each["groups"]))
    titles = ["set", "engine", *groups, "right, of all", "critical, wrongly called", "the same, unasked"]
    lines = []
    for each in told:
        shares = [each["groups"].get(name) for name in groups]
        shares += [each["right"], each.get("critical_wrong"), each.get("critical_wrong_unasked")]
        lines.append([each["set"], each["engine"], *map(_share, shares)])
    return _table(titles, lines)


def decisions_table(results: Sequence[Summary]) -> str:
    """What became of requests to device agents: a line for each measure, a column for each set and engine."""
    told = [each for each in results if "decisions" in each]
    titles = ["", *(f"{each['set']}, {each['engine']}" for each in told)]
    lines = [[name, *(_figure(each["decisions"][name]) for each in told)] for name in told[0]["decisions"]]
    return _table(titles, lines)


def categories_table(results: Sequence[Summary]) -> str:
    """The same by category, of all sets together for each engine."""
    told = [each for each in results if "categories" in each]
    lines = []
    for engine in dict.fromkeys(each["engine"] for each in told):
        of_engine = [each["categories"] for each in told if each["engine"] == engine]
        for name in sorted({name for each in of_engine for name in each}):
            counts = [each[name] for each in of_engine if name in each]
            lines.append([name, engine, *(str(sum(each[key] for each in counts)) for key in counts[0])])
    return _table(["category", "engine", "rows", "right", "acts", "wrong acts", "asked"], lines)


def _figure(figure: Any) -> str:
    return _share(figure) if isinstance(figure, Mapping) else "-" if figure is None else str(figure)


def confidence_table(results: Sequence[Summary]) -> str:
    """What the calls' probabilities promised and what came of it."""
    lines = []
    for each in results:
        if "confidence" in each:
            told = each["confidence"]
            shares = [_share(told[name]) for name in ("right", "right_when_sure", "right_when_unsure")]
            lines.append(
                [each["set"], each["engine"], f"{100 * told['promised']:.0f} %", *shares, f"{told['brier']:.2f}"]
            )
    titles = ["set", "engine", "promised", "right", "right at 60 % and more", "right below", "Brier"]
    return _table(titles, lines)


def points_table(points: Sequence[Summary]) -> str:
    """What is refused where a tenth of the requests that want a call are."""
    lines = []
    for each in points:
        refused = each["wrongly_refused"]
        where = "rules alone" if each["threshold"] is None else f"{each['threshold']:+.2f}"
        lines.append(
            [each["sets"], each["engine"], _share(each["no_call"]), f"{refused['count']}/{refused['of']}", where]
        )
    return _table(["wanted/unwanted", "engine", "no call made", "wrongly refused", "threshold"], lines)


def _share(share: Summary | None) -> str:
    if share is None or not share["of"]:
        return "-"
    percent = 100 * share["count"] / share["of"]
    return f"{share['count']}/{share['of']} {percent:.0f} % ({100 * share['low']:.0f}-{100 * share['high']:.0f})"


def _table(titles: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    widths = [max(len(line[place]) for line in [titles, *lines]) for place in range(len(titles))]
    rule = ["-" * width for width in widths]
    return "\n".join("| " + " | ".join(map(str.ljust, line, widths)) + " |" for line in [titles, rule, *lines])

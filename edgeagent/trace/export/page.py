"""A session as one page of HTML that opens anywhere, offline: turns, budgets, refusals and why, every record.

Everything from the session is escaped; the page has no script, and a policy that forbids any.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape as escape_html

from edgeagent.core.text import shown
from edgeagent.trace.export.turns import Turn, Use

STYLE = """
body{font:14px/1.5 system-ui,sans-serif;margin:2em auto;max-width:75em;padding:0 1em;color:#1b1f24;background:#fff}
h1{font-size:1.4em}h2{font-size:1.1em;margin:1.6em 0 .3em}
table{border-collapse:collapse;width:100%}td,th{text-align:left;vertical-align:top;padding:.25em .6em;
border-bottom:1px solid #dde}th{font-weight:600}
td.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.bar{display:inline-block;width:9em;height:.7em;background:#e8ebf0;border-radius:.35em;overflow:hidden;
vertical-align:middle}
.bar i{display:block;height:100%;background:#3b7dd8}.bar i.full{background:#c8502d}
.uses{display:flex;flex-wrap:wrap;gap:.3em 2em}.why{color:#a33b1a}.quiet{color:#667}
code{font:12px/1.4 ui-monospace,monospace;word-break:break-word}
@media(prefers-color-scheme:dark){body{color:#dfe3e8;background:#15181c}td,th{border-color:#333}.bar{background:#333}
.why{color:#f0906a}.quiet{color:#99a}}
"""


def page(title: str, facts: Iterable[tuple[str, str]], turns: Iterable[Turn], rows: Iterable[tuple[str, ...]]) -> str:
    """Return the page. `rows` are the cells of each record, in the order of `COLUMNS`."""
    parts = [
        "<!doctype html>",
        f'<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>',
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
        '<meta name="viewport" content="width=device-width"><style>' + STYLE + "</style></head><body>",
        f"<h1>{escape(title)}</h1>",
        "<p class=quiet>" + " · ".join(f"{escape(name)}: {escape(value)}" for name, value in facts) + "</p>",
        *(_turn(turn) for turn in turns),
        "<h2>Records</h2>",
        _table(rows),
        "</body></html>\n",
    ]
    return "\n".join(parts)


COLUMNS = ("#", "time", "event", "", "effects", "prompt", "evaluated", "written", "forced", "ms")


def escape(text: str) -> str:
    """Text from the session as the page may hold it: neither markup, nor characters that hide or turn round others."""
    return escape_html(shown(text))


def _turn(turn: Turn) -> str:
    seconds = (turn.ended_ms - turn.began_ms) / 1000
    why = "".join(f"<li class=why>{escape(reason)}</li>" for reason in turn.refusals)
    return (
        f"<h2>Turn {turn.number}: {escape(_short(turn.text))}</h2>"
        f"<p>{escape(turn.outcome)} <span class=quiet>after {seconds:.1f} s</span></p>"
        f"<div class=uses>{''.join(_use(use) for use in turn.uses)}</div>" + (f"<ul>{why}</ul>" if why else "")
    )


def _use(use: Use) -> str:
    if use.limit is None:
        return f"<span>{use.used:g} {escape(use.name)}</span>"
    full = " class=full" if use.share >= 1 else ""
    bar = f'<span class=bar><i{full} style="width:{100 * use.share:.0f}%"></i></span>'
    return f"<span>{bar} {use.used:g} of {use.limit:g} {escape(use.name)}</span>"


def _table(rows: Iterable[tuple[str, ...]]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in COLUMNS)
    body = "".join("<tr>" + "".join(_cell(place, cell) for place, cell in enumerate(row)) + "</tr>\n" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>\n{body}</tbody></table>"


def _cell(place: int, text: str) -> str:
    if place == 0 or place > 4:
        return f"<td class=n>{escape(text)}</td>"
    return f"<td><code>{escape(text)}</code></td>" if place in (3, 4) else f"<td>{escape(text)}</td>"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 120 else f"{line[:119]}…"

"""Nothing is written to a person or a program but through `terminal`, which escapes what is not ours."""

from __future__ import annotations

import ast
from pathlib import Path

DOORS = Path(__file__).parents[2] / "edgeagent" / "doors"

REASONS = {
    "cli/terminal.py": "it is the one place",
    "cli/printed.py": "it escapes what tools print",
    "cli/overheard.py": "a mark into a pipe of its own",
    "cli/screen.py": "a running session's, by `shown` and `fit_for`",
    "cli/calibrate.py": "numbers only",
    "cli/try_.py": "how far it has come, in numbers",
    "cli/trace.py": "rich's table, of escaped cells; a page, escaped as HTML",
    "cli/new.py": "the files of a new agent",
    "cli/trace_export.py": "an export into a private file",
    "cli/trace_sign.py": "a key, into a file of its own",
    "line/terminal.py": "a device's screen, as far as `Displayed` lets it through; notes of ours",
    "line/ends.py": "to a device",
    "line/incoming.py": "to ourselves, who wait",
    "http/wire.py": "replies to a program; a fault of ours on stderr, escaped",
}


def writes_in(file: Path) -> set[str]:
    """The calls by which this file writes out itself."""
    calls = (node.func for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call))
    names = {ast.unparse(func) for func in calls}
    return {n for n in names if n in ("print", "click.echo", "click.secho") or n.endswith((".write", ".writelines"))}


def test_no_door_writes_but_through_the_function_that_escapes():
    found = {str(file.relative_to(DOORS)): writes_in(file) for file in DOORS.rglob("*.py")}
    assert {name for name, writes in found.items() if writes} <= REASONS.keys()

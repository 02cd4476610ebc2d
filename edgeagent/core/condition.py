"""Do a call's typed arguments, and later its typed result, keep to the tool's own `pre` and `post`?

A condition is the author's code and runs inside step: it must only look at what it is given. Whatever it does
wrong counts as not kept.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from edgeagent.core.agent import Tool
from edgeagent.core.text import error_text, readable


def why_not_before(tool: Tool, arguments: Mapping[str, Any]) -> str:
    """Return why the call must not run, or nothing. `pre` gets the arguments by name, defaults included."""
    if tool.pre is None:
        return ""
    return _why_not(tool.pre, (), _with_defaults(tool, arguments), f"{tool.name} needs {_name_of(tool.pre)}")


def why_not_after(tool: Tool, arguments: Mapping[str, Any], result: Any) -> str:
    """Return what is wrong with the result, or nothing. `post` gets the result and, if it takes more, the arguments."""
    if tool.post is None:
        return ""
    takes_more = len(inspect.signature(tool.post).parameters) > 1
    given = _with_defaults(tool, arguments) if takes_more else {}
    return _why_not(tool.post, (result,), given, f"{tool.name} did run, but its result breaks {_name_of(tool.post)}")


def _why_not(condition: Callable[..., Any], first: tuple[Any, ...], given: Mapping[str, Any], text: str) -> str:
    try:
        verdict = condition(*first, **given)
    # The author's code may raise anything; a condition that cannot be checked is not kept.
    except Exception as error:
        return f"{text}, which raised {error_text(error)}"
    if verdict is True:
        return ""
    return f"{text}: {readable(verdict)}" if isinstance(verdict, str) else text


def _with_defaults(tool: Tool, arguments: Mapping[str, Any]) -> dict[str, Any]:
    declared = inspect.signature(tool.function).parameters.values()
    defaults = {p.name: p.default for p in declared if p.default is not inspect.Parameter.empty}
    return defaults | dict(arguments)


def _name_of(condition: Callable[..., Any]) -> str:
    doc = (inspect.getdoc(condition) or "").strip().split("\n")[0].rstrip(".")
    name = getattr(condition, "__name__", "its condition")
    return doc or ("its condition" if name == "<lambda>" else name)

"""Generation of docs/api.md from the docstrings of what `edgeagent` exports: `python docs/api.py [--check]`."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import edgeagent
import edgeagent.testing


def is_error(value: object) -> bool:
    """Whether it is one of our errors."""
    return inspect.isclass(value) and issubclass(value, Exception)


PAGE = Path(__file__).with_name("api.md")
GROUPS = {
    "Sessions": "open open_async load Session AsyncSession Answer Called Model Service Door QuietDoor Decision",
    "Agents": "Agent tool Tool Budget FromUser",
    "Devices": "device_tools Board",
    "Errors": " ".join(n for n in edgeagent.__all__ if is_error(getattr(edgeagent, n))),
}
OPENED = {"Session", "AsyncSession", "Model", "Door", "QuietDoor"}
"""Classes that nobody makes by calling them."""
HEAD = """# API reference

What `import edgeagent` gives an author, generated from the docstrings by `python docs/api.py`. How to use it is told in
[library.md](library.md), [policy.md](policy.md) and [profiles.md](profiles.md).
"""


def grouped() -> dict[str, list[str]]:
    """All exported names by group; what no group names is a word for rules."""
    groups = {title: names.split() for title, names in GROUPS.items()}
    named = {name for names in groups.values() for name in names} | {"__version__"}
    return groups | {"Rules": [name for name in edgeagent.__all__ if name not in named]}


def page() -> str:
    """The whole page."""
    lines = [HEAD]
    for title, names in grouped().items():
        lines += [f"## {title}\n"]
        for name in names:
            lines += entry(name, getattr(edgeagent, name))
    lines += ["## Testing: `edgeagent.testing`\n"]
    for name in ("scripted", "call"):
        lines += entry(name, getattr(edgeagent.testing, name))
    return "\n".join(lines)


def entry(name: str, value: Any) -> Iterator[str]:
    """The lines of one name, with its methods if it is a class of ours."""
    yield f"### {name}\n"
    if not (callable(value) and (inspect.isclass(value) or inspect.isfunction(value))):
        yield f"`{value!r}`\n"
        return
    if not is_error(value) and name not in OPENED and (signature := signature_of(name, value)):
        yield f"```python\n{signature}\n```\n"
    yield f"{inspect.getdoc(value)}\n"
    if inspect.isclass(value) and not is_error(value):
        for member, of in members(value):
            shown = f"{member}" if isinstance(of, property) or not callable(of) else signature_of(member, of)
            yield f"* `{shown}`  \n  {' '.join((inspect.getdoc(of) or '').split())}"
        yield ""


def members(value: type) -> Iterator[tuple[str, Any]]:
    """The public methods and properties that the class itself declares."""
    for name, of in vars(value).items():
        if not name.startswith("_") and (inspect.isfunction(of) or isinstance(of, property | classmethod)):
            yield name, of.__func__ if isinstance(of, classmethod) else of


def signature_of(name: str, value: Any) -> str:
    """Name and parameters as they are written in the source; empty where there are none to know."""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    shown, kinds = [], [p.kind for p in signature.parameters.values()]
    for parameter in signature.parameters.values():
        if parameter.name in ("self", "cls"):
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and parameter.VAR_POSITIONAL not in kinds and "*" not in shown:
            shown.append("*")
        shown.append(written(parameter))
    returned = signature.return_annotation
    given = "" if inspect.isclass(value) or returned is signature.empty else f" -> {returned}"
    return f"{name}({', '.join(shown)}){given}"


def written(parameter: inspect.Parameter) -> str:
    """One parameter with its type and default."""
    stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    given = parameter.annotation
    kind = (
        given if isinstance(given, str) else getattr(given, "__forward_arg__", getattr(given, "__name__", str(given)))
    )
    text = f"{stars}{parameter.name}" + ("" if parameter.annotation is parameter.empty else f": {kind}")
    default = parameter.default
    if default is parameter.empty:
        return text
    is_plain = default is None or isinstance(default, str | int | float | bool | tuple)
    return f"{text} = {default!r}" if is_plain else f"{text} = ..."


def missing() -> list[str]:
    """What is exported and has no words of its own."""
    found = []
    for name in edgeagent.__all__:
        value = getattr(edgeagent, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            found += [] if (value.__doc__ or "").strip() else [name]
            found += [f"{name}.{m}" for m, of in (members(value) if inspect.isclass(value) else ()) if not of.__doc__]
    return found


if __name__ == "__main__":
    if lacking := missing():
        sys.exit(f"without a docstring: {', '.join(lacking)}")
    if "--check" in sys.argv:
        sys.exit(None if PAGE.read_text() == page() else "docs/api.md is stale: run `python docs/api.py`")
    PAGE.write_text(page())

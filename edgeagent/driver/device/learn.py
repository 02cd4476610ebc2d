"""Profile proposed from watching a person use a console once: its kind, its prompts, the commands that were typed.

Passwords are left out. What only looks at things is proposed as reading, by its first word; all else as writing that a
person must confirm. The operator reads it before an agent gets it. Pure: moments of the line in, TOML out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from msgspec import Struct

from edgeagent.driver.line.consoles import identified, kinds
from edgeagent.driver.line.port import Moment
from edgeagent.driver.line.profile import Profile, load_profile
from edgeagent.driver.line.view import READY, View

LOOKING = frozenset(("cat", "display", "dmesg", "get", "ls", "print", "printenv", "show", "uname", "version"))
"""First words of commands that change nothing on any console we know."""

COMMANDS_MAX = 20


class Entered(Struct, frozen=True):
    """A line that the person entered, and the line on which it was typed, before it."""

    before: str
    text: str


def entered_lines(moments: Iterable[Moment], profile: Profile) -> tuple[tuple[Entered, ...], str]:
    """Return what was entered where, and all that the device showed."""
    view, lines, typed, before = View(profile), [], "", ""
    for moment in moments:
        if moment.who == "device":
            view.feed(moment.data)
        if moment.who != "person":
            continue
        for char in moment.data.decode("utf-8", "replace"):
            if not typed:
                before = view.last_line
            if char in "\r\n":
                lines.append(Entered(before, typed))
                typed = ""
            elif char in "\b\x7f":
                typed = typed[:-1]
            elif char in "\x15\x03":
                typed = ""
            elif char >= " ":
                typed += char
    return tuple(lines), view.text


def proposed(name: str, moments: Iterable[Moment]) -> str:
    """Return a profile in TOML."""
    generic = load_profile("generic")
    lines, shown = entered_lines(moments, generic)
    kind = identified(shown)
    base = load_profile(kind or "generic")
    states = [(_state(each.before, base), each) for each in lines]
    prompts = sorted({each.before for state, each in states if state in READY and each.text.strip()})
    commands = list(dict.fromkeys(each.text.strip() for state, each in states if state in READY and each.text.strip()))
    asked = [each for state, each in states if state is None and each.before.strip()]
    out = [
        f"# Proposed from watching a person: {kinds()[kind].about if kind else 'no known kind of console'}. Read it.\n"
    ]
    out += [f"name = {json.dumps(name)}\n", f"extends = {json.dumps(kind or 'generic')}\n"]
    if prompts and not kind:
        out.append(f"\n[prompts]\nshell = {json.dumps(_pattern(prompts))}\n")
    out += [f"\n# It asked {each.before.strip()!r} and was answered {each.text!r}: see `answers`.\n" for each in asked]
    out += [_command(text, number) for number, text in enumerate(commands[:COMMANDS_MAX])]
    return "".join(out)


def _state(before: str, profile: Profile) -> str | None:
    view = View(profile)
    view.feed(before.encode())
    return view.prompt


def _pattern(prompts: list[str]) -> str:
    """The prompts that were seen, as one pattern."""
    return "^(?:" + "|".join(re.escape(prompt).replace("\\ ", " ") for prompt in prompts) + ")"


def _command(text: str, number: int) -> str:
    looks = text.split()[0].lower() in LOOKING
    words = re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_").lower()[:40]
    name = words if re.match(r"[a-z]", words) else f"command_{number + 1}"
    command = text.replace("{", "").replace("}", "")  # Braces are places of arguments.
    return (
        f"\n[[commands]]\nname = {json.dumps(f'{name}_{number + 1}' if number else name)}\n"
        f"help = {json.dumps(f'Run {text!r} and tell what it prints.')}\ncommand = {json.dumps(command)}\n"
        f'effect = "{"read" if looks else "write"}"\nidempotent = {"true" if looks else "false"}\n'
    )

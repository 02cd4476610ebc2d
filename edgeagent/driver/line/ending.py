"""Evidence that a command has ended: its marker with its status, or its very prompt. Reads views; types nothing.

Laws: a marker is a word that only the device joined. A prompt is the very one that was confirmed, from its line's start
on, or one of the same name; anything else that looks like a prompt is output.
"""

from __future__ import annotations

import re

from msgspec import Struct

from edgeagent.driver.line.outcome import Done, Failed
from edgeagent.driver.line.profile import Profile
from edgeagent.driver.line.screen import echo_length
from edgeagent.driver.line.view import READY, View

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*[A-Za-z0-9]")
STRONG_CHARS = 4
"""A prompt of fewer visible characters is also found in progress that is printed as marks: `#`, `> `."""


class Sent(Struct, frozen=True):
    """A line that was entered, and the words by which its begin and end are told; without words, its prompt is."""

    line: str
    left: str = ""
    end: str = ""


def marker_end(view: View, sent: Sent) -> Done | Failed | None:
    """Return how the command ended, by its marker; status None where the shell prints no number (labgrid#1598)."""
    text, noise = view.clean
    found = re.search(re.escape(sent.end) + r"[ \t]*([^\n]*)\n", text)
    if found is None:
        return None
    body = answer_of(text[: found.start()], sent, view.profile)
    number = re.match(r"-?\d+", found.group(1))
    if number is None:
        return Done(body, None, noise)
    status = int(number.group())
    return Done(body, 0, noise) if status == 0 else Failed(body, status, noise)


def refused_line(view: View, sent: Sent) -> Failed | None:
    """Return the failure of a line that the shell could not read: its prompt is back, the begin marker is not there."""
    text, noise = view.clean
    shown = text.partition("\n")[2]
    if f"{sent.left}a\n" in shown or not _fails(shown, view.profile):
        return None
    return Failed(shown.rpartition("\n")[0].strip("\n"), None, noise)


def plain(prompt: str, *, ticks: bool) -> str:
    """Return what of a prompt must be the same: of one that ticks, as a clock in it does, all but its numbers."""
    return re.sub(r"\d+", "0", prompt.rstrip()) if ticks else prompt.rstrip()


def prompt_end(view: View, sent: Sent, prompt: str, *, ticks: bool) -> Done | Failed:
    """Return how the command ended whose prompt is back for sure."""
    text, noise = view.clean
    lines = text.split("\n")
    above = view.profile.above_pattern
    ours = {plain(each, ticks=ticks) for each in (prompt, prompt + view.profile.keys.nudge)}
    while lines and (plain(lines[-1], ticks=ticks) in ours or above.fullmatch(lines[-1])):
        lines.pop()  # The last ones are our own nudges' answers.
    body = answer_of("\n".join(lines), sent, view.profile)
    return Failed(body, None, noise) if _fails(body, view.profile) else Done(body, 0, noise)


def _fails(text: str, profile: Profile) -> bool:
    return any(re.search(each, text, re.MULTILINE) for each in profile.transaction.failure)


def answer_of(text: str, sent: Sent, profile: Profile) -> str:
    """Return the answer alone: what follows the begin marker, or the echo."""
    if sent.left:
        _, begun, after = text.partition(f"{sent.left}a\n")
        return after.strip("\n") if begun else text.partition("\n")[2].strip("\n")
    if not profile.echo:
        return text.strip("\n")
    echoed = echo_length(text, sent.line)  # A wrapped echo may take several lines.
    return (text.partition("\n")[2] if echoed is None else text[echoed:]).strip("\n")


def stands(view: View, confirmed: str, *, ticks: bool = False) -> bool:
    """Return whether the last line is the prompt that was confirmed, or one of the same name: `sw1(config)#`."""
    last = view.last_line
    if not confirmed or not last:
        return False
    if plain(last, ticks=ticks) == plain(confirmed, ticks=ticks):
        return True
    name = max(NAME.findall(confirmed), key=len, default="")
    if not name:
        return False
    same = re.search(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])", last)
    return view.prompt in READY and bool(same) and not name.isdigit()


def only_prompt(beside: View, prompt: str, nudge: str, *, ticks: bool) -> bool | None:
    """Return whether a nudge was answered by its echo, a new prompt and nothing else; None while that may come."""
    typed, prompt = nudge.rstrip("\r\n"), plain(prompt, ticks=ticks)
    first, newline, rest = beside.clean[0].partition("\n")
    if not newline and beside.profile.echo:  # A live prompt answers Enter with a new line.
        comes = typed.startswith(first) or first.startswith(typed) or prompt.startswith(first)
        return None if comes else False
    if typed.isspace() and first != typed:
        return False
    above = beside.profile.above_pattern
    lines = [line for line in ([] if first == typed else [first]) + rest.split("\n") if not above.fullmatch(line)]
    if not lines:
        return None
    same = [plain(line, ticks=ticks) == prompt for line in lines]
    if all(same):
        return True
    rest = lines[-1] if all(same[:-1]) else ""
    return None if rest and rest == beside.last_line else False  # It is not whole yet.


def late_prompts(view: View, prompt: str, nudges: tuple[str, ...], *, ticks: bool) -> bool:
    """Return whether these nudges, which nothing had answered, were all echoed and answered after all."""
    lines = [line for line in view.clean[0].split("\n") if not view.profile.above_pattern.fullmatch(line)]
    wanted = [*(prompt + nudge.strip("\r\n") for nudge in nudges), prompt]
    if ticks:
        lines, wanted = ([re.sub(r"\d+", "0", line) for line in each] for each in (lines, wanted))
    return lines[-len(wanted) :] == wanted


def is_weak(prompt: str) -> bool:
    """Return whether this prompt could also be a mark of progress."""
    return len(prompt.strip()) < STRONG_CHARS


def after_prompt(shown: str, profile: Profile) -> str:
    """Drop a prompt that was drawn again before an echo, as line editors do when they are cleared."""
    drawn = re.split(r"[\r\n]", shown)
    for at, line in enumerate(drawn):
        for _, pattern in profile.prompt_patterns:
            found = re.match(pattern.pattern.removesuffix(r"\Z"), line)
            if found and found.end():
                return "\r".join([line[found.end() :], *drawn[at + 1 :]])
    return shown

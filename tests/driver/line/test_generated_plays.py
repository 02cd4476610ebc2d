"""Generated devices break no law of the console; and the generator finds each old fault that is put back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from edgeagent.driver.line import console_machine, ending, nudging, view
from edgeagent.driver.line.console_machine import ConsoleMachine
from edgeagent.driver.line.outcome import Done, Failed
from edgeagent.driver.line.play import Play
from edgeagent.driver.line.profile import Profile
from edgeagent.driver.line.view import View
from tests.driver.line.generated import first_violation

pytestmark = pytest.mark.long  # Seconds of CPU: `make test` runs it, `make quick` does not.

PLAYS = 600
PLAYS_ALL = 10_000
FOUND_WITHIN = 400


@pytest.mark.deep
def test_no_generated_device_breaks_a_law() -> None:
    assert first_violation(PLAYS) == ""


@pytest.mark.slow
def test_ten_thousand_generated_devices_break_no_law() -> None:
    assert first_violation(PLAYS_ALL) == ""


Patch = pytest.MonkeyPatch


def believed_by_its_look(patch: Patch) -> None:
    """zephyr#59089: whatever looks like a prompt ends a command."""
    patch.setattr(console_machine, "stands", lambda seen, *_, **__: seen.prompt is not None)
    without_a_new_prompt(patch)


def without_a_new_prompt(patch: Patch) -> None:
    """The very prompt in the middle of an answer ends it."""
    patch.setattr(nudging, "only_prompt", lambda *_, **__: True)


def without_blanks(patch: Patch) -> None:
    """A prompt that the program prints for each Enter is taken for the shell's."""

    def learn(self: ConsoleMachine, *_: Any) -> Play[None]:
        self.echoes_blanks = False
        yield from self.look(0)

    patch.setattr(ConsoleMachine, "learn_blanks", learn)


def typed_into_what_runs(patch: Patch) -> None:
    """The next command is typed, after `^U`, while the one before runs."""
    confirm = ConsoleMachine.confirm

    def forgetful(self: ConsoleMachine, timeout_s: float) -> Play[Any]:
        self.running = ""
        return (yield from confirm(self, timeout_s))

    patch.setattr(ConsoleMachine, "confirm", forgetful)


def entered_unread(patch: Patch) -> None:
    """labgrid#1749: Enter is pressed without reading back what was typed."""

    def echoed(self: ConsoleMachine, *_: Any) -> Play[bool]:
        yield from self.look(0.1)
        return True

    patch.setattr(ConsoleMachine, "echoed", echoed)


def no_end_without_a_number(patch: Patch) -> None:
    """labgrid#1598: a shell that prints `$?` as it was typed never ends."""

    def by_number(seen: View, sent: ending.Sent) -> Done | Failed | None:
        ended = marker_end(seen, sent)
        return None if ended is not None and ended.status is None else ended

    marker_end = ending.marker_end
    patch.setattr(console_machine, "marker_end", by_number)


def no_pagers(patch: Patch) -> None:
    """netmiko#1152: a page waits for ever."""
    patch.setattr(View, "pager_key", "")


def few_questions(patch: Patch) -> None:
    """`(yes/no): ` and `[confirm]` are no questions."""
    patch.setattr(Profile, "question_patterns", (ending.re.compile(r"\? ?$"),))


def noise_left_in(patch: Patch) -> None:
    """IOS logs behind its prompt, and the end is not seen."""
    patch.setattr(view, "set_aside", lambda text, patterns: (text, ()))


def password_unlooked(patch: Patch) -> None:
    """labgrid#545: a password is typed where its prompt stood once."""
    looks_again = ConsoleMachine.watch

    def watch(self: ConsoleMachine) -> Any:
        return "password" if self.state == "password" else (yield from looks_again(self))

    patch.setattr(ConsoleMachine, "watch", watch)


def no_line_end_after_log_in(patch: Patch) -> None:
    """labgrid#1786: `login: ` with a line end is no prompt."""
    whole = View.prompt.fget  # type: ignore[attr-defined]

    def prompt(self: View) -> Any:
        return whole(self) if self.last_line else None

    patch.setattr(View, "prompt", property(prompt))


OLD_FAULTS: dict[Callable[[Patch], None], str] = {
    believed_by_its_look: "is said to have ended",
    without_a_new_prompt: "is said to have ended",
    without_blanks: "is said to have ended",
    typed_into_what_runs: "typed into what runs",
    entered_unread: "nobody asked for",
    no_end_without_a_number: "is not told",
    no_pagers: "is not told",
    few_questions: "is not told",
    noise_left_in: "is not told",
    password_unlooked: "the password went to",
    no_line_end_after_log_in: "nobody is logged in",
}


@pytest.mark.parametrize("fault", OLD_FAULTS, ids=lambda fault: fault.__name__)
def test_the_generator_finds_an_old_fault_that_is_put_back(
    fault: Callable[[Patch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    fault(monkeypatch)
    assert first_violation(FOUND_WITHIN, OLD_FAULTS[fault])


def test_the_ending_knows_no_time() -> None:
    """What is evidence does not depend on when it came: the readings are functions of the text alone."""
    assert not {"time", "now"} & set(vars(ending))

"""Nudges: how a console is asked for a new prompt, so that only a live one can give the answer.

A nudge is some blanks, so many by chance, and Enter: a live editor echoes them and shows its prompt again, and a
program that prints the prompt by itself does not know how many there were. A console that takes blanks otherwise, which
is found out while nothing runs, is nudged with Enter alone; so is one that is asked for a status, which blanks may set.
"""

from __future__ import annotations

from collections.abc import Callable

from edgeagent.driver.line.editing import Editor
from edgeagent.driver.line.ending import is_weak, only_prompt
from edgeagent.driver.line.play import Play
from edgeagent.driver.line.profile import Profile
from edgeagent.driver.line.view import View

BLANKS_MAX = 6
LEARN_TRIES = 2
"""A key may be lost while it is found out whether blanks are echoed."""


class Nudger(Editor):
    """A typist who can ask for a new prompt.

    `echoes_blanks` is None while nobody knows; `ticks` where its prompt counts or tells the time.
    """

    def __init__(self, profile: Profile, word: Callable[[], str]) -> None:
        super().__init__(profile, word)
        self.echoes_blanks: bool | None = None
        self.ticks = False

    def nudge_keys(self) -> str:
        """Return the keys of one nudge, as this console takes them."""
        blanks = 1 + sum(self.word().encode()) % BLANKS_MAX if self.echoes_blanks else 0
        return " " * blanks + self.profile.keys.nudge

    def nudged(self, prompt: str, keys: str, *, learns: bool = False) -> Play[bool]:
        """Nudge once; return whether the keys' echo and a new prompt came at once, and nothing else.

        `learns`: nothing runs, so a prompt that has other numbers now is one that ticks.
        """
        beside = self._beside = View(self.profile)
        try:
            yield from self.send(keys)
            limit = self.now + self.profile.settle_s + self.lag_s
            while only_prompt(beside, prompt, keys, ticks=self.ticks) is None and self.now < limit:
                yield from self.look(0.1, limit)
            yield from self.quiet(self.profile.settle_s if is_weak(prompt) else 0.05)
            if learns and only_prompt(beside, prompt, keys, ticks=True):
                self.ticks = self.ticks or not only_prompt(beside, prompt, keys, ticks=False)
            return only_prompt(beside, prompt, keys, ticks=self.ticks) is True
        finally:
            self._beside = None

    def learn_blanks(self, prompt: str) -> Play[None]:
        """Find out, while nothing runs, whether this console echoes blanks and takes a line of them for none."""
        profile = self.profile
        blanks = profile.echo and not profile.keys.nudge.strip() and not profile.transaction.status_command
        for _ in range(LEARN_TRIES if blanks else 0):
            self.echoes_blanks = True
            if (yield from self.nudged(prompt, self.nudge_keys(), learns=True)):
                return
            yield from self.clear()  # A key may have been lost, and that was Enter.
        self.echoes_blanks = False

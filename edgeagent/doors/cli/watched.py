"""When is a running agent alive? Whatever a screen shows is progress, and the service manager's watchdog is told."""

from __future__ import annotations

from edgeagent.core.effects import Effect
from edgeagent.core.events import Event
from edgeagent.core.state import State
from edgeagent.doors.cli.screen import Screen
from edgeagent.runtime.notify import Notifier


class WatchedScreen(Screen):
    """A screen that feeds the watchdog with each transition, each batch of the prompt and each word."""

    notifier: Notifier

    def watch(self, event: Event, state: State, effects: tuple[Effect, ...]) -> None:
        """Show one transition; an event was taken."""
        self.notifier.progress()
        super().watch(event, state, effects)

    def progress(self, done: int, total: int) -> None:
        """Show how far the prompt is; a batch was evaluated."""
        self.notifier.progress()
        super().progress(done, total)

    def stream(self, text: str) -> None:
        """Show words; a token was written."""
        self.notifier.progress()
        super().stream(text)

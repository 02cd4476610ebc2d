"""Line of a console while it is edited: typed, read back, emptied again. Nothing is entered here."""

from __future__ import annotations

from edgeagent.driver.line.ending import after_prompt
from edgeagent.driver.line.play import ECHO_S, LAG_S_MAX, Play, Typist
from edgeagent.driver.line.screen import echo_differs, echo_length, set_aside
from edgeagent.driver.line.view import View

TYPING_TRIES = 3
"""A line whose echo differs was never entered, so it may be typed again, slower each time."""

CLEARS_MAX = 2
"""A line that echoed wrongly is emptied again where nothing shows that it was: that key may be lost as well."""


class Editor(Typist):
    """A typist who makes sure of what stands on the line."""

    @property
    def style(self) -> str:
        """How a command is told from the next: `marker`, `prompt` or `raw_repl`."""
        return self.profile.transaction.style

    def clear(self, settle_s: float = 0.02) -> Play[bool]:
        """Empty the line editor, and let what that prints go by; return whether anything was printed."""
        view = yield from self.fresh()
        yield from self.send(self.profile.keys.clear_line)
        if self.style == "raw_repl":
            settle_s = 0.1 + self.lag_s
        limit = self.now + ECHO_S + self.lag_s
        while (yield from self.look(settle_s)) and self.now < limit:
            if self.style == "raw_repl" and view.prompt:
                break
        return bool(view.raw)

    def typed(self, line: str, until: float) -> Play[str]:
        """Type the line and read its echo back. Returns "", or why it does not stand there; then it is cleared."""
        problem = ""
        for slower in range(TYPING_TRIES):
            view = yield from self.fresh()
            accepted = yield from self.type(line, slower=slower, until=until)
            whole = accepted == len(line.encode())
            if whole and (not self.profile.echo or (yield from self.echoed(view, line, until))):
                return ""
            shown = view.typed[-80:]
            for _ in range(CLEARS_MAX):
                if (yield from self.clear(settle_s=0.2 + self.lag_s)):
                    break  # It is seen how the line is emptied.
            problem = f"the console did not take in the line as typed (it shows {shown!r}); nothing was executed"
            if self.now >= until:
                break
        return problem

    def echoed(self, view: View, line: str, until: float) -> Play[bool]:
        """Read a typed line's echo back in this view; return whether it came as it was typed."""
        # Where nothing comes at all it may come later: typed again, the line would be read back from the first echo.
        limit, silent = (min(until, self.now + ECHO_S + lag_s) for lag_s in (self.lag_s, max(self.lag_s, LAG_S_MAX)))
        while True:
            shown, _ = set_aside(view.typed.replace("\r\n", "\n"), self.profile.noise_patterns)
            readings = (shown, after_prompt(shown, self.profile))
            if any(echo_length(reading, line) is not None for reading in readings):
                return True
            if self.now >= (limit if view.raw else silent):
                return False
            if all(echo_differs(reading, line) for reading in readings) and (yield from self.quiet(0.15)):
                return False  # Wrong, and nothing more comes that could be the rest of a noise line.
            yield from self.look(0.1, limit if view.raw else silent)

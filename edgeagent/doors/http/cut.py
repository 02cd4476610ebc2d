"""Cutting of an answer as it comes: at a text that ends it, and to what is certain to be words. Text in, text out."""

from __future__ import annotations

CALL_BEGINS = ("{", "[", "<", "`")
"""What a call or a thought begins with, in every dialect; an answer that begins so is judged whole, at its end."""


class Cut:
    """Gives text on as it comes, up to the first of some marks; what may be the beginning of one waits."""

    def __init__(self, marks: tuple[str, ...]) -> None:
        self._marks, self._held = marks, ""
        self.mark = ""
        """The mark that was found."""

    def feed(self, text: str) -> str:
        """What is certain to stand before any mark."""
        if self.mark:
            return ""
        self._held += text
        found = [(place, mark) for mark in self._marks if (place := self._held.find(mark)) >= 0]
        if found:
            place, self.mark = min(found)
            ready, self._held = self._held[:place], ""
            return ready
        keep = max((_begun(self._held, mark) for mark in self._marks), default=0)
        ready, self._held = self._held[: len(self._held) - keep], self._held[len(self._held) - keep :]
        return ready

    def end(self) -> str:
        """What waited, where no mark came of it."""
        ready, self._held = self._held, ""
        return ready


def _begun(text: str, mark: str) -> int:
    """How many characters at the end of the text may begin the mark."""
    return next((size for size in range(min(len(text), len(mark) - 1), 0, -1) if mark.startswith(text[-size:])), 0)


class Words:
    """Gives on what is certain to be an answer in words, without white space around it.

    `trigger` begins a call behind words, where the dialect has one.
    """

    def __init__(self, trigger: str, stops: tuple[str, ...]) -> None:
        self._cut, self._stops = Cut((*stops, trigger) if trigger else stops), stops
        self._held, self.given, self._waits = "", "", False

    @property
    def is_stopped(self) -> bool:
        """Whether one of the texts came that end the answer."""
        return self._cut.mark in self._stops and bool(self._cut.mark)

    def feed(self, text: str) -> str:
        """What is certain now."""
        return self._ready(self._cut.feed(text))

    def end(self) -> str:
        """What waited for what did not come."""
        return self._ready(self._cut.end())

    def _ready(self, text: str) -> str:
        self._held += text
        if not self.given:
            self._held = self._held.lstrip()
            self._waits = self._held.startswith(CALL_BEGINS)
        ready = self._held.rstrip()
        if self._waits or not ready:
            return ""
        self.given, self._held = self.given + ready, self._held[len(ready) :]
        return ready


class Inside:
    """Gives on what stands between two fixed texts: the arguments of a call that is an answer in a given form.

    Gives nothing where there is no text before it.
    """

    def __init__(self, before: str, after: str) -> None:
        self._before, self._after = before, after
        self._text, self.given = "", ""

    def feed(self, text: str) -> str:
        """What is certain to be inside."""
        self._text += text
        return self._up_to(len(self._text) - len(self._after))

    def end(self) -> str:
        """What waited; the whole of it where what should follow did not."""
        whole = self._text.endswith(self._after)
        return self._up_to(len(self._text) - (len(self._after) if whole else 0))

    def _up_to(self, end: int) -> str:
        at = len(self._before) + len(self.given)
        if not self._before or not self._text.startswith(self._before) or end <= at:
            return ""
        ready = self._text[at:end]
        self.given += ready
        return ready

"""Questions that are answered between two requests: the first is answered with one, the second brings what was said.

What the second has to bring besides is a word that nobody can guess. It counts once, and for exactly the call that was
asked about.
"""

from __future__ import annotations

import secrets
import time
from typing import Any

from edgeagent.codec.jsonrpc import INVALID_PARAMS
from edgeagent.core.effects import AskUser
from edgeagent.doors.mcp.client import Client
from edgeagent.doors.mcp.watched import ASKED_S, form_of, is_yes
from edgeagent.driver.peer import Refused

OPEN_MAX = 64
"""Questions of one client that wait for an answer; above it the oldest is forgotten."""

QUESTION = "run"


class AskedLater:
    """The questions of one client that are open. One thread calls it."""

    def __init__(self) -> None:
        self._open: dict[str, tuple[str, str, float]] = {}
        """By its word: which call, the question's digest, and until when."""

    def asks(self, question: AskUser, what: str) -> dict[str, Any]:
        """The answer to the first request, about this call."""
        if len(self._open) >= OPEN_MAX:
            del self._open[next(iter(self._open))]
        word = secrets.token_urlsafe(24)
        self._open[word] = what, question.digest, time.monotonic() + ASKED_S
        asked = {QUESTION: {"method": "elicitation/create", "params": form_of(question)}}
        return {"resultType": "input_required", "inputRequests": asked, "requestState": word}

    def told(self, client: Client, params: Any, what: str) -> Client:
        """The client of a request, with its user's answer where the request brings one. Raises Refused."""
        word = params.get("requestState") if isinstance(params, dict) else None
        if word is None or not client.is_asked_later:
            return client
        found = self._open.pop(word, None) if isinstance(word, str) else None
        if found is None or found[0] != what or found[2] < time.monotonic():
            raise Refused(INVALID_PARAMS, "requestState is not that of a question about this call that is open")
        said = params.get("inputResponses")
        answer = said.get(QUESTION) if isinstance(said, dict) else None
        if not isinstance(answer, dict):
            return client  # It is asked again.
        told = Client()
        told.asks, told.is_asked_later, told.level = client.asks, True, client.level
        told.decided = found[1], is_yes(answer)
        return told

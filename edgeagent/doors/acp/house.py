"""House: agent and model of a process that serves clients, loaded once, when the first of them needs it."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from edgeagent.doors.acp.opening import Opening

if TYPE_CHECKING:
    from edgeagent.core.agent import Agent
    from edgeagent.runtime.model import Model
    from edgeagent.runtime.serve import Service


@dataclass(frozen=True)
class Loaded:
    """What was loaded."""

    agent: Agent
    model: Model
    service: Service
    root: Path


class House:
    """Loads what an opening names; `close` it when no client is left."""

    def __init__(self, opening: Opening) -> None:
        self.opening = opening
        self._loading = threading.Lock()
        self._loaded: Loaded | None = None

    def loaded(self) -> Loaded:
        """Agent and model. Raises ConfigError, ShapeError, GrammarError and ModelError, each time it is tried."""
        with self._loading:
            if self._loaded is None:
                self._loaded = _load(self.opening)
            return self._loaded

    def close(self) -> None:
        """Let go of both; what is outstanding is taken up when its session is loaded again."""
        with self._loading:
            loaded, self._loaded = self._loaded, None
        if loaded is not None:
            loaded.service.close()
            loaded.model.close()

    def __enter__(self) -> Self:
        """Leave what is below to `close` it."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close it."""
        self.close()


def _load(opening: Opening) -> Loaded:
    # The runtime comes only here: nobody need wait for it before a client has been told hello.
    from edgeagent.runtime.config import state_root
    from edgeagent.runtime.model import load_model
    from edgeagent.runtime.open import OpenRequest, settings_of
    from edgeagent.runtime.serve import Service
    from edgeagent.runtime.wiring import load_agent

    request = OpenRequest(agent=opening.agent, **opening.options)
    settings = settings_of(request)
    agent, root = load_agent(opening.agent), state_root(settings)
    model = load_model(settings.model, shared=True, verbose=request.verbose)
    return Loaded(agent, model, Service(model, state=root), root)

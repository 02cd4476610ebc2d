"""What may be said of a session when its driver is made: who hears of its asks, and how they are answered."""

from __future__ import annotations

from typing import TypedDict

from edgeagent.driver.llama.decode import OnText
from edgeagent.driver.llama.engine import Progress
from edgeagent.driver.llama.fair import OnPlace


class Hearing(TypedDict, total=False):
    """Who is told what of one session's asks, by the thread that has the model, which waits for them.

    `on_text` the text as it grows; `on_progress` how many tokens of the prompt are evaluated, and of how many;
    `on_waiting` how many asks are served before this one, when that changes, and 0 when its turn has come.
    """

    on_text: OnText | None
    on_progress: Progress | None
    on_waiting: OnPlace | None


class Asking(Hearing, total=False):
    """And how a session is answered, as `LlamaDriver` takes it."""

    top_p: float
    chooses: bool

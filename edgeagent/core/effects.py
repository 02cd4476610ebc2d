"""What is asked of the world: requests, in the imperative, each with an id counted in the state.

AskModel, CallTool and AskUser are answered by exactly one event that carries their id; SetTimer when it is due.
Say, CancelEffect and Finish are notices: nothing answers them.
Tags and field order are append-only.
"""

from __future__ import annotations

import msgspec

from edgeagent.core.values import Choice, Message, call_digest


class AskModel(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """Have the model write. `tools` are the admissible ones, by name.

    `closing` is empty, or the reason why this must be the closing answer.
    `timeout_ms` 0 means no limit.
    `narrowed` are further limits on arguments, which the rules set now: tool, argument, and a JSON Schema (canonical
    text) that a given argument must fit besides its own. Several for one argument must all be kept. Beside the
    keywords of JSON Schema there is `x-quoted`: whole words of one of these texts (`core.quoting.spans`).
    `prompt_tokens_max` is what the budget still allows; a longer prompt must be answered with ModelFailed
    (`context_full`) before it is evaluated. 0 means no limit.
    `agent` is the path of the sub-agent that asks (`research` or `research/pages`), empty for the agent itself.
    `stays` says why nothing of this may leave the device, if a rule says so: no model elsewhere may be asked.
    """

    effect_id: int
    messages: tuple[Message, ...]
    tools: tuple[str, ...]
    choice: Choice
    max_tokens: int
    timeout_ms: int
    seed: int
    closing: str = ""
    narrowed: tuple[tuple[str, str, str], ...] = ()
    prompt_tokens_max: int = 0
    agent: str = ""
    stays: str = ""


class CallTool(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """Run a tool with decoded arguments (canonical JSON text).

    `confirmation` is the effect id of the question that a person answered with yes, or 0.
    """

    effect_id: int
    tool: str
    arguments: str
    timeout_ms: int
    confirmation: int = 0
    agent: str = ""


class AskUser(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """May this call run, with exactly these arguments? After `timeout_ms` the answer is no."""

    effect_id: int
    tool: str
    arguments: str
    because: str
    timeout_ms: int
    agent: str = ""

    @property
    def digest(self) -> str:
        """What ties the answer to this tool and these arguments."""
        return call_digest(self.tool, self.arguments)


class Say(msgspec.Struct, frozen=True, array_like=True, tag=4):
    """Show the user the answer of this turn."""

    effect_id: int
    text: str


class SetTimer(msgspec.Struct, frozen=True, array_like=True, tag=5):
    """Let TimerFired follow in `after_ms`. Time in which the machine sleeps or is off counts."""

    effect_id: int
    after_ms: int


class CancelEffect(msgspec.Struct, frozen=True, array_like=True, tag=6):
    """The answer to `target` is no longer wanted; stop working on it if you can."""

    effect_id: int
    target: int


class Finish(msgspec.Struct, frozen=True, array_like=True, tag=7):
    """The session can go no further, for this reason."""

    effect_id: int
    reason: str


Effect = AskModel | CallTool | AskUser | Say | CancelEffect | Finish | SetTimer

"""Are the fields of an agent and of its tools of the kinds that they must be? Asked before anything is made of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from edgeagent.core.budget import Budget
from edgeagent.core.text import readable
from edgeagent.core.values import canonical_json
from edgeagent.errors import ConfigError, ShapeError

TIMEOUT_S_MAX = 1_000_000_000
"""Some 30 years: what is waited for longer has no limit, and no clock of a system takes it."""

LISTS = {"tools": "of tools", "policies": "of rules", "hears": "of names"}
BUDGETS = {"budget": "a Budget(...)", "session_budget": "a Budget(...), or None"}
FLAGS = ("timers", "prose")


def check_fields(agent: Any) -> None:
    """Raise ConfigError naming the field that is of another kind, and what it must be."""
    where = f"agent {agent.name}: " if isinstance(agent.name, str) else "an agent: "
    for name in ("name", "system", "language"):
        check_text(f"{where}{name}", getattr(agent, name))
    for name, of in LISTS.items():
        value = getattr(agent, name)
        is_one_name = name == "hears" and isinstance(value, str)
        if not is_one_name and (isinstance(value, str | bytes) or not isinstance(value, Iterable)):
            raise ConfigError(f"{where}{name} is {value!r:.80}; it must be a list {of}, as in [...]")
    for name, kind in BUDGETS.items():
        value = getattr(agent, name)
        if not isinstance(value, Budget) and not (value is None and "None" in kind):
            raise ConfigError(f"{where}{name} is {value!r:.80}; it must be {kind}")
    for name in FLAGS:
        if not isinstance(getattr(agent, name), bool):
            raise ConfigError(f"{where}{name} is {getattr(agent, name)!r:.80}; it must be True or False")


def check_text(what: str, value: object) -> None:
    """Raise ConfigError for what is no text, or none that can be written down."""
    if not isinstance(value, str):
        raise ConfigError(f"{what} is {value!r:.80}; it must be a text")
    if not value.isascii() and readable(value) != value:
        raise ConfigError(f"{what} holds half of a surrogate pair, which is no character: {value!r:.80}")


def check_writable(tool: str, schema: object) -> None:
    """Raise ShapeError for a schema that has no JSON text, as one with half of a surrogate pair has none."""
    try:
        canonical_json(schema)
    except (TypeError, ValueError, RecursionError) as error:
        raise ShapeError(f"tool {tool}: its schema cannot be written as JSON: {error}") from None


def check_words(each: Any, effects: tuple[str, ...]) -> None:
    """Check every word beside a tool's function: what is misspelled would be a rule that nobody keeps."""
    wrong = f"tool {each.name}: "
    if each.effect not in effects:
        raise ConfigError(f"{wrong}effect is {each.effect!r}; it must be one of {', '.join(effects)}")
    for word in ("idempotent", "sensitive", "trusted", "confirm", "outsiders"):
        if not isinstance(getattr(each, word), bool):
            raise ConfigError(f"{wrong}{word} is {getattr(each, word)!r}; it must be True or False")
    if (
        isinstance(each.timeout_s, bool)
        or not isinstance(each.timeout_s, int | float)
        or not (0 < each.timeout_s <= TIMEOUT_S_MAX)
    ):
        raise ConfigError(
            f"{wrong}timeout_s is {each.timeout_s!r:.80}; it must be above 0 and at most {TIMEOUT_S_MAX:,}"
        )
    if not isinstance(each.say, str):
        raise ConfigError(f"{wrong}say is {each.say!r}; it must be a text, with arguments in braces")
    if isinstance(each.examples, str) or not all(isinstance(text, str) for text in each.examples):
        raise ConfigError(f"{wrong}examples is {each.examples!r}; it must be a list of requests")
    for word in ("pre", "post"):
        if getattr(each, word) is not None and not callable(getattr(each, word)):
            raise ConfigError(
                f"{wrong}{word} is {getattr(each, word)!r}; it must be a function that says True or False"
            )
    if each.notes is not None and not callable(each.notes):
        raise ConfigError(f"{wrong}notes is {each.notes!r}; it must be a function that gives texts")

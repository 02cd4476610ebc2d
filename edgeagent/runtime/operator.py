"""Which rules has the operator added? Reads the section `policy` of edgeagent.toml and puts them behind the agent's."""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from edgeagent.core.agent import Agent
from edgeagent.errors import ConfigError
from edgeagent.policy.table import Row, rules_from_table
from edgeagent.runtime.config import settings_file


def operator_rules(config: Path | None, *, beside: Path) -> tuple[Row, ...]:
    """Return the operator's rules. Raises ConfigError naming file, line and key."""
    return operator_policy(config, beside=beside)[1]


def operator_policy(config: Path | None, *, beside: Path | None) -> tuple[dict[str, Any], tuple[Row, ...]]:
    """Return the section `policy` and its rules: of `config`, or $EDGEAGENT_CONFIG, or edgeagent.toml in `beside`.

    Raises ConfigError naming file, line and key.
    """
    file = settings_file(config, beside=beside)
    if file is None:
        return {}, ()
    try:
        text = file.read_text()
        policy = tomllib.loads(text).get("policy", {})
    except OSError as error:
        raise ConfigError(f"{file}: {error.strerror}; give another file with --config") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: {error}") from error
    if not isinstance(policy, dict):
        raise ConfigError(f"{file}: policy is {policy!r}; it must be a section: [[policy.rules]]")
    return policy, rules_from_table(policy, text=text, file=str(file))


def recorded_rules(policy: Mapping[str, Any]) -> tuple[Row, ...]:
    """Return the rules of a section as a session has recorded it, where no file's lines are left to name."""
    return rules_from_table(policy, file="session.json")


def with_rules(agent: Agent, rules: tuple[Row, ...]) -> Agent:
    """The agent with these rules behind its own; its digest says so."""
    return dataclasses.replace(agent, policies=(*agent.policies, *rules)) if rules else agent


def sentence_of(policy: Any) -> str:
    """What a rule says of itself; of a policy that explains nothing, its text as code."""
    explain = getattr(policy, "explain", None)
    return str(explain()) if callable(explain) else repr(policy)

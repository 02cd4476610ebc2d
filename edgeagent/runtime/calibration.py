"""From where on is a call made? Found for one agent and one model, kept in the state folder, and used when both return.

    <state>/calibrations/<agent>-<beginning of the model's SHA-256>.json

A file that was made for other tools, another model or other weights is not used, and that is said: thresholds do not
carry over.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from edgeagent.core.agent import Agent
from edgeagent.core.values import canonical_json
from edgeagent.errors import ConfigError, TraceError
from edgeagent.request.call_odds import threshold
from edgeagent.trace.disk import DISK, Disk, write_atomically

if TYPE_CHECKING:
    from edgeagent.driver.llama.model import LlamaDriver

REMEDY = "run `edgeagent calibrate` again"

Progress = Callable[[int, int], None]


class Threshold(msgspec.Struct, frozen=True):
    """What was found for one agent of the family.

    `needed` are the log-odds from which on a call is made; of so many unrelated requests and examples of the author's
    so many are refused there.
    """

    needed: float
    unrelated: int
    unrelated_refused: int
    examples: int
    examples_refused: int


class Calibration(msgspec.Struct, frozen=True):
    """Thresholds by the path of the sub-agent, and what they hold for: digests of tools, model and weights."""

    tools: str
    model: str
    weights: str
    thresholds: dict[str, Threshold]


def tools_digest(agent: Agent) -> str:
    """What a threshold depends on of an agent and its sub-agents: the texts and examples of their tools."""
    told = [
        [path, [[t.name, t.description, t.parameters.schema, list(t.examples)] for t in each.tools]]
        for path, each in agent.by_path.items()
    ]
    return hashlib.sha256(canonical_json(told).encode()).hexdigest()[:16]


def calibrate(driver: LlamaDriver, agent: Agent, on_progress: Progress | None = None) -> Calibration:
    """Weigh unrelated requests and the author's examples with this model, and put each agent's threshold between them.

    The driver must have been stopped. Raises ConfigError for an agent without tools, and for a model that decides
    itself when to call.
    """
    if not any(each.tools for each in agent.by_path.values()):
        raise ConfigError(f"agent {agent.name} has no tools: there is nothing to calibrate")
    if not driver.chooses:
        raise ConfigError(f"{driver.model_name} was taught when to call a tool, so no threshold is used with it")
    asked = {
        path: (unrelated_requests(), tuple(example for tool in each.tools for example in tool.examples))
        for path, each in agent.by_path.items()
        if each.tools
    }
    total = sum(len(unrelated) + len(examples) for unrelated, examples in asked.values())
    done, thresholds = 0, {}
    for path, groups in asked.items():
        odds: list[list[float]] = [[], []]
        for group, requests in enumerate(groups):
            for request in requests:
                odds[group].append(driver.call_odds(request, path))
                done += 1
                if on_progress is not None:
                    on_progress(done, total)
        thresholds[path] = _between(*odds)
    return Calibration(tools_digest(agent), driver.model_digest, driver.weights_digest, thresholds)


def unrelated_requests() -> tuple[str, ...]:
    """Requests that hardly any tool is for: small talk, knowledge, writing, sums, errands."""
    return msgspec.json.decode(Path(__file__).with_name("unrelated.json").read_bytes(), type=tuple[str, ...])


def _between(unrelated: list[float], examples: list[float]) -> Threshold:
    needed = round(threshold(unrelated, examples), 3)
    below = [sum(each < needed for each in group) for group in (unrelated, examples)]
    return Threshold(needed, len(unrelated), below[0], len(examples), below[1])


def calibration_file(root: Path, agent: Agent, model_digest: str) -> Path:
    """Where this agent's calibration for this model is kept."""
    return root / "calibrations" / f"{agent.name}-{model_digest[:8]}.json"


def write_calibration(root: Path, agent: Agent, found: Calibration, disk: Disk = DISK) -> Path:
    """Keep a calibration, whole or not at all. Raises TraceError."""
    file = calibration_file(root, agent, found.model)
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_atomically(disk, file, msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
    except OSError as error:
        raise TraceError(f"cannot write {file}: {error.strerror or error}") from None
    return file


def use_calibration(root: Path, driver: LlamaDriver, agent: Agent) -> str:
    """Give the driver the thresholds that are kept for it, if there are any; returns why they are not used, or ''."""
    file = calibration_file(root, agent, driver.model_digest)
    try:
        found = msgspec.json.decode(file.read_bytes(), type=Calibration)
    except FileNotFoundError:
        return ""  # The threshold that was fitted once is used.
    except (OSError, msgspec.DecodeError) as error:
        return f"{file} is not used: {error}; {REMEDY}"
    for what, one, other in (
        ("the tools have", found.tools, tools_digest(agent)),
        ("the model has", found.model, driver.model_digest),
        ("what evidence counts has", found.weights, driver.weights_digest),
    ):
        if one != other:
            return f"{file} is not used: {what} changed since; {REMEDY}"
    driver.require_odds({path: each.needed for path, each in found.thresholds.items()})
    return ""

"""What a subject and the bench say to each other, and what a right call is. Standard library only."""

from __future__ import annotations

import json
import re
import resource
import sys
import time
from collections.abc import Callable
from typing import Any

from bench.greenhouse import REQUESTS, TOOLS, prompt

RIGHT: tuple[tuple[str, dict[str, Any]], ...] = (
    ("set_valve", {"valve": "north", "open": True, "seconds": 30}),
    ("read_sensor", {"sensor": "soil_moisture", "samples": 5}),
    ("notify", {}),
    ("set_setpoint", {"channel": 3, "celsius": 21.5}),
    ("serial_send", {"port": "/dev/ttyUSB0", "line": "version"}),
)


def call_schema() -> dict[str, Any]:
    """One schema for a call of any tool, for libraries that take a schema."""
    options = []
    for name, schema in TOOLS.items():
        properties = {"name": {"const": name}, "arguments": schema}
        options.append(
            {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
        )
    return {"anyOf": options}


def serve(write: Callable[[str], str], about: dict[str, Any], measured: Callable[[], dict[str, Any]] = dict) -> None:
    """Answer each line on stdin with a round of five calls; `write` makes a text of a prompt."""
    _answer(about)
    for _ in sys.stdin:
        try:
            _answer(_round(write) | measured())
        except Exception as error:  # a library's own: the bench says that it was skipped, and why
            _answer({"error": f"{type(error).__name__}: {error}"})


def _round(write: Callable[[str], str]) -> dict[str, Any]:
    seconds, texts = [], []
    cpu = time.process_time()
    for request in REQUESTS:
        begin = time.perf_counter()
        texts.append(write(prompt(request)))
        seconds.append(round(time.perf_counter() - begin, 4))
    return {
        "seconds": seconds,
        "cpu_s": round(time.process_time() - cpu, 3),
        "texts": texts,
        "valid": sum(map(is_valid, texts)),
        "right": sum(is_right(text, *right) for text, right in zip(texts, RIGHT, strict=True)),
        "rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def is_valid(text: str) -> bool:
    """Whether the text is a call as the schema wants it."""
    try:
        call = json.loads(text)
    except ValueError:
        return False
    if not isinstance(call, dict) or set(call) != {"name", "arguments"} or call["name"] not in TOOLS:
        return False
    fields, arguments = TOOLS[call["name"]]["properties"], call["arguments"]
    return set(fields) == set(arguments) and all(_fits(arguments[name], field) for name, field in fields.items())


def is_right(text: str, tool: str, arguments: dict[str, Any]) -> bool:
    """Whether it is the call that the request asks for."""
    return (
        is_valid(text) and (call := json.loads(text))["name"] == tool and arguments.items() <= call["arguments"].items()
    )


def _fits(value: Any, field: dict[str, Any]) -> bool:
    if "anyOf" in field:
        return any(_fits(value, option) for option in field["anyOf"])
    if "enum" in field:
        return value in field["enum"]
    kinds: dict[str, tuple[type, ...]] = {
        "integer": (int,),
        "number": (int, float),
        "string": (str,),
        "boolean": (bool,),
        "null": (type(None),),
    }
    if not isinstance(value, kinds[field["type"]]) or (isinstance(value, bool) and field["type"] != "boolean"):
        return False
    if isinstance(value, str):
        return len(value) <= field.get("maxLength", len(value)) and bool(re.search(field.get("pattern", ""), value))
    if isinstance(value, bool) or value is None:
        return True
    return bool(field.get("minimum", value) <= value <= field.get("maximum", value))


def _answer(value: dict[str, Any]) -> None:
    sys.stdout.write("\n@@ " + json.dumps(value) + "\n")
    sys.stdout.flush()

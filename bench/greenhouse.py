"""The greenhouse's tools as schemas, and requests for them: what the decoding tests and the bench write calls from."""

from __future__ import annotations

import json
from typing import Any

from edgeagent.codec.dialects.family import CallFrame


def _object(**fields: Any) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}


TOOLS: dict[str, dict[str, Any]] = {
    "read_sensor": _object(
        sensor={"enum": ["soil_moisture", "air_temp", "humidity", "co2", "light"]},
        samples={"type": "integer", "minimum": 1, "maximum": 100},
    ),
    "set_valve": _object(
        valve={"enum": ["north", "south", "mist"]},
        open={"type": "boolean"},
        seconds={"type": "integer", "minimum": 1, "maximum": 600},
    ),
    "serial_send": _object(
        port={"type": "string", "pattern": "^/dev/tty(USB|ACM)[0-9]$"}, line={"type": "string", "maxLength": 80}
    ),
    "set_setpoint": _object(
        channel={"type": "integer", "minimum": 0, "maximum": 15},
        celsius={"type": "number", "minimum": -10, "maximum": 50},
    ),
    "notify": _object(to={"type": "string", "maxLength": 40}, text={"type": "string", "maxLength": 200}),
    "transfer": _object(
        to={"type": "string", "maxLength": 40},
        amount={"type": "integer", "minimum": 1, "maximum": 100},
        memo={"anyOf": [{"type": "string", "maxLength": 40}, {"type": "null"}]},
    ),
}

REQUESTS = (
    "Open the north valve for 30 seconds.",
    "Read the soil moisture sensor 5 times.",
    "Tell the operator that the mist valve is stuck.",
    "Set channel 3 to 21.5 degrees.",
    "Send the line 'version' to /dev/ttyUSB0.",
)

SYSTEM = "You control a greenhouse. Reply with one JSON tool call.\nTools:\n" + "\n".join(
    json.dumps({"name": name, "parameters": schema}) for name, schema in TOOLS.items()
)

FRAME = CallFrame('{"name": "', '", "arguments": ', "}")


def prompt(request: str) -> str:
    """A ChatML prompt whose beginning is the same for every request."""
    turns = (("system", SYSTEM), ("user", request))
    return "".join(f"<|im_start|>{role}\n{text}<|im_end|>\n" for role, text in turns) + "<|im_start|>assistant\n"

"""A small simulated greenhouse with real state on disk: sensors, valves, setpoints, messages, a serial controller.

    edgeagent run examples/greenhouse.py "Open the north valve for 30 seconds."

The state is one JSON file, `greenhouse.json`, in $EDGEAGENT_GREENHOUSE or the XDG state folder. Between two
calls the greenhouse goes on: soil dries, air drifts to its setpoint, valves close when their time is over.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta

from edgeagent import Agent, Budget, tool

Sensor = Literal["soil_moisture", "air_temp", "humidity", "co2", "light"]
Valve = Literal["north", "south", "mist"]

UNITS = {"soil_moisture": "%", "air_temp": "C", "humidity": "%", "co2": "ppm", "light": "lx"}
START = {
    "at": 0.0,
    "sensors": {"soil_moisture": 41.0, "air_temp": 19.5, "humidity": 63.0, "co2": 640.0, "light": 8200.0},
    "open_until": {},
    "setpoints": {"0": 20.0},
    "messages": [],
}
DRYING_PER_S = 0.002
WATERING_PER_S = 0.05
WARMING_PER_S = 0.01


def state_file() -> Path:
    """Where the greenhouse is kept."""
    base = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    folder = os.environ.get("EDGEAGENT_GREENHOUSE") or f"{base}/edgeagent"
    return Path(folder).expanduser() / "greenhouse.json"


def load() -> dict[str, Any]:
    """The greenhouse as it is now: the stored state, moved on by the time that has passed."""
    file = state_file()
    house: dict[str, Any] = json.loads(file.read_text()) if file.exists() else json.loads(json.dumps(START))
    now = time.time()
    passed = min(3600.0, now - house["at"]) if house["at"] else 0.0
    watered = sum(max(0.0, min(until, now) - house["at"]) for until in house["open_until"].values()) if passed else 0.0
    sensors = house["sensors"]
    sensors["soil_moisture"] += WATERING_PER_S * watered - DRYING_PER_S * passed
    sensors["soil_moisture"] = min(100.0, max(0.0, sensors["soil_moisture"]))
    gap = house["setpoints"].get("0", 20.0) - sensors["air_temp"]
    sensors["air_temp"] += max(-WARMING_PER_S * passed, min(WARMING_PER_S * passed, gap))
    house["open_until"] = {valve: until for valve, until in house["open_until"].items() if until > now}
    house["at"] = now
    return house


def save(house: dict[str, Any]) -> None:
    """Store the greenhouse, whole or not at all."""
    file = state_file()
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_suffix(".part")
    part.write_text(json.dumps(house, indent=1))
    part.replace(file)


@tool(idempotent=True, effect="read", trusted=True, examples=["How dry is the soil?", "What is the CO2 level?"])
def read_sensor(sensor: Sensor, samples: Annotated[int, Meta(ge=1, le=100)] = 1) -> dict[str, Any]:
    """Read a sensor and return the mean of some samples."""
    value = load()["sensors"][sensor]
    return {"sensor": sensor, "mean": round(value, 1), "unit": UNITS[sensor], "samples": samples}


@tool(idempotent=True, effect="write", trusted=True, examples=["Water the north bed for a minute."])
def set_valve(valve: Valve, open: bool, seconds: Annotated[int, Meta(ge=1, le=600)] = 60) -> dict[str, Any]:
    """Open a water valve for some seconds, or close it."""
    house = load()
    if open:
        house["open_until"][valve] = time.time() + seconds
    else:
        house["open_until"].pop(valve, None)
    save(house)
    return {"valve": valve, "open": open, "seconds": seconds if open else 0}


@tool(idempotent=True, effect="write", trusted=True, examples=["Set channel 2 to 18 degrees."])
def set_setpoint(
    channel: Annotated[int, Meta(ge=0, le=15)], celsius: Annotated[float, Meta(ge=5, le=40)]
) -> dict[str, Any]:
    """Set the temperature of a heating channel in degrees Celsius."""
    house = load()
    house["setpoints"][str(channel)] = celsius
    save(house)
    return {"channel": channel, "celsius": celsius}


@tool(idempotent=False, effect="irreversible", trusted=True, examples=["Let the gardener know that the pump leaks."])
def notify(to: Annotated[str, Meta(max_length=40)], text: Annotated[str, Meta(max_length=200)]) -> dict[str, Any]:
    """Send a message to a person, such as the operator."""
    house = load()
    house["messages"].append({"at": round(time.time()), "to": to, "text": text})
    house["messages"] = house["messages"][-100:]
    save(house)
    return {"sent_to": to}


@tool(idempotent=False, effect="write", examples=["Send status to the controller."])
def send_line(line: Annotated[str, Meta(min_length=1, max_length=80)]) -> dict[str, Any]:
    """Send one line to the serial climate controller and return its answer."""
    house = load()
    answers = {
        "version": "GH-CTRL 2.4.1",
        "status": f"valves={','.join(sorted(house['open_until'])) or 'closed'} air={house['sensors']['air_temp']:.1f}",
    }
    return {"answer": answers.get(line.strip().lower(), f"ERR unknown line {line.strip()[:20]!r}")}


agent = Agent(
    name="greenhouse",
    system="You control a greenhouse.",
    tools=[read_sensor, set_valve, set_setpoint, notify, send_line],
    budget=Budget(steps=4, tool_calls=3, completion_tokens=256, seconds=120),
)

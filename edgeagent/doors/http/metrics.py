"""Metrics: what is counted, in the text that Prometheus reads."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

SERIES_MAX = 1_024
"""Label sets of one metric; what comes above them is counted under `other`."""

Labels = tuple[tuple[str, str], ...]


class Metrics:
    """Counters, which any thread adds to, and gauges, which are read when they are asked for."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counted: dict[str, dict[Labels, float]] = {}
        self._about: dict[str, str] = {}
        self._gauges: dict[str, Callable[[], Iterable[tuple[Labels, float]]]] = {}

    def counter(self, name: str, about: str) -> None:
        """Say that there is such a counter; its name ends in `_total`."""
        self._about[name], self._counted[name] = about, {}

    def gauge(self, name: str, about: str, read: Callable[[], Iterable[tuple[Labels, float]]]) -> None:
        """Say how a figure is read."""
        self._about[name], self._gauges[name] = about, read

    def add(self, name: str, by: float = 1, **labels: str) -> None:
        """Count."""
        key: Labels = tuple(sorted(labels.items()))
        with self._lock:
            series = self._counted[name]
            if key not in series and len(series) >= SERIES_MAX:
                key = tuple((label, "other") for label, _ in key)
            series[key] = series.get(key, 0) + by

    def value(self, name: str, **labels: str) -> float:
        """What was counted under exactly these labels."""
        with self._lock:
            return self._counted[name].get(tuple(sorted(labels.items())), 0)

    def text(self) -> str:
        """Everything, as Prometheus reads it."""
        with self._lock:
            counted = {name: dict(series) for name, series in self._counted.items()}
        lines: list[str] = []
        for name in sorted(self._about):
            kind = "counter" if name in counted else "gauge"
            rows = counted[name].items() if name in counted else self._gauges[name]()
            lines += [f"# HELP {name} {_escaped(self._about[name])}", f"# TYPE {name} {kind}"]
            lines += [f"{name}{_labels(labels)} {value!r}" for labels, value in rows]
        return "\n".join(lines) + "\n"


def _labels(labels: Labels) -> str:
    inside = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels)
    return f"{{{inside}}}" if inside else ""


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


# -- the machine ---------------------------------------------------------------------------------------------------

THERMAL = Path("/sys/class/thermal")


def temperatures(folder: Path = THERMAL) -> dict[str, float]:
    """What this machine's sensors show, in degrees Celsius; empty where there are none."""
    found = {}
    for zone in sorted(folder.glob("thermal_zone*")):
        try:
            found[zone.name] = int((zone / "temp").read_text()) / 1000
        except (OSError, ValueError):
            continue  # A sensor that is asleep.
    return found


def resident_bytes() -> int:
    """The memory that this process has."""
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def free_bytes(folder: Path) -> int:
    """What the disk of this folder still takes."""
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free


def one(read: Callable[[], float]) -> Callable[[], Iterable[tuple[Labels, float]]]:
    """A gauge without labels."""
    return lambda: [((), read())]


def by(label: str, read: Callable[[], Mapping[str, float]]) -> Callable[[], Iterable[tuple[Labels, float]]]:
    """A gauge with one label."""
    return lambda: [(((label, name),), value) for name, value in read().items()]

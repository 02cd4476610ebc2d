"""Many sessions in one process over one model: how fair, how much memory, and what survives being killed.

    python -m bench.serve [--sessions 50] [--words 2] [--kills 3] [--model smollm2 | --model script]

A child process serves the sessions of three agents; each session has two doors that append what is said to a file, and
is asked `--words` times. The child is killed (SIGKILL) at random moments and started again, until every word is
answered. Prints the figures, and fails where an answer is missing at a door or there twice, or where a session waited
for more than twice the mean.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import edgeagent
from edgeagent.core.effects import Effect, Say
from edgeagent.core.events import Event, UserSaid
from edgeagent.core.state import State, is_resting
from edgeagent.runtime.cursor import deliveries
from edgeagent.runtime.folder import directories, read_about
from edgeagent.runtime.model import Model, Script
from edgeagent.runtime.recording import load_recording
from edgeagent.runtime.serve import Service
from edgeagent.runtime.session import Session
from edgeagent.trace.file import examine_file

DOORS = ("paper", "wall")
UNFAIR = 2.0
"""Times the mean that a session may wait for its first answer, when all ask at once."""


@edgeagent.tool(idempotent=True, effect="read", trusted=True, examples=["How wet is the south bed?"])
def moisture(bed: str) -> dict[str, Any]:
    """Measure how wet the soil of a bed is."""
    return {"bed": bed, "wet": 31, "unit": "%"}


@edgeagent.tool(idempotent=True, effect="read", trusted=True, examples=["What is the time?"])
def clock() -> str:
    """Look at the clock."""
    return "12:00"


AGENTS = {
    "gardener": edgeagent.Agent("gardener", "You look after a garden.", (moisture,)),
    "porter": edgeagent.Agent("porter", "You know what time it is.", (clock,)),
    "greeter": edgeagent.Agent("greeter", "You greet people in one short sentence."),
}
WORDS = {"gardener": "How wet is the north bed?", "porter": "What is the time?", "greeter": "Good morning!"}


class FileDoor(edgeagent.QuietDoor):
    """Appends what is said to a file: once, since it looks what stands there already."""

    def __init__(self, file: Path) -> None:
        self._file = file
        lines = file.read_text().splitlines(keepends=True) if file.exists() else []
        if lines and not lines[-1].endswith("\n"):  # Cut off in its own write: that was not shown.
            lines.pop()
            file.write_text("".join(lines))
        self._last = int(lines[-1].split(" ", 1)[0]) if lines else 0

    def watch(self, event: Event, state: State, effects: tuple[Effect, ...]) -> None:
        """Append what is said."""
        for effect in effects:
            if isinstance(effect, Say) and effect.effect_id > self._last:
                self._last = effect.effect_id
                with self._file.open("a") as file:
                    file.write(line_of(effect))


def line_of(said: Say) -> str:
    """How a door writes it down."""
    return f"{said.effect_id} {json.dumps(said.text)}\n"


def serve(root: Path, sessions: int, words: int, name: str) -> None:
    """Serve until every word is answered; print what was measured. This is the process that is killed."""
    model: Model = Script(["Good."] * words) if name == "script" else edgeagent.load(name)
    waited: list[float] = []
    print("loaded", flush=True)
    with Service(model, state=root) as service:
        service.resume(*AGENTS.values())
        while len(service.sessions) < sessions:
            service.open(list(AGENTS.values())[len(service.sessions) % len(AGENTS)])
        for session in service.sessions.values():
            for door in DOORS:
                session.attach(FileDoor(root / f"{session.id}.{door}"), door)
        resident = resident_mb()
        talks = [threading.Thread(target=talk, args=(s, words, waited)) for s in service.sessions.values()]
        for thread in talks:
            thread.start()
        for thread in talks:
            thread.join()
    model.close()
    print(
        json.dumps(
            {
                "waited": waited,
                "resident_mb": resident,
                "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            }
        )
    )


def talk(session: Session, words: int, waited: list[float]) -> None:
    """Ask as often as is left, and note how long the first answer took."""
    text = WORDS[read_about(session.directory).agent]
    while (said := words_in(session.trace_path)) < words:
        began = time.monotonic()
        session.ask(text, by="bench", door="bench")
        if not said:
            waited.append(time.monotonic() - began)
    while not is_resting(session.state):  # A word that a killed process had taken is being answered.
        time.sleep(0.01)


def words_in(trace: Path) -> int:
    """How many words a trace holds."""
    return sum(isinstance(record.event, UserSaid) for record in examine_file(trace).records)


def resident_mb() -> float:
    """Memory of this process that is in use now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def run(root: Path, sessions: int, words: int, kills: int, name: str) -> dict[str, Any]:
    """Serve, kill, serve again; return the figures. Raises AssertionError where an answer is lost or repeated."""
    arguments = [root, sessions, words, name]
    command = [sys.executable, "-m", "bench.serve", "--child", *map(str, arguments)]
    chance, killed = random.Random(14), 0
    for _ in range(kills):
        child = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert child.stdout is not None
        child.stdout.readline()  # The model is loaded.
        time.sleep(chance.uniform(0.3, 5.0 if name != "script" else 1.0))
        child.kill()
        child.communicate()
        killed += child.returncode == -signal.SIGKILL
    began = time.monotonic()
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    last = json.loads(done.stdout.splitlines()[-1])
    answers = sum(checked(root, directory, words) for directory in directories(root))
    assert answers == sessions * words, f"{answers} answers of {sessions * words}"
    figures = {"sessions": sessions, "answers": answers, "killed": killed, "seconds": time.monotonic() - began}
    figures |= {"resident_mb_at_start": last["resident_mb"], "peak_mb": last["peak_mb"]}
    if last["waited"]:
        mean = statistics.mean(last["waited"])
        figures |= {"mean_wait_s": mean, "worst_wait_by_mean": max(last["waited"]) / mean}
    return {key: round(value, 2) for key, value in figures.items()}


def checked(root: Path, directory: Path, words: int) -> int:
    """How many answers of a session reached each of its doors, exactly once."""
    said = "".join(map(line_of, said_in(directory)))
    for door in DOORS:
        file = root / f"{directory.name}.{door}"
        shown = file.read_text() if file.exists() else ""
        assert shown == said, f"{directory.name} at the door {door}: {shown!r}, and said was {said!r}"
    return len(said.splitlines())


def said_in(directory: Path) -> Iterator[Say]:
    """Everything that a session has said, by its trace."""
    agent = AGENTS[read_about(directory).agent]
    recording = load_recording(directory / "trace.cbor", agent)
    for each in deliveries(recording.trace, recording.step, 0):
        yield from (effect for effect in each.effects if isinstance(effect, Say))


def main() -> None:
    """Run, print, and judge."""
    if "--child" in sys.argv:
        root, sessions, words, name = sys.argv[sys.argv.index("--child") + 1 :]
        serve(Path(root), int(sessions), int(words), name)
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for option, default in (("--sessions", 50), ("--words", 2), ("--kills", 3)):
        parser.add_argument(option, type=int, default=default)
    parser.add_argument("--model", default="smollm2")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        fair = run(Path(folder), given.sessions, 1, 0, given.model)
        print("all ask at once:  ", fair)
    with tempfile.TemporaryDirectory() as folder:
        print("killed at random: ", run(Path(folder), given.sessions, given.words, given.kills, given.model))
    if fair["worst_wait_by_mean"] > UNFAIR:
        sys.exit(f"a session waited {fair['worst_wait_by_mean']} times the mean; {UNFAIR} is the most")


if __name__ == "__main__":
    main()

"""A process that serves sessions to doors that write files, for tests that kill it: `python served.py ROOT ROUNDS`.

Each door appends what is said to its file, with the id of the effect; it remembers nothing else, and drops what its
file has already. Each session is asked until its trace holds ROUNDS words. Ends with exit code 0 when all is answered.
"""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

from edgeagent.codec.dialect import dialect_called
from edgeagent.core.agent import Agent, tool
from edgeagent.core.effects import Say
from edgeagent.core.events import UserSaid
from edgeagent.driver.scripted import ScriptedModel
from edgeagent.runtime.attached import Attached
from edgeagent.runtime.door import QuietDoor
from edgeagent.runtime.folder import Beginning, directories
from edgeagent.runtime.resume import resume_session
from edgeagent.runtime.session import Outside, Session, new_session
from edgeagent.runtime.wiring import drivers_of, step_of
from edgeagent.trace.file import examine_file

SESSIONS, DOORS = 3, ("paper", "wall")
NO_END = 1_000_000
"""More rounds than any machine gets through before it is killed."""


@tool(idempotent=True, effect="read")
def look() -> int:
    """Look at the clock."""
    return 12


AGENT = Agent("clerk", "You answer.", (look,), dialect=dialect_called("plain"))


class Counting(ScriptedModel):
    """Calls the tool, then answers with how many results it has seen: every answer is another one."""

    def __init__(self) -> None:
        super().__init__(())

    def submit(self, effect, post):
        last = effect.messages[-1]
        text = '{"name": "look", "arguments": {}}' if last.role == "user" else f"answer {effect.effect_id}"
        self._script = iter([text])
        super().submit(effect, post)


class FileDoor(QuietDoor):
    """Appends each answer to a file, once."""

    def __init__(self, file: Path) -> None:
        self._file = file
        lines = file.read_text().splitlines(keepends=True) if file.exists() else []
        if lines and not lines[-1].endswith("\n"):  # Its own write was cut off: what is not whole was not shown.
            lines.pop()
            file.write_text("".join(lines))
        self._last = int(lines[-1].split()[0]) if lines else 0

    def watch(self, event, state, effects):
        for effect in effects:
            if isinstance(effect, Say) and effect.effect_id > self._last:
                self._last = effect.effect_id
                descriptor = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
                os.write(descriptor, f"{effect.effect_id} {effect.text}\n".encode())
                os.close(descriptor)


def opened(root: Path) -> list[Session]:
    """All sessions of `root`, made or resumed, with their doors."""
    sessions = []
    have = directories(root)
    for number in range(SESSIONS):
        doors = Attached(QuietDoor())
        drivers = drivers_of(AGENT, Counting(), doors.person)
        if number < len(have):
            session = resume_session(have[number], AGENT, step_of(AGENT), drivers, outside=Outside(doors))
        else:
            beginning = Beginning(agent_spec="", model="script")
            session = new_session(AGENT, step_of(AGENT), drivers, root, beginning, Outside(doors))
        for name in DOORS:
            session.attach(FileDoor(root / f"{session.id}.{name}"), name)
        sessions.append(session)
    return sessions


def words_in(trace: Path) -> int:
    """How many words a trace holds."""
    return sum(isinstance(r.event, UserSaid) for r in examine_file(trace).records)


def live(session: Session, rounds: int) -> None:
    """Ask until the trace holds that many words."""
    while (said := words_in(session.trace_path)) < rounds:
        session.ask(f"word {said}", door="test")


def main(root: Path, rounds: int) -> None:
    """Serve until every session has answered every word."""
    sessions = opened(root)
    for session in sessions:
        threading.Thread(target=session.serve, daemon=True).start()
    threads = [threading.Thread(target=live, args=(session, rounds)) for session in sessions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for session in sessions:
        session.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))

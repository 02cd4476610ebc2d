"""A session with a server that behaves as a test says, and a world in which effects are counted."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import msgspec
import pytest

from edgeagent.core.agent import Agent, tool
from edgeagent.core.effects import Say
from edgeagent.driver.mcp.settings import ServerSettings
from edgeagent.runtime.door import Decision, QuietDoor
from edgeagent.runtime.offered import look
from edgeagent.runtime.open import OpenRequest, open_session
from edgeagent.runtime.recording import load_recording, records_of
from edgeagent.runtime.servers import approve
from edgeagent.trace.check import fold

SERVER = Path(__file__).with_name("odd_server.py")


class Watching(QuietDoor):
    """Keeps what is said and told; answers each question as it was told to."""

    def __init__(self, decides=False):
        self.said, self.told, self.questions, self.decides = [], [], [], decides

    def watch(self, event, state, effects):
        self.said += [effect.text for effect in effects if isinstance(effect, Say)]

    def activity(self, text):
        self.told.append(text)

    def decide(self, question):
        self.questions.append(question)
        return Decision(self.decides, "", question.digest)


def a_call(name, **arguments):
    return json.dumps({"name": name, "arguments": arguments})


class Case:
    """One server, approved as it was at first, and sessions with it."""

    def __init__(self, folder, behaviour, **settings):
        self.folder, self.behaviour, self.door = folder, behaviour, Watching()
        self.calls_file, self.sent = folder / "calls.txt", []
        settings = {"allow": ["*"], "effect": "read", "idempotent": False, "confirm": False} | settings
        self.script = folder / "odd_server.py"
        self.script.write_bytes(SERVER.read_bytes())
        started = {"command": [sys.executable, str(self.script), behaviour, str(self.calls_file)]}
        self.settings = ({} if "url" in settings else started) | settings
        self.state = folder / "state"
        self.write_settings()

    def write_settings(self):
        lines = [f"{key} = {_toml(value)}" for key, value in self.settings.items()]
        (self.folder / "edgeagent.toml").write_text("\n".join(["[mcp.odd]", *lines, ""]))

    @property
    def server(self) -> ServerSettings:
        return msgspec.convert(self.settings | {"folder": str(self.folder)}, ServerSettings)

    @property
    def calls(self) -> list[str]:
        """What the server was really called with."""
        return self.calls_file.read_text().splitlines() if self.calls_file.exists() else []

    def look(self):
        return look(self.state, "odd", self.server)

    def approve(self):
        looked = self.look()
        return approve(self.state, "odd", self.server, looked.offered, looked.seen)

    def agent(self, *policies):
        @tool(idempotent=False, effect="irreversible")
        def send_mail(to: str, text: str) -> str:
            """Send a mail to somebody."""
            self.sent.append(to)
            return "sent"

        return Agent("clerk", "You look words up.", (send_mail,), policies=policies)

    def open(self, *answers, policies=(), **more):
        script = self.folder / "script.json"
        if answers:
            script.write_text(json.dumps(answers))
        asked = {"agent": self.agent(*policies), "model": f"script:{script}"} if "last" not in more else {}
        asked |= {"config": self.folder / "edgeagent.toml", "state": self.state}
        return open_session(OpenRequest(**(asked | more)), self.door)

    def run(self, *answers, words=("Look it up.",), policies=()):
        """One session in which each of these words is said; the events of its trace, folded without the server."""
        session = self.open(*answers, policies=policies)
        try:
            for each in words:
                session.say(each)
        finally:
            session.close()
        self.script.unlink(missing_ok=True)
        recording = load_recording(session.trace_path, self.agent(*policies))
        found = records_of(session.trace_path)
        fold(recording.step, found.records)
        return [record.event for record in found.records]


def _toml(value):
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)} = {_toml(v)}" for k, v in value.items()) + "}"
    return json.dumps(value)


@pytest.fixture
def case(tmp_path, monkeypatch):
    """Makes a case: `case("dies", timeout_s=2.0)`."""
    monkeypatch.delenv("EDGEAGENT_CONFIG", raising=False)
    return lambda behaviour, **settings: Case(tmp_path, behaviour, **settings)

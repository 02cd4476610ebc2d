"""A value that stays on this device is in nothing that is sent elsewhere, whatever is made of it.

The model elsewhere is a real server on loopback that counts as elsewhere; the one here follows a script. The server is
asked until the value has been read, and never again.
"""

from __future__ import annotations

import base64
import codecs
import hashlib
import json
import zlib
from pathlib import Path

import pytest

from edgeagent.core.agent import Agent, tool
from edgeagent.core.budget import Budget
from edgeagent.core.events import ModelAnswered
from edgeagent.policy.rules import stays_here
from edgeagent.runtime.door import QuietDoor
from edgeagent.runtime.fork import fork_session
from edgeagent.runtime.open import OpenRequest, open_session
from edgeagent.trace.file import examine_file
from tests.driver.remote.peer import calling, peer, saying

PIN = "Canary-4711-Vault"
RAW = PIN.encode()

RETOLD = {
    "as it is": PIN,
    "quoted": f"the pin is '{PIN}'",
    "twice quoted": json.dumps(json.dumps(PIN)),
    "as JSON": json.dumps({"pin": PIN}),
    "in capitals": PIN.upper(),
    "in small letters": PIN.lower(),
    "backwards": PIN[::-1],
    "spelled": " ".join(PIN),
    "with hyphens": "-".join(PIN),
    "a letter a line": "\n".join(PIN),
    "the first half": PIN[:8],
    "the second half": PIN[8:],
    "its digits": "4711",
    "its digits in words": "four seven one one",
    "its sum": "13",
    "the numbers of its letters": str([*RAW]),
    "in hexadecimal": RAW.hex(),
    "in base 64": base64.b64encode(RAW).decode(),
    "in base 64 for URLs": base64.urlsafe_b64encode(RAW).decode(),
    "in base 32": base64.b32encode(RAW).decode(),
    "in base 85": base64.b85encode(RAW).decode(),
    "in ascii 85": base64.a85encode(RAW).decode(),
    "in percent signs": "".join(f"%{each:02x}" for each in RAW),
    "in entities": "".join(f"&#{each};" for each in RAW),
    "in escapes": "".join(f"\\u{each:04x}" for each in RAW),
    "in binary": " ".join(f"{each:08b}" for each in RAW),
    "rotated": codecs.encode(PIN, "rot13"),
    "compressed": base64.b64encode(zlib.compress(RAW)).decode(),
    "as a digest": hashlib.sha256(RAW).hexdigest(),
    "with blanks of no width": "\u200b".join(PIN),
    "in full width": "".join(chr(ord(each) + 0xFEE0) for each in PIN),
    "with look-alikes": PIN.replace("a", "а"),  # A Cyrillic one is what this is about.
    "in a table": "\n".join(f"| {place} | {each} |" for place, each in enumerate(PIN)),
    "as a rhyme": "\n".join(f"{each} is for {each}ear" for each in PIN),
    "in an address": f"https://example.com/?q={PIN}",
    "as a name of a file": f"/tmp/{PIN}.txt",
    "summarised": "A canary, a number of four digits, and a vault.",
    "translated": "Kanarienvogel, siebenundvierzig elf, Tresor",
    "how long it is": str(len(PIN)),
    "whether it has a seven": "yes",
}


@tool(idempotent=True, effect="read", trusted=True, sensitive=True)
def read_pin() -> str:
    """Read the pin of the safe."""
    return PIN


@tool(idempotent=True, effect="write", trusted=True, sensitive=True)
def set_pin(pin: str) -> str:
    """Set the pin of the safe."""
    raise ValueError(f"{pin} is no pin")


@tool(idempotent=True, effect="read", trusted=True)
def retell(how: str) -> str:
    """Tell the pin in another way."""
    return RETOLD[how]


KEEPS = [stays_here(of="sensitive")]
SAFE = Agent("safe", "You watch a safe.", (read_pin, set_pin, retell), policies=KEEPS, hears=["door"])
READ = calling(("read_pin", "{}"))
SAY = "It is set."


def call(name: str, **arguments: str) -> str:
    return json.dumps({"name": name, "arguments": arguments})


class Elsewhere:
    """A session whose first model is elsewhere, and answers once so; then the script answers."""

    def __init__(self, folder: Path, served, *script: str, agent: Agent = SAFE):
        (folder / "script.json").write_text(json.dumps(script))
        self.file = folder / "edgeagent.toml"
        self.file.write_text(
            f'model = ["lan", "local"]\n[models.lan]\nendpoint = "{served.url}"\nmodel = "m"\nhere = false\n'
            f'[models.local]\nname = "script:{folder / "script.json"}"\n'
        )
        self.folder, self.agent, self.served = folder, agent, served

    def open(self, **more):
        request = OpenRequest(agent=self.agent, config=self.file, state=self.folder / "state", **more)
        return open_session(request, QuietDoor())

    def check(self, session, asked: int = 1) -> None:
        """The server was asked so often, and all that followed was answered here."""
        session.close()
        events = [record.event for record in examine_file(session.trace_path).records]
        models = [each.asked[-1][0] for each in events if isinstance(each, ModelAnswered)]
        assert models == ["lan"] * asked + ["local"] * (len(models) - asked)
        assert len(models) > asked
        assert self.served.accepted == asked
        assert not any(form in body.decode() for body in self.served.requests for form in (PIN, PIN[::-1]))


@pytest.mark.parametrize("how", RETOLD)
def test_whatever_is_made_of_it_stays(tmp_path, how):
    with peer(READ) as served:
        talk = Elsewhere(tmp_path, served, call("retell", how=how), RETOLD[how], SAY)
        session = talk.open()
        session.say("Which pin is it?")
        session.say("And in your own words?")
        talk.check(session)


def test_there_are_forty_ways():
    assert len(RETOLD) == 40


def test_it_stays_when_the_session_is_opened_again(tmp_path):
    with peer(READ) as served:
        talk = Elsewhere(tmp_path, served, SAY, SAY)
        session = talk.open()
        session.say("Which pin is it?")
        session.close()
        again = talk.open(last=True)
        again.say("Again?")
        talk.check(again)


def test_it_stays_in_a_session_that_is_forked_behind_it(tmp_path):
    with peer(READ) as served:
        talk = Elsewhere(tmp_path, served, SAY, SAY)
        session = talk.open()
        session.say("Which pin is it?")
        session.close()
        forked = fork_session(talk.folder / "state", session.directory, agent=SAFE).directory
        again = talk.open(resume=forked.name)
        again.say("Again?")
        talk.check(again)


def test_what_a_sensitive_tool_is_given_stays_though_it_failed(tmp_path):
    with peer(calling(("set_pin", json.dumps({"pin": PIN})))) as served:
        talk = Elsewhere(tmp_path, served, SAY)
        session = talk.open()
        session.say("Set a pin of your own.")
        talk.check(session)


def test_it_stays_in_what_a_sub_agent_is_asked_and_in_what_it_answers(tmp_path):
    clerk = Agent("clerk", "You keep books.", (read_pin, retell))
    above = Agent(
        "above", "You ask.", (clerk.as_tool(description="Ask the clerk.", effect="read", trusted=True),), policies=KEEPS
    )
    answers = [calling(("clerk", '{"request": "the pin"}')), READ]
    with peer(lambda connection, number: connection.sendall(answers[number - 1])) as served:
        talk = Elsewhere(tmp_path, served, PIN, f"The clerk says {PIN}.", SAY, agent=above)
        session = talk.open()
        session.say("Which pin is it?")
        session.say("Sure?")
        talk.check(session, asked=2)


def test_it_stays_in_a_call_that_could_not_be_read(tmp_path):
    with peer(READ) as served:
        talk = Elsewhere(tmp_path, served, f'{{"name": "set_pin", "arguments": {{"pin": "{PIN}"', SAY)
        session = talk.open()
        session.say("Which pin is it?")
        talk.check(session)


def test_it_stays_in_a_closing_answer(tmp_path):
    agent = Agent("safe", "You watch a safe.", (read_pin, retell), policies=KEEPS, budget=Budget(steps=2))
    with peer(READ) as served:
        talk = Elsewhere(tmp_path, served, SAY, agent=agent)
        session = talk.open()
        session.say("Which pin is it?")
        talk.check(session)


def test_it_stays_in_a_turn_that_a_line_from_outside_begins(tmp_path):
    with peer(READ) as served:
        talk = Elsewhere(tmp_path, served, SAY, SAY)
        session = talk.open()
        session.say("Which pin is it?")
        session.post_heard("door", "it was opened")
        session.resume_turn()
        talk.check(session)


def test_before_it_is_read_the_model_elsewhere_answers_turn_after_turn(tmp_path):
    answers = [saying("Hello."), saying("Yes."), READ]
    with peer(lambda connection, number: connection.sendall(answers[number - 1])) as served:
        talk = Elsewhere(tmp_path, served, SAY)
        session = talk.open()
        for text in ("Hi.", "Are you there?", "Which pin is it?"):
            session.say(text)
        talk.check(session, asked=3)

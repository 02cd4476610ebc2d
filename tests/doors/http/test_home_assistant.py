"""Requests of Home Assistant's integrations: each is answered as its integration reads it, or refused by name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from edgeagent.driver.scripted import ScriptedModel
from edgeagent.runtime.model import Script
from tests.doors.http import clients
from tests.doors.http.home_assistant import CASES
from tests.doors.http.serving import serving
from tests.doors.http.test_chat import BARE, chat, content_of, streamed

WRITTEN = {
    "HassTurnOn": {"name": "desk"},
    "execute_services": {
        "list": [{"domain": "light", "service": "turn_on", "service_data": {"entity_id": ["light.desk"]}}]
    },
}
FORM = '{"name": "answer", "arguments": {"title": "Sweep", "hours": null, "tags": []}}'


class House(Script):
    """Answers in words or with a call; where a form is asked for, with that."""

    def driver(self, agent, doors, root, answered, manner=None):
        return ScriptedModel([FORM] if "answer" in agent.by_name else self._answers)


@pytest.mark.parametrize(("body", "wanted"), CASES.values(), ids=CASES)
def test_a_request_of_home_assistant_is_answered_or_refused_by_name(tmp_path, body, wanted):
    name = body.get("tools", [{}])[0].get("function", {}).get("name", "")
    call = json.dumps({"name": name, "arguments": WRITTEN.get(name, {})})
    answer = call if wanted == "call" else "I am the house."
    body = dict(body)
    messages, is_streamed = body.pop("messages"), body.pop("stream", False)
    with serving(tmp_path, model=House((answer,))) as server:
        if wanted.startswith("refused: "):
            status, said = chat(server, BARE, *messages, stream=is_streamed, **body)
            assert status == 400
            assert wanted.removeprefix("refused: ") in f"{said['error']['param']} {said['error']['message']}"
            return
        if is_streamed:
            chunks = streamed(server, BARE, *messages, **body)
            rows = [each["choices"][0] for each in chunks[:-1] if each["choices"]]
            calls = [call for row in rows for call in row["delta"].get("tool_calls", [])]
            text, finish = content_of(chunks), rows[-1]["finish_reason"]
        else:
            choice = chat(server, BARE, *messages, **body)[1]["choices"][0]
            calls, text = choice["message"].get("tool_calls", []), choice["message"]["content"]
            finish = choice["finish_reason"]
    match wanted:
        case "call":
            assert [each["function"]["name"] for each in calls] == [name] and finish == "tool_calls"
            assert json.loads(calls[0]["function"]["arguments"]) == WRITTEN[name]
        case "json":
            assert json.loads(text) == {"title": "Sweep", "hours": None, "tags": []} and not calls
        case _:
            assert text == "I am the house." and not calls and finish == "stop"


def test_the_table_of_the_docs_has_a_row_for_each_case():
    page = (Path(__file__).parents[3] / "docs" / "serve.md").read_text()
    rows = page.partition(clients.BEGIN)[2].partition(clients.END)[0].splitlines()
    names = [row.split(" | ")[0].removeprefix("| ") for row in rows]
    answered = [name for name, (_, wanted) in CASES.items() if not wanted.startswith("refused: ")]
    wanted = [*clients.CASES, *(f"Home Assistant: {name}" for name in answered)]
    assert names[3 : 3 + len(wanted)] == wanted

"""The protocol's own Python SDK as the client of `edgeagent mcp`: what it reads of ours passes its models."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest

pytest.importorskip("mcp", reason="the MCP SDK is missing, so clients were NOT tried: pip install mcp")

from mcp import ClientSession, StdioServerParameters, stdio_client, types  # after the skip

from tests.doors.mcp.garden import AGENT

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore")]

ROOT = Path(__file__).parents[3]


def drive(folder, do, *, says=None, answers=("Forty-one percent.",)):
    """Run a client against the agent in this folder; `says` is what its user answers to questions."""
    (folder / "garden.py").write_text(AGENT)
    (folder / "script.json").write_text(json.dumps(answers))
    arguments = ["-m", "edgeagent", "mcp", str(folder / "garden.py"), "--state", str(folder / "state")]
    arguments += ["--model", f"script:{folder / 'script.json'}"]
    server = StdioServerParameters(command=sys.executable, args=arguments, env={**os.environ, "PYTHONPATH": str(ROOT)})
    asked = []

    async def answer(context, params):
        asked.append(params.message)
        content = {"run": says == "yes"}
        return types.ElicitResult(action="decline" if says == "no" else "accept", content=content)

    async def main():
        async with stdio_client(server) as (read, write):
            callback = answer if says is not None else None
            async with ClientSession(read, write, read_timeout_seconds=60, elicitation_callback=callback) as client:
                await client.initialize()
                return await do(client)

    return asyncio.run(main()), asked


def effects(folder):
    return (folder / "effects").read_text().splitlines() if (folder / "effects").exists() else []


def text_of(result):
    return result.content[0].text


async def opened(client):
    return await client.call_tool("set_valve", {"valve": "north", "seconds": 30})


def test_it_lists_the_tools_that_a_program_can_call_and_the_agent(tmp_path):
    async def listed(client):
        return (await client.list_tools()).tools

    tools, _ = drive(tmp_path, listed)
    assert [each.name for each in tools] == ["set_valve", "read_sensor", "ask_garden"]
    assert tools[0].input_schema["properties"]["valve"]["enum"] == ["north", "south"]
    assert (tools[0].annotations.read_only_hint, tools[1].annotations.read_only_hint) == (False, True)


def test_a_read_is_answered_with_its_value(tmp_path):
    async def read(client):
        return await client.call_tool("read_sensor", {"sensor": "soil"})

    result, _ = drive(tmp_path, read)
    assert (result.is_error, result.structured_content) == (False, {"sensor": "soil", "percent": 41})


@pytest.mark.parametrize(("says", "done"), [("yes", ["north 30"]), ("unsure", []), ("no", []), (None, [])])
def test_a_write_runs_only_if_the_clients_user_says_yes_to_it(tmp_path, says, done):
    result, asked = drive(tmp_path, opened, says=says)
    assert (effects(tmp_path), result.is_error) == (done, not done)
    assert len(asked) == (says is not None)
    assert all("set_valve" in question and "north" in question for question in asked)


def test_a_rule_holds_for_the_calls_of_a_program(tmp_path):
    async def three(client):
        return [await opened(client) for _ in range(3)]

    results, _ = drive(tmp_path, three, says="yes")
    assert [each.is_error for each in results] == [False, False, True]
    assert "twice is enough" in text_of(results[2])
    assert len(effects(tmp_path)) == 2


@pytest.mark.parametrize(
    ("name", "arguments", "why"),
    [
        ("read_sensor", {"sensor": "sea"}, "sensor"),
        ("read_sensor", {}, "sensor"),
        ("find", {"words": "me"}, "there is no tool 'find'"),
        ("rm", {}, "there is no tool 'rm'"),
    ],
)
def test_what_cannot_be_called_so_is_told(tmp_path, name, arguments, why):
    async def call(client):
        return await client.call_tool(name, arguments)

    result, _ = drive(tmp_path, call)
    assert result.is_error and why in text_of(result)


def test_the_agent_is_asked_in_words(tmp_path):
    async def ask(client):
        return await client.call_tool("ask_garden", {"text": "How wet is the soil?"})

    script = (json.dumps({"name": "read_sensor", "arguments": {"sensor": "soil"}}), "Forty-one percent.")
    result, _ = drive(tmp_path, ask, answers=script)
    assert text_of(result) == "Forty-one percent."


def test_every_call_stands_in_a_trace_that_can_be_read(tmp_path):
    async def read(client):
        await client.call_tool("read_sensor", {"sensor": "air"})
        [found] = [each for each in (await client.list_resources()).resources if "trace" in each.name]
        return (await client.read_resource(found.uri)).contents[0].text

    told, _ = drive(tmp_path, read)
    assert "read_sensor" in told and "air" in told
    print(told)

"""The protocol's own Python SDK as the client, over stdio and over HTTP: what it reads of ours passes its models."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from pathlib import Path

import pytest

pytest.importorskip("mcp", reason="the MCP SDK is missing, so clients were NOT tried: pip install mcp")

import httpx2  # after the skip
from mcp import ClientSession, MCPError, StdioServerParameters, stdio_client, types
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from tests.doors.http.serving import ANNE, serving
from tests.doors.mcp.garden import AGENT

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore")]

ROOT = Path(__file__).parents[3]


@pytest.fixture(params=["stdio", "http"])
def drive(request):
    """Runs a client, over stdio or over HTTP."""
    over = _over_stdio if request.param == "stdio" else _over_http

    def run(folder, do, **more):
        return _driven(folder, do, over, **more)

    return run


def _started(folder, answers):
    (folder / "garden.py").write_text(AGENT)
    (folder / "script.json").write_text(json.dumps(answers))
    arguments = ["-m", "edgeagent", "mcp", str(folder / "garden.py"), "--state", str(folder / "state")]
    arguments += ["--model", f"script:{folder / 'script.json'}"]
    return StdioServerParameters(command=sys.executable, args=arguments, env={**os.environ, "PYTHONPATH": str(ROOT)})


@contextlib.asynccontextmanager
async def _over_stdio(folder, answers):
    async with stdio_client(_started(folder, answers)) as streams:
        yield streams


@contextlib.asynccontextmanager
async def _over_http(folder, answers):
    with serving(folder, tuple(answers), agent=AGENT) as server:
        url, headers = f"http://127.0.0.1:{server.port}/mcp", {"Authorization": f"Bearer {ANNE}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=60) as http,
            streamable_http_client(url, http_client=http) as streams,
        ):
            yield streams


def _driven(folder, do, over, *, says=None, answers=("Forty-one percent.",)):
    """Let a client do this with the agent; `says` is what its user answers to questions, or what comes of it."""
    asked = []

    async def answer(context, params):
        asked.append(params.message)
        if callable(says):
            return await says()
        content = {"run": says == "yes"}
        return types.ElicitResult(action="decline" if says == "no" else "accept", content=content)

    async def main():
        async with over(folder, answers) as (read, write):
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


def test_it_lists_the_tools_that_a_program_can_call_and_the_agent(tmp_path, drive):
    async def listed(client):
        return (await client.list_tools()).tools

    tools, _ = drive(tmp_path, listed)
    assert [each.name for each in tools] == ["set_valve", "read_sensor", "ask_garden"]
    assert tools[0].input_schema["properties"]["valve"]["enum"] == ["north", "south"]
    assert (tools[0].annotations.read_only_hint, tools[1].annotations.read_only_hint) == (False, True)


def test_a_read_is_answered_with_its_value(tmp_path, drive):
    async def read(client):
        return await client.call_tool("read_sensor", {"sensor": "soil"})

    result, _ = drive(tmp_path, read)
    assert (result.is_error, result.structured_content) == (False, {"sensor": "soil", "percent": 41})


@pytest.mark.parametrize(("says", "done"), [("yes", ["north 30"]), ("unsure", []), ("no", []), (None, [])])
def test_a_write_runs_only_if_the_clients_user_says_yes_to_it(tmp_path, drive, says, done):
    result, asked = drive(tmp_path, opened, says=says)
    assert (effects(tmp_path), result.is_error) == (done, not done)
    assert len(asked) == (says is not None)
    assert all("set_valve" in question and "north" in question for question in asked)


def test_a_rule_holds_for_the_calls_of_a_program(tmp_path, drive):
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
def test_what_cannot_be_called_so_is_told(tmp_path, drive, name, arguments, why):
    async def call(client):
        return await client.call_tool(name, arguments)

    result, _ = drive(tmp_path, call)
    assert result.is_error and why in text_of(result)


def test_the_agent_is_asked_in_words(tmp_path, drive):
    async def ask(client):
        return await client.call_tool("ask_garden", {"text": "How wet is the soil?"})

    script = (json.dumps({"name": "read_sensor", "arguments": {"sensor": "soil"}}), "Forty-one percent.")
    result, _ = drive(tmp_path, ask, answers=script)
    assert text_of(result) == "Forty-one percent."


def test_every_call_stands_in_a_trace_that_can_be_read(tmp_path, drive):
    async def read(client):
        await client.call_tool("read_sensor", {"sensor": "air"})
        [found] = [each for each in (await client.list_resources()).resources if "trace" in each.name]
        return (await client.read_resource(found.uri)).contents[0].text

    told, _ = drive(tmp_path, read)
    assert "read_sensor" in told and "air" in told
    print(told)


def test_a_call_that_its_program_gives_up_ends_and_the_next_is_answered(tmp_path, drive):
    async def never():
        await asyncio.Event().wait()

    async def gave_up(client):
        with pytest.raises(MCPError, match=r"(?i)timed out"):
            await client.call_tool("set_valve", {"valve": "north", "seconds": 30}, read_timeout_seconds=0.5)
        return await client.call_tool("read_sensor", {"sensor": "soil"})

    result, asked = drive(tmp_path, gave_up, says=never)
    assert result.structured_content["percent"] == 41
    assert effects(tmp_path) == [] and len(asked) <= 1


def test_progress_is_told_to_who_wants_it(tmp_path, drive):
    told = []

    async def progressed(progress, total, message):
        told.append((progress, message))

    async def ask(client):
        return await client.call_tool("ask_garden", {"text": "How wet?"}, progress_callback=progressed)

    drive(tmp_path, ask)
    counts = [count for count, _ in told]
    assert len(counts) >= 2 and counts == sorted(set(counts))
    assert any("AskModel" in message for _, message in told)


def test_the_prompt_is_to_ask_the_agent(tmp_path, drive):
    async def prompted(client):
        [prompt] = (await client.list_prompts()).prompts
        return prompt, await client.get_prompt(prompt.name, {"text": "Water the north bed."})

    (prompt, got), _ = drive(tmp_path, prompted)
    assert (prompt.name, [each.name for each in prompt.arguments]) == ("ask_garden", ["text"])
    assert "Water the north bed." in got.messages[0].content.text


def test_the_forms_of_resources_are_listed_and_completed(tmp_path, drive):
    async def completed(client):
        await client.call_tool("read_sensor", {"sensor": "air"})
        templates = (await client.list_resource_templates()).resource_templates
        about = types.ResourceTemplateReference(type="ref/resource", uri=templates[0].uri_template)
        found = (await client.complete(about, {"name": "session", "value": ""})).completion.values
        read = await client.read_resource(templates[0].uri_template.replace("{session}", found[0]))
        return [each.uri_template for each in templates], read.contents[0].text

    (templates, text), _ = drive(tmp_path, completed)
    assert templates == ["edgeagent://trace/{session}", "edgeagent://session/{session}"]
    assert "read_sensor" in text


def test_a_resource_that_is_none_is_an_error(tmp_path, drive):
    async def read(client):
        with pytest.raises(MCPError, match="there is no resource"):
            await client.read_resource("edgeagent://trace/../../etc/passwd")
        return True

    assert drive(tmp_path, read)[0]


@pytest.mark.parametrize("over", ["stdio", "http"])
def test_the_newest_client_agrees_upon_a_version_and_asks_its_user(tmp_path, over):
    async def answer(context, params):
        return types.ElicitResult(action="accept", content={"run": "set_valve" in params.message})

    async def use(target):
        async with Client(target, elicitation_callback=answer, read_timeout_seconds=60) as client:
            called = await client.call_tool("set_valve", {"valve": "north", "seconds": 30})
            return (
                client.protocol_version,
                text_of(called),
                text_of(await client.call_tool("ask_garden", {"text": "?"})),
            )

    if over == "http":
        with serving(tmp_path, ("Forty-one percent.",), agent=AGENT, keys=None) as server:
            version, *said = asyncio.run(use(f"http://127.0.0.1:{server.port}/mcp"))
    else:
        version, *said = asyncio.run(use(_started(tmp_path, ("Forty-one percent.",))))
    assert version == ("2026-07-28" if over == "http" else "2025-11-25")
    assert said == ["north is open for 30 s", "Forty-one percent."]
    assert effects(tmp_path) == ["north 30"]

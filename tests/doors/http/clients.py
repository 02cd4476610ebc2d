"""What the official client of OpenAI's protocol, a conformance probe and Home Assistant get of a real server.

    python -m tests.doors.http.clients [--page docs/serve.md]

A process `edgeagent serve` with SmolLM2 is asked by both kinds of names. Prints a table, puts it into the page, and
fails where anything is another way than it must be. What a small model gets wrong of the probe's scenarios is shown and
is no failure; what breaks the protocol is.
"""

from __future__ import annotations

import argparse
import asyncio
import inspect
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import openai
import pydantic
from canitoolcall import probe

from tests.doors.http.home_assistant import CASES as HOUSE

ROOT = Path(__file__).parents[3]
BEGIN, END = "<!-- clients: begin -->", "<!-- clients: end -->"
"""Between these the page has the table."""

AGENT, BARE = "garden", "garden:model"
KEY = "clients-" + "k" * 24
SOURCE = '''
from typing import Literal
from edgeagent import Agent, tool

@tool(idempotent=True, effect="read", trusted=True, examples=["What time is it?"])
def clock() -> str:
    """Tell the time."""
    return "12:00"

@tool(idempotent=False, effect="write", confirm=True)
def set_valve(valve: Literal["north", "south"], seconds: int) -> str:
    """Open a valve for some seconds."""
    return f"{valve} is open for {seconds} s"

agent = Agent("garden", "You water a garden.", (clock, set_valve))
'''
OPEN = "Open the north valve for 30 seconds."
Outcome = Literal["yes", "400"]


class GetWeather(pydantic.BaseModel):
    """Tell the weather in a city."""

    city: str


class Person(pydantic.BaseModel):
    name: str
    age: int


WEATHER = openai.pydantic_function_tool(GetWeather, name="get_weather")
IN_PARIS = "What is the weather in Paris right now?"
WHO = "Anna is 34 years old. Give her name and her age."


class Served:
    """A server that runs, and clients of it."""

    def __init__(self, base: str) -> None:
        self.base = base
        options: dict[str, Any] = {"base_url": f"{base}/v1", "api_key": KEY, "max_retries": 0, "timeout": 120}
        self.client, self.options = openai.OpenAI(**options), options

    def chat(self, model: str, text: str, **more: Any) -> Any:
        """One request of one message."""
        return self.client.chat.completions.create(model=model, messages=[user(text)], **more)

    def decide(self, more: dict[str, Any]) -> None:
        """Say yes to what is asked."""
        (question,) = more["questions"]
        body = {"approved": True, "digest": question["digest"]}
        path = f"{self.base}/api/sessions/{more['session']}/questions/{question['id']}"
        self.client.post(path, cast_to=object, body=body)


def user(text: str) -> Any:
    return {"role": "user", "content": text}


@contextmanager
def server() -> Iterator[Served]:
    """Serve the garden in a process of its own until the block ends."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "garden.py").write_text(SOURCE)
        keys = Path(folder) / "edgeagent.keys"
        keys.touch(0o600)
        keys.write_text(f"clients {KEY}\n")
        arguments = [f"{folder}/garden.py", "--port", "0", "--keys", str(keys), "--state", f"{folder}/state"]
        command = [sys.executable, "-m", "edgeagent", "serve", *arguments]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
            assert process.stderr is not None
            said = ""
            try:
                for line in process.stderr:
                    said += line
                    if line.startswith("serving on "):
                        break
                assert "serving on " in said, said
                yield Served(line.split()[-1])
            finally:
                process.send_signal(signal.SIGTERM)
                process.communicate(timeout=60)


# -- cases: each is given the server and a name, and asserts ---------------------------------------------------------


def models_are_listed(served: Served, model: str) -> None:
    assert model in [each.id for each in served.client.models.list()]
    assert served.client.models.retrieve(model).owned_by == "edgeagent"


def an_answer_in_words(served: Served, model: str) -> None:
    said = served.chat(model, "Hello")
    assert said.choices[0].message.content and said.choices[0].finish_reason in ("stop", "length")
    assert said.usage.total_tokens == said.usage.prompt_tokens + said.usage.completion_tokens > 0


async def asynchronously(served: Served, model: str) -> None:
    async with openai.AsyncOpenAI(**served.options) as client:
        said = await client.chat.completions.create(model=model, messages=[user("Hello")])
        assert said.choices[0].message.content
        stream = await client.chat.completions.create(model=model, messages=[user("Hello")], stream=True)
        text = "".join([each.choices[0].delta.content or "" async for each in stream])
    assert text == said.choices[0].message.content


def a_stream_with_usage(served: Served, model: str) -> None:
    chunks = list(served.chat(model, "Hello", stream=True, stream_options={"include_usage": True}))
    assert chunks[0].choices[0].delta.role == "assistant" and not chunks[-1].choices and chunks[-1].usage.total_tokens
    assert "".join(c.choices[0].delta.content or "" for c in chunks[:-1]) == whole(served, model)


def whole(served: Served, model: str) -> str:
    return str(served.chat(model, "Hello").choices[0].message.content)


def the_streaming_helper(served: Served, model: str) -> None:
    with served.client.chat.completions.stream(model=model, messages=[user("Hello")]) as stream:
        kinds = {event.type for event in stream}
        said = stream.get_final_completion()
    assert {"chunk", "content.delta", "content.done"} <= kinds
    assert said.choices[0].message.content == whole(served, model)


def a_stream_that_is_left(served: Served, model: str) -> None:
    stream = served.chat(model, "Hello", stream=True)
    next(iter(stream))
    stream.close()
    assert whole(served, model)


def two_turns(served: Served, model: str) -> None:
    talk = [user("Hello")]
    first = served.client.chat.completions.create(model=model, messages=talk)
    talk += [{"role": "assistant", "content": first.choices[0].message.content}, user("What time is it?")]
    second = served.client.chat.completions.create(model=model, messages=talk)
    assert second.choices[0].message.content
    if model == AGENT:
        assert "12:00" in second.choices[0].message.content
        assert second.edgeagent["session"] == first.edgeagent["session"]  # type: ignore[attr-defined]


def sixteen_at_once(served: Served, model: str) -> None:
    async def all_of_them() -> list[Any]:
        async with openai.AsyncOpenAI(**served.options | {"max_retries": 6}) as client:
            more: dict[str, Any] = {} if model == AGENT else {"max_tokens": 8}
            asked = (
                client.chat.completions.create(model=model, messages=[user(f"Hello {n}")], **more) for n in range(16)
            )
            return await asyncio.gather(*asked)

    assert all(each.choices[0].message.content for each in asyncio.run(all_of_them()))


def a_call_and_its_result(served: Served, model: str) -> None:
    said = served.chat(model, IN_PARIS, tools=[WEATHER])
    (call,) = said.choices[0].message.tool_calls
    assert said.choices[0].finish_reason == "tool_calls" and json.loads(call.function.arguments) == {"city": "Paris"}
    result = {"role": "tool", "tool_call_id": call.id, "content": "18 degrees, clear"}
    talk = [user(IN_PARIS), said.choices[0].message, result]
    told = served.client.chat.completions.create(model=model, messages=talk, tools=[WEATHER])
    assert told.choices[0].message.content


def a_call_in_a_stream(served: Served, model: str) -> None:
    with served.client.chat.completions.stream(model=model, messages=[user(IN_PARIS)], tools=[WEATHER]) as stream:
        done = [event for event in stream if event.type == "tool_calls.function.arguments.done"]
        (call,) = stream.get_final_completion().choices[0].message.tool_calls
    assert call.function.parsed_arguments == GetWeather(city="Paris") and len(done) == 1


def a_call_that_must_be(served: Served, model: str) -> None:
    named: Any = {"type": "function", "function": {"name": "get_weather"}}
    for wanted in ("required", named):
        said = served.chat(model, "Tell me something about Lisbon.", tools=[WEATHER], tool_choice=wanted)
        assert said.choices[0].message.tool_calls[0].function.name == "get_weather"


def no_call_at_all(served: Served, model: str) -> None:
    assert not served.chat(model, IN_PARIS, tools=[WEATHER], tool_choice="none").choices[0].message.tool_calls


def a_parsed_form(served: Served, model: str) -> None:
    said = served.client.chat.completions.parse(model=model, messages=[user(WHO)], response_format=Person)
    assert said.choices[0].message.parsed == Person(name="Anna", age=34)


def a_form_in_a_stream(served: Served, model: str) -> None:
    with served.client.chat.completions.stream(model=model, messages=[user(WHO)], response_format=Person) as stream:
        said = stream.get_final_completion()
    assert said.choices[0].message.parsed == Person(name="Anna", age=34)


def any_json(served: Served, model: str) -> None:
    said = served.chat(model, "Describe a cat as JSON.", response_format={"type": "json_object"}, max_tokens=60)
    assert isinstance(json.loads(said.choices[0].message.content), dict)


def a_stop_text(served: Served, model: str) -> None:
    text = str(served.chat(model, "Count from one to ten.", max_tokens=40).choices[0].message.content)
    word = text.split()[3]
    said = served.chat(model, "Count from one to ten.", max_tokens=40, stop=[word]).choices[0]
    assert text.startswith(said.message.content) and word not in said.message.content and said.finish_reason == "stop"


def a_limit_of_tokens(served: Served, model: str) -> None:
    said = served.chat(model, "Tell a long story.", max_completion_tokens=5)
    assert said.usage.completion_tokens == 5 and said.choices[0].finish_reason == "length"


def a_seed(served: Served, model: str) -> None:
    def drawn(seed: int) -> str:
        more = {"temperature": 1.0, "top_p": 0.9, "max_tokens": 12, "seed": seed}
        return str(served.chat(model, "Name an animal.", **more).choices[0].message.content)

    assert drawn(1) == drawn(1) != drawn(2)


def a_persons_decision(served: Served, model: str) -> None:
    said = served.chat(model, OPEN)
    more, notice = said.edgeagent, said.choices[0].message.content
    assert more["outcome"]["kind"] == "undecided" and "A person must decide" in notice
    talk: list[Any] = [user(OPEN), {"role": "assistant", "content": notice}, user("What time is it?")]
    with expected(openai.ConflictError):
        served.client.chat.completions.create(model=model, messages=talk)
    served.decide(more)
    patient = served.client.with_options(max_retries=6)
    assert (
        patient.chat.completions.create(model=model, messages=talk)
        .choices[0]
        .message.content.startswith("north is open")
    )


def refusals(served: Served, model: str) -> None:
    for more in ({"n": 2}, {"logprobs": True}, {"presence_penalty": 1.0}, {"extra_body": {"best_of": 3}}):
        with expected(openai.BadRequestError):
            served.chat(model, "Hello", **more)
    with expected(openai.BadRequestError):
        picture = [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}]
        served.chat(model, picture)  # type: ignore[arg-type]
    with expected(openai.NotFoundError):
        served.chat(f"{model}x", "Hello")
    with expected(openai.AuthenticationError):
        served.client.with_options(api_key="wrong" * 5).models.list()


@contextmanager
def expected(kind: type[openai.APIStatusError]) -> Iterator[None]:
    try:
        yield
    except kind as error:
        assert isinstance(error.body, dict) and error.body["message"] and error.body["type"], error.body
    else:
        raise AssertionError(f"no {kind.__name__}")


Case = Callable[[Served, str], Any]
CASES: dict[str, tuple[Case, Outcome | None, Outcome | None]] = {
    "models are listed and found": (models_are_listed, "yes", "yes"),
    "words, with usage": (an_answer_in_words, "yes", "yes"),
    "the asynchronous client, whole and streamed": (asynchronously, "yes", "yes"),
    "a stream with usage says what the whole answer says": (a_stream_with_usage, "yes", "yes"),
    "`chat.completions.stream`, event by event": (the_streaming_helper, "yes", "yes"),
    "a stream that is left, and the next request": (a_stream_that_is_left, "yes", "yes"),
    "a conversation of two turns": (two_turns, "yes", "yes"),
    "16 requests at once": (sixteen_at_once, "yes", "yes"),
    "`tools`: a call, its result, words": (a_call_and_its_result, "400", "yes"),
    "`tools` in a stream, arguments parsed": (a_call_in_a_stream, "400", "yes"),
    "`tool_choice` required and named": (a_call_that_must_be, "400", "yes"),
    "`tool_choice` none": (no_call_at_all, "400", "yes"),
    "`chat.completions.parse` with a pydantic class": (a_parsed_form, "400", "yes"),
    "the same in a stream": (a_form_in_a_stream, "400", "yes"),
    "`response_format` json_object": (any_json, "400", "yes"),
    "`stop`": (a_stop_text, "400", "yes"),
    "`max_completion_tokens`": (a_limit_of_tokens, "400", "yes"),
    "`seed`, `temperature`, `top_p`": (a_seed, "400", "yes"),
    "a person decides through the sessions API": (a_persons_decision, "yes", None),
    "what cannot be is 400, 401, 404 in OpenAI's shape": (refusals, "yes", "yes"),
}
"""Each with what must come of it for the agent and for the bare model; None where it is not asked."""


def came_of(case: Case, served: Served, model: str) -> str:
    """`yes`, `400`, or what went wrong."""
    try:
        done = case(served, model)
        if inspect.iscoroutine(done):
            asyncio.run(done)
    except openai.BadRequestError as error:
        return "400" if isinstance(error.body, dict) and error.body.get("param") else f"400 without a param: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "yes"


def house(served: Served) -> dict[str, str]:
    """What Home Assistant's requests are answered with: `yes` where it is what their integration can read."""
    found = {}
    for name, (body, wanted) in HOUSE.items():
        if wanted.startswith("refused: "):
            continue  # Tried without a model.
        try:
            found[name] = _read(served, dict(body), wanted)
        except openai.APIStatusError as error:
            found[name] = f"{error.status_code}: {error.message}"
    return found


def _read(served: Served, body: dict[str, Any], wanted: str) -> str:
    known = inspect.signature(served.client.chat.completions.create).parameters
    extra = {key: body.pop(key) for key in list(body) if key not in known}
    said = served.client.chat.completions.create(model=BARE, extra_body=extra, **body)
    text, calls = "", {}
    if body.get("stream"):
        for chunk in said:
            for choice in chunk.choices:
                text += choice.delta.content or ""
                calls |= {each.index: each.function for each in choice.delta.tool_calls or ()}
    else:
        text = said.choices[0].message.content or ""
        calls = dict(enumerate(each.function for each in said.choices[0].message.tool_calls or ()))
    arguments = [json.loads(each.arguments) for each in calls.values()]
    if wanted == "json":
        assert isinstance(json.loads(text), dict) and not calls
        return "yes"
    is_wanted = bool(arguments) if wanted == "call" else bool(text and not arguments)
    return "yes" if is_wanted else f"{'a call' if arguments else 'words'}, and {wanted} was meant"


def table(rows: list[tuple[str, str, str]]) -> str:
    """Rows as Markdown."""
    lines = ["| | agent | bare model |", "|---|---|---|", *(f"| {' | '.join(row)} |" for row in rows)]
    return "\n".join(lines)


def probed(served: Served, model: str) -> probe.ProbeReport:
    """What the probe finds."""
    return probe.probe(f"{served.base}/v1", model, api_key=KEY, concurrency=2, timeout_s=120)


def main() -> None:
    """Ask, print, and judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--page", type=Path, help="a page to put the table into, as docs/serve.md")
    given = parser.parse_args()
    rows, wrong = [], []
    with server() as served:
        for name, (case, *wanted) in CASES.items():
            cells = []
            for model, outcome in zip((AGENT, BARE), wanted, strict=True):
                found = came_of(case, served, model) if outcome else "–"
                wrong += [f"{name}, {model}: {found}"] if found != (outcome or "–") else []
                cells.append(found)
            rows.append((name, cells[0], cells[1]))
            print(*rows[-1], sep=" | ", flush=True)
        for name, found in house(served).items():
            rows.append((f"Home Assistant: {name}", "–", found))
            wrong += [] if found == "yes" or found.endswith("was meant") else [f"Home Assistant: {name}: {found}"]
            print(*rows[-1], sep=" | ", flush=True)
        report, of_agent = probed(served, BARE), probed(served, AGENT)
    print(report.render_text())
    wrong += [
        f"probe, {each.scenario_id}: {each.detail}" for each in report.outcomes if each.status in ("error", "skip")
    ]
    wrong += [f"probe of the agent, {e.scenario_id}: {e.detail}" for e in of_agent.outcomes if not _is_400(e)]
    for scenario in dict.fromkeys(each.scenario_id for each in report.outcomes):
        cells = [each.status for each in report.outcomes if each.scenario_id == scenario]
        rows.append((f"`canitoolcall probe`: {scenario} (whole, streamed, alike)", "400", ", ".join(cells)))
    if given.page:
        before, _, rest = given.page.read_text().partition(BEGIN)
        given.page.write_text(f"{before}{BEGIN}\n{table(rows)}\n{END}{rest.partition(END)[2]}")
    print(f"{len(rows)} rows, {len(wrong)} wrong", *wrong, sep="\n")
    sys.exit(bool(wrong))


def _is_400(outcome: probe.ProbeOutcome) -> bool:
    return outcome.status == "skip" or (outcome.status == "error" and "HTTP 400" in str(outcome.detail))


if __name__ == "__main__":
    main()

"""The official clients of OpenAI and Anthropic, on loopback: what they send we send, what they read we read."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from edgeagent.codec.apis import APIS
from edgeagent.codec.conversation import (
    AnswerShape,
    Call,
    Conversation,
    FromModel,
    FromTool,
    FromUser,
    Reply,
    ToolOffer,
)
from edgeagent.codec.failures import Failure, failure_of
from edgeagent.codec.json_text import read_object

pytestmark = pytest.mark.long

RECORDED = Path(__file__).parent / "recorded"


class Peer(ThreadingHTTPServer):
    """A server that keeps each request's body, and answers with what it is given."""

    daemon_threads = True
    status, content, content_type = 200, b"", "application/json"

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answering)
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.url = f"http://127.0.0.1:{self.server_port}/v1"

    def answers(self, content: bytes, content_type: str = "application/json", status: int = 200) -> None:
        self.content, self.content_type, self.status = content, content_type, status

    def replays(self, name: str) -> bytes:
        content = (RECORDED / name).read_bytes()
        self.answers(content, "text/event-stream" if name.endswith("sse") else "application/json")
        return content


class Answering(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        peer: Any = self.server
        body = read_object(self.rfile.read(int(self.headers["Content-Length"])))
        assert body is not None
        peer.asked.append((self.path.split("?")[0], body))
        self.send_response(peer.status)
        self.send_header("Content-Type", peer.content_type)
        self.send_header("Content-Length", str(len(peer.content)))
        self.end_headers()
        self.wfile.write(peer.content)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def peer() -> Iterator[Peer]:
    server = Peer()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def clients(peer: Peer) -> Iterator[SimpleNamespace]:
    openai = pytest.importorskip("openai", reason="openai is missing: NOTHING was compared with its client")
    anthropic = pytest.importorskip("anthropic", reason="anthropic is missing: NOTHING was compared with its client")
    of_openai = openai.OpenAI(api_key="k", base_url=peer.url, max_retries=0)
    of_anthropic = anthropic.Anthropic(api_key="k", base_url=peer.url.removesuffix("/v1"), max_retries=0)
    with of_openai, of_anthropic:
        yield SimpleNamespace(openai=of_openai, anthropic=of_anthropic)


# -- what is sent ----------------------------------------------------------------------------------------------------

SCHEMA = {
    "type": "object",
    "properties": {"bed": {"type": "string", "enum": ["north", "south"]}, "litres": {"type": "integer"}},
    "required": ["bed", "litres"],
    "additionalProperties": False,
}
TURNS = (
    FromUser("Water the north bed with 3 litres, größer 🌱."),
    FromModel("At once.", (Call("c1", "water", '{"bed": "north", "litres": 3}'), Call("c2", "clock", "{}"))),
    FromTool("c1", "no water", failed=True),
    FromTool("c2", "12:00"),
    FromModel("There is no water."),
    FromUser("And the south bed?"),
)
FULL = Conversation(
    model="m",
    system="You look after a garden.",
    turns=TURNS,
    tools=(ToolOffer("water", "Water a bed", SCHEMA, strict=True), ToolOffer("clock", "", {"type": "object"})),
    answer=AnswerShape("answer", SCHEMA),
    parallel=False,
    max_tokens=77,
    temperature=0.5,
    seed=3,
    stop=("\n\n", "END"),
)
CHOICES = {
    "either": ("auto", "auto", {"type": "auto"}),
    "call": ("required", "required", {"type": "any"}),
    "answer": ("none", "none", {"type": "none"}),
    "only water": (
        {"type": "function", "function": {"name": "water"}},
        {"type": "function", "name": "water"},
        {"type": "tool", "name": "water"},
    ),
}


def chosen(choice: str) -> Conversation:
    only = choice.removeprefix("only ") if choice.startswith("only") else ""
    return msgspec.structs.replace(FULL, choice="either" if only else choice, only=only)


def sent(peer: Peer, api: str, conversation: Conversation) -> None:
    """Compare with the last request of a client, field by field."""
    path, theirs = peer.asked[-1]
    assert path == f"/v1{APIS[api].path}"
    ours = read_object(APIS[api].encode(conversation))
    assert ours is not None
    assert set(ours) == set(theirs)
    for name, value in theirs.items():
        assert ours[name] == value, name


def ask_chat(clients: SimpleNamespace, **more: Any) -> Any:
    function = {"type": "function", "function": {"name": "water", "description": "Water a bed", "parameters": SCHEMA}}
    clock = {"type": "function", "function": {"name": "clock", "description": "", "parameters": {"type": "object"}}}
    function["function"] |= {"strict": True}  # type: ignore[operator]
    said = [
        {"id": "c1", "type": "function", "function": {"name": "water", "arguments": '{"bed": "north", "litres": 3}'}},
        {"id": "c2", "type": "function", "function": {"name": "clock", "arguments": "{}"}},
    ]
    return clients.openai.chat.completions.create(
        model="m",
        messages=[
            {"role": "system", "content": "You look after a garden."},
            {"role": "user", "content": "Water the north bed with 3 litres, größer 🌱."},
            {"role": "assistant", "content": "At once.", "tool_calls": said},
            {"role": "tool", "tool_call_id": "c1", "content": "no water"},
            {"role": "tool", "tool_call_id": "c2", "content": "12:00"},
            {"role": "assistant", "content": "There is no water."},
            {"role": "user", "content": "And the south bed?"},
        ],
        tools=[function, clock],
        parallel_tool_calls=False,
        response_format={"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA, "strict": True}},
        max_tokens=77,
        temperature=0.5,
        seed=3,
        stop=["\n\n", "END"],
        stream=True,
        stream_options={"include_usage": True},
        **more,
    )


@pytest.mark.parametrize("choice", CHOICES)
def test_chat_is_asked_as_the_official_client_asks(peer, clients, choice):
    peer.replays("xllamacpp-chat-text.sse")
    ask_chat(clients, tool_choice=CHOICES[choice][0]).close()
    sent(peer, "chat", chosen(choice))


@pytest.mark.parametrize("choice", CHOICES)
def test_responses_are_asked_as_the_official_client_asks(peer, clients, choice):
    peer.replays("xllamacpp-responses-text.sse")
    water = {"type": "function", "name": "water", "description": "Water a bed", "parameters": SCHEMA, "strict": True}
    clock = {"type": "function", "name": "clock", "description": "", "parameters": {"type": "object"}, "strict": False}

    def said(text: str) -> dict[str, Any]:
        return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}

    clients.openai.responses.create(
        model="m",
        instructions="You look after a garden.",
        input=[
            {"role": "user", "content": "Water the north bed with 3 litres, größer 🌱."},
            said("At once."),
            {"type": "function_call", "call_id": "c1", "name": "water", "arguments": '{"bed": "north", "litres": 3}'},
            {"type": "function_call", "call_id": "c2", "name": "clock", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": "no water"},
            {"type": "function_call_output", "call_id": "c2", "output": "12:00"},
            said("There is no water."),
            {"role": "user", "content": "And the south bed?"},
        ],
        tools=[water, clock],
        tool_choice=CHOICES[choice][1],
        parallel_tool_calls=False,
        text={"format": {"type": "json_schema", "name": "answer", "schema": SCHEMA, "strict": True}},
        max_output_tokens=77,
        temperature=0.5,
        store=False,
        stream=True,
    ).close()
    sent(peer, "responses", chosen(choice))


@pytest.mark.parametrize("choice", CHOICES)
def test_messages_are_asked_as_the_official_client_asks(peer, clients, choice):
    peer.replays("xllamacpp-messages-text.sse")
    one_at_a_time = {} if choice == "answer" else {"disable_parallel_tool_use": True}
    clients.anthropic.messages.create(
        model="m",
        system="You look after a garden.",
        messages=[
            {"role": "user", "content": "Water the north bed with 3 litres, größer 🌱."},
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "At once."},
                    {"type": "tool_use", "id": "c1", "name": "water", "input": {"bed": "north", "litres": 3}},
                    {"type": "tool_use", "id": "c2", "name": "clock", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "c1", "content": "no water", "is_error": True},
                    {"type": "tool_result", "tool_use_id": "c2", "content": "12:00"},
                ],
            },
            {"role": "assistant", "content": [{"type": "text", "text": "There is no water."}]},
            {"role": "user", "content": "And the south bed?"},
        ],
        tools=[
            {"name": "water", "description": "Water a bed", "input_schema": SCHEMA, "strict": True},
            {"name": "clock", "description": "", "input_schema": {"type": "object"}},
        ],
        tool_choice=CHOICES[choice][2] | one_at_a_time,
        output_config={"format": {"type": "json_schema", "schema": SCHEMA}},
        max_tokens=77,
        stop_sequences=["\n\n", "END"],
        extra_body={"temperature": 0.5},  # Newer clients do not name it, since newer models refuse it.
        stream=True,
    ).close()
    sent(peer, "messages", chosen(choice))


# -- a reply, and what follows it ------------------------------------------------------------------------------------

WATER = (ToolOffer("water", "Water a bed", SCHEMA),)


def follow_up(api: str, came: bytes) -> Conversation:
    """What we send after a reply with two calls, both made."""
    reply = APIS[api].decode(came)
    assert isinstance(reply, Reply)
    results = (FromTool(call.id, f"done {n}") for n, call in enumerate(reply.calls))
    turns = (FromUser("Water both."), reply.turn(), *results)
    return Conversation(model="m", turns=turns, max_tokens=9, stream=False)


def test_reply_of_chat_goes_back_as_the_official_client_sends_it_back(peer, clients):
    came = peer.replays("xllamacpp-chat-calls.json")
    messages: list[Any] = [{"role": "user", "content": "Water both."}]
    ask = clients.openai.chat.completions.create
    message = ask(model="m", messages=messages).choices[0].message
    messages.append(message)
    messages += [
        {"role": "tool", "tool_call_id": call.id, "content": f"done {n}"} for n, call in enumerate(message.tool_calls)
    ]
    ask(model="m", messages=messages, max_tokens=9)
    peer.asked[-1][1]["messages"][1]["content"] = None  # It came as an empty text beside calls, which we leave out.
    sent(peer, "chat", follow_up("chat", came))


def test_reply_of_responses_goes_back_as_the_official_client_sends_it_back(peer, clients):
    came = peer.replays("xllamacpp-responses-calls.json")
    items: list[Any] = [{"role": "user", "content": "Water both."}]
    ask = clients.openai.responses.create
    output = ask(model="m", input=items).output
    items += output
    items += [
        {"type": "function_call_output", "call_id": each.call_id, "output": f"done {n}"}
        for n, each in enumerate(output)
    ]
    ask(model="m", input=items, max_output_tokens=9, store=False)
    sent(peer, "responses", follow_up("responses", came))


def test_reply_of_messages_goes_back_as_the_official_client_sends_it_back(peer, clients):
    came = peer.replays("xllamacpp-messages-calls.json")
    messages: list[Any] = [{"role": "user", "content": "Water both."}]
    ask = clients.anthropic.messages.create
    content = ask(model="m", max_tokens=9, messages=messages).content
    messages.append({"role": "assistant", "content": content})
    results = [
        {"type": "tool_result", "tool_use_id": each.id, "content": f"done {n}"} for n, each in enumerate(content)
    ]
    messages.append({"role": "user", "content": results})
    ask(model="m", max_tokens=9, messages=messages)
    sent(peer, "messages", follow_up("messages", came))


# -- what is read ----------------------------------------------------------------------------------------------------


def streams_of(api: str) -> list[str]:
    return sorted(each.name for each in RECORDED.glob(f"*-{api}-*.sse") if each.name.count(".") == 1)


def ours(api: str, came: bytes) -> tuple[str, str, list[tuple[str, str, Any]]]:
    stream = APIS[api].stream()
    stream.feed(came)
    stream.close()
    reply = stream.reply()
    assert isinstance(reply, Reply)
    calls = [(call.id, call.tool, read_object(call.arguments)) for call in reply.calls]
    return reply.text, reply.reasoning, calls


@pytest.mark.parametrize("name", [each for each in streams_of("chat") if "too_long" not in each])
def test_stream_of_chat_is_read_as_the_official_client_reads_it(peer, clients, name):
    came = peer.replays(name)
    with clients.openai.chat.completions.stream(model="m", messages=[]) as stream:
        for _ in stream:
            message = stream.current_completion_snapshot.choices[0].message
    calls = [(c.id, c.function.name, read_object(c.function.arguments)) for c in message.tool_calls or ()]
    theirs = (message.content or "", getattr(message, "reasoning_content", None) or "", calls)
    assert ours("chat", came) == theirs


@pytest.mark.parametrize("name", streams_of("responses"))
def test_stream_of_responses_is_read_as_the_official_client_reads_it(peer, clients, name):
    came = peer.replays(name)
    with clients.openai.responses.create(model="m", input="", stream=True) as events:
        *_, last = events
    items = last.response.output
    calls = [(i.call_id, i.name, read_object(i.arguments)) for i in items if i.type == "function_call"]
    thoughts = [part.text for i in items if i.type == "reasoning" for part in i.content or ()]
    assert ours("responses", came) == (last.response.output_text, "".join(thoughts), calls)


@pytest.mark.parametrize("name", streams_of("messages"))
def test_stream_of_messages_is_read_as_the_official_client_reads_it(peer, clients, name):
    came = peer.replays(name)
    with clients.anthropic.messages.stream(model="m", max_tokens=9, messages=[]) as stream:
        content = stream.get_final_message().content
    calls = [(each.id, each.name, each.input) for each in content if each.type == "tool_use"]
    texts = ("".join(each.text for each in content if each.type == "text"),)
    thoughts = "".join(each.thinking for each in content if each.type == "thinking")
    assert ours("messages", came) == (*texts, thoughts, calls)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "bad_request"),
        (401, "credential"),
        (403, "credential"),
        (404, "not_found"),
        (422, "bad_request"),
        (429, "rate_limited"),
        (500, "server"),
        (503, "overloaded"),
    ],
)
def test_status_is_a_failure_where_the_official_client_raises(peer, clients, status, kind):
    import openai

    peer.answers(b'{"error":{"message":"No.","type":"x","code":"y"}}', status=status)
    with pytest.raises(openai.APIStatusError) as raised:
        clients.openai.chat.completions.create(model="m", messages=[], stream=True)
    failure = failure_of(status, raised.value.response.headers, raised.value.response.content)
    assert isinstance(failure, Failure)
    assert (failure.kind, failure.status, failure.code) == (kind, status, raised.value.code)

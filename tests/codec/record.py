"""Record what real servers answer, on loopback: `python tests/codec/record.py` renews `tests/codec/recorded/`.

Two servers, SmolLM2 behind both: llama.cpp's own (`xllamacpp`), which speaks all three APIs, and llama-cpp-python's. A
model this small calls tools and thinks only in a template that shows it how (`recorded/tools.jinja`), after examples.
What is kept is the body as it came, by server, API and case; a number before the ending is a status other than 200.
"""

from __future__ import annotations

import http.client
import importlib.metadata
import socket
import subprocess
import sys
import time
from pathlib import Path

import msgspec

from edgeagent.codec.apis import APIS
from edgeagent.codec.conversation import Call, Conversation, FromModel, FromTool, FromUser, ToolOffer, Turn
from edgeagent.codec.json_text import write_text
from edgeagent.models.store import find

HERE = Path(__file__).parent / "recorded"
START = time.monotonic()

XLLAMACPP = """
import sys, time, xllamacpp
params = xllamacpp.CommonParams()
params.model.path, params.port, params.chat_template = sys.argv[1], int(sys.argv[2]), open(sys.argv[3]).read()
params.n_ctx, params.n_parallel, params.cpuparams.n_threads, params.model_alias = 1024, 1, 1, {"smollm2"}
server = xllamacpp.Server(params)
time.sleep(600)
"""

WATER = ToolOffer(
    "water",
    "Water a bed",
    {
        "type": "object",
        "properties": {"bed": {"type": "string"}, "litres": {"type": "integer"}},
        "required": ["bed", "litres"],
    },
)
THINKS = {"chat_template_kwargs": {"enable_thinking": True}}
THINKS_NOT = {"chat_template_kwargs": {"enable_thinking": False}}


def watered(name: str, *beds: tuple[str, int]) -> tuple[Turn, ...]:
    """An exchange in which beds were watered, all at once."""
    said = " and ".join(f"the {bed} bed with {litres} litres" for bed, litres in beds)
    calls = tuple(Call(f"{name}{n}", "water", write_text({"bed": b, "litres": v})) for n, (b, v) in enumerate(beds))
    results = (FromTool(call.id, "done") for call in calls)
    return (FromUser(f"Water {said}."), FromModel(calls=calls), *results, FromModel("Done."))


def asked(**fields: object) -> Conversation:
    """A conversation with the servers' one model, that goes the same way each time."""
    return msgspec.structs.replace(Conversation(model="smollm2", turns=(), temperature=0.0, extra=THINKS_NOT), **fields)


ECHO = (FromUser("Say: Grüße"), FromModel("Grüße"), FromUser("Say: 水 3 µm"), FromModel("水 3 µm"))
CASES = {
    "text": asked(turns=(*ECHO, FromUser("Say: größer, 水 🌱")), max_tokens=24),
    "calls": asked(
        turns=(
            *watered("a", ("south", 2), ("west", 4)),
            *watered("b", ("east", 7), ("north", 5)),
            *watered("c", ("west", 1), ("south", 9)),
            FromUser("Water the north bed with 3 litres and the south bed with 6 litres."),
        ),
        tools=(WATER,),
        max_tokens=90,
    ),
    "thoughts": asked(turns=(FromUser("Is 7 a prime number?"),), max_tokens=16, extra=THINKS),
    "limit": asked(system="You are a poet.", turns=(FromUser("Write a poem about rain."),), max_tokens=5),
    "too_long": asked(turns=(FromUser("rain " * 3000),), max_tokens=5),
}


def main() -> None:
    """Start each server, ask it everything, stop it."""
    for old in HERE.glob("*-*-*"):
        old.unlink()
    model = str(find("smollm2"))
    template = str(HERE / "tools.jinja")
    record("xllamacpp", [sys.executable, "-c", XLLAMACPP, model, "{port}", template], tuple(APIS), tuple(CASES))
    python = [sys.executable, "-m", "llama_cpp.server", "--model", model, "--n_ctx", "1024", "--n_threads", "1"]
    python += ["--model_alias", "smollm2", "--chat_format", "chatml", "--port", "{port}", "--verbose", "false"]
    record("llama_cpp_python", python, ("chat",), ("text", "limit", "too_long"))
    names = ("xllamacpp", "llama_cpp_python")
    (HERE / "versions.txt").write_text("".join(f"{each} {importlib.metadata.version(each)}\n" for each in names))


def record(server: str, command: list[str], apis: tuple[str, ...], cases: tuple[str, ...]) -> None:
    """Ask one server everything, streamed and not."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen([each.format(port=port) if each == "{port}" else each for each in command])
    try:
        wait_for(server, port)
        for api in apis:
            for case in cases:
                for stream in (True, False):
                    save(server, api, case, port, stream)
    finally:
        process.kill()
        process.wait()


def wait_for(server: str, port: int) -> None:
    """Wait until it has its model; what it says until then is kept as well."""
    for _ in range(300):
        try:
            status, body = ask(port, "GET", "/v1/models", b"")
        except OSError:
            status = 0
        if status == 200:
            return
        if status:
            (HERE / f"{server}-chat-loading.{status}.json").write_bytes(body)
        time.sleep(0.1)
    sys.exit("the server does not answer")


def save(server: str, api: str, case: str, port: int, stream: bool) -> None:
    """Ask once, and keep the body."""
    conversation = msgspec.structs.replace(CASES[case], stream=stream)
    status, body = ask(port, "POST", f"/v1{APIS[api].path}", APIS[api].encode(conversation))
    told = "" if status == 200 else f".{status}"
    ending = "sse" if stream else "json"
    (HERE / f"{server}-{api}-{case}{told}.{ending}").write_bytes(body)
    print(f"{time.monotonic() - START:6.1f} s  {server} {api} {case} {ending}: {status}, {len(body)} bytes")


def ask(port: int, method: str, path: str, body: bytes) -> tuple[int, bytes]:
    """One request; its status and its whole body."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    connection.request(method, path, body, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    return answer.status, answer.read()


if __name__ == "__main__":
    main()

"""How fast are streams of remote models decoded? Ours and the official clients, on the same bytes, in one run.

    python -m bench.codec [--json] [--rounds 5] [--mb 1.0]

The bytes are the recordings of real servers under `tests/codec/recorded/`, their middle repeated until they are long,
and given out in pieces of 16 kB, as a socket does. Ours: bytes to deltas and a whole reply. Theirs: what
`create(stream=True)` yields, from a transport in the process, so that no network is measured. The rounds go around in
turn; a figure is the best of its rounds, in processor time of one core.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from edgeagent.codec.apis import APIS
from edgeagent.codec.conversation import Reply

RECORDED = Path(__file__).parent.parent / "tests" / "codec" / "recorded"
PIECE = 16_384
GOAL_MB_S = 80.0
CASES = {
    "chat text": ("chat", "xllamacpp-chat-text.sse"),
    "chat calls": ("chat", "xllamacpp-chat-calls.sse"),
    "chat reasoning": ("chat", "xllamacpp-chat-thoughts.sse"),
    "responses": ("responses", "xllamacpp-responses-text.sse"),
    "messages": ("messages", "xllamacpp-messages-text.sse"),
}


def body_of(file: str, size: int) -> bytes:
    """A recorded stream, its middle repeated until it has that size."""
    events = (RECORDED / file).read_bytes().split(b"\n\n")
    ends = (b"role", b'"finish_reason":"', b"stop_reason")  # What begins a reply, and what ends one, comes once.
    is_piece = [b"delta" in each and not any(end in each for end in ends) for each in events]
    first, last = is_piece.index(True), len(events) - is_piece[::-1].index(True)
    middle = b"\n\n".join(events[first:last]) + b"\n\n"
    return b"\n\n".join(events[:first]) + b"\n\n" + middle * (size // len(middle) + 1) + b"\n\n".join(events[last:])


def ours(api: str, body: bytes) -> Reply:
    """Decode it, piece by piece."""
    stream = APIS[api].stream()
    for at in range(0, len(body), PIECE):
        stream.feed(body[at : at + PIECE])
    stream.close()
    reply = stream.reply()
    assert isinstance(reply, Reply), reply
    return reply


def theirs(api: str) -> Callable[[bytes], object]:
    """The official client's way of the same, over a transport in the process."""
    package = importlib.import_module("anthropic" if api == "messages" else "openai")
    http = importlib.import_module(package.DefaultHttpxClient.__mro__[2].__module__.split(".")[0])
    held: dict[str, bytes] = {}

    def answer(request: Any) -> Any:
        body = held["body"]
        pieces = (body[at : at + PIECE] for at in range(0, len(body), PIECE))
        return http.Response(200, headers={"content-type": "text/event-stream"}, content=pieces)

    client: Any = (package.Anthropic if api == "messages" else package.OpenAI)(
        api_key="k", http_client=http.Client(transport=http.MockTransport(answer))
    )
    ask: dict[str, Callable[[], Any]] = {
        "chat": lambda: client.chat.completions.create(model="m", messages=[], stream=True),
        "responses": lambda: client.responses.create(model="m", input="", stream=True),
        "messages": lambda: client.messages.create(model="m", max_tokens=9, messages=[], stream=True),
    }

    def read(body: bytes) -> object:
        held["body"] = body
        return sum(1 for _ in ask[api]())

    return read


def seconds(function: Callable[[], object]) -> float:
    """Processor seconds of one call."""
    began = time.process_time()
    function()
    return time.process_time() - began


def measured(case: str, rounds: int, size: int) -> dict[str, float]:
    """Figures of one case."""
    api, file = CASES[case]
    body, read = body_of(file, size), theirs(api)
    times = [(seconds(lambda: ours(api, body)), seconds(lambda: read(body))) for _ in range(rounds)]
    mine, other = (len(body) / 1e6 / min(column) for column in zip(*times, strict=True))
    return {"mb_s": round(mine, 1), "official_mb_s": round(other, 2), "times_as_fast": round(mine / other, 1)}


def main() -> None:
    """Measure, print, and fail where a stream is decoded slower than it should be."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--mb", type=float, default=1.0, help="megabytes of a stream")
    given = parser.parse_args()
    figures = {case: measured(case, given.rounds, int(given.mb * 1e6)) for case in CASES}
    if given.json:
        versions = {each: importlib.metadata.version(each) for each in ("openai", "anthropic")}
        print(json.dumps({"cases": figures, "goal_mb_s": GOAL_MB_S, "versions": versions}))
    else:
        for case, row in figures.items():
            print(f"{case:<16} {row['mb_s']:>7} MB/s, {row['times_as_fast']:>6} x the official client")
    if any(row["mb_s"] < GOAL_MB_S or row["times_as_fast"] <= 1 for row in figures.values()):
        raise SystemExit(6)


if __name__ == "__main__":
    main()

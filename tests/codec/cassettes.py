"""Streams that providers sent, as recorded elsewhere: each is read, whole and cut, fast and slowly, to one reply.

    python -m tests.codec.cassettes FOLDER...

Reads the cassettes (vcrpy's YAML) below the folders. Public ones under Apache-2.0 are in the tests of simonw/llm and
simonw/llm-anthropic. None is kept here: `test_providers.py` has streams of our own that are formed as these are.
"""

from __future__ import annotations

import gzip
import sys
from collections.abc import Iterator
from pathlib import Path

import yaml  # PyYAML, which is no dependency: whoever runs this installs it

from edgeagent.codec.apis import APIS
from edgeagent.codec.conversation import Reply
from tests.codec.test_fast import slowly
from tests.codec.test_providers import read


def streams(folder: Path) -> Iterator[tuple[str, str, bytes]]:
    """The name, the API and the body of each answer that was streamed."""
    for file in sorted(folder.rglob("*.yaml")):
        for each in (yaml.safe_load(file.read_text()) or {}).get("interactions", ()):
            body, address = each["response"]["body"].get("string", ""), each["request"]["uri"]
            body = body.encode() if isinstance(body, str) else body
            body = gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body
            if b"data:" in body[:200]:
                ends = {"/messages": "messages", "/responses": "responses"}
                yield file.name, next((api for end, api in ends.items() if end in address), "chat"), body


def main(folders: list[str]) -> None:
    """Read all; fail where one is not read, or not the same however it comes."""
    found = [each for folder in folders for each in streams(Path(folder))]
    for name, api, body in found:
        whole = read(APIS[api].reading(), [body])
        assert isinstance(whole[1], Reply), (name, whole[1])
        assert read(slowly(APIS[api].reading), [body]) == whole, f"{name}: fast and slow differ"
        cuts = [[body[:at], body[at:]] for at in range(0, len(body), max(1, len(body) // 1000))]
        for pieces in [*cuts, [body[at : at + 1] for at in range(len(body))]]:
            assert read(APIS[api].reading(), pieces) == whole, f"{name}: it depends on the cuts"
    print(f"{len(found)} recorded streams, {sum(len(body) for *_, body in found)} bytes: each is read, to one reply")


if __name__ == "__main__":
    main(sys.argv[1:])

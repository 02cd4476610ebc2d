"""Recordings that every machine must reproduce: fold each again, compare effects, bytes and the story it tells.

DIR/<situation>/trace.cbor    the recording
DIR/<situation>/session.json  which agent file, relative to it, under which limits
DIR/<situation>/story.txt     every event and effect as a line: what a person reads when it changes
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import orjson
from msgspec.structs import replace

from edgeagent.core.effects import AskModel, Effect
from edgeagent.core.events import Event
from edgeagent.core.state import State
from edgeagent.errors import ConfigError, EdgeAgentError
from edgeagent.runtime.folder import TRACE_NAME, read_about, write_about
from edgeagent.runtime.recording import Recording, load_recording, parts_of, start_of
from edgeagent.trace.check import fold
from edgeagent.trace.disk import DISK, write_atomically
from edgeagent.trace.file import examine_file
from edgeagent.trace.record import chained, effects_digest, encode_header, encode_payload, frame, named_fields
from edgeagent.trace.recover import Clean, Damaged, Examined, Torn

STORY_NAME = "story.txt"


def situations(folder: Path) -> list[Path]:
    """The directories of all recordings in a folder. Raises ConfigError if there are none."""
    found = sorted(p.parent for p in folder.glob(f"*/{TRACE_NAME}"))
    if not found:
        raise ConfigError(f"{folder} holds no recordings: DIR/<situation>/{TRACE_NAME}")
    return found


def check(directory: Path) -> str:
    """What this machine does otherwise than the recording says; empty if nothing."""
    path = directory / TRACE_NAME
    try:
        recording = load_recording(path, runs_beside=True)
        found = examine_file(path)
        fold(recording.step, found.records, start_of(found))
        told = "".join(story(recording, found))
    except EdgeAgentError as error:
        return str(error)
    if path.read_bytes()[: found.end] != written_again(found):
        return "the same events have other bytes here"
    expected = (directory / STORY_NAME).read_text(encoding="utf-8")
    return "" if told == expected else _first_difference(expected, told)


def rewrite(directory: Path) -> bool:
    """Fold the recorded events with the agent as it is now, and record what it does; say whether anything changed."""
    path = directory / TRACE_NAME
    recording = load_recording(path, runs_beside=True)
    before = path.read_bytes()
    found = examine_file(path)
    rest = before[found.end :]
    content = refolded(recording, found) + rest if isinstance(found.verdict, Clean | Torn) else before
    write_atomically(DISK, path, content)
    about = read_about(directory)
    if about.parts != parts_of(recording.agent):
        about = replace(about, parts=parts_of(recording.agent), agent_digest=recording.agent.digest)
        write_about(directory, about)
    told = "".join(story(recording, examine_file(path)))
    old = (directory / STORY_NAME).read_text(encoding="utf-8") if (directory / STORY_NAME).exists() else ""
    (directory / STORY_NAME).write_text(told, encoding="utf-8")
    return content != before or told != old


def refolded(recording: Recording, found: Examined) -> bytes:
    """The recording's events in the bytes that the agent as it is now would have written."""
    assert found.header is not None, "a recording has a header"
    content, head, state = encode_header(found.header), found.header.before, start_of(found)
    for record in found.records:
        state, effects = recording.step(state, record.event)
        payload = encode_payload(record.seq, head, record.event, effects_digest(effects))
        content += frame(found.header.nonce, len(content), payload)
        head = chained(head, payload)
    return content


def written_again(found: Examined) -> bytes:
    """The same records, encoded by this machine."""
    assert found.header is not None, "a recording has a header"
    content, head = encode_header(found.header), found.header.before
    for record in found.records:
        payload = encode_payload(record.seq, head, record.event, record.effects_digest)
        content += frame(found.header.nonce, len(content), payload)
        head = chained(head, payload)
    return content


def story(recording: Recording, found: Examined) -> Iterator[str]:
    """The lines of story.txt."""
    match found.verdict:
        case Clean():
            yield "clean\n"
        case Torn(offset=offset, because=because):
            yield f"torn at byte {offset}: {because}\n"
        case Damaged(offset=offset, because=because):
            yield f"damaged at byte {offset}: {because}\n"
    state: State = start_of(found)
    for record in found.records:
        state, effects = recording.step(state, record.event)
        yield f"{record.seq:3} {_line(record.event)}\n"
        for effect in effects:
            yield f"      {_line(effect)}\n"
    outcome = state.outcome.kind if state.outcome else "no turn"
    yield f"{type(state.phase).__name__}, {outcome}, head {found.head.hex()}\n"


def _line(value: Event | Effect) -> str:
    fields = named_fields(value)
    if isinstance(value, AskModel):  # All but the last message has been told before.
        fields["messages"] = [f"{len(value.messages) - 1} more", *fields["messages"][-1:]]
    for name in ("scores", "confidence", "evidence"):
        if not fields.get(name, True):
            del fields[name]  # Told where there are some: older recordings have none.
    return f"{fields.pop('type')} {orjson.dumps(fields).decode()}"


def _first_difference(expected: str, told: str) -> str:
    for number, (one, other) in enumerate(zip(expected.splitlines(), told.splitlines(), strict=False), 1):
        if one != other:
            return f"{STORY_NAME}, line {number}: expected {one.strip()[:200]!r}, and it is {other.strip()[:200]!r}"
    return f"{STORY_NAME} has {len(expected.splitlines())} lines, and it is {len(told.splitlines())}"

"""Chat requests of OpenAI's protocol as values, and what cannot be done of them as refusals. No model is known here.

Each field that is there is either kept to or refused by name: a client that asks for what it does not get is worse off
than one that is told.
"""

from __future__ import annotations

import json
from typing import Any, Literal

import msgspec

from edgeagent.doors.http.message import Refused

MESSAGES_MAX = 512
STOPS_MAX, STOP_CHARS_MAX = 4, 100
TOKENS_DEFAULT = 512


class Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A part of a message. Texts are all that is read; fields of others are known so that they are refused by name."""

    type: str
    text: str = ""
    image_url: Any = None
    input_audio: Any = None
    file: Any = None
    refusal: Any = None


class FunctionCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which function was called; `arguments` is JSON text."""

    name: str
    arguments: str


class ToolCalled(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A call that the model made before, as the client repeats it."""

    id: str
    function: FunctionCall
    type: Literal["function"] = "function"
    index: int | None = None


class ChatMessage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One message. The fields after `tool_call_id` are echoes of replies, which clients send back empty."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[Part] | None = None
    name: str | None = None
    tool_calls: list[ToolCalled] | None = None
    tool_call_id: str | None = None
    refusal: None = None
    annotations: list[Any] | None = None
    audio: None = None
    function_call: None = None

    @property
    def text(self) -> str:
        """The words of the message."""
        if isinstance(self.content, list):
            return "".join(part.text for part in self.content)
        return self.content or ""


class Function(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A function that the client offers; `strict` asks for what is always done here."""

    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class OfferedTool(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A tool of the client's."""

    type: Literal["function"]
    function: Function


class NamedFunction(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The name of a function."""

    name: str


class NamedTool(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The one tool that must be called."""

    type: Literal["function"]
    function: NamedFunction


class JsonSchema(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The schema that an answer must fit."""

    name: str
    schema: dict[str, Any] | None = None
    description: str | None = None
    strict: bool | None = None


class ResponseFormat(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The form of the answer."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: JsonSchema | None = None


class StreamOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a stream holds besides."""

    include_usage: bool = False
    include_obfuscation: bool = False


class ChatRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A request for the next message. The last five fields are a client's notes, which change no answer."""

    model: str
    messages: list[ChatMessage]
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    tools: list[OfferedTool] | None = None
    tool_choice: Literal["none", "auto", "required"] | NamedTool | None = None
    parallel_tool_calls: bool | None = None
    response_format: ResponseFormat | None = None
    stop: str | list[str] | None = None
    seed: int | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    n: int | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    logit_bias: dict[str, float] | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None
    store: bool | None = None
    user: str | None = None
    metadata: dict[str, str] | None = None
    service_tier: str | None = None
    prompt_cache_key: str | None = None
    safety_identifier: str | None = None

    @property
    def tokens_max(self) -> int | None:
        """The most that may be written, by whichever of its two names."""
        return self.max_completion_tokens if self.max_completion_tokens is not None else self.max_tokens

    @property
    def stops(self) -> tuple[str, ...]:
        """The texts that end the answer."""
        return (self.stop,) if isinstance(self.stop, str) else tuple(self.stop or ())


NEUTRAL: dict[str, tuple[Any, ...]] = {
    "n": (1,),
    "presence_penalty": (0,),
    "frequency_penalty": (0,),
    "logit_bias": ({},),
    "logprobs": (False,),
    "top_logprobs": (0,),
    "store": (False,),
}
"""What can only be left as it is, and the values that leave it so."""


def refuse_what_cannot_be(asked: ChatRequest) -> None:
    """Raises Refused (400) for what no model here does."""
    for name, values in NEUTRAL.items():
        value = getattr(asked, name)
        if value is not None and value not in values:
            raise cannot(name, f"{name} cannot be {json.dumps(value)} here: leave it out")
    _check_messages(asked.messages)
    if asked.temperature is not None and not 0 <= asked.temperature <= 2:
        raise cannot("temperature", "temperature must be 0 to 2")
    if asked.top_p is not None and not 0 < asked.top_p <= 1:
        raise cannot("top_p", "top_p must be above 0 and at most 1")
    if asked.tokens_max is not None and asked.tokens_max < 1:
        raise cannot("max_tokens", "max_tokens must be 1 or more")
    if asked.stream_options is not None and not asked.stream:
        raise cannot("stream_options", "stream_options go with stream alone")
    if len(asked.stops) > STOPS_MAX or any(not 0 < len(each) <= STOP_CHARS_MAX for each in asked.stops):
        raise cannot("stop", f"stop may hold {STOPS_MAX} texts of 1 to {STOP_CHARS_MAX} characters")
    if asked.seed is not None and not -(1 << 63) <= asked.seed < 1 << 63:
        raise cannot("seed", "seed must fit 64 bits")


def _check_messages(messages: list[ChatMessage]) -> None:
    if not messages or len(messages) > MESSAGES_MAX:
        raise cannot("messages", f"there must be 1 to {MESSAGES_MAX} messages")
    if messages[-1].role not in ("user", "tool"):
        raise cannot("messages", "the last message must be the user's or a tool's: an answer is not gone on with")
    for place, each in enumerate(messages):
        param = f"messages[{place}]"
        for part in each.content if isinstance(each.content, list) else ():
            if part.type != "text" or any((part.image_url, part.input_audio, part.file, part.refusal)):
                raise cannot(f"{param}.content", f"a part of type {part.type[:40]!r} cannot be read here: texts alone")
        if each.name is not None and each.role != "tool":
            raise cannot(f"{param}.name", "names of participants are not shown to the model: leave name out")
        if each.tool_calls and each.role != "assistant":
            raise cannot(f"{param}.tool_calls", "calls stand in the assistant's messages alone")
        if each.role in ("user", "tool") and each.content is None:
            raise cannot(f"{param}.content", f"a message of the {each.role} needs content")
        if (each.role == "tool") != (each.tool_call_id is not None):
            raise cannot(
                f"{param}.tool_call_id", "each message of a tool, and no other, names its call in tool_call_id"
            )


def cannot(param: str, why: str) -> Refused:
    """The refusal of one field."""
    refused = Refused(400, "unsupported_value", why)
    refused.param = param
    return refused

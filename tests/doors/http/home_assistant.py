"""Requests in the shapes that Home Assistant's integrations send, each with what it must be answered with.

Written after the public sources of: `openai_conversation` of Home Assistant core as it was before it went over to
another endpoint; `open_router` of core; github.com/skye-harris/hass_local_openai_llm; and
github.com/jekalmin/extended_openai_conversation. The texts, the tools and the house are our own.
"""

from __future__ import annotations

from typing import Any

SYSTEM = "You are the voice of a house. Answer in plain text, in one sentence.\nStatic context: light desk (study)."
TURN_ON: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "HassTurnOn",
        "description": "Turns on or opens a device or entity",
        "parameters": {
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "area": {"type": "string"},
                "domain": {"type": "array", "items": {"type": "string"}},
                "device_class": {"type": "array", "items": {"type": "string", "enum": ["outlet", "switch", "lamp"]}},
            },
            "required": [],
        },
    },
}
TEMPERATURE: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "HassClimateSetTemperature",
        "description": "Sets the target temperature of a climate device",
        "parameters": {
            "type": "object",
            "properties": {"temperature": {"type": "number"}, "area": {"type": "string"}},
            "required": ["temperature"],
        },
    },
}
CONTEXT: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "GetLiveContext",
        "description": "Gives the current state of every device",
        "parameters": {"type": "object", "properties": {}},
    },
}
EXECUTE: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "execute_services",
        "description": "Execute services of devices in the house.",
        "parameters": {
            "type": "object",
            "properties": {
                "list": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "domain": {"type": "string", "description": "The domain of the service"},
                            "service": {"type": "string", "description": "The service to be called"},
                            "service_data": {
                                "type": "object",
                                "properties": {"entity_id": {"type": "array", "items": {"type": "string"}}},
                                "required": ["entity_id"],
                            },
                        },
                        "required": ["domain", "service", "service_data"],
                    },
                }
            },
        },
    },
}
CALLED = {
    "id": "call_01JZQ",
    "type": "function",
    "function": {"name": "HassTurnOn", "arguments": '{"name":"desk","domain":["light"]}'},
}
EXECUTED = CALLED | {"function": {"name": "execute_services", "arguments": "{}"}}
DONE = '{"speech":{},"response_type":"action_done","data":{"success":[{"name":"desk","type":"entity"}],"failed":[]}}'


def system() -> dict[str, Any]:
    return {"role": "system", "content": SYSTEM}


def said(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def in_parts(text: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": text}]}


def form(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": name, "strict": True, "schema": schema}}


CHORES = {
    "type": "object",
    "properties": {
        "title": {"type": "string"},
        "hours": {"type": ["number", "null"]},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["title", "hours", "tags"],
}
STRICT_CHORES = CHORES | {"strict": True, "additionalProperties": False}
LOCAL = {"temperature": 0.6, "parallel_tool_calls": False, "stream": True}
EXTENDED = {
    "stream": True,
    "stream_options": {"include_usage": True},
    "max_tokens": 150,
    "top_p": 1,
    "temperature": 0.5,
}

CASES: dict[str, tuple[dict[str, Any], str]] = {
    "core, a command": (
        {
            "messages": [system(), said("Turn on the desk light.")],
            "tools": [TURN_ON, TEMPERATURE],
            "max_tokens": 150,
            "top_p": 1.0,
            "temperature": 1.0,
            "user": "01JZQ3V5",
        },
        "call",
    ),
    "core, its result": (
        {
            "messages": [
                system(),
                said("Turn on the desk light."),
                {"role": "assistant", "content": None, "tool_calls": [CALLED]},
                {"role": "tool", "tool_call_id": "call_01JZQ", "content": DONE},
            ],
            "tools": [TURN_ON, TEMPERATURE],
            "max_tokens": 150,
            "top_p": 1.0,
            "temperature": 1.0,
            "user": "01JZQ3V5",
        },
        "words",
    ),
    "local, without tools": ({"messages": [system(), in_parts("Who are you?")]} | LOCAL, "words"),
    "local, with tools and stream": (
        {"messages": [system(), in_parts("Turn on the desk light.")], "tools": [TURN_ON, CONTEXT]} | LOCAL,
        "call",
    ),
    "local, what was injected": (
        {
            "messages": [
                system(),
                {"role": "assistant", "content": "# Context\n\nThe current date is: `Monday 1 June, 2026`."},
                in_parts("Which day is it?"),
            ],
            "metadata": {"session_id": "01JZQ3V5"},
        }
        | LOCAL,
        "words",
    ),
    "local, a task with a form": (
        {"messages": [system(), in_parts("Sweeping the yard takes two hours.")], "response_format": form("c", CHORES)}
        | LOCAL,
        "json",
    ),
    "local, a task with a form and tools": (
        {
            "messages": [system(), in_parts("Sweeping the yard takes two hours.")],
            "tools": [CONTEXT],
            "response_format": form("chores", CHORES),
        }
        | LOCAL,
        "json",
    ),
    "local, a picture": (
        {
            "messages": [
                {
                    "role": "user",
                    "content": [
                        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA==", "detail": "auto"}},
                        {"type": "text", "text": "What is this?"},
                    ],
                }
            ]
        }
        | LOCAL,
        "refused: messages[0].content",
    ),
    "local, settings of another server": (
        {"messages": [said("Hello")], "chat_template_kwargs": {"enable_thinking": False}} | LOCAL,
        "refused: chat_template_kwargs",
    ),
    "extended, a command": (
        {"messages": [system(), said("Turn on the desk light.")], "tools": [EXECUTE], "tool_choice": "auto"} | EXTENDED,
        "call",
    ),
    "extended, no more calls": (
        {
            "messages": [
                system(),
                said("Turn on the desk light."),
                {
                    "role": "assistant",
                    "tool_calls": [CALLED | {"function": {"name": "execute_services", "arguments": "{}"}}],
                },
                {"role": "tool", "tool_call_id": "call_01JZQ", "content": '{"result":true}'},
            ],
            "tools": [EXECUTE],
            "tool_choice": "none",
        }
        | EXTENDED,
        "words",
    ),
    "extended, a task with a form": (
        {
            "messages": [system(), said("Sweeping the yard takes two hours.")],
            "response_format": form("c", STRICT_CHORES),
        }
        | EXTENDED,
        "json",
    ),
    "extended, effort": (
        {"messages": [said("Hello")], "reasoning_effort": "low"} | EXTENDED,
        "refused: reasoning_effort",
    ),
    "router, with a provider": (
        {"messages": [said("Hello")], "stream": True, "user": "01JZQ3V5", "provider": {"require_parameters": True}},
        "refused: provider",
    ),
}
"""A request without its model, and what it is answered with: a call, words, JSON, or a refusal of a field."""

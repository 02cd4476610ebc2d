"""Our client as the conformance suite runs it, `python suite_client.py URL`: it lists tools, and calls each."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from edgeagent.driver.mcp.offer import Declared
from edgeagent.driver.mcp.server import Server
from edgeagent.driver.mcp.settings import ServerSettings
from edgeagent.driver.unknown import CommandFailed

EXAMPLES = {"integer": 5, "number": 5, "string": "tide", "boolean": True, "object": {}, "array": [], "null": None}


def calls(offered: list[Declared]) -> list[tuple[str, dict[str, Any]]]:
    """What is called: what the scenario names, or each tool with a value of each argument's type."""
    named = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}").get("toolCalls")
    if named:
        return [(each["name"], each["arguments"]) for each in named]
    schemas = {each.name: each.schema for each in offered if not each.is_resource}
    if "json_schema_echo" in schemas:
        return [("json_schema_echo", {"schema": schemas["json_schema_2020_12_tool"]})]
    return [
        (name, {key: EXAMPLES.get(str(p.get("type"))) for key, p in schema.get("properties", {}).items()})
        for name, schema in schemas.items()
    ]


def main() -> None:
    settings = ServerSettings(url=sys.argv[1], allow=("*",), effect="read", idempotent=True)
    looking = Server("suite", settings, {})
    offered = list(looking.offer())
    looking.close()
    server = Server("suite", settings, {each.name: each.digest for each in offered})
    for name, arguments in calls(offered):
        try:
            print(name, server.call(name, arguments))
        except CommandFailed as error:  # As the session of an agent, it goes on.
            print(name, error, file=sys.stderr)
    for each in offered:
        if each.is_resource:
            print(each.name, server.read(each.name.removeprefix("resource:"), each.name))
    server.close()


main()

"""One suite of AgentDojo as a server of MCP: runs in AgentDojo's own environment. `python -I dojo_server.py SUITE`

Its tools are the suite's. Two methods more are the bench's own: `world/open` and `world/judge`, as `world.py` has them.
It knows nothing of edgeagent and imports nothing of it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from world import World, described, load_suites  # type: ignore[import-not-found]  # the file beside this one


def result_of(said: dict[str, Any]) -> dict[str, Any]:
    """A tool's answer as MCP has it."""
    text = said["error"] or json.dumps(said["value"])
    return {"content": [{"type": "text", "text": text}], "isError": bool(said["error"])}


def main() -> None:
    """Answer until the input ends."""
    name, suites = sys.argv[1], load_suites()
    world = World(suites)
    tools = [
        {"name": tool["name"], "description": tool["description"], "inputSchema": tool["schema"]}
        for tool in described(suites[name])["tools"]
    ]
    for line in sys.stdin:
        request = json.loads(line)
        params = request.get("params", {})
        match request["method"]:
            case "initialize":
                version = params["protocolVersion"]
                result: Any = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": {"name": name}}
            case "tools/list":
                result = {"tools": tools}
            case "tools/call":
                result = result_of(world.call({"tool": params["name"], "arguments": params["arguments"]}))
            case "world/open":
                result = world.open({"suite": name, **params})
            case "world/judge":
                result = world.judge({})
            case _:
                continue
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)


if __name__ == "__main__":
    main()

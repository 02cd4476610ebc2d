"""A server of the protocol's own SDK over HTTP on loopback: `python sdk_web.py PORT_FILE CALLS_FILE [json]`."""

from __future__ import annotations

import asyncio
import socket
import sys
from pathlib import Path

import uvicorn
from mcp.server import MCPServer
from mcp.server.mcpserver import Context

PORT_FILE, CALLS_FILE, WAY = Path(sys.argv[1]), Path(sys.argv[2]), (sys.argv[3:] or ["events"])[0]
server = MCPServer("words")


@server.tool()
def look_up(text: str) -> str:
    """Looks a word up."""
    with CALLS_FILE.open("a") as file:
        file.write(f"look_up {text}\n")
    return f"{text} is a word"


@server.tool()
async def look_long(text: str, ctx: Context) -> str:
    """Looks a word up and tells how far it is."""
    for number in range(3):
        await ctx.report_progress(number, 3)
    return f"{text} is a long word"


def main() -> None:
    app = server.streamable_http_app(json_response=WAY == "json", stateless_http=WAY == "stateless")
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        PORT_FILE.with_suffix(".new").write_text(str(listening.getsockname()[1]))
        listening.listen()
        PORT_FILE.with_suffix(".new").rename(PORT_FILE)
        asyncio.run(uvicorn.Server(uvicorn.Config(app, log_config=None)).serve([listening]))


main()

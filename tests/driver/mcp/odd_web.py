"""A server of MCP over HTTP on loopback that behaves as it is told, in threads of the test."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
TOOL = {"name": "look_up", "description": "Looks a word up.", "inputSchema": TEXT}
NOTE = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}}
CHANGED = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}


class OddWeb:
    """What it was asked is in `seen`: HTTP's method, headers and message; each call it really made in `calls`."""

    def __init__(self, behaviour, elsewhere=""):
        self.behaviour, self.elsewhere = behaviour, elsewhere
        self.seen, self.calls, self.sessions = [], [], 0
        self.about, self.listens, self.changed = TOOL["description"], threading.Event(), threading.Event()
        self.ended = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Handler,), {"odd": self}))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/mcp"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *error):
        self.ended.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def of(self, method):
        """The headers of each request with this method, of HTTP or of MCP."""
        return [headers for verb, headers, message in self.seen if method in (verb, message.get("method"))]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    odd: OddWeb

    def log_message(self, *given):
        pass

    def handle(self):
        with contextlib.suppress(OSError):  # The client has gone.
            super().handle()

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.odd.seen.append(("POST", dict(self.headers), message))
        if "id" not in message or "method" not in message:
            self.whole(202, None)
            return
        match message["method"]:
            case "initialize":
                self.odd.sessions += 1
                self.result(message, self.greeting(message), {"Mcp-Session-Id": self.session()})
            case "server/discover" if self.odd.behaviour.startswith("stands alone"):
                info = {"io.modelcontextprotocol/serverInfo": {"name": "odd", "version": "2"}}
                found = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "_meta": info}
                self.result(message, found)
            case "tools/list":
                self.result(message, {"tools": [TOOL | {"description": self.odd.about}, *self.more_tools()]})
            case "tools/call":
                self.call(message)
            case _:
                self.result(message, {})

    def do_GET(self):
        self.odd.seen.append(("GET", dict(self.headers), {}))
        place = self.headers.get("Last-Event-ID", "")
        match self.odd.behaviour:
            case "cuts streams" if place:
                self.events(self.said({"id": int(place)}, "the rest"), place=f"{place}0")
            case "cuts streams for ever" if place:
                self.events(place=place)
            case "says it has changed":
                self.begin_events()
                self.odd.listens.set()
                self.odd.changed.wait(60)
                self.event(CHANGED)
                self.odd.ended.wait(60)
            case "speaks without end":
                self.begin_events()
                self.odd.changed.wait(60)
                while not self.odd.ended.is_set():
                    self.event(NOTE)
            case _:
                self.whole(405, None)

    def do_DELETE(self):
        self.odd.seen.append(("DELETE", dict(self.headers), {}))
        self.whole(200, None)

    def call(self, message):
        odd, text = self.odd, message["params"]["arguments"].get("text", "")
        known = self.headers.get("Mcp-Session-Id") == self.session()
        match odd.behaviour:
            case "forgets" | "forgets in other words" if odd.sessions == 1 or not known:
                odd.about = odd.about if odd.sessions == 1 else ""
                status = 404 if odd.behaviour == "forgets" else 400
                self.whole(
                    status, {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": "no such session"}}
                )
                return
            case "redirects":
                self.whole(307, None, {"Location": odd.elsewhere})
                return
            case "wants a key":
                self.whole(401, None)
                return
            case "refuses":
                fault = {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32602, "message": "not that word"}}
                self.whole(400, fault)
                return
        odd.calls.append(text)
        self.answer(message, text)

    def answer(self, message, text):
        odd = self.odd
        match odd.behaviour:
            case "dies":
                self.close_connection = True
            case "is broken":
                self.whole(500, {"oh": "dear"})
            case "answers in events":
                progress = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 1}}
                self.events(NOTE, progress, self.said(message, f"{text} is a word"), place="1")
            case "answers in events and lingers":
                self.begin_events()
                self.event(self.said(message, f"{text} is a word"))
                odd.ended.wait(60)
            case "cuts streams" | "cuts streams for ever":
                self.events(place=str(message["id"]))
            case "cuts without a place":
                self.events(NOTE)
            case "never answers":
                odd.ended.wait(60)
            case "answers 50 MB":
                self.whole(200, self.said(message, "x" * (50 << 20)))
            case "answers 50 MB in events":
                self.events(self.said(message, "x" * (50 << 20)))
            case "floods":
                self.begin_events()
                while not odd.ended.is_set():
                    self.event(NOTE)
            case "claims another id":
                self.events(self.said({"id": message["id"] + 1}, "a lie"), self.said(message, "the truth"))
            case "answers a page":
                self.raw(200, b"<html>Please log in</html>", {"Content-Type": "text/html"})
            case "sends the key back":
                key = self.headers["Authorization"].removeprefix("Bearer ")
                self.whole(200, self.said(message, f"your key is {key}, or {key.encode().hex()}"))
            case "asks the user":
                asked = {"jsonrpc": "2.0", "id": "mine", "method": "elicitation/create", "params": {"message": "Who?"}}
                self.begin_events()
                self.event(asked)
                until = time.monotonic() + 60
                while time.monotonic() < until and not self.replies("mine"):
                    time.sleep(0.01)
                self.event(self.said(message, self.replies("mine")[0]["result"]["action"]))
            case "stands alone and asks" if "inputResponses" not in message["params"]:
                asked = {"who": {"method": "elicitation/create", "params": {"message": "Who are you?"}}}
                self.result(message, {"resultType": "input_required", "inputRequests": asked, "requestState": "7"})
            case "stands alone and asks":
                again = {key: message["params"][key] for key in ("inputResponses", "requestState")}
                self.whole(200, self.said(message, json.dumps(again)))
            case "stands alone and asks without end":
                self.result(message, {"resultType": "input_required", "requestState": "again"})
            case "stands alone and wants a model":
                asked = {"model": {"method": "sampling/createMessage", "params": {}}}
                self.result(message, {"resultType": "input_required", "inputRequests": asked})
            case "takes it and says nothing":
                self.whole(202, None)
            case _:
                self.whole(200, self.said(message, f"{text} is a word"))

    def more_tools(self):
        if self.odd.behaviour != "stands alone with headers":
            return []
        marked = {
            "text": {"type": "string", "x-mcp-header": "Word"},
            "deep": {"type": "boolean", "x-mcp-header": "Deep"},
        }
        wrong = {"text": {"type": "string", "x-mcp-header": "no header"}}
        return [
            {"name": "look_marked", "inputSchema": {"type": "object", "properties": marked}},
            {"name": "look_wrong", "inputSchema": {"type": "object", "properties": wrong}},
        ]

    def replies(self, message_id):
        return [m for _, _, m in self.odd.seen if m.get("id") == message_id and "method" not in m]

    def greeting(self, message):
        version = message["params"]["protocolVersion"]
        capabilities = {"tools": {"listChanged": True}}
        return {"protocolVersion": version, "capabilities": capabilities, "serverInfo": {"name": "odd", "version": "1"}}

    def session(self):
        return f"session {self.odd.sessions}" if self.odd.behaviour == "names it oddly" else f"s-{self.odd.sessions}"

    def said(self, message, text):
        return {"jsonrpc": "2.0", "id": message["id"], "result": {"content": [{"type": "text", "text": text}]}}

    def result(self, message, result, headers=None):
        self.whole(200, {"jsonrpc": "2.0", "id": message["id"], "result": result}, headers)

    def whole(self, status, message, headers=None):
        body = b"" if message is None else json.dumps(message).encode()
        self.raw(status, body, {"Content-Type": "application/json"} | (headers or {}))

    def raw(self, status, body, headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def begin_events(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True

    def event(self, message):
        self.wfile.write(f"data: {json.dumps(message)}\n\n".encode())

    def events(self, *messages, place=""):
        self.begin_events()
        if place:
            self.wfile.write(f"id: {place}\nretry: 5\ndata: \n\n".encode())
        for each in messages:
            self.event(each)

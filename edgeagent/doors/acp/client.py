"""Tools that the client runs: its files and its terminal, typed and under the agent's rules like any tool.

Paths are held to the folders of the session. What comes back is from outside: nobody vouches for a file's content.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable
from typing import Any

import msgspec

from edgeagent.core.agent import Tool
from edgeagent.doors.acp.messages import ClientCapabilities, Exit, FileText, Output, Terminal, read
from edgeagent.driver.peer import Asked, Peer, Refused
from edgeagent.errors import ConfigError, DriverUnavailable, PeerMisbehaved

READ, WRITE, COMMAND = "read_text_file", "write_text_file", "run_command"
OFFERS = {"read": READ, "write": WRITE, "terminal": COMMAND}
"""What an operator names, and the tool that it becomes."""

FILE_S, COMMAND_S = 30.0, 300.0
CANCELLED = "its turn was cancelled"
KILL_S = 10.0
"""How long the client may take to end a command that ran out of time, and to say what it had written."""

OUTPUT_BYTES = 32 * 1024
LINES_MAX = 2_000

_PATH = {"type": "string", "minLength": 1, "maxLength": 1024}
_SCHEMAS: dict[str, dict[str, Any]] = {
    READ: {
        "path": _PATH,
        "line": {"type": "integer", "minimum": 1},
        "limit": {"type": "integer", "minimum": 1, "maximum": LINES_MAX},
    },
    WRITE: {"path": _PATH, "content": {"type": "string", "maxLength": 65536}},
    COMMAND: {
        "command": {"type": "string", "minLength": 1, "maxLength": 256},
        "args": {"type": "array", "items": {"type": "string", "maxLength": 1024}, "maxItems": 32},
    },
}
_REQUIRED = {READ: ["path"], WRITE: ["path", "content"], COMMAND: ["command"]}


def offered(capabilities: ClientCapabilities, offers: tuple[str, ...]) -> tuple[str, ...]:
    """The tools that the operator allows and the client can run."""
    fs = capabilities.fs
    can = {"read": fs and fs.read_text_file, "write": fs and fs.write_text_file, "terminal": capabilities.terminal}
    return tuple(tool for name, tool in OFFERS.items() if name in offers and can[name])


class ClientFailed(Exception):
    """The client answered with an error: the tool's failure, in the client's words."""


class Client:
    """The client, as the tools of one session ask it."""

    def __init__(self, peer: Peer, session: Callable[[], str], folders: tuple[str, ...]) -> None:
        """`session` says its id, `folders` are where its paths may lead; the first is where they begin."""
        self._peer, self._session, self._folders = peer, session, folders
        self._running: dict[str, None] = {}
        self._asked: dict[int | str, Asked] = {}
        self._is_stopped = False
        self.on_terminal: Callable[[dict[str, Any], str], None] = lambda arguments, terminal: None

    def tools(self, names: tuple[str, ...]) -> tuple[Tool, ...]:
        """The tools of these names."""
        made = {
            READ: ("Read a text file of the editor, from a line on and so many lines.", self._read_file, "read", False),
            WRITE: ("Write a text file in the editor, in place of what it held.", self._write_file, "write", True),
            COMMAND: ("Run a program in the editor's terminal; return what it wrote.", self._run, "irreversible", True),
        }  # fmt: skip
        return tuple(
            Tool.of_schema(
                name,
                about,
                _object(name),
                call,
                idempotent=name != COMMAND,
                effect=effect,  # type: ignore[arg-type]  # one of the table above
                confirm=confirm,
                timeout_s=COMMAND_S if name == COMMAND else FILE_S,
            )
            for name, (about, call, effect, confirm) in made.items()
            if name in names
        )

    def asked_for(self, method: str, params: dict[str, Any], seconds: float) -> Any:
        """What the client answers to a request for this session. Raises ClientFailed and DriverUnavailable."""
        self._check_turn()
        asked = self._ask(method, params)
        self._asked[asked.id] = asked
        if self._is_stopped:  # While it was sent, so that `stop` has not seen it.
            asked.give_up(CANCELLED)
        try:
            return asked.wait(seconds)
        except Refused as error:
            raise ClientFailed(str(error)) from None
        finally:
            self._asked.pop(asked.id, None)

    def begin(self) -> None:
        """A turn runs: what its tools ask goes to the client."""
        self._is_stopped = False

    def stop(self) -> None:
        """End what the client does for this session's turn, which is over; a tool that is late asks nothing more."""
        self._is_stopped = True
        for terminal in tuple(self._running):
            self._ask("terminal/kill", {"terminalId": terminal})
        for asked in tuple(self._asked.values()):
            asked.give_up(CANCELLED)

    def _check_turn(self) -> None:
        if self._is_stopped:
            raise DriverUnavailable(CANCELLED)

    # -- files -----------------------------------------------------------------------------------------------------

    def _read_file(self, arguments: dict[str, Any]) -> str:
        given = arguments | {"path": self._path(arguments["path"])}
        file: FileText = _as(FileText, self.asked_for("fs/read_text_file", given, FILE_S))
        return file.content

    def _write_file(self, arguments: dict[str, Any]) -> str:
        self.asked_for("fs/write_text_file", arguments | {"path": self._path(arguments["path"])}, FILE_S)
        return "written"

    def _path(self, named: str) -> str:
        """The whole path. Raises ConfigError where it leads out of the session's folders."""
        path = posixpath.normpath(posixpath.join(self._folders[0], named))
        if not any(path == folder or path.startswith(f"{folder.rstrip('/')}/") for folder in self._folders):
            raise ConfigError(f"{named!r} is outside of {', '.join(self._folders)}, where this session works")
        return path

    # -- commands --------------------------------------------------------------------------------------------------

    def _run(self, arguments: dict[str, Any]) -> dict[str, Any]:
        self._check_turn()
        given = arguments | {"cwd": self._folders[0], "outputByteLimit": OUTPUT_BYTES}
        terminal = _as(Terminal, self._ask("terminal/create", given).wait(FILE_S)).terminal_id
        of_it = {"terminalId": terminal}
        self._running[terminal] = None
        if self._is_stopped:  # While it was made, so that `stop` has not seen it.
            self._ask("terminal/kill", of_it)
        try:
            self.on_terminal(arguments, terminal)
            ended = _as(Exit, self._ask("terminal/wait_for_exit", of_it).wait(COMMAND_S - 2 * KILL_S))
            wrote = _as(Output, self._ask("terminal/output", of_it).wait(KILL_S))
        except DriverUnavailable:
            self._ask("terminal/kill", of_it)
            raise
        finally:
            self._running.pop(terminal, None)
            self._ask("terminal/release", of_it)
        row = {"exit_code": ended.exit_code, "signal": ended.signal, "output": wrote.output}
        return row | ({"output_is_cut": True} if wrote.truncated else {})

    def _ask(self, method: str, params: dict[str, Any]) -> Asked:
        return self._peer.ask(method, {"sessionId": self._session(), **params})


def _object(name: str) -> dict[str, Any]:
    more = {"required": _REQUIRED[name], "additionalProperties": False}
    return {"type": "object", "properties": _SCHEMAS[name], **more}


def _as(kind: type[Any], result: Any) -> Any:
    """A client's answer as what it must be. Raises PeerMisbehaved."""
    try:
        return read(kind, result)
    except (Refused, msgspec.ValidationError) as error:
        raise PeerMisbehaved(f"the client answered with something else than a {kind.__name__}: {error}") from None

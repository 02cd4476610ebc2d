"""A server as a child process: lines to its standard input, lines from its output, and its end.

It is started in a process group of its own, with few variables, and ended as the protocol says: its input is closed,
then it is asked, then it is killed, with whatever it has started. Ours that is killed closes its input too.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from edgeagent.codec.frames import Lines
from edgeagent.codec.jsonrpc import Incoming, Message, Reader, encode
from edgeagent.core.text import readable, shown
from edgeagent.driver.mcp.connection import INITIALIZED
from edgeagent.errors import DriverUnavailable

READ_BYTES = 1 << 16

COMPLAINT_BYTES = 2048
"""The end of what it writes to its standard error: what is shown when it does not start."""

ENDING_S = 3.0
"""For each of the two polite ways to end."""

LOOK_S = 0.02

INHERITED = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER", "XDG_RUNTIME_DIR")
"""Variables that every program is given; no key is among them."""


class Pipe:
    """Owns the process and the thread that reads it. `incoming` and `lost` are called in that thread; `lost` once."""

    is_met_alone_first = False  # Programs there are that end when anything comes before the greeting.

    def __init__(
        self,
        command: Sequence[str],
        folder: Path | None,
        environment: Sequence[str],
        incoming: Callable[[list[Incoming]], None],
        lost: Callable[[str], None],
    ) -> None:
        """Start it. Raises DriverUnavailable."""
        self._incoming, self._lost = incoming, lost
        self._framing = Lines()
        self._writing = threading.Lock()
        self._is_closed = False
        self._complaint = b""
        try:
            self._process = subprocess.Popen(
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=folder,
                env=_environment(environment, os.environ),
                bufsize=0,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            raise DriverUnavailable(f"{command[0]} cannot be started: {why}") from None
        assert self._process.stdin is not None, "it was asked for"
        self._input = self._process.stdin.fileno()
        os.set_blocking(self._input, False)
        self._woken, self._wake = os.pipe()
        self._thread = threading.Thread(target=self._read, name=f"mcp {command[0]}", daemon=True)
        self._thread.start()

    def send(self, message: Message, until: float, headers: tuple[str, ...] = ()) -> None:
        """Write one message. Raises DriverUnavailable when it is not taken in time; then it was not sent whole."""
        left = memoryview(encode(message, self._framing))
        with self._writing:
            while left:
                try:
                    left = left[0 if self._is_closed else os.write(self._input, left) :]
                except BlockingIOError:
                    self._wait_to_write(until)
                except OSError:
                    raise DriverUnavailable(self._why_ended()) from None

    def _wait_to_write(self, until: float) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._input, selectors.EVENT_WRITE)
            if not selector.select(max(0.0, until - time.monotonic())):
                self.kill()  # Half a message may stand in the pipe, so nothing can follow it.
                raise DriverUnavailable("it does not read what it is sent")

    def begin(self, version: str, until: float) -> None:
        """Say that the greeting is over. Raises DriverUnavailable."""
        self.send(INITIALIZED, until)

    def alone(self, version: str) -> None:
        """Nothing: each line stands by itself."""

    def standing(self) -> str:
        """What it and the programs it has started hold in memory now."""
        pages = sum(size for group, size in _processes() if group == self._process.pid)
        return f"{pages * os.sysconf('SC_PAGE_SIZE') / 1e6:.0f} MB of memory"

    def kill(self) -> None:
        """End it now; `lost` follows."""
        self._signal(signal.SIGKILL)

    def close(self) -> None:
        """End it politely, or else at last; wait for the thread."""
        if self._writing.acquire(timeout=ENDING_S):
            self._close_input()
            self._writing.release()
        if not self._has_ended_within(ENDING_S):
            self._signal(signal.SIGTERM)
            self._has_ended_within(ENDING_S)
        self._signal(signal.SIGKILL)  # Before it is waited for: until then nobody else has its number.
        os.close(self._wake)  # What it has started may live on elsewhere and hold its output open.
        if self._thread is not threading.current_thread():
            self._thread.join()
        self._process.wait()
        self._close_input()

    def _close_input(self) -> None:
        self._is_closed = True
        with contextlib.suppress(OSError):
            assert self._process.stdin is not None, "it was asked for"
            self._process.stdin.close()

    def _has_ended_within(self, seconds: float) -> bool:
        until = time.monotonic() + seconds
        while self._status() is None:
            if time.monotonic() >= until:
                return False
            time.sleep(LOOK_S)
        return True

    def _status(self) -> str | None:
        """How the process ended, which stays to be waited for; None while it has not."""
        found = os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
        if found is None:
            return None
        how = "it has ended with exit code" if found.si_code == os.CLD_EXITED else "it was ended by signal"
        return f"{how} {found.si_status}"

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    # -- the thread ------------------------------------------------------------------------------------------------

    def _read(self) -> None:
        reader = Reader(self._framing, batches=True)
        output, errors = self._process.stdout, self._process.stderr
        assert output is not None and errors is not None, "they were asked for"
        with selectors.DefaultSelector() as selector, output, errors:
            for each in (output.fileno(), errors.fileno(), self._woken):
                selector.register(each, selectors.EVENT_READ)
            while {output.fileno(), self._woken} <= selector.get_map().keys():
                for key, _ in selector.select():
                    chunk = os.read(key.fd, READ_BYTES)
                    if not chunk:
                        selector.unregister(key.fd)
                    elif key.fd == errors.fileno():
                        self._complaint = (self._complaint + chunk)[-COMPLAINT_BYTES:]
                    else:
                        self._incoming(reader.feed(chunk))
            self._incoming(reader.close())
        os.close(self._woken)
        self._lost(self._why_ended())

    def _why_ended(self) -> str:
        self._has_ended_within(ENDING_S)
        how = self._status() or "it has closed its output"
        last = readable(self._complaint).strip().rpartition("\n")[2]
        return f"{how} ({shown(last)[:200]})" if last else how


def _environment(names: Sequence[str], ours: Mapping[str, str]) -> dict[str, str]:
    return {name: ours[name] for name in (*INHERITED, *names) if name in ours}


def _processes() -> list[tuple[int, int]]:
    """Group and resident pages of each process there is; empty where the system does not tell."""
    found = []
    for file in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            fields = file.read_text().rpartition(")")[2].split()
            found.append((int(fields[2]), int(fields[21])))
    return found

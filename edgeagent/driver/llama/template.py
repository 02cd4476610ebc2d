"""What prompt does the model file's own chat template make of these messages?

The template is a program that came with the file. It runs in a child process under limits (template_child.py), never in
ours: a hostile one is refused or killed, and what is seen here is a `ModelError`. It does not know the model or tokens.

    start()   the child comes up and compiles, in the background
    render()  one request, one answer; a child that overran was killed, and the next call starts another
    close()   the child is gone; without it, it goes when the Template or we do, for its input ends
"""

from __future__ import annotations

import importlib.util
import json
import os
import select
import signal
import struct
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from edgeagent.errors import ModelError

CPU_S = 1.5  # a real template takes under 1 ms here and under 100 ms on the slowest board
WALL_SLACK_S = 0.3  # beyond the CPU time: a child that neither computes nor answers is given up as well
START_S_MAX = 60.0  # Python and Jinja come up in 0.06 s here; a board with a worn SD card may take 100 times that
MEMORY_MB = 256  # Python and Jinja take 40
OUTPUT_CHARACTERS_MAX = 4 << 20  # about a million tokens
_ANSWER_BYTES_MAX = OUTPUT_CHARACTERS_MAX * 12 + 4096  # a character is at most 12 bytes of ASCII JSON

_LENGTH = struct.Struct("<I")
_CHILD = Path(__file__).with_name("template_child.py")
_REMEDY = "use another file of this model, or set model.template to chatml, gemma or a file"

_CHATML = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)

# Gemma has no system turn: what the system says opens the first turn of the user.
_GEMMA = (
    "{% set ns = namespace(lead='') %}"
    "{% for message in messages %}"
    "{% if message.role == 'system' %}{% set ns.lead = ns.lead + message.content + '\\n\\n' %}{% else %}"
    "{{ '<start_of_turn>' + ('model' if message.role == 'assistant' else 'user') + '\\n' }}"
    "{{ (ns.lead if message.role != 'assistant' else '') + message.content + '<end_of_turn>\\n' }}"
    "{% if message.role != 'assistant' %}{% set ns.lead = '' %}{% endif %}"
    "{% endif %}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<start_of_turn>model\\n' }}{% endif %}"
)


BUILT_IN = {"chatml": _CHATML, "gemma": _GEMMA}
"""The templates that settings may name."""


class GivenTemplate(NamedTuple):
    """A template that stands in place of the model file's own, and what errors call its place."""

    text: str
    source: str


def builtin_template(architecture: str) -> str:
    """A template for a file that carries none: Gemma's turns for Gemma, ChatML for every other family."""
    return _GEMMA if architecture.startswith("gemma") else _CHATML


class Template:
    """One chat template, compiled once in its own child process. Safe to use from several threads."""

    def __init__(
        self,
        text: str,
        *,
        source: str = "the model file",
        cpu_s: float = CPU_S,
        memory_mb: int = MEMORY_MB,
    ) -> None:
        """`source` is what errors call the place the template came from."""
        self._text, self._source = text, source
        self._cpu_s, self._memory_mb = cpu_s, memory_mb
        self._lock = threading.Lock()
        self._child: _Child | None = None
        self._refused: str | None = None

    def start(self) -> None:
        """Bring the child up in the background; returns at once. `render` does it too, and waits."""
        with self._lock:
            self._started()

    def render(self, messages: list[dict[str, Any]], *, at_ms: int | None = None, **variables: Any) -> str:
        """The prompt's text. Variables are those the template may use: `add_generation_prompt`, `bos_token`, `tools`…

        `at_ms` is the time that `strftime_now` shows, in UTC; without it the template has no such function.
        Raises `ModelError` when the template refuses, breaks, or overruns a limit; the next call works as ever.
        """
        request: dict[str, Any] = {"messages": messages, **variables}
        if at_ms is not None:
            request["at_ms"] = at_ms
        with self._lock:
            if self._refused is not None:
                raise ModelError(self._refused)
            child = self._compiled()
            child.send({"variables": request})
            return self._answer(child)

    def close(self) -> None:
        """End the child. The template may be used again, which starts another."""
        with self._lock:
            self._drop()

    def __enter__(self) -> Template:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _started(self) -> _Child:
        if self._child is None:
            self._child = _Child(self._cpu_s, self._memory_mb)
            self._child.send({"template": self._text})
        return self._child

    def _compiled(self) -> _Child:
        """A child that has compiled the template; a template that cannot be compiled is not tried again."""
        child = self._started()
        if child.compiled:
            return child
        try:
            ready = child.receive(START_S_MAX)
        except _Gone as gone:
            self._drop()
            raise ModelError(
                f"the chat template's process did not start: {gone}; check the Python installation"
            ) from gone
        assert ready.get("ready"), "the child says that it is ready before anything else"
        try:
            self._answer(child)
        except ModelError as error:
            self._refused = str(error)
            raise
        child.compiled = True
        return child

    def _answer(self, child: _Child) -> str:
        try:
            answer = child.receive(self._cpu_s + WALL_SLACK_S)
        except _Gone as gone:
            self._drop()
            raise ModelError(f"the chat template of {self._source} was stopped: {gone}; {_REMEDY}") from gone
        except BaseException:
            self._drop()  # Ctrl-C in the middle: the answer to this request must not be read as that to the next
            raise
        if "error" in answer:
            if answer["error"] in ("MemoryError", "RecursionError"):
                self._drop()  # what such a child has left of its memory is not known
            raise ModelError(f"the chat template of {self._source} {self._why(answer)}; {_REMEDY}")
        text = answer.get("text")
        assert isinstance(text, str), "an answer is a text or an error"
        return text

    def _why(self, answer: dict[str, Any]) -> str:
        said = str(answer.get("said", ""))
        match answer["error"]:
            case "MemoryError":
                return f"was stopped: it needs more than {self._memory_mb} MB"
            case "OverflowError":
                return f"was stopped: {said}"
            case "RecursionError":
                return "was stopped: it calls itself without end"
            case "SecurityError":
                return f"was refused: it reaches for what no template may ({said})"
            case "TemplateSyntaxError" | "TemplateAssertionError":
                return f"cannot be read: {said}"
            case "raise_exception":
                return f"refused these messages: {said}"
            case kind:
                return f"failed with {kind}: {said}"

    def _drop(self) -> None:
        if self._child is not None:
            self._child.stop()
            self._child = None


class _Gone(Exception):
    """The child ended, was killed, or did not answer in time."""


class _Child:
    """The process, its two pipes, and what is still to be written to it."""

    def __init__(self, cpu_s: float, memory_mb: int) -> None:
        arguments = [str(cpu_s), str(memory_mb), str(OUTPUT_CHARACTERS_MAX), *_jinja_places()]
        # Nothing of our environment: a template that breaks out must not find a key in it.
        environment = {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_CHILD), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env=environment,
            bufsize=0,
            start_new_session=True,  # Ctrl-C at the terminal is ours to understand, not the child's to die of
        )
        self._stop = weakref.finalize(self, _end, self._process)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._to, self._from = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._to, False)
        os.set_blocking(self._from, False)
        self._out = bytearray()
        self._in = bytearray()
        self.compiled = False

    def send(self, request: dict[str, Any]) -> None:
        """Write what the pipe takes now; `receive` writes the rest."""
        body = json.dumps(request).encode()
        self._out += _LENGTH.pack(len(body)) + body
        self._write_some()

    def receive(self, within_s: float) -> dict[str, Any]:
        """The next answer, waited for until `within_s` from now. Raises `_Gone`."""
        deadline = time.monotonic() + within_s
        while (answer := self._take_answer()) is None:
            self._wait(deadline, within_s)
            self._write_some()
            self._read_some()
        return answer

    def stop(self) -> None:
        self._stop()

    def _wait(self, deadline: float, within_s: float) -> None:
        poll = select.poll()
        poll.register(self._from, select.POLLIN)
        if self._out:
            poll.register(self._to, select.POLLOUT)
        left_s = deadline - time.monotonic()
        if left_s <= 0 or not poll.poll(left_s * 1000):
            raise _Gone(f"it gave no answer within {within_s:.1f} s")

    def _write_some(self) -> None:
        try:
            while self._out:
                del self._out[: os.write(self._to, self._out[: 1 << 16])]
        except BlockingIOError:
            pass
        except BrokenPipeError:
            self._out.clear()  # reading tells how it ended

    def _read_some(self) -> None:
        try:
            chunk = os.read(self._from, 1 << 16)
        except BlockingIOError:
            return
        if not chunk:
            raise _Gone(_how_it_ended(self._process.wait()))
        self._in += chunk

    def _take_answer(self) -> dict[str, Any] | None:
        if len(self._in) < _LENGTH.size:
            return None
        (length,) = _LENGTH.unpack_from(self._in)
        if length > _ANSWER_BYTES_MAX:
            raise _Gone(f"it announced an answer of {length} bytes")
        if len(self._in) < _LENGTH.size + length:
            return None
        body = bytes(self._in[_LENGTH.size : _LENGTH.size + length])
        del self._in[: _LENGTH.size + length]
        try:
            answer = json.loads(body)
        except ValueError as error:
            raise _Gone("its answer was no JSON") from error
        if not isinstance(answer, dict):
            raise _Gone("its answer was no object")
        return answer


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill, wait, close: no zombie and no open pipe stays behind."""
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()


def _how_it_ended(code: int) -> str:
    if code >= 0:
        return f"its process ended with status {code}"
    if -code in (signal.SIGPROF, signal.SIGXCPU):
        return "it used up its CPU time"
    return f"its process died of {signal.Signals(-code).name}"


def _jinja_places() -> list[str]:
    """The folders that Jinja and what it needs are installed in, found without importing them here."""
    places: list[str] = []
    for name in ("jinja2", "markupsafe"):
        found = importlib.util.find_spec(name)
        if found is None or found.origin is None:
            raise ModelError(f"the Python package {name} is missing; install it with `pip install {name}`")
        place = str(Path(found.origin).parent.parent)
        if place not in places:
            places.append(place)
    return places

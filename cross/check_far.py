"""Does the image ask a model over TLS, and only one that somebody vouches for?   check_far.py CERTIFICATE KEY

Runs in the image: the server is on the container's own loopback. curl and what it trusts are the image's.
"""

from __future__ import annotations

import ssl
import subprocess
import sys
import tempfile
from pathlib import Path

import pycurl

from edgeagent.driver.remote.endpoint import AUTHORITIES
from tests.driver.remote.peer import peer, saying

FEWEST = 100
"""Public authorities that Debian's package has at least; 148 in 2026."""

ANSWER = "The pump is off."
SETTINGS = """
[models.far]
endpoint = "{url}"
model = "m"
{ca}
"""


def main() -> None:
    """Print what answered and who was refused, or end with a sentence."""
    certificate, key = sys.argv[1:]
    authorities = next(each for each in map(Path, AUTHORITIES) if each.is_file()).read_text().count("BEGIN CERT")
    if authorities < FEWEST:
        sys.exit(f"{authorities} public authorities are too few")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with peer(saying(ANSWER), tls=context) as served:
        url = served.url.replace("http://127.0.0.1", "https://localhost")
        refused = asked(SETTINGS.format(url=url, ca=""))
        if refused.returncode == 0 or "certificate" not in refused.stdout or served.requests:
            sys.exit(f"a server that nobody vouches for was asked: {refused}")
        answered = asked(SETTINGS.format(url=url, ca=f'ca = "{certificate}"'))
        if answered.returncode or ANSWER not in answered.stdout:
            sys.exit(f"it was not answered: {answered}")
    print(f"   {pycurl.version.split(' zlib')[0]}, {authorities} public authorities")


def asked(settings: str) -> subprocess.CompletedProcess[str]:
    """What `edgeagent run` says of a model with these settings."""
    folder = Path(tempfile.mkdtemp())
    (folder / "edgeagent.toml").write_text(settings)
    (folder / "pump.py").write_text(Path("/usr/share/edgeagent/pump.py").read_text())
    command = ["edgeagent", "run", "pump.py", "How is the pump?", "--model", "far", "--timeout", "600"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


if __name__ == "__main__":
    main()

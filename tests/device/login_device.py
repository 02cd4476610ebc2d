"""A log-in console: busybox login in a small root of its own, behind a pseudo-terminal. Run by test_login.py, as root.

python login_device.py DIRECTORY PASSWORD      prints the terminal's path
"""

from __future__ import annotations

import fcntl
import os
import pty
import shutil
import subprocess
import sys
import termios
from pathlib import Path

BUSYBOX = "/bin/busybox"

LOGINS_MAX = 50
"""How often a log-in is offered. Without its terminal each ends at once, and with them the shell that offers them."""


def furnish(root: Path, password: str) -> None:
    """Put busybox and one account into the directory."""
    for name in ("bin", "etc", "dev", "root"):
        (root / name).mkdir()
    shutil.copy(BUSYBOX, root / "bin" / "busybox")
    for name in ("sh", "login", "echo", "id", "cat", "sleep"):
        (root / "bin" / name).symlink_to("busybox")
    hashed = subprocess.run([BUSYBOX, "mkpasswd", "-m", "sha256", password], capture_output=True, text=True, check=True)
    (root / "etc" / "passwd").write_text(f"operator:{hashed.stdout.strip()}:0:0:operator:/root:/bin/sh\n")
    (root / "etc" / "group").write_text("root:x:0:\n")


def main() -> None:
    """Offer a log-in again and again until killed, `LOGINS_MAX` times at most."""
    root, password = Path(sys.argv[1]), sys.argv[2]
    furnish(root, password)
    child, master = pty.fork()
    if child == 0:
        os.chroot(root)
        os.chdir("/")
        offered = f"n=0; while [ $n -lt {LOGINS_MAX} ]; do n=$((n+1)); login; done"
        os.execve("/bin/sh", ["sh", "-c", offered], {"PATH": "/bin", "TERM": "dumb"})
    # A second pseudo-terminal stands for the serial line: raw, with the log-in's own terminal behind it.
    outer, outer_slave = pty.openpty()
    attributes = termios.tcgetattr(outer_slave)
    attributes[0] = attributes[1] = attributes[3] = 0
    termios.tcsetattr(outer_slave, termios.TCSANOW, attributes)
    print(os.ttyname(outer_slave), flush=True)
    fcntl.fcntl(master, fcntl.F_SETFL, os.O_NONBLOCK)
    fcntl.fcntl(outer, fcntl.F_SETFL, os.O_NONBLOCK)
    carry_both_ways(master, outer)


def carry_both_ways(left: int, right: int) -> None:
    """Copy between two descriptors until one ends."""
    import select

    while True:
        ready, _, _ = select.select([left, right], [], [])
        for source in ready:
            try:
                portion = os.read(source, 1024)
            except OSError:
                return
            os.write(right if source == left else left, portion)


if __name__ == "__main__":
    main()

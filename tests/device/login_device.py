"""A log-in console in a small root of its own, behind a pseudo-terminal. Run by test_login.py and others, as root.

python login_device.py DIRECTORY PASSWORD [HOW]      prints the terminal's path

HOW: `login` (BusyBox's alone), `getty` (BusyBox's, which asks for the name and calls login), `agetty` (Debian's, the
same). The accounts are those of the directory; none of this machine is touched.
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
"""How often a log-in is offered: each begins on a terminal of its own, as init would respawn it."""

OFFERS = {
    "login": ("chroot", ["login"]),
    "getty": ("chroot", ["getty", "-L", "115200", "-", "dumb"]),
    "agetty": ("outside", ["/sbin/agetty", "--noreset", "--local-line", "--login-program", "/bin/login"]),
}


def furnish(root: Path, password: str) -> None:
    """Put busybox and one account into the directory."""
    for name in ("bin", "etc", "dev", "root"):
        (root / name).mkdir()
    shutil.copy(BUSYBOX, root / "bin" / "busybox")
    for name in ("sh", "login", "getty", "echo", "id", "cat", "sleep", "more", "stty"):
        (root / "bin" / name).symlink_to("busybox")
    hashed = subprocess.run([BUSYBOX, "mkpasswd", "-m", "sha256", password], capture_output=True, text=True, check=True)
    (root / "etc" / "passwd").write_text(f"operator:{hashed.stdout.strip()}:0:0:operator:/root:/bin/sh\n")
    (root / "etc" / "group").write_text("root:x:0:\n")
    (root / "dev" / "null").touch()  # Enough for getty, and no device is made.


def offered(root: Path, how: str) -> None:
    """Become the program that offers a log-in on this process's terminal."""
    where, words = OFFERS[how]
    if where == "chroot":
        os.chroot(root)
        os.chdir("/")
        os.execve("/bin/busybox", words, {"PATH": "/bin", "TERM": "dumb"})
    # agetty opens its terminal itself, by the name under /dev, and goes into the root before it calls login.
    words = [*words, "--chroot", str(root), "115200", os.ttyname(0).removeprefix("/dev/"), "dumb"]
    os.execve(words[0], words, {"PATH": "/bin", "TERM": "dumb"})


def main() -> None:
    """Offer a log-in again and again until killed, `LOGINS_MAX` times at most."""
    root, password, how = Path(sys.argv[1]), sys.argv[2], (*sys.argv[3:], "login")[0]
    furnish(root, password)
    # A second pseudo-terminal stands for the serial line: raw, with the log-in's own terminal behind it.
    outer, outer_slave = pty.openpty()
    attributes = termios.tcgetattr(outer_slave)
    attributes[0] = attributes[1] = attributes[3] = 0
    termios.tcsetattr(outer_slave, termios.TCSANOW, attributes)
    print(os.ttyname(outer_slave), flush=True)
    fcntl.fcntl(outer, fcntl.F_SETFL, os.O_NONBLOCK)
    for _ in range(LOGINS_MAX):
        child, master = pty.fork()
        if child == 0:
            offered(root, how)
        fcntl.fcntl(master, fcntl.F_SETFL, os.O_NONBLOCK)
        carry_both_ways(master, outer)
        os.close(master)
        os.waitpid(child, 0)


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

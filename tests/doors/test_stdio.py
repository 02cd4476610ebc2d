"""Stdio of a protocol: whatever a tool prints, reads or starts, the other side sees messages alone."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import os, subprocess, sys
from edgeagent.doors.stdio import stdio_kept

with stdio_kept() as (incoming, write):
    print("a tool prints")
    os.system("echo a child prints; cat")
    assert sys.stdin.read() == "" and subprocess.run(["cat"], capture_output=True).stdout == b""
    os.closerange(3, 100)
    line = os.read(incoming, 100)
    write(b"answer to " + line)
print("after", flush=True)
"""


def test_what_tools_print_and_read_is_not_the_protocols():
    done = subprocess.run([sys.executable, "-c", PROGRAM], input=b"a line\n", capture_output=True, check=True)
    assert done.stdout == b"answer to a line\n"
    assert sorted(done.stderr.split(b"\n")) == [b"", b"a child prints", b"a tool prints", b"after"]


def test_a_stdin_that_is_closed_is_one_that_has_ended():
    closed = f"import os; os.close(0)\n{PROGRAM}"
    done = subprocess.run([sys.executable, "-c", closed], capture_output=True, check=True)
    assert done.stdout == b"answer to "

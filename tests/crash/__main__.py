"""Run every crash case: `python -m tests.crash [--every N]`. The last line says how many, and how many failed."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from tests.crash.cases import groups


def main() -> int:
    """Run the groups one after the other; print each one's count, every failure, and the sums."""
    every = int(sys.argv[sys.argv.index("--every") + 1]) if "--every" in sys.argv else 1
    only = [a for a in sys.argv[1:] if not a.startswith("-") and not a.isdigit()]
    cases = failures = 0
    with tempfile.TemporaryDirectory(prefix="edgeagent-crash-") as room:
        for name, run in groups(Path(room), every).items():
            if only and name not in only:
                continue
            began, before = time.monotonic(), (cases, failures)
            for text, wrong in run():
                cases += 1
                if wrong:
                    failures += 1
                    print(f"FAILED {name}: {text}: {wrong}", flush=True)
            spent = time.monotonic() - began
            print(f"{name}: {cases - before[0]} cases, {failures - before[1]} failures, {spent:.0f} s", flush=True)
    print(f"crash test: {cases} cases, {failures} failures")
    return 1 if failures or not cases else 0


if __name__ == "__main__":
    sys.exit(main())

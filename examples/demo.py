"""`make demo`: the main job on the real model, then its trace replayed. Ends with 0 only if everything held."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

GREENHOUSE = Path(__file__).with_name("greenhouse.py")
PROMPT = "Open the north valve for 30 seconds."


def edgeagent(*arguments: str, capture: bool = False) -> str:
    """Run the command as a user would, showing it first. Ends the demo when it fails."""
    shown = " ".join(f'"{a}"' if " " in a else a for a in arguments)
    print(f"\n$ edgeagent {shown}", flush=True)
    done = subprocess.run(
        [sys.executable, "-m", "edgeagent", *arguments],
        text=True,
        stdout=subprocess.PIPE if capture else None,
        check=False,
    )
    if done.returncode:
        sys.exit(f"demo: edgeagent {arguments[0]} ended with {done.returncode}")
    return done.stdout or ""


def main() -> None:
    """Ask the greenhouse once, show what happened, replay the trace."""
    rows = [json.loads(line) for line in edgeagent("run", "--json", str(GREENHOUSE), PROMPT, capture=True).splitlines()]
    calls = [r for r in rows if r.get("effect") == "CallTool"]
    results = [r for r in rows if r.get("event") == "ToolReturned"]
    answers = [r for r in rows if r.get("effect") == "Say"]
    if not (calls and results and answers):
        sys.exit("demo: the model made no call, or the turn had no result and no answer")
    print(f"  asked    {PROMPT}")
    print(f"  called   {calls[0]['tool']}({calls[0]['arguments']})")
    print(f"  returned {results[0]['value']}")
    print(f"  answered {answers[-1]['text']}")
    trace = rows[-1]["trace"]
    edgeagent("trace", "show", trace)
    edgeagent("replay", trace)
    print(f"\nThe trace is {trace}")


if __name__ == "__main__":
    main()

"""Did the real model make a valid call, and did its result come back?   check_call.py EVENTS.jsonl

What it wrote is not compared with another CPU's: logits differ in their last digits, so free text may too. What must
hold everywhere is that the call was one of the declared tools with arguments of the declared types, and that it ran.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path


def main() -> None:
    """Print the call and its cost, or end with 6."""
    rows = [json.loads(line) for line in Path(sys.argv[1]).read_text().splitlines() if line.startswith("{")]
    calls = [row for row in rows if row.get("effect") == "CallTool"]
    returned = [row for row in rows if row.get("event") == "ToolReturned"]
    answers = [row for row in rows if row.get("event") == "ModelAnswered"]
    if not calls or not returned or calls[0]["effect_id"] != returned[0]["effect_id"]:
        print(f"no call came back; the model wrote: {[row['text'] for row in answers]}", file=sys.stderr)
        sys.exit(6)
    usage = [row["usage"] for row in answers]
    written, evaluated = sum(each["completion"] for each in usage), sum(each["evaluated"] for each in usage)
    seconds = sum(each["micros"] for each in usage) / 1e6
    print(f"   {calls[0]['tool']} {calls[0]['arguments']} -> {returned[0]['value']}")
    print(f"   {evaluated} prompt tokens evaluated, {written} written, {seconds:.0f} s in the model (emulated)")


if __name__ == "__main__":
    main()

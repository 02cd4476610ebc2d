"""How often does a model make the right call? One request, one ask, no conversation; nothing is cached.

    python -m bench.accuracy [--model NAME|FILE] [--set greenhouse,bfcl:multiple,...] [--rows N] [--part report|fit|all]
                             [--engine ours|spelling|llama-cpp-python|unconstrained|all] [--refusal SET/SET]
                             [--threads N] [--warm] [--meaning] [--wrong] [--json]

Sets: greenhouse, gateway, needle, needle:ENVIRONMENT, bfcl:simple_python, bfcl:multiple, bfcl:parallel,
bfcl:live_simple, bfcl:live_multiple, bfcl:irrelevance, bfcl:live_irrelevance; ha:LANG (en, de, es, fr, it, nl, pl, pt),
sentences for Home Assistant; own:LANG (en, de, es, fr; all; other: all but English), requests to device agents, of the
half that may be looked at, own:LANG:unseen, of the other half, own:LANG:practice and own:LANG:check, of more agents
(bench/accuracy/own/README.md); own:questions,
own:denials, own:bounds, own:talk, many that are made of these and must never be acted on; FILE.json, such agents and
requests of yours; and
AGENT.py=REQUESTS.json, your own requests for your agent:
[{"request": "Open it.", "call": {"TOOL": {"ARGUMENT": [RIGHT, ALSO RIGHT]}}}, ...], with null for a request that no
call is right for.

`ours` chooses the tool and reads the request as the model driver does; `spelling` has the same grammars and prompts,
and the model spells the tool's name. `llama-cpp-python` is that library's own class with `grammar=` from the JSON
schema of a call; `unconstrained` lets the model write freely and takes the first call in it. Several engines are asked
the same rows in turn, so that a busy machine is unfair to none of them.

With `--meaning` the embedder e5-small, if it was pulled, compares requests with the tools of `ours`, as it does in a
running agent; without it the words and the model decide alone.

Shares come with their 95 % intervals. Rows of one set share tools, so that they are not independent and the true
intervals are somewhat wider.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from bench.accuracy.cases import cases_of, is_set
from bench.accuracy.engines import ENGINES, OURS, file_of
from bench.accuracy.packages import DataMissing
from bench.accuracy.report import text_of
from bench.accuracy.run import Results, about, measure, memory_mb, points, summaries
from edgeagent.errors import EdgeAgentError, ExitCode, ModelError
from edgeagent.request.meaning import Meaning
from edgeagent.runtime.wiring import embedder


def main() -> int:
    """Measure what was asked for."""
    given = _given()
    try:
        file = file_of(given.model)
        cases = {name: cases_of(name, given.part, given.rows) for name in given.sets}
        options = {"threads": given.threads, "warm": given.warm}
        meaning = _embedder() if given.meaning else None
        helped = {name: {"meaning": meaning} if name in OURS else {} for name in given.engines}
        subjects = {name: ENGINES[name](file, **options, **helped[name]) for name in given.engines}
    except (EdgeAgentError, DataMissing, ValueError) as error:
        print(error, file=sys.stderr)
        return int(ExitCode.MODEL if isinstance(error, ModelError) else ExitCode.ERROR)
    measured: dict[str, Results] = {}
    for name, each in cases.items():
        measured[name] = measure(subjects, name, each)
        print(f"{name}: done", file=sys.stderr, flush=True)
    told = about(file, given.sets, part=given.part, meaning=meaning, **options) | {"memory_mb": memory_mb()}
    told["results"] = [each for name, results in measured.items() for each in summaries(name, results)]
    told["refusal"] = points(given.refusal, measured)
    _print(told, measured, as_json=given.json, wrong=given.wrong)
    for subject in subjects.values():
        subject.close()
    return int(ExitCode.DONE)


def _embedder() -> Meaning:
    """The embedder of this machine. Raises ModelError where there is none."""
    found = embedder()
    if found is None:
        raise ModelError("there is no embedder here; `edgeagent model pull e5-small` gets it")
    return found


def _given() -> argparse.Namespace:
    """The command line, with lists in the place of what stands between commas."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.accuracy", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="smollm2", help="a name in the store, or a .gguf file")
    parser.add_argument("--set", dest="sets", action="append", default=[], help="sets, between commas")
    parser.add_argument("--rows", type=int, default=40, help="cases of each set, evenly spread; 0: all")
    parser.add_argument("--part", choices=("report", "fit", "all"), default="report", help="odd rows, even rows, all")
    parser.add_argument("--engine", dest="engines", action="append", default=[], choices=(*ENGINES, "all"))
    parser.add_argument(
        "--refusal", action="append", default=[], help="no call made in the second, at 10 %% of the first"
    )
    parser.add_argument("--threads", type=int, help="default: one for each core")
    parser.add_argument("--warm", action="store_true", help="keep the system text in memory, as a running agent does")
    parser.add_argument("--meaning", action="store_true", help="with the embedder e5-small (default: without)")
    parser.add_argument("--wrong", action="store_true", help="show what was wrong")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    pairs = [name for pair in given.refusal for name in pair.split("/")]
    named = [name for each in given.sets for name in each.split(",")] or ([] if pairs else ["greenhouse"])
    given.sets = list(dict.fromkeys([*named, *pairs]))
    given.engines = list(ENGINES) if "all" in given.engines else list(dict.fromkeys(given.engines)) or ["ours"]
    if any(pair.count("/") != 1 for pair in given.refusal):
        parser.error("--refusal takes two sets with a / between them")
    if unknown := [name for name in given.sets if not is_set(name)]:
        parser.error(f"there is no set {unknown[0]}; --help lists them")
    if given.wrong and any(name.endswith((":unseen", ":check")) for name in given.sets):
        parser.error("of an unseen half only totals are shown, or it would not be unseen any more")
    return given


def _print(told: dict[str, Any], measured: dict[str, Results], *, as_json: bool, wrong: bool) -> None:
    """The figures, and what was wrong."""
    if as_json:
        print(json.dumps(told | ({"wrong": _wrong(measured)} if wrong else {}), ensure_ascii=False))
        return
    tables = ("results", "refusal")
    print(", ".join(f"{key} {value}" for key, value in told.items() if key not in tables), end="\n\n")
    print(text_of(told["results"], told["refusal"]))
    for each in _wrong(measured) if wrong else ():
        print(f"{each['id']}, {each['engine']}: {each['request']}\n    {each['wrote']}")
        print(f"    wanted: {each['wanted'] or 'no call'}" + (f"; a yes: {each['yes']}" if each["yes"] else ""))


def _wrong(measured: dict[str, Results]) -> list[dict[str, Any]]:
    return [
        {
            "id": r.case.id,
            "engine": engine,
            "request": r.case.request[:200],
            "wrote": r.answered.text[:300],
            "yes": [{call.tool: call.arguments} for call in r.answered.proposed],
            "wanted": [{each.tool: dict(each.arguments)} for each in r.case.wanted],
        }
        for results in measured.values()
        for engine, each in results.items()
        for r in each
        if not r.right
    ]


if __name__ == "__main__":
    sys.exit(main())

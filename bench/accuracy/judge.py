"""Are the calls the right ones? BFCL's rows by BFCL's own checker, needle's by needle's own comparison, ours by ours.

BFCL's checker imports a table of all the models it knows, and with it their clients. We give it that one table empty of
them: what it checks is untouched. Of several calls each is wanted once, in any order.
"""

from __future__ import annotations

import importlib
import inspect
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from bench.accuracy.accepting import accepted
from bench.accuracy.cases import Case, Checker, Wanted, needle_module, own_name
from bench.accuracy.packages import package
from edgeagent.core.values import ToolCall

CHECKERS: Mapping[Checker, str] = {
    "bfcl": "the AST checker of bfcl-eval",
    "needle": "the comparison of cactus-needle",
    "ours": "our own checker",
    "accepted": "our own checker of several ways to be right",
}

_MODEL = "edgeagent"


def is_right_tool(case: Case, *calls: ToolCall) -> bool:
    """Whether the calls are of the tools that are wanted, each as often as it is."""
    ways = case.asked.accept if case.asked else (case.wanted,)
    return any(sorted(call.tool for call in calls) == sorted(each.tool for each in way) for way in ways)


def is_right(case: Case, *calls: ToolCall) -> bool:
    """Whether these are the calls that the request asks for; where it asks for none, whether there is none."""
    if case.asked is not None:
        return accepted(case.agent, case.asked, calls)
    if not calls or not case.wanted:
        return not calls and not case.wanted
    match case.checker:
        case "bfcl":
            return _right_by_bfcl(case, calls)
        case "needle":
            return _right_by_needle(case, calls)
        case "ours" | "accepted":
            return _right_by_us(case, calls)


def _right_by_us(case: Case, calls: Sequence[ToolCall]) -> bool:
    left = list(case.wanted)
    for call in calls:
        fitting = next((each for each in left if _fits(case, call, each)), None)
        if fitting is None:
            return False
        left.remove(fitting)
    return not left


def _fits(case: Case, call: ToolCall, wanted: Wanted) -> bool:
    """Each argument as it was said; what was left out, or not asked for, has its default."""
    if call.tool != wanted.tool:
        return False
    parameters = inspect.signature(case.agent.by_name[call.tool].function).parameters
    arguments = {name: each.default for name, each in parameters.items() if each.default is not inspect.Parameter.empty}
    right = {name: [_folded(each) for each in values] for name, values in wanted.arguments.items()}
    defaults = {name: [_folded(value)] for name, value in arguments.items()}
    written = {name: _folded(value) for name, value in (arguments | call.arguments).items()}
    allowed = defaults | right
    return written.keys() >= right.keys() and all(value in allowed.get(name, ()) for name, value in written.items())


def _folded(value: Any) -> Any:
    if isinstance(value, str):
        return value.casefold().strip().rstrip(".!?")
    if isinstance(value, bool):
        return str(value)  # True is not 1 here.
    return float(value) if isinstance(value, int) else value


def _right_by_needle(case: Case, calls: Sequence[ToolCall]) -> bool:
    """As its harness has it: the same calls, letters folded, and no argument more or less."""
    key = _needle_key()
    written = [key({"name": call.tool, "arguments": call.arguments}) for call in calls]
    right = [key({"name": w.tool, "arguments": {k: v[0] for k, v in w.arguments.items()}}) for w in case.wanted]
    return sorted(written) == sorted(right)


@cache
def _needle_key() -> Callable[[dict[str, Any]], str]:
    found: Callable[[dict[str, Any]], str] = needle_module("_harness")._key
    return found


def _right_by_bfcl(case: Case, calls: Sequence[ToolCall]) -> bool:
    names = {own_name(function["name"]): function["name"] for function in case.row["function"]}
    answers = [{names[each.tool]: dict(each.arguments)} for each in case.wanted]
    written = [{names.get(call.tool, call.tool): dict(call.arguments)} for call in calls]
    category, checker = case.id.rpartition("_")[0], _bfcl_checker()
    language = sys.modules["bfcl_eval.constants.enums"].Language.PYTHON
    told = checker(case.row["function"], written, answers, language, category, _MODEL)
    return bool(told["valid"])


@cache
def _bfcl_checker() -> Callable[..., dict[str, Any]]:
    sys.path.append(str(package("bfcl")))
    table = types.ModuleType("bfcl_eval.constants.model_config")
    table.__dict__["MODEL_CONFIG_MAPPING"] = {_MODEL: types.SimpleNamespace(underscore_to_dot=False)}
    sys.modules[table.__name__] = table
    found: Callable[..., dict[str, Any]] = importlib.import_module(
        "bfcl_eval.eval_checker.ast_eval.ast_checker"
    ).ast_checker
    return found

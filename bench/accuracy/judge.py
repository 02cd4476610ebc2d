"""Is a call the right one? BFCL's rows by BFCL's own checker, everything else by ours.

BFCL's checker imports a table of all the models it knows, and with it their clients. We give it that one table empty of
them: what it checks is untouched.
"""

from __future__ import annotations

import importlib
import inspect
import math
import sys
import types
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from bench.accuracy.cases import Case, own_name, package
from edgeagent.core.values import ToolCall

OURS, BFCLS = "our own checker", "the checker of bfcl-eval"
_MODEL = "edgeagent"


def checker_of(case: Case) -> str:
    """Which checker judges the case."""
    return BFCLS if case.row else OURS


def is_right(case: Case, call: ToolCall) -> bool:
    """Whether this is the call that the request asks for."""
    assert case.right is not None
    if case.calls > 1:
        return False
    if case.row:
        return _bfcl_right(case, call)
    return call.tool in case.right and _arguments_right(case, call, case.right[call.tool])


def _arguments_right(case: Case, call: ToolCall, right: Mapping[str, list[Any]]) -> bool:
    """Each argument as it was said; what was left out, or not asked for, has its default."""
    parameters = inspect.signature(case.agent.by_name[call.tool].function).parameters
    arguments = {name: each.default for name, each in parameters.items() if each.default is not inspect.Parameter.empty}
    wanted = {name: [_folded(each) for each in values] for name, values in right.items()}
    defaults = {name: [_folded(value)] for name, value in arguments.items()}
    written = {name: _folded(value) for name, value in (arguments | call.arguments).items()}
    allowed = defaults | wanted
    return written.keys() >= wanted.keys() and all(value in allowed.get(name, ()) for name, value in written.items())


def _folded(value: Any) -> Any:
    if isinstance(value, str):
        return value.casefold().strip().rstrip(".!?")
    if isinstance(value, bool):
        return str(value)  # True is not 1 here.
    return float(value) if isinstance(value, int) else value


def _bfcl_right(case: Case, call: ToolCall) -> bool:
    names = {own_name(function["name"]): function["name"] for function in case.row["function"]}
    answers = [{names[name]: dict(arguments)} for name, arguments in (case.right or {}).items()]
    category = case.id.rpartition("_")[0]
    written, checker = [{names[call.tool]: call.arguments}], _checker()
    language = sys.modules["bfcl_eval.constants.enums"].Language.PYTHON
    told = checker(case.row["function"], written, answers, language, category, _MODEL)
    return bool(told["valid"])


@cache
def _checker() -> Callable[..., dict[str, Any]]:
    sys.path.append(str(package("bfcl")))
    table = types.ModuleType("bfcl_eval.constants.model_config")
    table.__dict__["MODEL_CONFIG_MAPPING"] = {_MODEL: types.SimpleNamespace(underscore_to_dot=False)}
    sys.modules[table.__name__] = table
    found: Callable[..., dict[str, Any]] = importlib.import_module(
        "bfcl_eval.eval_checker.ast_eval.ast_checker"
    ).ast_checker
    return found


def wilson(right: int, rows: int) -> tuple[float, float]:
    """The 95 % interval of a share (Wilson's)."""
    if not rows:
        return 0.0, 1.0
    z, share = 1.959964, right / rows
    middle = share + z * z / (2 * rows)
    half = z * math.sqrt(share * (1 - share) / rows + z * z / (4 * rows * rows))
    whole = 1 + z * z / rows
    return max(0.0, (middle - half) / whole), min(1.0, (middle + half) / whole)

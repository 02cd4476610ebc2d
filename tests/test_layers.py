"""Imports point down only, in no circle; the pure layers touch nothing; functions, signatures and files stay small."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "edgeagent"
HEIGHT = {
    "errors": 0,
    "version": 0,
    "shape": 1,
    "core": 2,
    "policy": 3,
    "request": 3,
    "grammar": 3,
    "codec": 3,
    "trace": 3,
    "models": 3,
    "driver": 4,
    "runtime": 5,
    "doors": 6,
    "testing": 6,
}
PURE = {"shape", "core", "policy", "request", "grammar", "codec"}
PURE_ALLOWED = {
    "__future__",
    "abc",
    "base64",
    "binascii",
    "bisect",
    "collections",
    "dataclasses",
    "datetime",
    "decimal",
    "edgeagent",
    "enum",
    "fractions",
    "functools",
    "hashlib",
    "inspect",
    "ipaddress",
    "itertools",
    "json",
    "math",
    "msgspec",
    "operator",
    "orjson",
    "pathlib",
    "re",
    "snowballstemmer",
    "string",
    "types",
    "typing",
    "uuid",
}
PURE_EXCEPTIONS = {
    # A user's Pydantic model is looked for among the modules that the user has loaded; nothing is imported for it.
    "shape/fields.py": {"sys", "pydantic_core"},
    # The words of a language are data of the package, read once: no file of a user or of the machine.
    "request/language.py": {"importlib", "tomllib"},
    "request/tongue.py": {"importlib", "tomllib"},
    # Which characters are marks, and what a text's normal form is: tables of values.
    "core/quoting.py": {"unicodedata"},
    "policy/inert.py": {"unicodedata"},
}
DRIVER_HEIGHT = {"": 0, "line": 1, "bus": 2, "device": 3, "llama": 3, "meaning": 3, "remote": 3, "mcp": 4}
"""Within `driver/`: a bus and a device stand on a line; a model knows no device; a server may be behind a network."""
DOOR_KNOWS = {"runtime", "core", "errors", "version", "doors"}
"""A door opens, serves and watches sessions through `runtime`; what it is shown are values of `core`."""
VERBS_OF_ROOMS = {
    # Verbs that open no session: each shows or mends what one room holds, and names that room.
    # And those doors that speak a protocol of messages: its codec, and the peer at the other end.
    "acp/client.py": {"driver"},
    "acp/door.py": {"codec", "driver"},
    "acp/messages.py": {"codec", "driver"},
    "acp/session.py": {"driver"},
    "acp/sessions.py": {"codec", "driver"},
    "host/sessions.py": {"codec", "driver"},
    "cli/check.py": {"codec", "grammar", "models", "shape"},  # looks into every room before anything runs
    "cli/console.py": {"driver"},  # a person at a line; there is no agent
    "cli/device.py": {"driver"},
    "cli/device_help.py": {"driver"},
    "cli/far.py": {"driver"},  # the key of a server, as a reference
    "cli/grammar.py": {"codec", "grammar", "shape"},
    "cli/model.py": {"models"},
    "cli/policy.py": {"policy", "trace"},
    "cli/replay.py": {"trace"},
    "cli/sessions.py": {"trace"},
    "cli/trace.py": {"trace"},
    "cli/trace_export.py": {"trace"},
    "cli/trace_file.py": {"trace"},
    "cli/trace_sign.py": {"trace"},
    "mcp/answers.py": {"codec", "driver"},
    "mcp/asked_later.py": {"codec", "driver"},
    "mcp/door.py": {"driver"},
    "mcp/http.py": {"codec", "driver"},
    "mcp/offered.py": {"driver"},
    "mcp/stateless.py": {"codec", "driver"},
    "mcp/stream.py": {"codec"},
    "mcp/watched.py": {"driver"},
    "line/ends.py": {"driver"},  # a person at a line, as `cli/console.py`
    "line/incoming.py": {"driver"},
    "line/log.py": {"driver"},
    "line/loop.py": {"driver"},
    "line/scroll_back.py": {"driver"},
    "line/shows.py": {"driver"},
}
FILES = sorted(p for p in PACKAGE.rglob("*.py") if p.name not in {"__init__.py", "__main__.py"})


def imports_of(file: Path):
    """Every import of a file, lazy ones too, as dotted names."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative imports hide which way they point"
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names if node.module == "edgeagent")


def place_of(file: Path) -> tuple[str, str]:
    parts = file.relative_to(PACKAGE).with_suffix("").parts
    return parts[0], parts[1] if len(parts) > 2 else ""


PURE_FILES = [f for f in FILES if place_of(f)[0] in PURE]


@pytest.mark.parametrize("file", FILES, ids=lambda f: str(f.relative_to(PACKAGE)))
def test_imports_point_down(file):
    room, inner = place_of(file)
    for name in imports_of(file):
        if not name.startswith("edgeagent"):
            continue
        assert name != "edgeagent", f"{file} imports the front door"
        other, *rest = name.split(".")[1:]
        if other == room:
            other_inner = rest[0] if rest and (PACKAGE / other / rest[0]).is_dir() else ""
            if room == "driver" and inner != other_inner:
                downwards = DRIVER_HEIGHT[other_inner] < DRIVER_HEIGHT[inner]
                assert downwards, f"{file} imports {name}: drivers of one height do not know each other"
        else:
            assert HEIGHT[other] < HEIGHT[room], f"{file} imports {name}: not downwards"


@pytest.mark.parametrize("file", PURE_FILES, ids=lambda f: str(f.relative_to(PACKAGE)))
def test_the_pure_layers_import_only_values(file):
    allowed = PURE_ALLOWED | PURE_EXCEPTIONS.get(str(file.relative_to(PACKAGE)), set())
    outside = {name.split(".")[0] for name in imports_of(file)} - allowed
    assert not outside, f"{file} imports {outside}"


DOOR_FILES = [f for f in FILES if place_of(f)[0] == "doors"]


@pytest.mark.parametrize("file", DOOR_FILES, ids=lambda f: str(f.relative_to(PACKAGE)))
def test_a_door_knows_the_runtime_only(file):
    allowed = DOOR_KNOWS | VERBS_OF_ROOMS.get(str(file.relative_to(PACKAGE / "doors")), set())
    rooms = {name.split(".")[1] for name in imports_of(file) if name.startswith("edgeagent.")}
    assert rooms <= allowed, f"{file} reaches past the runtime into {rooms - allowed}"


def test_every_verb_that_names_a_room_still_does():
    doors = PACKAGE / "doors"
    for name, rooms in VERBS_OF_ROOMS.items():
        used = {n.split(".")[1] for n in imports_of(doors / name) if n.startswith("edgeagent.")}
        assert rooms <= used, f"{name} needs no leave for {rooms - used}"


def test_every_file_has_a_layer():
    assert {place_of(f)[0] for f in FILES} <= set(HEIGHT)


# -- circles -------------------------------------------------------------------------------------------------------

CIRCLES: set[frozenset[str]] = set()
"""Those that are still to be opened. It only ever becomes shorter."""


def module_of(file: Path) -> str:
    name = ".".join(("edgeagent", *file.relative_to(PACKAGE).with_suffix("").parts))
    return name.removesuffix(".__init__")


@cache
def graph() -> dict[str, set[str]]:
    """Each module with those it imports: lazily, for types, or at once."""
    modules = {module_of(f): f for f in PACKAGE.rglob("*.py")}
    return {name: set(_modules_in(file, set(modules))) - {name} for name, file in modules.items()}


def _modules_in(file: Path, modules: set[str]) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom):
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            yield from inner & modules or {node.module} & modules


def circles_in(imports: dict[str, set[str]]) -> set[frozenset[str]]:
    """The circles that stand in the way of an order, each opened when it is found."""
    imports, found = {name: set(others) for name, others in imports.items()}, set()
    while True:
        try:
            TopologicalSorter(imports).prepare()
        except CycleError as error:
            circle = error.args[1]  # Each imports the one before it; the first is also the last.
            found.add(frozenset(circle))
            imports[circle[1]].discard(circle[0])
        else:
            return found


def test_modules_import_each_other_in_no_circle_at_any_depth():
    assert circles_in(graph()) <= CIRCLES


def test_a_circle_is_found_and_named():
    assert circles_in({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == {frozenset("abc")}
    assert circles_in({"a": {"b"}, "b": {"c"}, "c": set()}) == set()


# -- sizes ---------------------------------------------------------------------------------------------------------

LINES_MAX, PARAMETERS_MAX, FILE_LINES_MAX = 49, 8, 450
TOO_MANY_PARAMETERS: set[str] = set()
TOO_MANY_LINES: set[str] = set()
"""What is still too large and has no reason in ARCHITECTURE.md. Both only ever become shorter."""


def functions_in(file: Path) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Every function of a file, with the classes and functions around it in its name."""

    def inside(node: ast.AST, around: str) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
        for child in ast.iter_child_nodes(node):
            named = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            name = f"{around}{child.name}" if named else around
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                yield name, child
            yield from inside(child, f"{name}." if named else around)

    yield from inside(ast.parse(file.read_text()), "")


def parameters_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    """What a caller may give; the object itself is not counted."""
    arguments = function.args
    names = [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    return names[1:] if names[:1] in (["self"], ["cls"]) else names


def too_large(limit: int, size) -> set[str]:
    here = ((f.relative_to(PACKAGE), name, node) for f in FILES for name, node in functions_in(f))
    return {f"{file}: {name}" for file, name, node in here if size(node) > limit}


def test_no_function_is_longer_than_a_screen():
    assert too_large(LINES_MAX, lambda node: node.end_lineno - node.lineno + 1) == set()


def test_no_signature_is_longer_than_one_can_keep_in_mind():
    assert too_large(PARAMETERS_MAX, lambda node: len(parameters_of(node))) <= TOO_MANY_PARAMETERS


def test_no_file_is_longer_than_one_question_needs_unless_a_reason_is_given():
    page = (PACKAGE.parent / "ARCHITECTURE.md").read_text()
    long = {str(f.relative_to(PACKAGE)) for f in FILES if len(f.read_text().splitlines()) > FILE_LINES_MAX}
    reasons = set(re.findall(r"^\* `([\w/]+\.py)`: \w", page, re.MULTILINE))
    assert long - reasons <= TOO_MANY_LINES
    assert reasons <= long, "a reason stands there for a file that needs none"

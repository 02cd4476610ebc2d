"""Are calls held to their schemas? Every row of a suite file, by one engine: right, wrong, refused or relaxed, by name.

    python -m bench.schema_suite FILE --engine llguidance|gbnf [--model NAME|PATH] [--json]

A row is a name, a JSON Schema, texts that are valid and texts that are not. A text is let through when the grammar
accepts its bytes (white space between tokens respelt as ours) and the schema, read by the decoder's side, agrees.
Verdicts:

    right     every text as it should be
    policy    a valid text is not written, for a policy of docs/grammar.md: key order, escapes
    relaxed   the grammar alone lets an invalid text through, its report says why, and the decoder refuses it
    refused   no grammar is made; the error names the field
    wrong     anything else

The exit code is 6 when a row is wrong.
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from bench.acceptors import Acceptor, Gbnf, Llguidance, vocabulary
from edgeagent.errors import ExitCode, GrammarError, ModelError, ShapeError
from edgeagent.grammar.gbnf import gbnf
from edgeagent.grammar.gbnf_text import spelled
from edgeagent.grammar.llg import value_grammar
from edgeagent.models.store import find
from edgeagent.shape.admits import admits
from edgeagent.shape.foreign import foreign
from edgeagent.shape.lower import Lowered, Relaxation, lower
from edgeagent.shape.parse import parse
from edgeagent.shape.pointer import Document

Verdict = Literal["right", "policy", "relaxed", "refused", "wrong"]

# More orders of keys than these are not tried when a refused text is to be explained.
KEYS_PERMUTED_MAX = 4

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s"{}\[\]:,]+|\s+')


@dataclass
class Finding:
    """What became of one row."""

    name: str
    verdict: Verdict = "right"
    texts: list[str] = field(default_factory=list)
    """The texts that made the verdict."""
    report: list[str] = field(default_factory=list)
    """Relaxations, or the error of a refused row."""


class Subject:
    """One schema as one engine holds it. Raises GrammarError if it cannot."""

    def __init__(self, schema: Any, engine: str, model: str) -> None:
        self.schema = foreign(schema).schema
        self.lowered: Lowered = lower(self.schema)
        self.relaxations: list[Relaxation] = list(self.lowered.relaxations)
        self.acceptor: Acceptor
        if engine == "gbnf":
            text = gbnf(self.lowered.schema, relaxed=self.relaxations)
            self.acceptor = Gbnf(text, vocabulary(find(model)))
        else:
            self.acceptor = Llguidance(value_grammar(self.lowered.schema))

    def written(self, text: str) -> bool:
        """Whether the grammar lets the text be written, white space between tokens aside."""
        return self.acceptor.accepts(respaced(text))

    def admitted(self, text: str) -> bool:
        """Whether the decoder's side lets the text through."""
        try:
            return admits(self.schema, parse(text), Document(self.schema))
        except ShapeError:
            return False


def judge(row: dict[str, Any], engine: str, model: str) -> Finding:
    """Return what the engine makes of a row."""
    finding = Finding(row["name"])
    try:
        subject = Subject(row["schema"], engine, model)
    except (GrammarError, ShapeError) as error:
        return Finding(row["name"], "refused", report=[str(error)])
    finding.report = [f"{note.path or 'root'}: {note.keyword}: {note.reason}" for note in subject.relaxations]
    for text in row["invalid"]:
        if subject.written(text):
            _note(finding, "relaxed" if subject.relaxations and not subject.admitted(text) else "wrong", text)
    for text in row["valid"]:
        if not subject.admitted(text):
            _note(finding, "wrong", text)
        elif not subject.written(text):
            _note(finding, "policy" if any(map(subject.acceptor.accepts, respelt(text))) else "wrong", text)
    return finding


def _note(finding: Finding, verdict: Verdict, text: str) -> None:
    order: list[Verdict] = ["right", "policy", "relaxed", "wrong"]
    finding.verdict = max(finding.verdict, verdict, key=order.index)
    finding.texts.append(text)


def respaced(text: str) -> str:
    """Return the text with our separators between its tokens; strings, numbers and key order stay as they are."""
    tokens = _TOKEN.findall(text)
    if text != text.strip() or "".join(tokens) != text:  # Around the value, or no JSON at all: as it is.
        return text
    return "".join({",": ", ", ":": ": "}.get(token, token) for token in tokens if not token.isspace())


def respelt(text: str) -> Iterator[str]:
    """Return the same value with our escapes, in every order of its keys."""
    yield from itertools.islice((spelled(value) for value in _orders(parse(text))), 1_000)


def _orders(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        yield from (list(items) for items in itertools.product(*(list(_orders(item)) for item in value)))
    elif isinstance(value, dict) and len(value) <= KEYS_PERMUTED_MAX:
        for keys in itertools.permutations(value):
            for items in itertools.product(*(list(_orders(value[key])) for key in keys)):
                yield dict(zip(keys, items, strict=True))
    else:
        yield value


def main(arguments: list[str] | None = None) -> int:
    """Judge a file and print it. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="bench.schema_suite", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--engine", choices=["llguidance", "gbnf"], default="llguidance")
    parser.add_argument("--model", default="smollm2", help="whose vocabulary llama.cpp's grammars are tried with")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    chosen = parser.parse_args(arguments)
    try:
        findings = [judge(row, chosen.engine, chosen.model) for row in json.loads(chosen.file.read_text())]
    except ModelError as error:
        print(error, file=sys.stderr)
        return ExitCode.MODEL
    counts = Counter(finding.verdict for finding in findings)
    if chosen.json:
        rows = [asdict(finding) for finding in findings]
        print(json.dumps({"engine": chosen.engine, "counts": counts, "rows": rows}, ensure_ascii=False))
    else:
        _print(findings, counts)
    return ExitCode.CHECK_FAILED if counts["wrong"] else ExitCode.DONE


def _print(findings: list[Finding], counts: Counter[Verdict]) -> None:
    for finding in findings:
        print(f"{finding.verdict:8} {finding.name}", *(f"\n           text    {text}" for text in finding.texts))
        if finding.verdict in ("relaxed", "refused", "wrong"):
            print(*(f"           report  {line}" for line in finding.report), sep="\n")
    print(", ".join(f"{count} {verdict}" for verdict, count in counts.most_common()))


if __name__ == "__main__":
    sys.exit(main())

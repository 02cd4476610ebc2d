"""How fast, how small and how right are calls written? Ours and peers, side by side, in one run.

    python -m bench.decode [--json] [--model FILE ...] [--peer NAME ...] [--rounds 3] [--threads 2]

Every subject is a process of its own with the same model file, prompts (about 500 tokens of which only the request
changes), tools and number of threads. After one round to warm up, the rounds go around the subjects in turn, so that
a noisy neighbour hits all of them; a subject's time is the median of its rounds. Peers that are not in our own
environment have theirs under `bench/peers/NAME/env`, made on demand; one that cannot be had is skipped, and said.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import click

ROOT = Path(__file__).resolve().parent.parent
PEERS = Path(__file__).resolve().parent / "peers"

OURS = "ours"
SAME_TEXT = "ours, unconstrained, same text"
BASELINE = "llama-cpp-python"

# What each peer's environment needs; None: it runs in ours.
SUBJECTS: dict[str, tuple[str, ...] | None] = {
    OURS: None,
    "ours, not forced": None,
    SAME_TEXT: None,
    "ours, gbnf": None,
    BASELINE: None,
    "xllamacpp": ("xllamacpp",),
    "guidance": ("guidance",),
    "outlines": ("outlines", "llguidance"),
}
# These bring no llama.cpp of their own: they get our build of llama-cpp-python, which takes minutes to compile.
ON_OUR_LLAMA_CPP = ("guidance", "outlines")
START_S = 600.0  # guidance reads the vocabulary of 262,144 tokens for minutes


@dataclass
class Subject:
    """One process that answers a line with a round."""

    name: str
    process: subprocess.Popen[str]
    about: dict[str, Any]
    rounds: list[dict[str, Any]] = field(default_factory=list)

    def run(self) -> dict[str, Any]:
        """Have it write the five calls once more."""
        _send(self.process, "round")
        return _receive(self.process)


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object: figures and ratios by model and peer.")
@click.option("--model", "models", multiple=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--peer", "peers", multiple=True, help="Only these subjects (ours is always among them).")
@click.option("--rounds", default=3, show_default=True)
@click.option("--threads", default=2, show_default=True)
def main(as_json: bool, models: tuple[Path, ...], peers: tuple[str, ...], rounds: int, threads: int) -> None:
    """Measure, and print figures and ratios."""
    wanted = [name for name in SUBJECTS if not peers or name in peers or name == OURS]
    result = {}
    for model in models or default_models():
        result[model.name] = measure(model, wanted, rounds, threads)
        if not as_json:
            click.echo(table(model.name, result[model.name]))
    if as_json:
        click.echo(json.dumps(result, indent=1))


def default_models() -> tuple[Path, ...]:
    """The two models at hand, as far as they were pulled."""
    from edgeagent.errors import EdgeAgentError
    from edgeagent.models.store import find

    found = []
    for name in ("smollm2", "gemma3-270m"):
        try:
            found.append(find(name))
        except EdgeAgentError as error:
            _say(f"SKIPPED {name}: {error}")
    if not found:
        raise click.ClickException("no model: `edgeagent model pull smollm2`, or --model FILE")
    return tuple(found)


def measure(model: Path, wanted: list[str], rounds: int, threads: int) -> dict[str, Any]:
    """Run the subjects, and return what each needed, with the ratio to ours."""
    subjects = [subject for name in wanted if (subject := _start(name, model, threads)) is not None]
    try:
        for turn in range(rounds + 1):
            for subject in list(subjects):
                try:
                    done = subject.run()
                except (OSError, RuntimeError, ValueError) as error:
                    _say(f"SKIPPED {subject.name} after {turn} rounds: {error}")
                    subjects.remove(subject)
                    continue
                if turn:  # the first one warms up
                    subject.rounds.append(done)
    finally:
        for subject in subjects:
            subject.process.kill()
            subject.process.wait()
    return _judged([_summed(subject) for subject in subjects])


def _start(name: str, model: Path, threads: int) -> Subject | None:
    try:
        python = _python_for(name)
        script = PEERS / f"{name.replace('-', '_')}.py" if SUBJECTS[name] is not None else PEERS / "here.py"
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        process = subprocess.Popen(
            [python, str(script), str(model), str(threads), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
        )
        return Subject(name, process, _receive(process))
    except (OSError, subprocess.SubprocessError, RuntimeError, ValueError) as error:
        _say(f"SKIPPED {name}: {error}")
        return None


def _python_for(name: str) -> str:
    needs = SUBJECTS[name]
    if needs is None:
        return sys.executable
    folder = PEERS / name / "env"
    python = folder / "bin" / "python"
    ready = folder / "ready"
    if not ready.exists():
        _say(f"making an environment for {name}: {' '.join(needs)}")
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True, capture_output=True)
        made = subprocess.run(
            [str(python), "-m", "pip", "install", "-q", *needs], capture_output=True, text=True, check=False
        )
        if made.returncode:
            raise RuntimeError(f"pip could not install it: {made.stderr.strip().splitlines()[-1:]}")
        if name in ON_OUR_LLAMA_CPP:
            _lend_llama_cpp(folder)
        ready.touch()
    return str(python)


def _lend_llama_cpp(folder: Path) -> None:
    """Let the environment find our llama_cpp, behind everything it has itself."""
    import llama_cpp

    site = next(folder.glob("lib/python3*/site-packages"))
    (site / "our_llama_cpp.pth").write_text(str(Path(llama_cpp.__file__).parent.parent) + "\n")


def _summed(subject: Subject) -> dict[str, Any]:
    seconds = [sum(each["seconds"]) for each in subject.rounds]
    last = subject.rounds[-1]
    return {
        "name": subject.name,
        "version": subject.about.get("version", ""),
        "seconds": round(statistics.median(seconds), 3),
        "cpu_s": round(statistics.median(each["cpu_s"] for each in subject.rounds), 3),
        "seconds_each_round": [round(each, 3) for each in seconds],
        **{key: last[key] for key in ("valid", "right", "rss_mb")},
        **{key: value for key, value in last.items() if key in MEASURED},
        "texts": last["texts"],
    }


MEASURED = (
    "prefill_tokens",
    "evaluated",
    "forced",
    "sampled",
    "guessed",
    "mask_us_per_sampled",
    "sampling_us_per_sampled",
)


def _judged(rows: list[dict[str, Any]]) -> dict[str, Any]:
    ours = next((row["seconds"] for row in rows if row["name"] == OURS), None)
    for row in rows:
        row["ratio"] = round(row["seconds"] / ours, 2) if ours else None
    peers = [row for row in rows if not row["name"].startswith(OURS)]
    fastest = min(peers, key=lambda row: row["seconds"], default=None)
    return {
        "subjects": {row["name"]: {key: value for key, value in row.items() if key != "name"} for row in rows},
        "faster_than": {row["name"]: row["ratio"] for row in peers},
        "fastest_peer": fastest["name"] if fastest else None,
        "faster_than_fastest_peer": fastest["ratio"] if fastest else None,
    }


def table(model: str, result: dict[str, Any]) -> str:
    """The figures for people."""
    columns = ("seconds", "ratio", "cpu_s", "valid", "right", "rss_mb", *MEASURED)
    lines = [f"\n{model}: five calls", f"{'':32}" + "".join(f"{name.split('_per')[0]:>15}" for name in columns)]
    for name, row in result["subjects"].items():
        lines.append(f"{name:32}" + "".join(f"{_shown(row.get(column)):>15}" for column in columns))
    return "\n".join(lines)


def _shown(value: Any) -> str:
    return "" if value is None else str(value)


def _send(process: subprocess.Popen[str], line: str) -> None:
    stream: IO[str] | None = process.stdin
    assert stream is not None
    stream.write(line + "\n")
    stream.flush()


def _receive(process: subprocess.Popen[str]) -> dict[str, Any]:
    stream = process.stdout
    assert stream is not None
    with _limited(process, START_S):
        for line in stream:
            if line.startswith("@@ "):  # libraries print what they like on stdout
                answer: dict[str, Any] = json.loads(line[3:])
                if "error" in answer:
                    raise RuntimeError(answer["error"])
                return answer
    raise RuntimeError(f"it ended without an answer (status {process.wait()})")


@contextmanager
def _limited(process: subprocess.Popen[str], seconds: float) -> Iterator[None]:
    """Kill the process when it takes longer: reading its answer then ends."""
    from threading import Timer

    timer = Timer(seconds, process.kill)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _say(text: str) -> None:
    click.echo(text, err=True)


if __name__ == "__main__":
    main()

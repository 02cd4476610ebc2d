"""A model file's chat template: what it renders, and that a hostile one harms nobody."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from edgeagent.driver.llama.template import OUTPUT_CHARACTERS_MAX, Template, builtin_template
from edgeagent.errors import ModelError
from edgeagent.models.gguf import check_gguf
from edgeagent.models.store import find

pytestmark = pytest.mark.long

Messages = list[dict[str, Any]]
HELLO: Messages = [{"role": "user", "content": "Hello"}]

SMOLLM2_PROMPT = """\
<|im_start|>system
You are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>
<|im_start|>user
Hello<|im_end|>
<|im_start|>assistant
"""


def rendered(text: str, messages: Messages = HELLO, **variables: Any) -> str:
    with Template(text) as template:
        return template.render(messages, **variables)


# What it renders.


@pytest.mark.model
def test_smollm2s_own_template_gives_chatml() -> None:
    text = check_gguf(find("smollm2")).chat_template
    assert text is not None
    assert rendered(text, add_generation_prompt=True) == SMOLLM2_PROMPT


def test_messages_and_variables_reach_the_template() -> None:
    text = "{{ bos_token }}{% for m in messages %}[{{ m.role }}: {{ m['content'] }}]{% endfor %}{{ tools | length }}"
    assert rendered(text, bos_token="<s>", tools=[1, 2]) == "<s>[user: Hello]2"


def test_blocks_are_trimmed_as_transformers_trims_them() -> None:
    assert rendered("a\n    {% if true %}\nb\n    {% endif %}\nc") == "a\nb\nc"


def test_tojson_writes_plain_json_without_html_escapes() -> None:
    value = {"b": "<é&>", "a": [1, None, True]}
    assert rendered("{{ v | tojson }}", v=value) == '{"b": "<é&>", "a": [1, null, true]}'


def test_tojson_takes_indent_and_separators() -> None:
    assert rendered("{{ v | tojson(indent=2) }}", v={"a": 1}) == '{\n  "a": 1\n}'
    assert rendered("{{ v | tojson(separators=(',', ':')) }}", v={"a": 1}) == '{"a":1}'


def test_time_is_given_and_never_read_from_a_clock() -> None:
    assert rendered("{{ strftime_now('%d %b %Y %H:%M') }}", at_ms=86_400_000) == "02 Jan 1970 00:00"


def test_without_a_time_the_template_can_see_that_there_is_none() -> None:
    assert rendered("{{ strftime_now is defined }}") == "False"


def test_break_continue_and_generation_marks_are_known() -> None:
    text = "{% for i in range(9) %}{% if i == 1 %}{% continue %}{% endif %}{% if i == 4 %}{% break %}{% endif %}{{ i }}"
    text += "{% endfor %}{% generation %}x{% endgeneration %}"
    assert rendered(text) == "023x"


def test_text_of_any_script_and_lone_surrogates_comes_through() -> None:
    content = "žluťoučký 漢字 🦀 \ud800 \0 \x1b[2J"
    assert rendered("{{ messages[0].content }}", [{"role": "user", "content": content}]) == content


def test_filters_that_import_late_still_work_behind_closed_doors() -> None:
    text = "{{ '<b>a&amp;b</b>' | striptags }} {{ 'a b' | wordwrap(1) }} {{ '\\N{SNOWMAN}' }} {{ [3, 1] | sort }}"
    assert rendered(text) == "a&b a\nb ☃ [1, 3]"


def test_a_prompt_larger_than_any_pipe_passes() -> None:
    content = "x" * 1_000_000
    assert rendered("{{ messages[0].content }}", [{"role": "user", "content": content}]) == content


def test_a_long_template_can_be_started_in_the_background() -> None:
    with Template("y" * 500_000) as template:
        template.start()
        assert template.render(HELLO) == "y" * 500_000


def test_one_child_renders_again_and_again() -> None:
    with Template("{{ messages | length }}") as template:
        assert [template.render(HELLO * n) for n in range(50)] == [str(n) for n in range(50)]


def test_several_threads_get_their_own_answers() -> None:
    answers: dict[int, str] = {}
    with Template("{{ n }}") as template:

        def ask(n: int) -> None:
            answers[n] = template.render(HELLO, n=n)

        threads = [threading.Thread(target=ask, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert answers == {n: str(n) for n in range(8)}


# Families without a template of their own.


def test_the_built_in_chatml_writes_turns() -> None:
    messages = [{"role": "system", "content": "S"}, *HELLO, {"role": "assistant", "content": "A"}]
    expected = (
        "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\nA<|im_end|>\n"
    )
    assert rendered(builtin_template("llama"), messages) == expected
    assert rendered(builtin_template("qwen3"), [], add_generation_prompt=True) == "<|im_start|>assistant\n"


def test_the_built_in_gemma_puts_the_system_text_into_the_first_user_turn() -> None:
    messages = [{"role": "system", "content": "S"}, *HELLO, {"role": "assistant", "content": "A"}, *HELLO]
    expected = (
        "<start_of_turn>user\nS\n\nHello<end_of_turn>\n<start_of_turn>model\nA<end_of_turn>\n"
        "<start_of_turn>user\nHello<end_of_turn>\n<start_of_turn>model\n"
    )
    assert rendered(builtin_template("gemma3"), messages, add_generation_prompt=True) == expected


# Hostile ones.

# On a busy machine the wall clock may run out before the CPU time does.
OUT_OF_TIME = "used up its CPU time|gave no answer within"

HOSTILE = {
    "class of a string": ("{{ ''.__class__ }}", "reaches for what no template may"),
    "way to the object class": ("{{ ''.__class__.__mro__[1].__subclasses__() }}", "reaches for what no template may"),
    "globals of a function": ("{{ raise_exception.__globals__ }}", "reaches for what no template may"),
    "attr filter": ("{{ '' | attr('__class__') }}", "reaches for what no template may"),
    "format string": ("{{ '{0.__class__}'.format('') }}", "reaches for what no template may"),
    "change of the messages": ("{{ messages.append(1) }}", "reaches for what no template may"),
    "import of os": ("{% import 'os' as os %}", "failed with"),
    "include of a file": ("{% include '/etc/passwd' %}", "failed with"),
    "large power": ("{{ 9**12000000 }}", OUT_OF_TIME),
    "large power, not folded": ("{% set n = (messages | length) * 12000000 %}{{ 9**n > 1 }}", OUT_OF_TIME),
    "nested ranges": (
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
        OUT_OF_TIME,
    ),
    "gigabyte text": ("{{ 'A' * 10**9 }}", "more than 256 MB"),
    "gigabyte text, not folded": ("{{ 'A' * (messages | length * 10**9) }}", "more than 256 MB"),
    "gigabyte by format": ("{{ '%0999999999d' | format(1) }}", "more than 256 MB"),
    "doubling": (
        "{% set ns = namespace(x='AA') %}{% for i in range(99) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
        f"more than 256 MB|{OUT_OF_TIME}",
    ),
    "macro without end": ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "calls itself without end"),
    "text without end": ("{% for i in range(99999) %}{{ 'A' * 99 }}{% endfor %}", str(OUTPUT_CHARACTERS_MAX)),
    "range that is too long": ("{{ range(10**9) | list }}", "was stopped"),
    "parentheses": ("{{ " + "(" * 100_000, "calls itself without end"),
    "no template at all": ("{% if %}", r"cannot be read: .* \(line 1\)"),
}


@pytest.fixture(scope="module")
def bystander() -> Iterator[Template]:
    with Template("{{ messages | length }}") as template:
        yield template


@pytest.mark.parametrize(("text", "found"), HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_template_is_refused_or_killed_and_the_next_one_renders(
    text: str, found: str, bystander: Template
) -> None:
    with Template(text, source="evil.gguf", cpu_s=1.0) as template, pytest.raises(ModelError, match=found) as caught:
        template.render(HELLO)
    assert "evil.gguf" in str(caught.value)
    assert bystander.render(HELLO) == "1"


def test_a_template_that_overran_once_renders_the_next_request() -> None:
    with Template("{% for a in range(n) %}{% for b in range(n) %}{% endfor %}{% endfor %}ok", cpu_s=1.0) as template:
        assert template.render(HELLO, n=1) == "ok"
        with pytest.raises(ModelError, match=OUT_OF_TIME):
            template.render(HELLO, n=99_999)
        assert template.render(HELLO, n=1) == "ok"


def test_a_refusal_of_the_template_is_said_in_its_words_and_the_child_goes_on() -> None:
    with Template("{% if n %}{{ raise_exception('roles must alternate') }}{% endif %}ok") as template:
        with pytest.raises(ModelError, match="refused these messages: roles must alternate"):
            template.render(HELLO, n=1)
        assert template.render(HELLO, n=0) == "ok"


def test_a_template_that_cannot_be_compiled_is_compiled_once_only() -> None:
    with Template("{% if %}") as template:
        for _ in range(2):
            with pytest.raises(ModelError, match="cannot be read"):
                template.render(HELLO)


def test_a_child_killed_from_outside_is_reported_and_replaced() -> None:
    with Template("ok") as template:
        template.render(HELLO)
        os.kill(child_pid(template), signal.SIGKILL)
        with pytest.raises(ModelError, match="SIGKILL"):
            template.render(HELLO)
        assert template.render(HELLO) == "ok"


def test_a_child_that_stands_still_is_given_up() -> None:
    with Template("ok", cpu_s=1.0) as template:
        template.render(HELLO)
        os.kill(child_pid(template), signal.SIGSTOP)
        with pytest.raises(ModelError, match="no answer within"):
            template.render(HELLO)
        assert template.render(HELLO) == "ok"


def test_the_child_can_open_nothing_and_knows_nothing_of_our_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDGEAGENT_TEST_KEY", "secret")
    with Template("ok") as template:
        template.render(HELLO)
        process = Path(f"/proc/{child_pid(template)}")
        assert b"secret" not in (process / "environ").read_bytes()
        limits = (process / "limits").read_text()
    lines = {line[:26].strip(): line[26:].split() for line in limits.splitlines()}
    assert lines["Max open files"][0] == "3"
    assert lines["Max file size"][0] == "0"
    assert lines["Max processes"][0] == "0"
    assert lines["Max address space"][0] == str(256 << 20)


# The child goes.


def child_pid(template: Template) -> int:
    assert template._child is not None
    return template._child._process.pid


def gone(pid: int, *, zombie_is_gone: bool = False) -> bool:
    """Whether no process, not even a zombie, has this id; waits a little for it."""
    for _ in range(6_000):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if zombie_is_gone and state == "Z":
            return True
        time.sleep(0.01)
    return False


def test_close_leaves_no_process_and_no_zombie() -> None:
    template = Template("ok")
    template.render(HELLO)
    pid = child_pid(template)
    template.close()
    assert not Path(f"/proc/{pid}").exists()
    template.close()


def test_a_template_that_is_forgotten_takes_its_child_with_it() -> None:
    template = Template("ok")
    template.start()
    pid = child_pid(template)
    del template
    assert gone(pid)


ORPHAN = """
import os, sys
from edgeagent.driver.llama.template import Template
template = Template("ok")
template.render([])
print(template._child._process.pid, flush=True)
sys.stdin.read()
os._exit(0)
"""


def test_the_child_goes_when_its_parent_dies_without_a_word() -> None:
    root = Path(__file__).parents[3]
    command = [sys.executable, "-W", "error", "-c", ORPHAN]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=root) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert Path(f"/proc/{pid}").exists()
        parent.kill()
    # Whoever adopts an orphan may take its time to bury it.
    assert gone(pid, zombie_is_gone=True)


def test_rendering_imports_no_jinja_into_our_process() -> None:
    code = (
        "import sys; from edgeagent.driver.llama.template import Template\n"
        "with Template('ok') as t: t.render([])\n"
        "assert not {'jinja2', 'numpy', 'llama_cpp'} & set(sys.modules), 'imported'"
    )
    root = Path(__file__).parents[3]
    subprocess.run([sys.executable, "-W", "error", "-c", code], cwd=root, check=True)

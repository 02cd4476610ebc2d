"""The protocol's own Python SDK as the editor: every message of ours passes its models."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.doors.acp.garden import SENSOR, VALVE, Garden, call

pytest.importorskip(
    "acp", reason="the ACP SDK is missing, so editors were NOT tried: pip install agent-client-protocol"
)

from acp import PROTOCOL_VERSION, RequestError, schema, spawn_agent_process, text_block  # after the skip

pytestmark = [pytest.mark.deep, pytest.mark.filterwarnings("ignore::UserWarning", "ignore::ResourceWarning")]

SOON = 60.0


class Editor:
    """What an editor does for an agent, and what it has been told."""

    def __init__(self, *, decides: str | None = "allow_once") -> None:
        """`decides` is the kind of the option that is chosen; None leaves questions open."""
        self.decides = decides
        self.updates: list[Any] = []
        self.questions: list[Any] = []
        self.files: dict[str, str] = {}
        self.changed = asyncio.Condition()
        self.agent: Any = None
        self.process: Any = None

    def on_connect(self, agent: Any) -> None:
        """Nothing needs to be known of it."""

    async def session_update(self, session_id: str, update: Any, **more: Any) -> None:
        async with self.changed:
            self.updates.append(update)
            self.changed.notify_all()

    async def request_permission(self, session_id: str, tool_call: Any, options: Any, **more: Any) -> Any:
        async with self.changed:
            self.questions.append(tool_call)
            self.changed.notify_all()
        if self.decides is None:
            await asyncio.Event().wait()
        if self.decides == "cancelled":
            return schema.RequestPermissionResponse(outcome=schema.DeniedOutcome(outcome="cancelled"))
        option = next((each.option_id for each in options if each.kind == self.decides), self.decides)
        outcome = schema.AllowedOutcome(outcome="selected", option_id=option)
        return schema.RequestPermissionResponse(outcome=outcome)

    async def read_text_file(self, path: str, session_id: str, **more: Any) -> Any:
        return schema.ReadTextFileResponse(content=self.files[path])

    async def write_text_file(self, content: str, path: str, session_id: str, **more: Any) -> Any:
        self.files[path] = content
        return schema.WriteTextFileResponse()

    async def create_terminal(self, command: str, session_id: str, args: Any = None, **more: Any) -> Any:
        pipe = asyncio.subprocess.PIPE
        self.process = await asyncio.create_subprocess_exec(command, *(args or []), stdout=pipe)
        return schema.CreateTerminalResponse(terminal_id="t1")

    async def wait_for_terminal_exit(self, session_id: str, terminal_id: str, **more: Any) -> Any:
        code = await self.process.wait()
        return schema.WaitForTerminalExitResponse(exit_code=max(code, 0), signal="SIGKILL" if code < 0 else None)

    async def terminal_output(self, session_id: str, terminal_id: str, **more: Any) -> Any:
        output = (await self.process.stdout.read()).decode()
        return schema.TerminalOutputResponse(output=output, truncated=False)

    async def kill_terminal(self, session_id: str, terminal_id: str, **more: Any) -> Any:
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()

    async def release_terminal(self, session_id: str, terminal_id: str, **more: Any) -> Any:
        return None

    # -- what a test asks --------------------------------------------------------------------------------------------

    async def until(self, is_so: Callable[[], bool]) -> None:
        """Wait until that has come to be."""
        async with self.changed:
            await asyncio.wait_for(self.changed.wait_for(is_so), SOON)

    def texts(self, kind: str = "agent_message_chunk") -> str:
        """What was said, joined."""
        return "".join(each.content.text for each in self.updates if each.session_update == kind)

    def calls(self) -> list[tuple[str, str, str]]:
        """Each call with its title and all that became of it, in order."""
        told: dict[str, list[str]] = {}
        for each in self.updates:
            if each.session_update in ("tool_call", "tool_call_update"):
                told.setdefault(each.tool_call_id, []).extend([each.title or "", each.status or ""])
        return [(key, row[0], " ".join(word for word in row[1:] if word)) for key, row in told.items()]


def with_editor(
    garden: Garden, use: Callable[[Editor, Any], Awaitable[None]], *more: str, able: Any = None, **options: Any
) -> Editor:
    """Start the agent as an editor does, and use it."""

    async def run() -> Editor:
        editor = Editor(**options)
        command, *rest = garden.command(*more)
        async with spawn_agent_process(editor, command, *rest, env=garden.env) as (agent, process):
            editor.agent = process
            found = await agent.initialize(protocol_version=PROTOCOL_VERSION, client_capabilities=able)
            assert found.protocol_version == PROTOCOL_VERSION
            await asyncio.wait_for(use(editor, agent), 4 * SOON)
        return editor

    return asyncio.run(run())


async def prompt(agent: Any, session: str, text: str) -> str:
    found = await agent.prompt(session_id=session, prompt=[text_block(text)])
    return found.stop_reason


def test_a_prompt_is_answered_in_updates_with_the_calls_that_were_made(tmp_path):
    garden = Garden(tmp_path, SENSOR, "The soil is at 41 %.")

    async def use(editor: Editor, agent: Any) -> None:
        session = (await agent.new_session(cwd=str(tmp_path), mcp_servers=[])).session_id
        assert await prompt(agent, session, "How wet is the soil?") == "end_turn"
        listed = (await agent.list_sessions()).sessions
        assert [(each.session_id, each.title) for each in listed] == [(session, "How wet is the soil?")]

    editor = with_editor(garden, use)
    assert editor.calls() == [("2", 'read_sensor(sensor="soil")', "in_progress completed")]
    assert editor.texts() == "The soil is at 41 %."
    assert next(u.kind for u in editor.updates if u.session_update == "tool_call") == "read"


@pytest.mark.parametrize(
    ("decides", "effects"), [("allow_once", ["north 30"]), ("reject_once", []), ("cancelled", []), ("allow-0", [])]
)
def test_only_the_option_of_this_very_question_is_a_yes(tmp_path, decides, effects):
    garden = Garden(tmp_path, VALVE, "Done.", "Not done.")

    async def use(editor: Editor, agent: Any) -> None:
        session = (await agent.new_session(cwd=str(tmp_path), mcp_servers=[])).session_id
        assert await prompt(agent, session, "Open the north valve for 30 seconds.") == "end_turn"

    editor = with_editor(garden, use, decides=decides)
    assert garden.effects == effects
    assert [each.raw_input for each in editor.questions] == [{"seconds": 30, "valve": "north"}]
    assert editor.calls()[0][2] == ("pending in_progress completed" if effects else "pending failed")


def test_the_mode_refuse_asks_nobody_and_runs_nothing(tmp_path):
    garden = Garden(tmp_path, VALVE, "No.")

    async def use(editor: Editor, agent: Any) -> None:
        made = await agent.new_session(cwd=str(tmp_path), mcp_servers=[])
        assert [each.id for each in made.modes.available_modes] == ["ask", "refuse"]
        await agent.set_session_mode(session_id=made.session_id, mode_id="refuse")
        await prompt(agent, made.session_id, "Open the north valve for 30 seconds.")
        with pytest.raises(RequestError, match="no mode 'yolo'"):
            await agent.set_session_mode(session_id=made.session_id, mode_id="yolo")

    editor = with_editor(garden, use)
    assert (garden.effects, editor.questions) == ([], [])


def test_a_turn_is_cancelled_while_a_question_is_open(tmp_path):
    garden = Garden(tmp_path, VALVE, "Never said.")

    async def use(editor: Editor, agent: Any) -> None:
        session = (await agent.new_session(cwd=str(tmp_path), mcp_servers=[])).session_id
        running = asyncio.create_task(prompt(agent, session, "Open the north valve for 30 seconds."))
        await editor.until(lambda: bool(editor.questions))
        await agent.cancel(session_id=session)
        assert await asyncio.wait_for(running, SOON) == "cancelled"

    editor = with_editor(garden, use, decides=None)
    assert garden.effects == []
    assert editor.calls()[0][2] == "pending failed"


def test_a_turn_is_cancelled_while_a_tool_runs(tmp_path):
    garden = Garden(tmp_path, SENSOR, "Here I am.")
    garden.hold()

    async def use(editor: Editor, agent: Any) -> None:
        session = (await agent.new_session(cwd=str(tmp_path), mcp_servers=[])).session_id
        running = asyncio.create_task(prompt(agent, session, "How wet is the soil?"))
        await editor.until(lambda: bool(editor.calls()))
        await agent.cancel(session_id=session)
        assert await asyncio.wait_for(running, SOON) == "cancelled"
        garden.let_go()
        assert await prompt(agent, session, "Are you there?") == "end_turn"

    editor = with_editor(garden, use)
    assert editor.calls()[0][2] == "in_progress failed"
    assert editor.texts() == "Here I am."


def test_several_calls_at_once_are_shown_as_a_plan(tmp_path):
    air = call("read_sensor", sensor="air")
    garden = Garden(tmp_path, f"[{SENSOR}, {air}]", "Both are at 41 %.")

    async def use(editor: Editor, agent: Any) -> None:
        session = (await agent.new_session(cwd=str(tmp_path), mcp_servers=[])).session_id
        await prompt(agent, session, "How wet are soil and air?")

    editor = with_editor(garden, use)
    plans = [[entry.status for entry in each.entries] for each in editor.updates if each.session_update == "plan"]
    assert plans[0] == ["in_progress", "in_progress"]
    assert plans[-1] == ["completed", "completed"]


# -- killed and loaded ---------------------------------------------------------------------------------------------


async def killed(editor: Editor) -> None:
    os.kill(editor.agent.pid, signal.SIGKILL)
    await editor.agent.wait()


def test_a_session_that_is_loaded_after_a_kill_is_shown_once_and_whole(tmp_path):
    garden, names = Garden(tmp_path, SENSOR, "At 41 %.", VALVE, "It is open.", "Still open."), []

    async def begin(editor: Editor, agent: Any) -> None:
        names.append((await agent.new_session(cwd=str(tmp_path), mcp_servers=[])).session_id)
        await prompt(agent, names[0], "How wet is the soil?")
        await prompt(agent, names[0], "Open the north valve for 30 seconds.")
        await killed(editor)

    async def load(editor: Editor, agent: Any) -> None:
        await agent.load_session(cwd=str(tmp_path), session_id=names[0], mcp_servers=[])
        assert editor.texts("user_message_chunk") == "How wet is the soil?Open the north valve for 30 seconds."
        assert editor.calls() == before.calls()
        assert editor.texts() == "At 41 %.It is open."
        assert await prompt(agent, names[0], "And now?") == "end_turn"
        assert editor.texts() == "At 41 %.It is open.Still open."

    before = with_editor(garden, begin)
    after = with_editor(garden, load)
    assert (garden.effects, after.questions) == (["north 30"], [])


def test_a_call_that_was_killed_is_not_made_again_and_its_fate_is_said(tmp_path):
    garden, names = Garden(tmp_path, VALVE, "I do not know."), []
    garden.hold()

    async def begin(editor: Editor, agent: Any) -> None:
        names.append((await agent.new_session(cwd=str(tmp_path), mcp_servers=[])).session_id)
        running = asyncio.create_task(prompt(agent, names[0], "Open the north valve for 30 seconds."))
        await editor.until(lambda: any(status.endswith("in_progress") for _, _, status in editor.calls()))
        while not garden.effects:
            await asyncio.sleep(0.01)
        await killed(editor)
        running.cancel()

    async def load(editor: Editor, agent: Any) -> None:
        await agent.load_session(cwd=str(tmp_path), session_id=names[0], mcp_servers=[])
        await editor.until(lambda: "failed" in editor.calls()[0][2] and bool(editor.texts()))

    with_editor(garden, begin)
    garden.let_go()
    editor = with_editor(garden, load)
    assert garden.effects == ["north 30"]
    assert editor.calls()[0][2] == "pending in_progress failed"
    assert editor.questions == []


def test_a_question_that_was_open_at_a_kill_is_asked_again_when_the_session_is_loaded(tmp_path):
    garden, names = Garden(tmp_path, VALVE, "It is open."), []

    async def begin(editor: Editor, agent: Any) -> None:
        names.append((await agent.new_session(cwd=str(tmp_path), mcp_servers=[])).session_id)
        running = asyncio.create_task(prompt(agent, names[0], "Open the north valve for 30 seconds."))
        await editor.until(lambda: bool(editor.questions))
        await killed(editor)
        running.cancel()

    async def load(editor: Editor, agent: Any) -> None:
        await agent.load_session(cwd=str(tmp_path), session_id=names[0], mcp_servers=[])
        await editor.until(lambda: "It is open." in editor.texts())

    with_editor(garden, begin, decides=None)
    assert garden.effects == []
    editor = with_editor(garden, load)
    assert (garden.effects, len(editor.questions)) == (["north 30"], 1)


def test_a_session_that_is_resumed_shows_only_what_its_editor_has_not_had(tmp_path):
    garden, names = Garden(tmp_path, SENSOR, "At 41 %.", VALVE, "It is open."), []

    async def begin(editor: Editor, agent: Any) -> None:
        names.append((await agent.new_session(cwd=str(tmp_path), mcp_servers=[])).session_id)
        await prompt(agent, names[0], "How wet is the soil?")
        await killed(editor)

    async def resume(editor: Editor, agent: Any) -> None:
        await agent.resume_session(cwd=str(tmp_path), session_id=names[0], mcp_servers=[])
        assert editor.updates == []
        await prompt(agent, names[0], "Open the north valve for 30 seconds.")
        assert editor.texts() == "It is open."
        await agent.close_session(session_id=names[0])

    with_editor(garden, begin)
    with_editor(garden, resume)


# -- what the editor does for the agent ----------------------------------------------------------------------------

ABLE = schema.ClientCapabilities(
    fs=schema.FileSystemCapabilities(read_text_file=True, write_text_file=True), terminal=True
)
OFFERS = ("--client-tools", "read", "--client-tools", "write", "--client-tools", "terminal")


def said_by_tools(tmp_path: Path, *answers: str, offers: tuple[str, ...] = OFFERS, able: Any = ABLE) -> Editor:
    async def use(editor: Editor, agent: Any) -> None:
        editor.files[f"{tmp_path}/notes.txt"] = "water at six"
        session = (await agent.new_session(cwd=str(tmp_path), mcp_servers=[])).session_id
        await prompt(agent, session, "Look into notes.txt, write it and run it.")

    return with_editor(Garden(tmp_path, *answers), use, *offers, able=able)


def test_files_of_the_editor_are_read_without_and_written_with_a_question(tmp_path):
    written = call("write_text_file", path="plan/a.txt", content="at six")
    editor = said_by_tools(tmp_path, call("read_text_file", path="notes.txt"), written, "Done.")
    assert editor.files[f"{tmp_path}/plan/a.txt"] == "at six"
    (question,) = editor.questions
    assert (question.kind, question.content[-1].new_text) == ("edit", "at six")
    results = [each.raw_output for each in editor.updates if getattr(each, "raw_output", None)]
    assert results == ["water at six", "written"]


@pytest.mark.parametrize("path", ["/etc/passwd", "../secret", "plan/../../secret"])
def test_a_path_out_of_the_sessions_folders_is_not_asked_for(tmp_path, path):
    editor = said_by_tools(tmp_path, call("read_text_file", path=path), "I may not.")
    (found,) = editor.calls()
    assert found[2] == "in_progress failed"
    assert "is outside of" in "".join(str(each.content) for each in editor.updates if hasattr(each, "content"))


def test_a_command_runs_in_the_editors_terminal_after_a_question(tmp_path):
    editor = said_by_tools(tmp_path, call("run_command", command="echo", args=["hello"]), "It said hello.")
    assert len(editor.questions) == 1
    output = next(each.raw_output for each in editor.updates if getattr(each, "raw_output", None))
    assert output == {"exit_code": 0, "signal": None, "output": "hello\n"}
    changes = [each.content for each in editor.updates if each.session_update == "tool_call_update" and each.content]
    assert changes[0][0].terminal_id == "t1"


@pytest.mark.parametrize(("offers", "able"), [((), ABLE), (OFFERS, schema.ClientCapabilities())])
def test_no_tool_is_the_editors_unless_the_operator_allows_it_and_the_editor_can(tmp_path, offers, able):
    answers = (call("read_text_file", path="notes.txt"), "There is no such tool.")
    editor = said_by_tools(tmp_path, *answers, offers=offers, able=able)
    assert editor.calls() == []
    assert "no tool read_text_file" in editor.texts("agent_thought_chunk")


def test_a_command_is_killed_when_its_turn_is_cancelled(tmp_path):
    garden = Garden(tmp_path, call("run_command", command="sleep", args=["600"]), "Never.")

    async def use(editor: Editor, agent: Any) -> None:
        session = (await agent.new_session(cwd=str(tmp_path), mcp_servers=[])).session_id
        running = asyncio.create_task(prompt(agent, session, "Run it."))
        await editor.until(lambda: any("terminal" in str(each) for each in editor.updates))
        await agent.cancel(session_id=session)
        assert await asyncio.wait_for(running, SOON) == "cancelled"
        assert await asyncio.wait_for(editor.process.wait(), SOON) == -signal.SIGKILL

    with_editor(garden, use, *OFFERS, able=ABLE)

"""Many sessions in one process: fair, and nothing lost or said twice when it is killed. The whole: `bench.serve`."""

from __future__ import annotations

import pytest

from bench import serve


@pytest.mark.long
def test_sessions_of_three_agents_lose_and_repeat_nothing_when_they_are_killed(tmp_path):
    figures = serve.run(tmp_path, 6, 40, 2, "script")
    assert figures["answers"] == 240


@pytest.mark.model
@pytest.mark.deep
def test_sessions_that_share_one_loaded_model_are_served_in_turns_and_survive_a_kill(tmp_path, smollm2):
    figures = serve.run(tmp_path, 6, 1, 1, str(smollm2))
    assert (figures["answers"], figures["killed"]) == (6, 1)


def test_an_answer_that_a_door_did_not_get_is_found(tmp_path):
    serve.run(tmp_path, 3, 2, 0, "script")
    door = next(tmp_path.glob("*.wall"))
    door.write_text(door.read_text().splitlines(keepends=True)[0])
    with pytest.raises(AssertionError, match="at the door wall"):
        [serve.checked(tmp_path, directory, 2) for directory in serve.directories(tmp_path)]

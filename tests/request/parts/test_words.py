"""Words of a request."""

from __future__ import annotations

import pytest

from edgeagent.request.parts.words import begins_with_verb


@pytest.mark.parametrize("said", ["Close the mist valve.", "then please open it", "Open it."])
def test_a_part_that_commands_begins_with_a_verb(said):
    assert begins_with_verb(said)


@pytest.mark.parametrize("said", ["the Dow Jones over 5 days", "method of it", "group B [7, 8]", ""])
def test_the_rest_of_a_sentence_does_not(said):
    assert not begins_with_verb(said)

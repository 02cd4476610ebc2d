"""What real models wrote, read: the fixtures of `canitoolcall` for the families that we have readers for.

Only rows under a free licence. A batch of which the end was cut off is unreadable to us as a whole, so that no call
runs whose fellows are unknown; where the fixtures give out its first call, that is the one difference.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from edgeagent.codec.dialect import dialect_called
from edgeagent.core.reading import Answer, Calls, Unreadable

FREE = {"Apache-2.0", "MIT"}
FAMILIES = {"qwen3-hermes": "hermes", "llama": "llama", "mistral": "mistral", "gemma4": "gemma"}
NOT_READ = {"x-llama-pythonic": "Llama 4 is too large for the devices we are for"}


def rows() -> Iterator[Any]:
    try:
        from canitoolcall.fixtures import load_fixtures
    except ImportError:
        yield pytest.param(None, id="missing", marks=pytest.mark.skip("canitoolcall is missing: NO fixture was read"))
        return
    for each in load_fixtures():
        if each.family in FAMILIES and each.provenance.license in FREE and not NOT_READ.keys() & set(each.tags):
            yield pytest.param(each, id=each.id)


@pytest.mark.parametrize("row", list(rows()))
def test_what_a_model_wrote_is_read_as_it_was_meant(row):
    reading = dialect_called(FAMILIES[row.family]).read(row.raw_output)
    if row.expected is None or (row.expected.tool_calls and {"truncated", "parallel-calls"} <= set(row.tags)):
        assert isinstance(reading, Unreadable), reading
    elif row.expected.tool_calls:
        assert isinstance(reading, Calls), reading
        assert [(c.tool, c.arguments) for c in reading.calls] == [
            (c.name, dict(c.arguments)) for c in row.expected.tool_calls
        ]
    else:
        assert isinstance(reading, Answer), reading
        if not {"truncated", "reasoning-prefilled"} <= set(row.tags):  # Cut off in thoughts that the template began.
            assert reading.text == (row.expected.content or "").strip()

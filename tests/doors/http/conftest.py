"""One server for the tests that only ask it."""

from __future__ import annotations

import pytest

from tests.doors.http.serving import serving


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("served")) as running:
        yield running

"""One test host for the whole folder, and ddtui watching it."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator

import pytest

from tests.host.gpuhost import GpuHost, HostMissing, project_binds, running_host
from tests.host.watching import Watcher, watching

REQUIRED = "DDTUI_REQUIRE_HOST_TESTS"


@pytest.fixture(scope="session")
def gpuhost() -> Iterator[GpuHost]:
    """The test host; where this machine cannot run it, skip, or fail if they are required."""
    try:
        with running_host(project_binds()) as host:
            yield host
    except HostMissing as missing:
        if os.environ.get(REQUIRED):
            pytest.fail(f"{missing} ({REQUIRED} is set)", pytrace=False)
        pytest.skip(str(missing))


@pytest.fixture
async def watcher(gpuhost: GpuHost) -> AsyncIterator[Watcher]:
    """Watches units of the host as ddtui does, and ends all of it with the test."""
    async with watching(gpuhost) as watcher:
        yield watcher

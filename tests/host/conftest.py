"""One test host for a whole run, or for each worker of it, and ddtui watching it."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.host.gpuhost import GpuHost, HostMissing, project_binds, running_host
from tests.host.measured import RESULTS
from tests.host.watching import Watcher, watching

HERE = Path(__file__).parent
REQUIRED = "DDTUI_REQUIRE_HOST_TESTS"
LIMIT = 300


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test of this folder; its time is for one that hangs, not for one that is slow."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.host)
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(LIMIT))


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


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand over what a worker measured."""
    handed: dict[str, object] | None = getattr(session.config, "workeroutput", None)
    if handed is not None:
        handed["measured"] = RESULTS


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take what a worker measured (xdist; one that crashed hands nothing over)."""
    RESULTS.extend(getattr(node, "workeroutput", {}).get("measured", []))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what was measured."""
    if RESULTS:
        terminalreporter.section("measured on the test host")
        for line in RESULTS:
            terminalreporter.line(line)

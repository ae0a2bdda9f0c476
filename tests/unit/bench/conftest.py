"""Sandboxes for code that nobody vouches for."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from ddtui.bench.sandbox import Sandbox
from tests.unit.bench.sandboxed import ATTEMPT, found, left_behind, returned


@pytest.fixture(params=["isolated", "limited"])
async def sandbox(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Sandbox]:
    """Each way to run code, after it has shown to start no process at all."""
    isolation = await found(request.param, monkeypatch)
    assert isolation.sandbox is not None
    assert await returned(ATTEMPT, isolation.sandbox) == b'{"value": 0}\n'
    yield isolation.sandbox
    assert left_behind(isolation.sandbox) == []


@pytest.fixture
async def isolated(monkeypatch: pytest.MonkeyPatch) -> Sandbox:
    """Bubblewrap's sandbox."""
    sandbox = (await found("isolated", monkeypatch)).sandbox
    assert sandbox is not None
    return sandbox

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.unit.hosts.server import SshLab, ssh_lab


@pytest.fixture
async def lab() -> AsyncIterator[SshLab]:
    async with ssh_lab() as running:
        yield running

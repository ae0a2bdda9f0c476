"""A demo server, and a plain asyncssh connection to it: no code of ddtui.hosts in between."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack

import asyncssh
import pytest

from ddtui.demo.machine import Machine
from ddtui.demo.server import USERNAME, DemoServer

FAST = 1500.0
"""A speed at which a load takes well under a second."""

Link = tuple[Machine, asyncssh.SSHClientConnection]
Connect = Callable[..., Awaitable[Link]]


@pytest.fixture
async def connect() -> AsyncIterator[Connect]:
    """Start a machine of a scenario and connect to it."""
    async with AsyncExitStack() as stack:

        async def start(scenario: str = "serving", speed: float = FAST) -> Link:
            machine = Machine(scenario=scenario, speed=speed)
            server = DemoServer(machine)
            await server.start()
            stack.push_async_callback(machine.close)
            stack.push_async_callback(server.close)
            machine.start()
            connection = await stack.enter_async_context(
                asyncssh.connect(
                    "127.0.0.1",
                    server.port,
                    username=USERNAME,
                    config=None,
                    agent_path=None,
                    client_keys=[server.client_key],
                    known_hosts=([server.host_key.convert_to_public()], [], []),
                )
            )
            return machine, connection

        yield start

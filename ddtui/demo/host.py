"""DemoHost: the simulated host as any other one, reached over real SSH on loopback."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import httpx

from ddtui.core.samples import LinkSample
from ddtui.demo.machine import DEFAULT_SPEED, Machine
from ddtui.demo.scenarios import DEFAULT_SCENARIO
from ddtui.demo.server import USERNAME, DemoServer
from ddtui.hosts.base import Completed, HostKind, Program, ProgramStream
from ddtui.hosts.ssh import SshHost
from ddtui.hosts.ssh.target import SshTarget


class DemoHost:
    """The built-in host. `await DemoHost.create()`, then use it as any Host; `close` ends everything."""

    kind = HostKind.DEMO

    def __init__(self, machine: Machine, server: DemoServer, name: str) -> None:
        self.name = name
        self.machine = machine
        """What is simulated; its unit can be started, stopped, restarted and killed."""
        self.server = server
        self._host = SshHost(
            name,
            SshTarget(
                name=name,
                host="127.0.0.1",
                port=server.port,
                username=USERNAME,
                client_keys=(server.client_key,),
                host_keys=(server.host_key,),
            ),
            kind=HostKind.DEMO,
            simulated=True,
        )

    @classmethod
    async def create(
        cls,
        *,
        name: str = "demo",
        speed: float = DEFAULT_SPEED,
        seed: int = 0,
        scenario: str = DEFAULT_SCENARIO,
    ) -> DemoHost:
        """Start the machine and its server. Raises ValueError for an unknown scenario or a bad speed."""
        machine = Machine(speed=speed, seed=seed, scenario=scenario)
        server = DemoServer(machine)
        await server.start()
        machine.start()
        return cls(machine, server, name)

    @property
    def simulated(self) -> bool:
        """Always: everything it says is made up."""
        return True

    @property
    def link(self) -> LinkSample:
        """The link's present state."""
        return self._host.link

    def on_link(self, listener: Callable[[LinkSample], None]) -> None:
        """Call `listener` at every change of the link's state."""
        self._host.on_link(listener)

    async def start(self) -> None:
        """Begin connecting."""
        await self._host.start()

    async def close(self) -> None:
        """End the connection, the server and the machine. Safe to call twice."""
        await self._host.close()
        await self.server.close()
        await self.machine.close()

    async def wait_live(self) -> None:
        """Return once the link is live."""
        await self._host.wait_live()

    def retry_now(self) -> None:
        """Try to connect at once."""
        self._host.retry_now()

    async def run(
        self, program: Program, *args: str, timeout: float = 15.0, stdin: bytes = b""
    ) -> Completed:
        """Run a short program to its end."""
        return await self._host.run(program, *args, timeout=timeout, stdin=stdin)

    def stream(self, program: Program, *args: str) -> AbstractAsyncContextManager[ProgramStream]:
        """Run a long program."""
        return self._host.stream(program, *args)

    def transport(self) -> httpx.AsyncBaseTransport:
        """HTTP to ports of the simulated host."""
        return self._host.transport()

"""DemoHost: the simulated host as any other one, reached over real SSH on loopback."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import httpx

from ddtui.core.reach import Reach
from ddtui.core.samples import LinkSample
from ddtui.demo.machine import Machine
from ddtui.demo.scenarios import DEFAULT_SCENARIO
from ddtui.demo.server import USERNAME, DemoServer
from ddtui.hosts.base import Completed, Port, Program, ProgramStream, Receiver
from ddtui.hosts.ssh import SshHost, SshTarget


class DemoHost:
    """The built-in host. `start` starts the machine, its server and the connection to it.

    Args:
        scenario: what it is doing when one connects, from `ddtui.demo.scenarios.SCENARIOS`.
        name: how it is called on screen.
        speed: how many times faster than in reality a model loads; None: as the scenario needs.
        seed: of all that is random.

    Raises:
        ValueError: no such scenario, or a speed that is not positive.
    """

    kind = Reach.DEMO

    def __init__(
        self,
        scenario: str = DEFAULT_SCENARIO,
        *,
        name: str = "demo",
        speed: float | None = None,
        seed: int = 0,
    ) -> None:
        self.name = name
        self.machine = Machine(speed=speed, seed=seed, scenario=scenario)
        """What is simulated; its unit can be started, stopped, restarted and killed."""
        self.server = DemoServer(self.machine)
        self._host = SshHost(name, self._target, kind=Reach.DEMO, simulated=True)
        self._started = False

    @classmethod
    async def create(
        cls,
        *,
        name: str = "demo",
        speed: float | None = None,
        seed: int = 0,
        scenario: str = DEFAULT_SCENARIO,
    ) -> DemoHost:
        """A host that is started already."""
        host = cls(scenario, name=name, speed=speed, seed=seed)
        await host.start()
        return host

    async def _target(self) -> SshTarget:
        server = self.server
        return SshTarget(
            name=self.name,
            host="127.0.0.1",
            port=server.port,
            username=USERNAME,
            client_keys=(server.client_key,),
            host_keys=(server.host_key.convert_to_public(),),
        )

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
        """Start the machine and its server, and begin connecting. Safe to call twice."""
        if self._started:
            return
        self._started = True
        await self.server.start()
        self.machine.start()
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

    async def open_port(self, address: str, port: int, receiver: Receiver) -> Port:
        """A connection to a port of the simulated host."""
        return await self._host.open_port(address, port, receiver)

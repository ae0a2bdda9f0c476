"""A host whose answers are written by the test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import TypeVar

import httpx

from ddtui.collect.base import Nudge, SourceCollector
from ddtui.core.reach import Reach
from ddtui.core.samples import AnySample, LinkSample, LinkState, UnitSample, UnitStatus
from ddtui.hosts.base import Completed, LinkDown, Port, PortClosed, Program, Receiver

S = TypeVar("S")


class Script:
    """One run of a streaming program: the lines that it prints, then its end."""

    def __init__(
        self,
        lines: Iterable[bytes | str | asyncio.Event] = (),
        *,
        status: int = 0,
        stderr: str = "",
        breaks: bool = False,
        stays: bool = False,
    ) -> None:
        self.lines = list(lines)
        self.end_status = status
        self.stderr = stderr
        self.breaks = breaks
        self.stays = stays


class FakeStream:
    def __init__(self, script: Script) -> None:
        self._script = script
        self.status: int | None = None
        self.stderr_tail = script.stderr

    async def lines(self) -> AsyncIterator[bytes]:
        for line in self._script.lines:
            if isinstance(line, asyncio.Event):
                await line.wait()
                continue
            yield line.encode() if isinstance(line, str) else line
        if self._script.breaks:
            raise LinkDown("the link broke")
        if self._script.stays:
            await asyncio.Event().wait()
        self.status = self._script.end_status


class FakeHost:
    """Streams are taken from `scripts[label]`, one after another; the last one is repeated."""

    name = "fake"
    kind = Reach.SSH
    simulated = True

    def __init__(self) -> None:
        self.scripts: dict[str, list[Script]] = {}
        self.answers: dict[str, Callable[..., Completed]] = {}
        self.calls: list[tuple[str, tuple[str, ...]]] = []
        self.link = LinkSample(0.0, "link", LinkState.LIVE)
        self.http: httpx.AsyncBaseTransport = httpx.MockTransport(lambda _: httpx.Response(404))

    def on_link(self, listener: Callable[[LinkSample], None]) -> None:
        pass

    async def start(self) -> None:
        pass

    async def close(self) -> None:
        pass

    async def wait_live(self) -> None:
        pass

    def retry_now(self) -> None:
        pass

    async def run(
        self, program: Program, *args: str, timeout: float = 15.0, stdin: bytes = b""
    ) -> Completed:
        self.calls.append((program.label, args))
        return self.answers[program.label](*args)

    @asynccontextmanager
    async def stream(self, program: Program, *args: str) -> AsyncIterator[FakeStream]:
        self.calls.append((program.label, args))
        scripts = self.scripts[program.label]
        yield FakeStream(scripts.pop(0) if len(scripts) > 1 else scripts[0])

    def transport(self) -> httpx.AsyncBaseTransport:
        return self.http

    async def open_port(self, address: str, port: int, receiver: Receiver) -> Port:
        raise PortClosed(f"{address}:{port} is not of this fake")

    def arguments(self, label: str) -> list[tuple[str, ...]]:
        return [args for called, args in self.calls if called == label]


class Recorder:
    """Keeps samples and lets a test wait for one."""

    def __init__(self) -> None:
        self.samples: list[AnySample] = []
        self._changed = asyncio.Event()
        self.forward: Callable[[AnySample], None] = lambda _: None

    def __call__(self, sample: AnySample) -> None:
        self.samples.append(sample)
        self.forward(sample)
        self._changed.set()

    def of(self, kind: type[S]) -> list[S]:
        return [sample for sample in self.samples if isinstance(sample, kind)]

    async def until(self, condition: Callable[[], bool], timeout: float = 10.0) -> None:
        async with asyncio.timeout(timeout):
            while not condition():
                self._changed.clear()
                await self._changed.wait()


class ImpatientNudge(Nudge):
    """Waits end at once, so that a test needs no real pauses."""

    async def wait(self, seconds: float) -> bool:
        self.waits.append(seconds)
        await asyncio.sleep(0)
        return False

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[float] = []


class StepNudge(Nudge):
    """Waits end when the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self._waiting: list[asyncio.Future[bool]] = []

    async def wait(self, seconds: float) -> bool:
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        return await future

    async def step(self, times: int = 1) -> None:
        """End all present waits, and let everything run until it waits again."""
        for _ in range(times):
            waiting, self._waiting = self._waiting, []
            for future in waiting:
                if not future.done():
                    future.set_result(False)
            for _ in range(50):
                await asyncio.sleep(0)


@asynccontextmanager
async def collecting(
    collector: SourceCollector, host: FakeHost, recorder: Recorder
) -> AsyncIterator[Recorder]:
    task = asyncio.create_task(collector.run(host, recorder))
    try:
        yield recorder
    finally:
        task.cancel()
        results = await asyncio.gather(task, return_exceptions=True)
        assert isinstance(results[0], asyncio.CancelledError)


def unit(invocation: str, *arguments: str) -> UnitSample:
    """A unit whose engine runs with these arguments."""
    argv = ("python", "-m", "sglang.launch_server", *arguments)
    return UnitSample(0.0, "x", UnitStatus("a", invocation=invocation, command_line=argv))

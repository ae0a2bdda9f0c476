"""A host over a scripted machine: its link can be cut anywhere, and it can be watched.

Everything above `Host` is the real thing; the reducer that makes snapshots is too.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from ddtui.core.host_state import HostState
from ddtui.core.reach import Reach
from ddtui.core.samples import LinkSample, LinkState
from ddtui.engines.sglang import SGLANG
from ddtui.hosts.base import Completed, LinkDown, Program
from tests.support.scripted_machine import EPOCH, Machine


class ScriptedHost:
    """A `ddtui.hosts.base.Host` over a machine; its link can be cut at any point of any action."""

    kind = Reach.SSH
    simulated = False

    def __init__(self, machine: Machine, seed: int = 0) -> None:
        self.name = "ct200"
        self.machine = machine
        self.live = asyncio.Event()
        self.live.set()
        self.actions: list[str] = []
        """Labels of what was asked for, with their verbs."""
        self.cut_at: int | None = None
        """Number of the action in which the link breaks."""
        self.cut_in = ""
        """Label (and verb) of the action in which the link breaks."""
        self.on_cut: Callable[[], None] = lambda: None
        self._random = random.Random(seed)
        self._streams: list[asyncio.Event] = []
        self._orders: set[asyncio.Task[Any]] = set()

    @property
    def link(self) -> LinkSample:
        """See Host."""
        state = LinkState.LIVE if self.live.is_set() else LinkState.RETRYING
        return LinkSample(EPOCH, "ssh", state)

    async def wait_live(self) -> None:
        """See Host."""
        await self.live.wait()

    def cut(self) -> None:
        """Break the link; it comes back after a while."""
        if not self.live.is_set():
            return
        self.live.clear()
        for stream in self._streams:
            stream.set()
        away = self._random.choice((0.3, 2.0, 7.0, 40.0))
        asyncio.get_running_loop().call_later(away, self.live.set)
        self.on_cut()

    async def run(
        self, program: Program, *args: str, timeout: float = 15.0, stdin: bytes = b""
    ) -> Completed:
        """See Host."""
        travel = self.machine.script.travel
        number = len(self.actions)
        self.actions.append(" ".join([program.label, *args[2:3]] if "systemctl" in program.label
                                     else [program.label]))  # fmt: skip
        if not self.live.is_set():
            raise LinkDown("no connection")
        await asyncio.sleep(travel)
        where = ""
        if self.cut_at == number or (self.cut_in and self.actions[-1] == self.cut_in):
            self.cut_at, self.cut_in = None, ""
            where = self._random.choice(("before", "within", "late", "after"))
        if where == "before":
            self.cut()
            raise LinkDown("the connection broke")
        if where == "late":  # delivered; the other side comes to it when the sender has gone
            self.cut()
            late = self._random.choice((0.1, 1.0, 5.0, 30.0))
            self._later(program, args, stdin, late)
            raise LinkDown("the connection broke")
        order = self._later(program, args, stdin, 0.0)
        if where == "within":
            await asyncio.sleep(self._random.uniform(0.0, 0.02))
            self.cut()
            if self._random.random() < 0.5:
                order.cancel()  # its end was hung up on before it was through
            raise LinkDown("the connection broke")
        ended = asyncio.Event()
        self._streams.append(ended)
        broken = asyncio.create_task(ended.wait())
        async with asyncio.timeout(timeout):
            await asyncio.wait({order, broken}, return_when=asyncio.FIRST_COMPLETED)
        broken.cancel()
        self._streams.remove(ended)
        if where == "after":
            self.cut()
        if ended.is_set() or not self.live.is_set():
            raise LinkDown("the connection broke")
        await asyncio.sleep(travel)
        return await order

    def _later(
        self, program: Program, args: tuple[str, ...], stdin: bytes, seconds: float
    ) -> asyncio.Task[Completed]:
        """What goes on on the host whether or not anyone listens."""

        async def order() -> Completed:
            await asyncio.sleep(seconds)
            return await self.machine.answer(program, args, stdin)

        task = asyncio.create_task(order())
        self._orders.add(task)
        task.add_done_callback(self._orders.discard)
        return task

    @asynccontextmanager
    async def stream(self, program: Program, *args: str) -> AsyncIterator[_Lock]:
        """See Host: locks are the only ones that last here."""
        assert program.label == "ddtui:lock"
        if not self.live.is_set():
            raise LinkDown("no connection")
        ended = asyncio.Event()
        self._streams.append(ended)
        machine = self.machine
        key, *words = args
        # As in the host's file: a token ends at the first blank.
        token, _, text = " ".join(words).partition(" ")
        held = machine.locks.get(key)
        holder = held or (token, text)
        mine = held is None or held[0] == words[0]
        if mine:
            machine.locks[key] = (token, text)
        try:
            yield _Lock("@locked /run/lock/x" if mine else f"@held {holder[1]}", ended)
        finally:
            self._streams.remove(ended)
            # Else it stays until its heartbeat's limit.
            if mine and not ended.is_set() and machine.locks.get(key, ("",))[0] == token:
                del machine.locks[key]


@dataclass
class _Lock:
    said: str
    ended: asyncio.Event
    status: int | None = None
    stderr_tail: str = ""

    async def lines(self) -> AsyncIterator[bytes]:
        """See ProgramStream."""
        yield self.said.encode()
        await self.ended.wait()
        raise LinkDown("the connection broke")


class Watched:
    """What is known of the host: the real reducer, fed once every quarter of a second."""

    def __init__(self, host: ScriptedHost) -> None:
        self.host = host
        self.state = HostState(host.name, SGLANG)
        self.log: list[tuple[float, str]] = []
        """Each state of readiness, and when it was seen first."""

    def clock(self) -> float:
        """Unix seconds."""
        return EPOCH + asyncio.get_running_loop().time()

    def snapshot(self) -> Any:
        """What is known now."""
        return self.state.snapshot(self.clock())

    async def run(self, seen: Callable[[Any], None] = lambda _: None) -> None:
        """Feed it for ever."""
        while True:
            self.state.apply(self.host.link)
            if self.host.live.is_set():
                for sample in self.host.machine.samples(self.clock()):
                    self.state.apply(sample)
            known = self.snapshot()
            state = known.readiness.state.value
            if not self.log or self.log[-1][1] != state:
                self.log.append((asyncio.get_running_loop().time(), state))
            seen(known)
            await asyncio.sleep(0.25)

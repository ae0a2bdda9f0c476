"""Verbs in any order, while links are cut, ddtui is killed, and other hands meddle: many seeds.

Whatever happens: nothing is called in force that does not run as asked, every change ends with a
record, nothing that was up is left down without a word, no order is given twice, no lock stays.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

from ddtui.cli.changing import exit_code_of
from ddtui.cli.exit_codes import ExitCode
from ddtui.control.controller import Controller, NotPossible
from ddtui.control.outcome import Asked
from ddtui.core.change_record import ChangeRecord
from ddtui.core.launch import Request
from ddtui.hosts.base import HostError
from tests.support.change_world import ChangeWorld
from tests.support.scripted_machine import DROP_IN, FRAGMENT, Engine, Machine, Script
from tests.support.virtual_time import in_virtual_time

SEEDS = 60
BLOCK = "speculative-dflash-block-size"
VALUES = (4, 8, 12, 16)
LONGEST = 4 * 3600.0
"""Virtual seconds after which a verb has hung."""


def block(argv: tuple[str, ...]) -> str:
    return argv[argv.index(f"--{BLOCK}") + 1]


def fails(argv: tuple[str, ...]) -> bool:
    return block(argv) == "16"


class Watched(Machine):
    """A machine that keeps all its starts."""

    def __init__(self, script: Script, fragment: str) -> None:
        super().__init__(script, fragment)
        self.engines: dict[str, Engine] = {}

    def start(self, age: float = 0.0) -> None:
        super().start(age)
        if self.engine is not None:
            self.engines[self.engine.invocation] = self.engine


class Story:
    """One seed."""

    def __init__(self, seed: int) -> None:
        self.random = one = random.Random(seed)
        script = Script(
            stop=one.uniform(0.1, 3.0),
            memory_late=one.uniform(0.0, 3.0),
            load=one.uniform(2.0, 8.0),
            travel=one.uniform(0.001, 0.2),
            fails=fails,
        )
        self.world = ChangeWorld(script, seed)
        self.machine = machine = Watched(script, self.world.machine.files[FRAGMENT])
        self.world.machine = self.world.host.machine = machine
        machine.start(age=10_000)
        self.hands = 0

    async def run(self) -> None:
        feed = asyncio.create_task(self.world.watched.run())
        await asyncio.sleep(12)
        for _ in range(self.random.randrange(2, 6)):
            await self.verb()
            await asyncio.sleep(self.random.choice((0.1, 3.0, 50.0)))
            await self.world.host.wait_live()
            await asyncio.sleep(1)
            if self.random.random() < 0.3:
                await self.hand()
        for _ in range(5):
            if self.world.store.unfinished("", "") is None:
                break
            await self.world.host.wait_live()
            await self.world.control().resume(asked=Asked())
        assert all(each.ending for each in self.world.store.history("")), "a change never ends"
        feed.cancel()

    # ---- what meddles -------------------------------------------------------------------------

    async def hand(self) -> None:
        """Somebody does something on the host."""
        self.hands += 1
        machine = self.machine
        hands: list[Callable[[], Awaitable[None] | None]] = [
            machine.stop, machine.start, self._restart, self._edit, self._remove, self._die,
        ]  # fmt: skip
        if (waited := self.random.choice(hands)()) is not None:
            await waited

    async def _restart(self) -> None:
        await self.machine.stop()
        self.machine.start()

    def _edit(self) -> None:
        if own := self.machine.files.get(DROP_IN):
            self.machine.files[DROP_IN] = own.replace("size 12", "size 10") + "# by hand\n"
            self._reload()

    def _remove(self) -> None:
        self.machine.files.pop(DROP_IN, None)
        self._reload()

    def _reload(self) -> None:
        if self.random.random() < 0.5:
            files = self.machine.files
            self.machine.loaded = {path: files[path] for path in files if path[-4:] != ".new"}

    def _die(self) -> None:
        if self.machine.engine is not None:
            self.machine.die(self.machine.engine)

    async def fault(self, kind: str, work: asyncio.Task[object]) -> None:
        host, one = self.world.host, self.random
        if kind == "cut":
            host.cut_at = len(host.actions) + one.randrange(0, 26)
        for _ in range({"cuts": 3, "hand": 1, "hands": 3, "kill": 1}.get(kind, 0)):
            await asyncio.sleep(one.uniform(0.0, 6.0 if kind[-1] == "s" else 14.0))
            if kind == "cuts":
                host.cut()
            elif kind == "kill":
                work.cancel()
            else:
                await self.hand()

    # ---- what is asked ------------------------------------------------------------------------

    async def asked(self, control: Controller) -> ChangeRecord | None:
        """One verb; None where the unit is said to be as wanted already."""
        one, asked = self.random, Asked()
        kind = one.choice(("apply", "apply", "apply", "rollback", "restart", "resume"))
        if self.world.store.unfinished("", "") is not None and one.random() < 0.8:
            kind = "resume"
        if kind == "resume":
            return await control.resume(asked=asked)
        if kind == "restart":
            return await control.restart(asked=asked)
        if kind == "rollback":
            return await control.rollback(asked=asked, plan=await control.rollback_plan())
        value, policy = one.choice(VALUES), one.choice(("always", "never"))
        plan = await control.plan(Request(flags={BLOCK: value}), rights=True)
        if plan.blocked:
            raise NotPossible("a check forbids it")
        if not plan.changes and not plan.restart_due:
            return None
        record = await control.apply(plan, policy="always" if policy == "always" else "never")
        if record.ending == "in force":
            assert block(self.machine.engines[record.invocation].argv) == str(value)
        return record

    async def verb(self) -> None:
        machine, host, hands = self.machine, self.world.host, self.hands
        before = (dict(machine.files), machine.starts, machine.stops)
        work = asyncio.create_task(self.asked(self.world.control()))
        kind = self.random.choice(("", "", "cut", "cuts", "kill", "hand", "hand", "hands"))
        fault = asyncio.create_task(self.fault(kind, work))
        async with asyncio.timeout(LONGEST):
            await asyncio.wait({work})
        fault.cancel()
        await asyncio.gather(fault, return_exceptions=True)
        host.cut_at = None
        error = None if work.cancelled() else work.exception()
        if error is not None and not isinstance(error, HostError):
            raise error
        if kind in {"cut", "cuts"}:
            machine.locks.clear()  # its heartbeat's limit has passed
        assert not machine.locks, "a lock is left"
        quiet = hands == self.hands
        if work.cancelled() or error is not None:
            touched = (dict(machine.files), machine.starts, machine.stops) != before
            left = self.world.store.unfinished("", "")
            assert left is not None or not (touched and quiet), "and no record says so"
        else:
            self.check(work.result(), before[1:], quiet=quiet)

    def check(self, record: ChangeRecord | None, before: tuple[int, int], *, quiet: bool) -> None:
        machine = self.machine
        is_up = machine.engine is not None and machine.active == "active"
        if record is None:
            assert is_up or not quiet, "nothing to change, and it is down"
            return
        assert record.ending
        assert self.world.store.unfinished("", "") is None
        if record.ending == "in force":
            assert block(machine.engines[record.invocation].argv) == block(record.after_argv)
        if not quiet:
            return
        said = record.steps[-1].detail
        if record.is_proved or exit_code_of(record) is ExitCode.OK:
            assert (is_up, machine.http) == (True, 200)
        else:
            assert is_up != ("THE ENGINE IS DOWN" in said), said
        tries = 1 + any(each.step == "rolling back" for each in record.steps)
        assert machine.starts - before[0] <= tries, "started twice"
        assert machine.stops - before[1] <= tries, "stopped twice"


def test_whatever_happens_what_is_said_is_so() -> None:
    failures = []
    for seed in range(SEEDS):

        async def work(seed: int = seed) -> None:
            await Story(seed).run()

        try:
            in_virtual_time(work())
        except (AssertionError, TimeoutError) as error:
            failures.append(f"seed {seed}: {error!r}")
    assert not failures, "\n".join(failures[:10])

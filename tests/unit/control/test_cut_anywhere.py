"""The link is cut, or ddtui killed, at a random point of a random action of a change: 200 seeds.

Afterwards the unit is as asked or as it was, or the record says that it is neither; nothing is
applied twice; and between the cut and the resumption the store says that a change is unfinished.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Iterator

import pytest

from ddtui.control.drop_in import sets_anything
from ddtui.control.outcome import Asked
from ddtui.core.change_record import ChangeRecord
from ddtui.core.launch import Request
from ddtui.hosts.base import LinkDown, ProgramTimeout
from tests.support.change_world import ChangeWorld
from tests.support.scripted_machine import DROP_IN, FRAGMENT, Script
from tests.support.virtual_time import in_virtual_time

SEEDS = 200
BLOCK = "speculative-dflash-block-size"
CHANGING = (
    *("ddtui:write-drop-in", "ddtui:systemctl daemon-reload"),
    *("ddtui:systemctl stop", "ddtui:systemctl start"),
)
"""The actions that change something on the host."""
LONGEST = 3600.0
"""Virtual seconds after which a change has hung."""


def fails(argv: tuple[str, ...]) -> bool:
    return argv[argv.index(f"--{BLOCK}") + 1] == "16"


class Trial:
    """One seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.failing = seed % 4 == 3
        """Whether the engine dies of what is asked."""
        self.kills = self.random.random() < 0.4
        """Whether ddtui itself is killed, not only its link."""
        self.second = self.random.random() < 0.3
        """Whether there is another cut after the first."""
        script = Script(
            stop=self.random.uniform(0.1, 3.0),
            memory_late=self.random.uniform(0.0, 3.0),
            load=self.random.uniform(2.0, 8.0),
            travel=self.random.uniform(0.001, 0.2),
            fails=fails if self.failing else lambda _: False,
        )
        self.world = ChangeWorld(script, seed)
        self.cuts: list[str] = []
        self.cut = asyncio.Event()

    def after_cut(self) -> None:
        host = self.world.host
        self.cuts.append(host.actions[-1])
        if len(self.cuts) == 1 and self.second:
            host.cut_at = len(host.actions) + self.random.randrange(1, 8)
        if len(self.cuts) == 1 and self.kills:
            self.cut.set()

    async def run(self) -> ChangeRecord:
        world, host = self.world, self.world.host
        feed = asyncio.create_task(world.watched.run())
        await asyncio.sleep(2)
        control = world.control()
        plan = await control.plan(Request(flags={BLOCK: 16}))
        host.on_cut = self.after_cut
        # Some six actions look before anything is touched; the others carry the change out.
        match self.random.randrange(3):
            case 0:
                host.cut_at = len(host.actions) + self.random.randrange(0, 26)
            case 1:
                host.cut_in = self.random.choice(CHANGING)
            case _:
                at = self.random.uniform(0.0, 20.0)
                asyncio.get_running_loop().call_later(at, host.cut)
        work = asyncio.create_task(control.apply(plan, world.heard, policy="always", asked=Asked()))
        killed = asyncio.create_task(self.cut.wait())
        async with asyncio.timeout(LONGEST):
            await asyncio.wait({work, killed}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done() or isinstance(work.exception(), LinkDown | ProgramTimeout):
                work.cancel()
                await asyncio.gather(work, return_exceptions=True)
                record = await self._again()
            else:
                record = work.result()
        killed.cancel()
        await asyncio.sleep(5)  # whatever is still under way on the host comes to its end
        feed.cancel()
        return record

    async def _again(self) -> ChangeRecord:
        """A new ddtui: it resumes; where nothing had begun, it applies anew."""
        world = self.world
        await asyncio.sleep(self.random.choice((0.1, 5.0, 60.0)))
        await world.host.wait_live()
        left = world.store.unfinished("ct200", "")
        touched = world.machine.stops or world.machine.starts > 1 or DROP_IN in world.machine.files
        assert left is not None or not touched, "something was changed, and no record says so"
        while True:
            control = world.control()
            try:
                if world.store.unfinished("ct200", "") is not None:
                    return await control.resume(world.heard, asked=Asked())
                plan = await control.plan(Request(flags={BLOCK: 16}))
                return await control.apply(plan, world.heard, policy="always", asked=Asked())
            except (LinkDown, ProgramTimeout):
                await world.host.wait_live()


def check(trial: Trial, record: ChangeRecord) -> None:
    machine = trial.world.machine
    assert record.ending == ("rolled back" if trial.failing else "in force"), record.cause
    engine = machine.engine
    assert engine is not None
    assert machine.active == "active"
    assert machine.http == 200
    own = machine.files[DROP_IN]
    assert machine.loaded == {FRAGMENT: machine.files[FRAGMENT], DROP_IN: own}
    assert engine.drop_in == own
    if trial.failing:
        assert not sets_anything(own)
        assert not fails(engine.argv)
    else:
        assert own == record.drop_in
        assert fails(engine.argv)
        assert record.invocation == engine.invocation
    # The one before; the one that was asked for; the one that was gone back to.
    assert machine.starts == (3 if trial.failing else 2)
    assert machine.stops == 1
    assert trial.world.store.unfinished("ct200", "") is None
    assert len(trial.world.store.rows) == 1


@pytest.fixture(scope="module")
def where() -> Iterator[Counter[str]]:
    """What the link was cut in."""
    found: Counter[str] = Counter()
    yield found
    assert all(found[each] > 5 for each in CHANGING), found


def test_nothing_is_in_between_or_twice(where: Counter[str]) -> None:
    failures = []
    for seed in range(SEEDS):

        async def work(seed: int = seed) -> Trial:
            trial = Trial(seed)
            check(trial, await trial.run())
            return trial

        try:
            where.update(in_virtual_time(work()).cuts)
        except AssertionError as error:
            failures.append(f"seed {seed}: {error}")
    assert not failures, "\n".join(failures[:10])

"""What a change says at its end is what is on the host: what runs, and what is on its disk."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec
import pytest

from ddtui.control.drop_in import sets_anything
from ddtui.control.outcome import Asked
from ddtui.core.change_record import ChangeRecord, StepRecord
from ddtui.core.launch import Level, Request
from tests.support.change_world import FRAGMENT as UNIT_TEXT
from tests.support.change_world import ChangeWorld
from tests.support.scripted_machine import DROP_IN, FOREIGN, FRAGMENT, Script
from tests.support.virtual_time import in_virtual_time

NOT_AS_WRITTEN = "unit-not-running-as-written"
BLOCK = "speculative-dflash-block-size"


async def applied(
    world: ChangeWorld, meanwhile: Callable[[str], None] = lambda _: None, block: int = 16
) -> ChangeRecord:
    """That block asked for where 8 runs; `meanwhile` is told of each step."""
    feed = asyncio.create_task(world.watched.run())
    await asyncio.sleep(3)
    control = world.control()
    plan = await control.plan(Request(flags={BLOCK: block}))
    record = await control.apply(plan, lambda _, step: meanwhile(step.step), policy="always")
    await asyncio.sleep(1)
    feed.cancel()
    return record


def test_rolled_back_is_said_only_of_what_runs_again() -> None:
    """Somebody adds a drop-in that decides over ddtui's: the earlier command is not back."""

    async def work() -> None:
        world = ChangeWorld(Script())

        def meanwhile(step: str) -> None:
            if step == "written":
                command = UNIT_TEXT.partition("ExecStart=")[2].replace("size 8", "size 12")
                world.machine.files[FOREIGN] = f"[Service]\nExecStart=\nExecStart={command}"

        record = await applied(world, meanwhile)
        assert world.machine.engine is not None
        assert world.machine.engine.argv[-1] == "12"
        assert record.ending == "degraded"
        said = record.steps[-1].detail
        assert f"the unit's command is not the expected one: {BLOCK} is 12, expected 8" in said
        assert FOREIGN in said
        assert "the unit is active (running)" in said
        assert f"the engine runs neither configuration: {BLOCK} is 12, expected 8" in said
        assert f"the old configuration is on disk, beneath {FOREIGN}" in said

    in_virtual_time(work())


def test_a_refused_stop_leaves_the_engine_and_takes_the_drop_in_back() -> None:
    async def work() -> None:
        world = ChangeWorld(Script(refuses={"stop"}))
        record = await applied(world)
        assert (record.ending, world.machine.stops, world.machine.starts) == ("failed", 0, 1)
        said = record.steps[-1].detail
        assert "nothing was stopped; the unit is active (running); " in said
        assert "the engine runs the old configuration" in said
        assert "the old configuration is on disk" in said
        assert not sets_anything(world.machine.files[DROP_IN])
        assert world.machine.loaded[DROP_IN] == world.machine.files[DROP_IN]

    in_virtual_time(work())


def test_a_drop_in_that_cannot_be_taken_back_is_named() -> None:
    """The rights to stop and to write go while the change is under way."""

    async def work() -> None:
        world = ChangeWorld(Script(refuses={"stop"}))

        def meanwhile(step: str) -> None:
            if step == "stopping":
                world.machine.script.refuses.add("write")

        record = await applied(world, meanwhile)
        assert record.ending == "failed"
        said = record.steps[-1].detail
        assert f"the new drop-in is still at {DROP_IN}, and the next start will take it" in said
        assert "the engine runs the old configuration" in said
        assert "the new configuration is on disk, and the next start takes it" in said
        assert world.machine.files[DROP_IN] == record.drop_in

    in_virtual_time(work())


def test_a_refused_reload_ends_the_record() -> None:
    async def work() -> None:
        world = ChangeWorld(Script(refuses={"daemon-reload"}))
        record = await applied(world)
        assert record.ending == "failed"
        assert world.store.unfinished("ct200", "") is None
        assert not sets_anything(world.machine.files[DROP_IN])
        said = record.steps[-1].detail
        assert "until `systemctl daemon-reload`" in said
        assert "the old configuration is on disk" in said
        assert record.cause is not None
        assert "daemon-reload" in record.cause["remedy"]

    in_virtual_time(work())


def test_an_error_on_the_way_back_ends_the_record() -> None:
    """The new configuration fails, and the right to write it back has gone: it is down."""

    async def work() -> None:
        world = ChangeWorld(Script(fails=lambda argv: argv[-1] == "16"))

        def meanwhile(step: str) -> None:
            if step == "loading":
                world.machine.script.refuses.add("write")

        record = await applied(world, meanwhile)
        assert record.ending == "degraded"
        said = record.steps[-1].detail
        assert (
            "the unit is failed (failed); THE ENGINE IS DOWN; the new configuration is on" in said
        )

    in_virtual_time(work())


def test_a_host_that_does_not_say_where_it_stands_ends_the_record_too() -> None:
    async def work() -> None:
        world = ChangeWorld(Script())

        def meanwhile(step: str) -> None:
            if step == "written":
                world.machine.script.refuses.add("ddtui:unit-look")

        record = await applied(world, meanwhile)
        assert record.ending == "failed"
        assert "where the host stands is not known" in record.steps[-1].detail
        assert world.store.unfinished("ct200", "") is None

    in_virtual_time(work())


def test_a_change_that_succeeds_when_resumed_has_no_cause() -> None:
    """The cause of a failure that was kept before ddtui ended does not stand beside `in force`."""

    async def work() -> None:
        world = ChangeWorld(Script())
        feed = asyncio.create_task(world.watched.run())
        await asyncio.sleep(3)
        control = world.control()
        plan = await control.plan(Request(flags={BLOCK: 16}))
        loading = asyncio.Event()
        work = asyncio.create_task(
            control.apply(plan, lambda _, step: loading.set() if step.step == "loading" else None)
        )
        await loading.wait()
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        left = world.store.unfinished("ct200", "")
        assert left is not None
        world.store.put(msgspec.structs.replace(left, cause={"title": "no progress"}))
        record = await world.control().resume()
        feed.cancel()
        assert (record.ending, record.cause) == ("in force", None)
        assert world.store.history("ct200")[0].cause is None

    in_virtual_time(work())


def test_a_unit_that_does_not_run_as_it_is_written_is_said_and_gets_no_credit() -> None:
    """Somebody has edited the unit and not restarted it: 8 runs, 4 is written and never ran."""

    async def work() -> None:
        world = ChangeWorld(Script(fails=lambda argv: argv[-1] == "16"))
        feed = asyncio.create_task(world.watched.run())
        await asyncio.sleep(12)  # it is ready
        control = world.control()
        plan = await control.plan(Request(flags={BLOCK: 16}))
        assert NOT_AS_WRITTEN not in [each.rule for each in plan.findings]
        machine = world.machine
        machine.files[FRAGMENT] = machine.files[FRAGMENT].replace("size 8", "size 4")
        plan = await control.plan(Request(flags={BLOCK: 16}))
        (warning,) = [each for each in plan.findings if each.rule == NOT_AS_WRITTEN]
        assert warning.level is Level.WARNING
        assert f"{BLOCK} is 8, and is written as 4" in warning.text
        record = await control.apply(plan, policy="always")
        feed.cancel()
        assert not record.was_ready

    in_virtual_time(work())


def test_what_was_proved_last_is_proved_again_by_its_own_command() -> None:
    """12 was proved; 14 is written and never ran; 16 fails: 12 is gone back to, and is proved."""

    async def work() -> None:
        world = ChangeWorld(Script(fails=lambda argv: argv[-1] == "16"))
        assert (await applied(world, block=12)).ending == "in force"
        machine = world.machine
        machine.files[DROP_IN] = machine.files[DROP_IN].replace("size 12", "size 14")
        record = await applied(world)
        assert (record.ending, record.was_ready) == ("rolled back", False)
        assert record.state.expected is not None
        assert record.state.expected.argv[-1] == "12"
        assert machine.engine is not None
        assert machine.engine.argv[-1] == "12"

    in_virtual_time(work())


def test_a_rollback_that_was_decided_is_not_decided_anew() -> None:
    """Killed as it begins: who carries it on asks nobody, and nobody is there to be asked."""

    async def work() -> None:
        world = ChangeWorld(Script(fails=lambda argv: "16" in argv))
        feed = asyncio.create_task(world.watched.run())
        await asyncio.sleep(3)

        async def yes(_why: str) -> bool:
            return True

        def killed(_record: ChangeRecord, step: StepRecord) -> None:
            if step.step == "rolling back":
                raise asyncio.CancelledError

        control = world.control()
        plan = await control.plan(Request(flags={BLOCK: 16}))
        with pytest.raises(asyncio.CancelledError):
            await control.apply(plan, killed, policy="ask", asked=Asked(yes))
        record = await world.control().resume()
        assert (record.ending, record.policy) == ("rolled back", "ask")
        assert [each.step for each in record.steps].count("rolling back") == 1
        feed.cancel()

    in_virtual_time(work())

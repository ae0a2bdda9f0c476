"""A rollback says which change it goes back to, and which one it undoes."""

from __future__ import annotations

import asyncio

from ddtui.cli.change_report import plan_lines, plan_report, record_lines, record_report
from ddtui.cli.output import Paint
from ddtui.control.drop_in import stamp
from ddtui.control.earlier import named
from ddtui.core.change_record import ChangeRecord
from ddtui.core.launch import Request
from tests.support.change_world import ChangeWorld
from tests.support.scripted_machine import DROP_IN, Script
from tests.support.virtual_time import in_virtual_time

BLOCK = "speculative-dflash-block-size"
OWN = "the unit's own command (ddtui's drop-in sets nothing then)"


def test_the_change_before_and_the_one_that_is_undone_are_named() -> None:
    async def work() -> None:
        world = ChangeWorld(Script())
        feed = asyncio.create_task(world.watched.run())
        await asyncio.sleep(12)
        control = world.control()

        async def apply(block: int, preset: str) -> ChangeRecord:
            plan = await control.plan(Request(preset=preset, flags={BLOCK: block}))
            return await control.apply(plan)

        first = await apply(16, "wide")
        plan = await control.rollback_plan()
        assert (plan.back_to, plan.undoes) == (OWN, named(first))
        second = await apply(12, "")
        assert named(second) == (
            f"change {second.id[:8]} (apply, {stamp(second.began)} by ada@desk: {BLOCK} 16 > 12)"
        )
        plan = await control.rollback_plan()
        assert (plan.back_to, plan.undoes) == (named(first), named(second))
        assert "(apply wide, " in plan.back_to
        shown = " ".join(" ".join(plan_lines(plan, Paint())).split())
        assert shown.startswith(f"back to change {first.id[:8]} (apply wide, ")
        assert f" undoes change {second.id[:8]} (apply, " in shown
        assert plan_report(plan)["back_to"] == named(first)

        record = await control.rollback()
        told = list(record_lines(record, Paint()))
        assert told[1].startswith(f"       back to change {first.id[:8]} (apply wide, ")
        assert record_report(record)["back_to"] == named(first)

        # Now the rollback is what brought it into force last.
        third = await apply(4, "")
        plan = await control.rollback_plan()
        assert (plan.back_to, plan.undoes) == (named(record), named(third))
        feed.cancel()

    in_virtual_time(work())


def test_a_drop_in_of_somebody_else_undoes_no_change_of_ours() -> None:
    async def work() -> None:
        world = ChangeWorld(Script())
        feed = asyncio.create_task(world.watched.run())
        await asyncio.sleep(12)
        control = world.control()
        first = await control.apply(await control.plan(Request(flags={BLOCK: 16})))
        text = world.machine.files[DROP_IN].replace("16", "12")
        world.machine.files[DROP_IN] = world.machine.loaded[DROP_IN] = text
        plan = await control.rollback_plan()
        assert (plan.back_to, plan.undoes) == (named(first), "")
        feed.cancel()

    in_virtual_time(work())


def test_a_change_of_much_is_named_in_short() -> None:
    changes = [
        {"kind": "flag", "name": f"f{n}", "before": None, "after": "1", "knob": ""}
        for n in range(5)
    ]
    record = ChangeRecord(
        id="0123456789", kind="apply", host="h", unit="u", scope="system", who="me\x1b[2J",
        began=0.0, changes=changes,
    )  # fmt: skip
    assert named(record).endswith(": f0 not set > 1, f1 not set > 1, f2 not set > 1, 2 more)")
    assert "\x1b" not in named(record)


def test_after_a_rollback_that_failed_the_next_one_brings_back_what_ran_before_it() -> None:
    """12, then 4, then back to 12, which does not start any more: not to what was before 12."""

    async def work() -> None:
        world = ChangeWorld(Script())
        feed = asyncio.create_task(world.watched.run())
        await asyncio.sleep(12)
        control = world.control()
        for block in (12, 4):
            record = await control.apply(await control.plan(Request(flags={BLOCK: block})))
            assert record.ending == "in force"
        world.machine.script.fails = lambda argv: argv[-1] == "12"
        assert (await control.rollback()).ending == "failed"
        plan = await control.rollback_plan()
        (change,) = [each for each in plan.changes if each.name == BLOCK]
        assert (change.before, change.after) == ("12", "4")
        assert (await control.rollback(plan=plan)).ending == "rolled back"
        assert world.machine.engine is not None
        assert world.machine.engine.argv[-1] == "4"
        feed.cancel()

    in_virtual_time(work())

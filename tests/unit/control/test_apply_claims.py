"""What an ending claims is what was proved: the whole command, by whom it was told, and no more."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from ddtui.cli.change_report import history_lines, plan_lines, record_lines, record_report
from ddtui.cli.output import Paint
from ddtui.control.controller import NotPossible
from ddtui.control.drop_in import sets_anything
from ddtui.control.proof import report_is_refused
from ddtui.core.change_record import Carried, ChangeRecord, StepRecord
from ddtui.core.launch import Level, Request, Value
from ddtui.core.snapshot import Verdict
from ddtui.engines.sglang import SGLANG
from tests.support.change_world import FRAGMENT as UNIT_TEXT
from tests.support.change_world import ChangeWorld
from tests.support.scripted_machine import DROP_IN, FOREIGN, FRAGMENT, Script
from tests.support.virtual_time import in_virtual_time

BLOCK = "speculative-dflash-block-size"
COMMAND = UNIT_TEXT.partition("ExecStart=")[2]


def foreign(command: str) -> str:
    return f"[Service]\nExecStart=\nExecStart={command}"


async def applied(
    world: ChangeWorld,
    meanwhile: Callable[[str], Any] = lambda _: None,
    flags: dict[str, Value] | None = None,
    policy: str = "always",
) -> ChangeRecord:
    """A change of flags (block 16 where 8 runs); `meanwhile` is told of each step."""
    feed = asyncio.create_task(world.watched.run())
    await asyncio.sleep(12)
    control = world.control()
    plan = await control.plan(Request(flags=flags or {BLOCK: 16}))
    assert not plan.blocked, plan.findings
    record = await control.apply(
        plan,
        lambda _, step: meanwhile(step.step),
        policy=policy,  # type: ignore[arg-type]
    )
    await asyncio.sleep(1)
    feed.cancel()
    return record


def running(world: ChangeWorld) -> tuple[str, ...]:
    assert world.machine.engine is not None
    return world.machine.engine.argv


def test_an_ending_without_the_servers_own_report_says_so_everywhere() -> None:
    async def work() -> None:
        world = ChangeWorld(Script(report_refused=True))
        record = await applied(world)
        assert record.ending == "in force"
        doubt = (
            "command line proved; the server's own report could not be read: API key needed (401)"
        )
        assert record.doubt == doubt
        assert record.steps[-1].detail == doubt
        (proof,) = record.proofs
        assert (proof["outcome"], proof["name"]) == ("not reported", BLOCK)
        assert "the engine was started so" in proof["reason"]
        graded = {each["name"]: each["verdict"] for each in record.evidence}
        assert graded["configuration"] == "missing"
        assert graded["port owner"] == graded["health"] == graded["unit"] == "proved"
        shown = "\n".join(record_lines(record, Paint()))
        assert f"in force ({doubt})" in shown
        assert "configuration missing" in shown
        assert f"in force ({doubt})" in "\n".join(history_lines([record]))
        told = record_report(world.store.history("ct200")[0])
        assert (told["ending"], told["doubt"]) == ("in force", doubt)
        assert told["evidence"]
        back = await rolled_back(world)
        assert (back.ending, back.doubt) == ("rolled back", doubt)
        for each in (record, back):  # all else is proved: a report that is refused is not awaited
            assert dict(each.phases())["verifying"] < world.limits.verify / 10

    in_virtual_time(work())


def test_a_secret_flag_is_kept_and_told_nowhere_but_in_the_drop_in() -> None:
    async def work() -> None:
        world = ChangeWorld(Script())
        secret = "not-to-be-seen-7"
        flags: dict[str, Value] = {"api-key": secret, "log-level": "debug"}
        record = await applied(world, flags=flags)
        assert secret in record.drop_in
        outcomes = {each["name"]: each["outcome"] for each in record.proofs}
        # Masked on both sides, it cannot be told from another.
        assert outcomes == {"api-key": "not reported", "log-level": "in force"}
        kept = world.store.history("ct200")[0]
        assert kept.request["flags"]["log-level"] == "debug"
        for each in (kept, msgspec.structs.replace(kept, request={"flags": flags})):
            assert secret not in json.dumps(record_report(each))
        assert secret not in json.dumps(msgspec.to_builtins((kept.request, kept.state)))

    in_virtual_time(work())


async def rolled_back(world: ChangeWorld, *, force: bool = False) -> ChangeRecord:
    feed = asyncio.create_task(world.watched.run())
    await asyncio.sleep(3)
    record = await world.control().rollback(force=force)
    feed.cancel()
    return record


def test_a_proof_by_the_servers_report_has_no_doubt() -> None:
    async def work() -> None:
        record = await applied(ChangeWorld(Script()))
        assert (record.ending, record.doubt) == ("in force", "")
        assert [each["outcome"] for each in record.proofs] == ["in force"]
        assert "in force after" in next(record_lines(record, Paint()))

    in_virtual_time(work())


@pytest.mark.parametrize(
    "value", ['{"a": "b c"}', "it's", "C:\\x", "two words", '"quoted"', "a $HOME %h"]
)
def test_any_value_comes_into_force(value: str) -> None:
    """SGLang joins what it reports without quotes."""

    async def work() -> None:
        world = ChangeWorld(Script())
        record = await applied(world, flags={"served-model-name": value}, policy="never")
        assert record.ending == "in force", record.cause
        assert running(world)[-1] == value
        assert [each["outcome"] for each in record.proofs] == ["in force"]
        back = await rolled_back(world)
        assert back.ending == "rolled back", back.cause

    in_virtual_time(work())


def test_a_foreign_drop_in_that_changes_another_flag_is_seen_and_named() -> None:
    """What was asked for is in force; the command as a whole is not."""

    async def work() -> None:
        world = ChangeWorld(Script())

        def meanwhile(step: str) -> None:
            if step == "written":
                other = COMMAND.replace("size 8", "size 16 --tp-size 4")
                world.machine.files[FOREIGN] = foreign(other)

        record = await applied(world, meanwhile, policy="never")
        assert record.ending == "failed"
        assert record.cause is not None
        title = "the unit's command is not the expected one: tp-size is 4, expected not set"
        assert record.cause["title"] == f"{title} ({FOREIGN} decides over it)"
        found = {each["name"]: each for each in record.proofs}
        assert found[BLOCK]["outcome"] == "in force"
        assert found["tp-size"]["outcome"] == "not taken"
        assert found["tp-size"]["reason"] == f"{FOREIGN} decides over it"

    in_virtual_time(work())


def test_a_drop_in_that_systemd_has_not_read_yet_is_seen_in_the_plan() -> None:
    async def work() -> None:
        world = ChangeWorld(Script())
        control = world.control()
        world.machine.files[FOREIGN] = "[Service]\nNice=5\n"
        plan = await control.plan(Request(flags={BLOCK: 16}))
        (finding,) = [each for each in plan.findings if each.rule == "drop-in-not-read"]
        assert (finding.level, FOREIGN in finding.text) == (Level.WARNING, True)
        world.machine.files[FOREIGN] = foreign(COMMAND)
        with pytest.raises(NotPossible, match="would hide a change") as refused:
            await control.plan(Request(flags={BLOCK: 16}))
        assert "rename it" in refused.value.remedy

    in_virtual_time(work())


def test_what_was_so_before_is_not_the_changes_doing() -> None:
    """A wrapper that adds a flag of its own keeps nobody from a change, and is told."""

    async def work() -> None:
        world = ChangeWorld(Script(adds=("--log-level", "debug")))
        record = await applied(world)
        assert record.ending == "in force", record.cause
        assert record.doubt == "as before the change, log-level is debug, expected not set"
        world.machine.script.adds = ("--log-level", "info")
        record = await applied(world, flags={BLOCK: 4}, policy="never")
        assert record.ending == "failed"
        assert "log-level is info, expected not set" in str(record.cause)

    in_virtual_time(work())


def test_a_rollback_without_a_record_of_its_command_is_proved_by_the_units_files() -> None:
    """An older ddtui has kept the drop-in only; another one decides over it."""

    async def work(meddled: bool) -> ChangeRecord:
        world = ChangeWorld(Script(fails=lambda argv: argv[-1] == "16"))
        proved = foreign(COMMAND.replace("size 8", "size 12"))
        old = ChangeRecord(
            id="old", kind="apply", host="ct200", unit="llm.service", who="x", began=1.0,
            ended=2.0, ending="rolled back", state=Carried(proved=proved),
        )  # fmt: skip
        world.store.put(old)
        # Not as written: what runs is no configuration to go back to.
        world.machine.files[FRAGMENT] = UNIT_TEXT.replace("size 8", "size 10")

        def meanwhile(step: str) -> None:
            if step == "rolling back" and meddled:
                world.machine.files[FOREIGN] = foreign(COMMAND.replace("size 8", "size 14"))

        return await applied(world, meanwhile)

    record = in_virtual_time(work(meddled=False))
    assert (record.ending, record.doubt) == ("rolled back", "")
    assert record.state.expected is not None
    assert record.state.expected.argv[-1] == "12"
    record = in_virtual_time(work(meddled=True))
    assert record.ending == "degraded"
    assert f"{BLOCK} is 14, expected 12" in record.steps[-1].detail


@pytest.mark.parametrize("policy", ["always", "ask"])
def test_an_engine_that_somebody_stopped_is_not_started_again(policy: str) -> None:
    async def work() -> None:
        world = ChangeWorld(Script())

        orders: list[asyncio.Task[None]] = []

        async def stop() -> None:
            await asyncio.sleep(3)
            await world.machine.stop()

        def meanwhile(step: str) -> None:
            if step == "loading":
                orders.append(asyncio.create_task(stop()))

        record = await applied(world, meanwhile, policy=policy)
        await asyncio.gather(*orders)
        assert record.ending == "failed"
        assert (world.machine.active, world.machine.starts) == ("inactive", 2)
        said = record.steps[-1].detail
        assert "somebody stopped the unit meanwhile; it is not started again" in said
        assert "THE ENGINE IS DOWN" in said
        assert record.cause is not None
        assert "ddtui rollback" in record.cause["remedy"]

    in_virtual_time(work())


def test_an_engine_that_is_stopped_as_soon_as_it_starts_is_not_started_again() -> None:
    """Stopped before anyone has looked at it: as if the order to start had been lost."""

    async def work() -> None:
        world = ChangeWorld(Script(stop=0.0, stopped_at_once=True))
        record = await applied(world)
        assert record.ending == "failed"
        assert (world.machine.active, world.machine.starts) == ("inactive", 2)
        assert "somebody stopped the unit meanwhile" in record.steps[-1].detail

    in_virtual_time(work())


def test_an_engine_that_ends_by_itself_is_rolled_back() -> None:
    """The same without anyone's order: exit status 0, in the middle of its load."""

    async def work() -> None:
        world = ChangeWorld(Script())

        def meanwhile(step: str) -> None:
            if step == "loading" and world.machine.starts == 2:
                loop = asyncio.get_running_loop()
                loop.call_later(3, world.machine.ends_well)

        record = await applied(world, meanwhile)
        assert (record.ending, world.machine.starts) == ("rolled back", 3)

    in_virtual_time(work())


def reinstall(world: ChangeWorld, command: str) -> None:
    """A package's script, or another admin: a new unit, and ddtui's drop-in gone."""
    machine = world.machine
    machine.files = {FRAGMENT: f"[Service]\nExecStart={command}"}
    machine.loaded = dict(machine.files)


def test_it_goes_back_past_a_replaced_unit_only_when_that_is_forced() -> None:
    async def work() -> None:
        world = ChangeWorld(Script())
        assert (await applied(world)).ending == "in force"
        reinstall(world, COMMAND.replace("/models/kimi", "/models/kimi-2"))
        control = world.control()
        plan = await control.rollback_plan()
        (finding,) = [each for each in plan.findings if each.rule == "unit-replaced"]
        assert plan.blocked
        assert FRAGMENT in finding.text
        assert "--force" in finding.remedy
        with pytest.raises(NotPossible, match="is not the one that this was in force with"):
            await control.rollback()
        assert DROP_IN not in world.machine.files
        forced = await control.rollback_plan(force=True)
        assert not forced.blocked
        assert [each.rule for each in forced.findings] == ["unit-replaced"]
        record = await rolled_back(world, force=True)
        assert record.ending == "rolled back"
        assert (running(world)[-1], running(world)[4]) == ("16", "/models/kimi")

    in_virtual_time(work())


def test_an_edit_beneath_is_said_when_ddtuis_command_is_taken_away() -> None:
    async def work() -> None:
        world = ChangeWorld(Script())
        assert (await applied(world)).ending == "in force"
        machine = world.machine
        machine.files[FRAGMENT] = UNIT_TEXT.replace("size 8", "size 10")
        plan = await world.control().rollback_plan()
        (finding,) = [each for each in plan.findings if each.rule == "unit-replaced"]
        assert finding.level is Level.WARNING
        record = await rolled_back(world)
        assert record.ending == "rolled back"
        assert running(world)[-1] == "10"

    in_virtual_time(work())


def test_a_refusal_is_believed_at_the_second_and_from_the_units_own_port_only() -> None:
    async def work() -> None:
        world = ChangeWorld(Script(report_refused=True))
        feed = asyncio.create_task(world.watched.run())
        await asyncio.sleep(12)
        feed.cancel()
        snapshot = world.watched.snapshot()
        assert snapshot.report_refusals >= 2
        assert report_is_refused(snapshot, SGLANG)
        once = msgspec.structs.replace(snapshot, report_refusals=1)
        assert not report_is_refused(once, SGLANG)
        readiness = snapshot.readiness
        foreign_port = tuple(
            msgspec.structs.replace(each, verdict=Verdict.CONSISTENT)
            if each.name == "port owner"
            else each
            for each in readiness.evidence
        )
        unowned = msgspec.structs.replace(readiness, evidence=foreign_port)
        assert not report_is_refused(msgspec.structs.replace(snapshot, readiness=unowned), SGLANG)
        # Once it gives one, earlier refusals count for nothing.
        world.machine.script.report_refused = False
        world.watched.state.apply(world.machine.samples(world.watched.clock())[-1])
        assert world.watched.snapshot().report_refusals == 0

    in_virtual_time(work())


def test_a_rollback_of_the_drop_in_alone_says_what_it_does() -> None:
    """The unit was edited to what ddtui's drop-in sets: without it the command is the same."""

    async def work() -> None:
        world = ChangeWorld(Script())
        assert (await applied(world)).ending == "in force"
        machine = world.machine
        machine.files[FRAGMENT] = UNIT_TEXT.replace("size 8", "size 16")
        control = world.control()
        plan = await control.rollback_plan()
        assert not plan.changes
        (finding,) = [each for each in plan.findings if each.rule == "same-command"]
        assert finding.text == (
            f"the command stays the same; {DROP_IN} is emptied; the engine is stopped, and started"
            " again"
        )
        assert "do not roll back" in finding.remedy
        assert finding.text in " ".join(" ".join(plan_lines(plan, Paint())).split())
        stops = machine.stops
        record = await rolled_back(world)
        assert (record.ending, machine.stops) == ("rolled back", stops + 1)
        assert not sets_anything(machine.files[DROP_IN])

    in_virtual_time(work())


def test_a_drop_in_of_another_hand_is_said_before_it_is_lost() -> None:
    async def work() -> None:
        world = ChangeWorld(Script())
        assert (await applied(world)).ending == "in force"
        own = world.machine.files[DROP_IN]
        world.machine.files[DROP_IN] = own.replace("size 16", "size 4").replace("ada@", "bob@")
        world.machine.loaded = dict(world.machine.files)
        plan = await world.control().rollback_plan()
        (finding,) = [each for each in plan.findings if each.rule == "drop-in-not-ours"]
        assert "bob@desk" in finding.text
        assert not plan.blocked

    in_virtual_time(work())


def test_a_failed_change_does_not_go_back_past_a_replaced_unit_either() -> None:
    async def work() -> None:
        world = ChangeWorld(Script(fails=lambda argv: argv[-1] == "16"))
        assert (await applied(world, flags={BLOCK: 12})).ending == "in force"
        await world.machine.stop()
        reinstall(world, COMMAND.replace("/models/kimi", "/models/kimi-2"))
        record = await applied(world)
        assert not record.was_ready
        assert record.ending == "rolled back"
        assert not sets_anything(world.machine.files[DROP_IN])
        assert (running(world)[-1], running(world)[4]) == ("8", "/models/kimi-2")

    in_virtual_time(work())


def test_a_rollback_that_shows_a_secret_says_so() -> None:
    async def work() -> None:
        world = ChangeWorld(Script(sight=FRAGMENT))
        assert (await applied(world, flags={"api-key": "sk-4f9a8b7c6d5e"})).ending == "in force"
        assert (await applied(world, flags={BLOCK: 4, "api-key": None})).ending == "in force"
        plan = await world.control().rollback_plan()
        (finding,) = [each for each in plan.findings if each.rule == "secret-in-sight"]
        assert finding.level is Level.WARNING

    in_virtual_time(work())


def test_what_is_asked_for_is_not_excused_by_how_it_ran_before() -> None:
    """The process is older than its unit; while it is restarted the unit is edited once more."""

    async def work() -> None:
        world = ChangeWorld(Script(stop=4.0))
        feed = asyncio.create_task(world.watched.run())
        await asyncio.sleep(12)
        world.machine.edit("size 8", "size 6")
        await asyncio.sleep(1)
        control = world.control()
        plan = await control.plan(Request(flags={BLOCK: 6}), rights=True)
        assert plan.restart_only

        def meanwhile(_: object, step: StepRecord) -> None:
            if step.step == "stopping" and "size 6" in world.machine.files[FRAGMENT]:
                world.machine.edit("size 6", "size 8")

        record = await control.apply(plan, meanwhile)
        assert record.ending == "failed"
        assert f"{BLOCK} is 8, expected 6" in record.steps[-1].detail
        feed.cancel()

    in_virtual_time(work())

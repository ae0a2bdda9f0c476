"""A unit that was edited and not restarted: what runs is older than what systemd says."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from ddtui.control.proof import Outcome, all_taken, prove
from ddtui.core.launch import Change, ChangeKind, Launch, Plan, Request
from ddtui.core.samples import UnitSample, UnitStatus
from ddtui.engines.sglang import SGLANG
from ddtui.experiments.running import Standing, standing
from tests.support.change_world import ChangeWorld
from tests.support.scripted_machine import DROP_IN, Script
from tests.support.virtual_time import in_virtual_time

BLOCK = "speculative-dflash-block-size"
SERVICE = "[Service]\n"


def told(story: Callable[[ChangeWorld], Awaitable[None]], script: Script | None = None) -> None:
    """A story of a host whose engine is ready."""

    async def work() -> None:
        world = ChangeWorld(script or Script())
        feed = asyncio.create_task(world.watched.run())
        await asyncio.sleep(12)
        await story(world)
        feed.cancel()

    in_virtual_time(work())


async def plan_of(world: ChangeWorld, request: Request = Request()) -> Plan:  # noqa: B008
    await asyncio.sleep(1)  # the unit's watcher has looked
    return await world.control().plan(request)


def findings(plan: Plan, rule: str = "older-variables") -> list[str]:
    return [each.text for each in plan.findings if each.rule == rule]


async def stands(world: ChangeWorld) -> Standing:
    launch = (await world.control().command()).launch
    return standing(world.watched.snapshot(), launch, SGLANG)


def test_nothing_is_due_where_the_process_is_as_its_unit() -> None:
    async def story(world: ChangeWorld) -> None:
        plan = await plan_of(world)
        assert (plan.changes, plan.restart_due, findings(plan)) == ((), "", [])
        assert await stands(world) is Standing.PROVED

    told(story)


def test_a_variable_that_was_edited_makes_a_restart_due() -> None:
    async def story(world: ChangeWorld) -> None:
        world.machine.edit(SERVICE, f"{SERVICE}Environment=A=1 HF_TOKEN=hf_not-to-be-seen\n")
        plan = await plan_of(world, Request(environment={"A": "1"}))
        assert (plan.changes, plan.restart_only) == ((), True)
        due = "the process runs with older variables: A is not set in the process, 1 in the unit"
        assert plan.restart_due.startswith(due)
        assert "not-to-be-seen" not in plan.restart_due + str(plan.findings)
        (text,) = findings(plan)
        assert text == f"{plan.restart_due}; a restart is needed"
        assert await stands(world) is Standing.OTHER

        record = await world.control().apply(plan)
        assert (record.kind, record.ending, record.was_ready) == ("restart", "in force", False)
        assert DROP_IN not in world.machine.files
        plan = await plan_of(world)
        assert (plan.restart_due, await stands(world)) == ("", Standing.PROVED)

        world.machine.edit("A=1", "A=2")
        plan = await plan_of(world)
        assert "A is 1 in the process, 2 in the unit" in plan.restart_due

    told(story)


def test_a_change_is_worked_out_on_what_is_written_and_proved_by_the_process() -> None:
    async def story(world: ChangeWorld) -> None:
        world.machine.edit(SERVICE, f"{SERVICE}Environment=A=1\n")
        plan = await plan_of(world, Request(environment={"A": "2", "B": "3"}))
        assert findings(plan)
        assert not plan.restart_only
        record = await world.control().apply(plan)
        assert (record.kind, record.ending, record.doubt) == ("apply", "in force", "")
        assert [each["outcome"] for each in record.proofs] == ["in force", "in force"]
        assert world.machine.engine is not None
        assert world.machine.engine.environment == {"A": "2", "B": "3"}

    told(story)


def test_a_command_that_was_edited_makes_a_restart_due() -> None:
    async def story(world: ChangeWorld) -> None:
        world.machine.edit("size 8", "size 4")
        plan = await plan_of(world, Request(flags={BLOCK: 4}))
        assert plan.restart_only
        assert plan.restart_due == (
            f"the process runs with older flags: --{BLOCK} is 8 in the process, 4 in the unit"
        )
        assert findings(plan, "unit-not-running-as-written")
        assert await stands(world) is Standing.OTHER
        record = await world.control().apply(plan)
        assert (record.kind, record.ending) == ("restart", "in force")
        assert (await plan_of(world)).restart_due == ""

    told(story)


def test_that_a_file_is_newer_is_a_doubt_and_makes_no_restart_due() -> None:
    """What it says may be the same, or each start may write it: that would have no end."""

    async def story(world: ChangeWorld) -> None:
        assert findings(await plan_of(world), "perhaps-older") == []
        world.machine.edit(SERVICE, f"{SERVICE}Environment=A=1\n")
        plan = await plan_of(world)
        assert (plan.restart_due, plan.blocked) == ("", False)
        (text,) = findings(plan, "perhaps-older")
        assert "was changed after the start" in text
        assert await stands(world) is Standing.PROVED
        assert (await world.control().restart()).ending == "in force"
        assert findings(await plan_of(world), "perhaps-older") == []

    told(story, Script(environ_is_read=False))


def test_what_the_program_sets_over_a_change_is_told_and_no_failure() -> None:
    async def story(world: ChangeWorld) -> None:
        change = Change(ChangeKind.ENVIRONMENT, "A", None, "2")
        unit = UnitStatus(
            "llm.service", environment=("A=2",), environment_read=True, overridden=("A=7",)
        )
        world.watched.state.apply(UnitSample(world.watched.clock(), "systemd", unit))
        (proof,) = prove([change], Launch((), {"A": "2"}), world.watched.snapshot(), SGLANG)
        assert (proof.outcome, proof.resolved) == (Outcome.OVERRIDDEN, "7")
        assert all_taken([proof])

    told(story)


@pytest.mark.parametrize(
    ("now", "outcome"),
    [("redacted-1", Outcome.NOT_TAKEN), ("<redacted>", Outcome.UNREPORTED)],
)
def test_only_a_masked_value_cannot_be_compared(now: str, outcome: Outcome) -> None:
    async def story(world: ChangeWorld) -> None:
        change = Change(ChangeKind.ENVIRONMENT, "A", None, "2")
        unit = UnitStatus("llm.service", environment=(f"A={now}",), environment_read=True)
        world.watched.state.apply(UnitSample(world.watched.clock(), "systemd", unit))
        (proof,) = prove([change], Launch((), {"A": "2"}), world.watched.snapshot(), SGLANG)
        assert (proof.outcome, proof.resolved) == (outcome, now)

    told(story)


def test_an_edit_during_the_load_is_told_at_the_end_of_a_change() -> None:
    """What was started is in force; what was edited since is not, and nobody takes it for that."""

    async def story(world: ChangeWorld) -> None:
        plan = await plan_of(world, Request(flags={BLOCK: 16}))
        loading: list[str] = []

        def meddle(_record: object, step: object) -> None:
            if getattr(step, "step", "") == "loading" and not loading:
                loading.append("once")
                asyncio.get_running_loop().call_later(
                    3.0, world.machine.edit, SERVICE, f"{SERVICE}Environment=A=1\n"
                )

        record = await world.control().apply(plan, meddle)
        assert record.ending == "in force", record.cause
        assert record.doubt.startswith("the unit was changed meanwhile: ")

    told(story, Script(environ_is_read=False))


@pytest.mark.parametrize(
    ("read", "outcome"), [(True, Outcome.NOT_TAKEN), (False, Outcome.UNREPORTED)]
)
def test_a_variable_is_graded_by_what_it_was_told_by(read: bool, outcome: Outcome) -> None:
    async def story(world: ChangeWorld) -> None:
        change = Change(ChangeKind.ENVIRONMENT, "A", None, "2")
        unit = UnitStatus("llm.service", environment=("A=1",), environment_read=read)
        world.watched.state.apply(UnitSample(world.watched.clock(), "systemd", unit))
        (proof,) = prove([change], Launch((), {"A": "2"}), world.watched.snapshot(), SGLANG)
        assert (proof.outcome, proof.resolved) == (outcome, "1")
        assert ("started with 1" in proof.reason) is read

    told(story)

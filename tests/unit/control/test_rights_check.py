"""A missing right is told with the plan: nothing is confirmed that cannot be done."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ddtui.cli.change_report import plan_lines
from ddtui.cli.output import Paint
from ddtui.control.controller import Controller, NotPossible
from ddtui.control.host_actions import RightMissing, UnitActions
from ddtui.control.rights import commands_for, sudoers_line
from ddtui.control.rights_check import KEPT, KEPT_MISSING
from ddtui.control.unit_programs import RIGHTS
from ddtui.core.launch import Finding, Level, Request
from ddtui.hosts.base import Program
from ddtui.hosts.local import LocalHost
from tests.support.change_world import ChangeWorld
from tests.support.scripted_machine import UNIT, Script
from tests.support.virtual_time import in_virtual_time

BLOCK = Request(flags={"speculative-dflash-block-size": 16})
STOP = f"/usr/bin/systemctl stop {UNIT}"
MISSING = f"@missing {STOP}\n"
UNKNOWN = f"{MISSING}@unknown sudo: a password is required\n"


async def ready(world: ChangeWorld) -> Controller:
    feed = asyncio.create_task(world.watched.run())
    await asyncio.sleep(12)
    feed.cancel()
    return world.control()


async def found(control: Controller, request: Request = BLOCK) -> list[Finding]:
    plan = await control.plan(request, rights=True)
    return [each for each in plan.findings if each.rule.startswith("right")]


def test_a_missing_right_blocks_the_plan_and_names_its_line() -> None:
    async def work() -> None:
        world = ChangeWorld(Script(rights=MISSING))
        control = await ready(world)
        plan = await control.plan(BLOCK, rights=True)
        (error,) = [each for each in plan.findings if each.level is Level.ERROR]
        assert (error.rule, plan.blocked) == ("right-missing", True)
        line = sudoers_line("ops", STOP)
        assert line in error.remedy.splitlines()
        assert line in [each.strip() for each in plan_lines(plan, Paint())]
        with pytest.raises(NotPossible, match="sudo does not allow"):
            await control.apply(plan)
        with pytest.raises(RightMissing) as refused:
            await control.restart()
        assert refused.value.lines == (line,)

    in_virtual_time(work())


def test_a_host_without_sudo_is_told_as_such() -> None:
    async def work() -> None:
        world = ChangeWorld(Script(rights="@none\n"))
        control = await ready(world)
        (error,) = await found(control)
        assert error.level is Level.ERROR
        assert error.text.startswith("sudo is not installed on the host")
        assert error.remedy == "on the host: install sudo, or log in as root"
        with pytest.raises(RightMissing) as refused:
            await control.restart()
        assert refused.value.remedy == error.remedy

    in_virtual_time(work())


def test_what_changes_nothing_and_what_is_not_to_be_applied_needs_no_right() -> None:
    async def work() -> None:
        world = ChangeWorld(Script(rights=MISSING))
        control = await ready(world)
        assert await found(control, Request()) == []
        assert not (await control.plan(BLOCK)).blocked
        assert "ddtui:rights" not in world.host.actions

    in_virtual_time(work())


def test_where_sudo_does_not_tell_it_is_unknown_and_no_error() -> None:
    async def work() -> None:
        world = ChangeWorld(Script(rights=UNKNOWN))
        control = await ready(world)
        (note,) = await found(control)
        assert (note.level, note.rule) == (Level.NOTE, "rights-unknown")
        assert "a password is required" in note.text
        assert [each.level for each in await control.against_restart()] == [Level.NOTE]

    in_virtual_time(work())


def test_sudo_is_not_asked_with_every_plan() -> None:
    """It notes in the host's log what it refuses."""

    async def work() -> None:
        world = ChangeWorld(Script(rights=MISSING))
        control = await ready(world)

        def asked() -> int:
            return world.host.actions.count("ddtui:rights")

        await found(control)
        assert await found(control)
        assert asked() == 2  # for its list, which tells nothing, and for the commands
        world.machine.script.rights = ""  # somebody has added the line
        await asyncio.sleep(KEPT_MISSING + 1)
        assert await found(control) == []
        await asyncio.sleep(KEPT_MISSING + 1)
        assert await found(control) == []
        assert asked() == 3
        await asyncio.sleep(KEPT)
        await found(control)
        assert asked() == 4

    in_virtual_time(work())


def test_a_rollback_tells_it_too() -> None:
    async def work() -> None:
        world = ChangeWorld(Script())
        feed = asyncio.create_task(world.watched.run())
        await asyncio.sleep(12)
        control = world.control()
        assert (await control.apply(await control.plan(BLOCK))).ending == "in force"
        world.machine.script.rights = MISSING
        plan = await control.rollback_plan()
        feed.cancel()
        assert plan.blocked
        assert [each.rule for each in plan.findings] == ["right-missing"]

    in_virtual_time(work())


@pytest.mark.parametrize(
    ("says", "missing", "unknown"),
    [
        ("exit 0", 0, "by its list, it may want a password"),
        ("[ $# != 2 ] || echo '(root) NOPASSWD: ALL'", 0, ""),
        ("[ $# != 2 ] || echo '(root) ALL'", 7, ""),
        ("[ $# != 2 ] || echo '(ALL) CWD=/ ALL'", 0, "by its list, it may want a password"),
        ("[ $# != 2 ] || echo '(root) NOPASSWD: ^.*$'", 0, ""),
        ("exec sleep 60", 0, "sudo has not answered in 1 s"),
        ("exit 1", 7, ""),
        ("echo 'Sorry, user ops may not run sudo on ct200.' >&2; exit 1", 7, ""),
        ("echo 'sudo: unable to resolve host ct200: x' >&2; exit 1", 7, ""),
        ("echo 'sudo: a password is required' >&2; exit 1", 0, "sudo: a password is required"),
        ("echo 'sudo: sorry, you must have a tty' >&2; exit 1", 0, "sorry, you must have a tty"),
    ],
)
async def test_what_sudo_answers_is_told_from_its_not_answering(
    tmp_path: Path, says: str, missing: int, unknown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sudo = tmp_path / "sudo"
    sudo.write_text(f"#!/bin/sh\n{says}\n", encoding="utf-8")
    sudo.chmod(0o755)
    # As if it were another user than root: a shell does not let its UID be set.
    script = RIGHTS.script.replace('[ "$UID" = 0 ]', "false")
    script = script.replace("$(id -un) $UID", "ops 1501")
    script = f"PATH={tmp_path}:$PATH\n{script}"
    monkeypatch.setattr("ddtui.control.host_actions.RIGHTS", Program(RIGHTS.label, script))
    monkeypatch.setattr("ddtui.control.host_actions.SUDO_LIMIT", 1.0)
    host = LocalHost()
    await host.start()
    try:
        rights = await UnitActions(host, "system", UNIT).rights()
    finally:
        await host.close()
    assert (len(rights.missing), unknown in rights.unknown) == (missing, True)
    assert bool(rights.unknown) is bool(unknown)
    assert len(commands_for(UNIT)) == 7

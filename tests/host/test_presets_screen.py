"""Presets applied from the keyboard, end to end: the app over real SSH, on a real systemd."""

from __future__ import annotations

import re
from asyncio import to_thread
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from ddtui.demo.engine_process import FAILURE_VARIABLE
from ddtui.ui.screens.presets import PresetsScreen
from tests.host.changing import SUDOERS, grant
from tests.host.gpuhost import DFLASH, GpuHost, engine_command
from tests.host.screens import Seat, seated

UNIT = "llm-screen.service"
BLOCK = "speculative-dflash-block-size"
DROP_IN = f"/etc/systemd/system/{UNIT}.d/50-ddtui.conf"
PRESETS = f"""
[presets.block-16]
description = "twice the trained block"
flags = {{ {BLOCK} = 16 }}

[presets.broken]
description = "does not fit"
environment = {{ {FAILURE_VARIABLE} = "oom" }}
"""


@pytest.fixture
def host(gpuhost: GpuHost) -> Iterator[GpuHost]:
    """The host with an engine that is ready."""
    gpuhost.exec("rm", "-f", "/etc/sudoers.d/ops")
    grant(gpuhost, UNIT)
    with gpuhost.unit(UNIT, engine_command(*DFLASH), user="ops"):
        gpuhost.until_ready(UNIT)
        yield gpuhost
    gpuhost.exec("rm", "-f", SUDOERS)


@pytest.fixture
async def seat(host: GpuHost, tmp_path: Path) -> AsyncIterator[Seat]:
    async with seated(host, UNIT, tmp_path, PRESETS) as each:
        await each.until_text("READY")
        await each.press("4")
        yield each


def flag(host: GpuHost) -> str:
    """The block size of the running main process."""
    words = host.exec("cat", f"/proc/{host.main_pid(UNIT)}/cmdline").stdout.split("\0")
    return words[words.index(f"--{BLOCK}") + 1]


def header(seat: Seat) -> str:
    """The lines that tell of the host and the link to it."""
    return "\n".join(seat.text().splitlines()[:2])


def begun(seat: Seat) -> set[str]:
    """The steps of the change on the screen that have begun, those that ended too."""
    view = seat.app.desk.view if seat.app.desk is not None else None
    return set() if view is None else {each.name for each in view.steps if each.began}


def starts(host: GpuHost) -> int:
    """How often the unit was started, by the journal."""
    started = "MESSAGE_ID=39f53479d3a045ac8e11786248231fbf"
    command = ["journalctl", "--output=cat", "--no-pager", "--quiet", f"UNIT={UNIT}", started]
    return len(host.exec(*command).stdout.splitlines())


async def test_a_preset_is_applied_and_proved(host: GpuHost, seat: Seat) -> None:
    before = await to_thread(starts, host)
    await seat.until_text("can be applied", f"--{BLOCK}", "8 → 16")
    await seat.press("a")
    question = await seat.question("Apply block-16")
    assert question.words.action == "Apply"
    await seat.press("enter")  # the focus is on Cancel
    await seat.until(lambda: isinstance(seat.app.screen, PresetsScreen))
    assert (await to_thread(host.exec, "test", "-e", DROP_IN, check=False)).returncode == 1
    await seat.press("a")
    await seat.question("Apply block-16")
    await seat.answer()
    seen: set[str] = set()

    def ended() -> bool:
        seen.update(begun(seat))
        return "IN FORCE" in seat.text()

    await seat.until(ended, what="in force")
    assert {"locked", "written", "reloaded", "stopping", "releasing"} <= seen
    assert {"starting", "loading", "verifying"} <= seen
    await seat.until_text(
        f"in force  --{BLOCK} 16", "nothing to change: the unit is configured like this"
    )
    assert await to_thread(flag, host) == "16"
    assert await to_thread(starts, host) == before + 1
    await seat.press("H")
    await seat.until_text("✓ in force", "apply block-16")
    await seat.press("enter")
    await seat.until_text("Came into force", "verifying")


async def test_a_preset_that_fails_is_told_asked_about_and_rolled_back(
    host: GpuHost, seat: Seat
) -> None:
    await seat.press("j")
    await seat.until_text("can be applied", f"{FAILURE_VARIABLE}", "not set → oom")
    await seat.press("a")
    await seat.question("Apply broken")
    await seat.answer()
    question = await seat.question("has failed")
    said = seat.text()
    assert "memory" in question.words.body(400)[0].text.lower()  # type: ignore[operator]
    assert "\n| " in said  # the line that proves it
    assert "\ndo: " in said
    assert await to_thread(host.show, UNIT, "ActiveState") != "active"
    await seat.press("enter")  # Later: nothing is answered
    await seat.until_text("D decides")
    await seat.press("D")
    await seat.question("has failed")
    await seat.answer(steps=2)
    await seat.until_text("ROLLED BACK")
    assert await to_thread(flag, host) == "8"
    environment = await to_thread(host.show, UNIT, "Environment")
    assert FAILURE_VARIABLE not in environment
    await seat.until_text("READY", "can be applied")
    await seat.press("H")
    await seat.until_text("rolled back", "apply broken")


@pytest.mark.parametrize("fault", ["reset", "cut"])
async def test_a_cut_link_is_shown_and_the_change_carries_on_once(
    host: GpuHost, seat: Seat, fault: str
) -> None:
    before = await to_thread(starts, host)
    await seat.until_text("can be applied")
    with host.held():
        await seat.press("a")
        await seat.question("Apply block-16")
        await seat.answer()
        await seat.until(lambda: "stopping" in begun(seat), what="a stop")
        await to_thread(host.link, fault)
        try:
            await seat.until(lambda: "live" not in header(seat), what="disconnected")
            await seat.until(lambda: re.search(r"\d s (ago|old)", header(seat)), what="the age")
            assert "IN FORCE" not in seat.text()
            await seat.until_text("8 → 16", "not connected now", "waiting for the host")
            assert isinstance(seat.app.screen, PresetsScreen)
        finally:
            await to_thread(host.heal)
    await seat.press("ctrl+r")
    await seat.until_text("IN FORCE")
    await seat.until(lambda: "live" in header(seat))
    assert await to_thread(flag, host) == "16"
    assert await to_thread(starts, host) == before + 1


async def test_who_holds_the_lock_is_shown_to_another_one(
    host: GpuHost, seat: Seat, tmp_path: Path
) -> None:
    async with seated(
        host, UNIT, tmp_path / "bob", PRESETS, user="-root", who="bob", size=(80, 24)
    ) as bob:
        await bob.press("4")
        await bob.until_text("can be applied")
        with host.held():
            await seat.press("a")
            await seat.question("Apply block-16")
            await seat.answer()
            said = await bob.until_text("LOCKED by ada@")
            assert " since 20" in " ".join(said.split())
            await bob.press("a")
            question = await bob.question("Apply block-16")
            assert question.words.action == ""
            assert "somebody else is changing the unit: ada@" in bob.text()
            await bob.press("escape")
        await seat.until_text("IN FORCE")
        await bob.until(lambda: "LOCKED" not in bob.text(), what="the lock is free")
        await bob.until_text("nothing to change")

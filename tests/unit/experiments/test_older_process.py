"""Nothing is measured on a process that is older than its unit: it is restarted first."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.run_stories import PLAN, Told, at, states, when
from tests.support.run_world import RunWorld
from tests.support.scripted_machine import Script

SERVICE = "[Service]\n"


def script(*, read: bool = True) -> Script:
    return Script(stop=0.5, memory_late=0.2, load=4.0, travel=0.01, environ_is_read=read)


@pytest.mark.parametrize(
    "edit",
    [
        lambda world: world.machine.edit(SERVICE, f"{SERVICE}Environment=A=1\n"),
        lambda world: world.machine.edit("size 8", "size 4"),
    ],
)
def test_an_edited_unit_is_restarted_before_it_is_measured(
    told: Told, edit: Callable[[RunWorld], None]
) -> None:
    async def story(world: RunWorld) -> None:
        edit(world)
        world.add("a", PLAN)
        await world.runner().run()

    world = told(story, script())
    assert states(world) == ["done"]
    assert world.machine.starts == 2
    (measurement,) = world.measurements()
    assert world.machine.engine is not None
    assert measurement.provenance.environment == world.machine.engine.environment
    assert measurement.provenance.invocation == world.machine.engine.invocation
    block = 4 if "size 4" in str(world.machine.files) else 8
    assert world.cells == [(block, 1), (block, 4)]


def test_an_edit_in_the_middle_of_a_measurement_does_not_touch_what_runs(told: Told) -> None:
    """The cells are of the start that was proved; the next experiment begins with a load."""

    async def story(world: RunWorld) -> None:
        world.add("a", PLAN)
        world.add("b", PLAN)
        edit = f"{SERVICE}Environment=A=1\n"
        when(world, at("cell"), lambda: world.machine.edit(SERVICE, edit))
        await world.runner().run()

    world = told(story, script(read=False))
    assert states(world) == ["done", "done"]
    assert world.cells == [(8, 1), (8, 4)] * 2
    one, other = world.measurements()
    assert one.provenance.invocation != other.provenance.invocation
    # It is made on what was in force when the queue began, and takes the variable out again.
    assert (one.provenance.environment, other.provenance.environment) == ({}, {})

"""Nothing is measured on a process that is older than its unit: it is restarted first."""

from __future__ import annotations

import asyncio
import csv
import io
from collections.abc import Callable

import msgspec
import pytest

from ddtui.experiments.export import Document, csv_text, json_text
from ddtui.experiments.markdown_report import escaped, markdown_text
from ddtui.experiments.results import results_view
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


def test_what_is_in_doubt_of_the_process_is_kept_with_its_figures(told: Told) -> None:
    """The unit was edited, and whether its process has that is not to be read."""

    async def story(world: RunWorld) -> None:
        world.machine.edit(SERVICE, f"{SERVICE}# a remark\n")
        await asyncio.sleep(5)
        world.add("a", PLAN)
        await world.runner().run()

    world = told(story, script(read=False))
    (measurement,) = world.measurements()
    (doubt,) = measurement.provenance.doubts
    assert "was changed after the start" in doubt
    view = results_view(world.host.name, [measurement], world.experiments())
    flag = f"not known whether the process ran as its unit is: {doubt}"
    assert flag in view.rows[0].flags
    assert flag in next(csv.DictReader(io.StringIO(csv_text(view))))["flags"]
    assert msgspec.json.decode(json_text(view), type=Document).rows[0].measurements == (
        measurement,
    )
    assert f"to know: {escaped(flag)}" in markdown_text(view, {}, 0.0)


def test_nothing_is_in_doubt_of_a_process_that_can_be_read(told: Told) -> None:
    async def story(world: RunWorld) -> None:
        world.add("a", PLAN)
        await world.runner().run()

    (measurement,) = told(story, script()).measurements()
    assert measurement.provenance.evidence
    assert measurement.provenance.doubts == ()

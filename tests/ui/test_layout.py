from __future__ import annotations

from dataclasses import replace
from itertools import combinations, product

import pytest

from ddtui.ui.layout import Need, Part, plan
from ddtui.ui.widgets.gpus import arrangement

NEEDS = [
    Need(gpus=gpus, foreign=foreign, alerts=alerts, loading=load, warnings=int(load), evidence=seen)
    for gpus, foreign, alerts, load, seen in product(
        (0, 1, 8, 16, 64), (0, 1), (0, 2, 30), (False, True), (1, 6)
    )
]  # fmt: skip


@pytest.mark.parametrize("width", [60, 79, 80, 99, 100, 120, 169, 170, 200, 400])
def test_panels_never_overlap_nor_leave_the_terminal(width: int) -> None:
    for height, need in product((15, 23, 29, 39, 40, 59, 120), NEEDS):
        regions = plan(width, height, need)
        cells = width * height
        for part, region in regions.items():
            assert region.width > 0, part
            assert region.height > 0, part
            assert region.x >= 0
            assert region.y >= 0
            assert region.right <= width, (part, height, need)
            assert region.bottom <= height, (part, height, need)
        for one, other in combinations(regions.values(), 2):
            assert not one.overlaps(other), (height, need)
        assert sum(region.area for region in regions.values()) <= cells


@pytest.mark.parametrize("size", [(60, 15), (80, 23), (100, 29), (120, 39), (200, 59)])
def test_what_matters_is_always_there(size: tuple[int, int]) -> None:
    for need in NEEDS:
        regions = plan(*size, need)
        assert Part.HEADER in regions
        assert Part.GPUS in regions, need
        assert (Part.ALERTS in regions) == (need.alerts > 0)
        assert (Part.LOAD if need.loading else Part.ENGINE) in regions, need


def test_the_whole_room_is_used() -> None:
    for size in ((80, 23), (120, 39), (200, 59)):
        for need in (Need(gpus=8), Need(gpus=8, loading=True), Need(gpus=16, alerts=2)):
            regions = plan(*size, need)
            used = sum(region.area for region in regions.values())
            assert used == size[0] * size[1], (size, need, regions)


@pytest.mark.parametrize("size", [(59, 40), (120, 14), (1, 1), (0, 0)])
def test_below_the_floor_there_is_only_the_notice(size: tuple[int, int]) -> None:
    assert list(plan(*size, Need(gpus=8))) == [Part.TOO_SMALL]


def test_large_terminals_show_everything() -> None:
    everything = {*Part} - {Part.TOO_SMALL, Part.ALERTS, Part.CHANGE, Part.LOAD}
    for size in ((120, 39), (200, 59)):
        assert set(plan(*size, Need(gpus=8, evidence=6, queue=5))) == everything


@pytest.mark.parametrize("size", [(120, 39), (200, 59), (80, 45)])
def test_the_queue_takes_its_room_from_the_log_and_leaves_some(size: tuple[int, int]) -> None:
    need = Need(gpus=8, evidence=6, queue=5)
    without, found = plan(*size, replace(need, queue=0)), plan(*size, need)
    assert Part.QUEUE not in without
    log, queue = found[Part.LOG], found[Part.QUEUE]
    assert log.area + queue.area == without[Part.LOG].area
    assert queue.height >= 5
    assert log.height >= 4
    assert log.width >= 60
    others = {*without} - {Part.LOG}
    assert {part: without[part] for part in others} == {part: found[part] for part in others}


def test_a_small_terminal_keeps_its_log_and_has_a_line_for_the_queue() -> None:
    found = plan(80, 23, Need(gpus=8, evidence=6, queue=5))
    assert found[Part.QUEUE].height == 1
    assert found[Part.QUEUE].bottom == found[Part.LOG].y
    assert found[Part.LOG].height >= 4


@pytest.mark.parametrize(
    ("gpus", "width", "height", "columns", "lines"),
    [
        (8, 96, 16, 1, 16),
        (8, 96, 15, 1, 8),
        (8, 76, 8, 1, 8),
        (16, 76, 8, 2, 8),
        (64, 116, 8, 8, 8),
    ],
)
def test_gpus_take_two_lines_one_or_less(
    gpus: int, width: int, height: int, columns: int, lines: int
) -> None:
    how = arrangement(gpus, width, height)
    assert (how.columns, how.lines) == (columns, lines)

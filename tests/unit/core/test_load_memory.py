"""GPU memory above what others hold."""

from __future__ import annotations

from ddtui.core.load_memory import GpuMemory, straggler

GB = 10**9


def test_memory_of_others_does_not_count() -> None:
    memory = GpuMemory()
    memory.add(1.0, {0: 9 * GB}, None)
    memory.add(2.0, {0: 12 * GB}, None)
    assert memory.latest == {0: 3 * GB}


def test_memory_that_is_released_late_does_not_eat_the_growth() -> None:
    memory = GpuMemory()
    for at, used in enumerate([80, 80, 83, 43, 3, 5]):  # the old run goes in two steps
        memory.add(float(at), {0: used * GB}, None)
    assert memory.latest == {0: 5 * GB}
    assert memory.at(2.0) == {0: 3 * GB}


def test_the_process_list_corrects_the_baseline_for_the_past_too() -> None:
    memory = GpuMemory()
    memory.add(0.0, {0: 10 * GB}, None)
    memory.add(1.0, {0: 12 * GB}, None)
    memory.add(2.0, {0: 14 * GB}, {0: 11 * GB})  # 3 GB are others'
    assert memory.latest == {0: 11 * GB}
    assert memory.at(1.0) == {0: 9 * GB}


def test_who_comes_late_takes_what_is_there_for_the_units() -> None:
    memory = GpuMemory()
    memory.add(0.0, {0: 40 * GB, 1: 41 * GB}, {1: 35 * GB})
    memory.came_late()
    assert memory.latest == {0: 40 * GB, 1: 35 * GB}


def test_the_gpus_of_the_unit() -> None:
    memory = GpuMemory()
    memory.add(0.0, dict.fromkeys(range(4), 0), None)
    assert memory.gpus(4) == (0, 1, 2, 3)
    memory.add(1.0, {0: 0, 1: 0, 2: 5 * GB, 3: 4 * GB}, None)
    assert memory.gpus(2) == (2, 3)
    memory.add(2.0, {0: 6 * GB, 1: 0, 2: 5 * GB, 3: 4 * GB}, {2: 5 * GB, 3: 4 * GB})
    assert memory.gpus(2) == (2, 3)  # GPU 0 is another's


def test_what_is_kept_stays_small() -> None:
    memory = GpuMemory()
    for step in range(40_000):  # two hours at 5 Hz
        memory.add(step * 0.2, {0: step}, None)
    assert len(memory._times) < 3000
    assert memory.latest == {0: 39_999}
    assert abs(memory.at(4000.0)[0] - 20_000) < 100


def test_readings_out_of_order_are_left_out() -> None:
    memory = GpuMemory()
    memory.add(5.0, {0: 0}, None)
    memory.add(6.0, {0: 5}, None)
    memory.add(4.0, {0: 99}, None)
    assert memory.latest == {0: 5}


def test_only_one_that_is_clearly_behind_is_a_straggler() -> None:
    assert straggler([0.5, 0.5, 0.3, 0.5]) == 2
    assert straggler([0.5, 0.48, 0.45, 0.5]) is None
    assert straggler([0.04, 0.0]) is None
    assert straggler([0.5]) is None

"""External benches as real programs of this machine."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import cast

import psutil
import pytest

from ddtui.bench.bench import Bench
from ddtui.bench.errors import BenchError, CommandFailed, ConnectionLost
from ddtui.bench.progress import Progress, Step
from ddtui.core.bench_plan import BenchPlan
from ddtui.core.measurement import Cell
from ddtui.engines.sglang import SGLANG
from ddtui.hosts.base import Host
from ddtui.hosts.local import LocalHost
from ddtui.hosts.ports import DirectPorts
from tests.support.external_host import ExternalHost, Said
from tests.support.external_host import result as line
from tests.support.virtual_time import in_virtual_time

RESULTS = Path(__file__).parents[2] / "fixtures" / "sglang" / "sglang-bench_serving.jsonl"


async def run(
    *command: str,
    seconds: float = 30.0,
    seen: list[Progress] | None = None,
    kept: list[Cell] | None = None,
) -> tuple[Cell, ...]:
    host = LocalHost()
    await host.start()
    try:
        bench = Bench(DirectPorts(), "127.0.0.1", 1, SGLANG, host=host)
        plan = BenchPlan(command=command, command_seconds=seconds)
        return await bench.run(
            plan,
            on_progress=None if seen is None else seen.append,
            on_cell=None if kept is None else kept.append,
        )
    finally:
        await host.close()


def result(rate: float) -> str:
    return line(rate).decode()


async def test_a_command_needs_a_host_to_run_on() -> None:
    local = LocalHost()
    with pytest.raises(CommandFailed, match="runs on a host"):
        await Bench(local, "127.0.0.1", 1, SGLANG).run(BenchPlan(command=("true",)))


async def test_lines_of_standard_output() -> None:
    seen: list[Progress] = []
    (cell,) = await run("bash", "-c", f"echo working; cat {RESULTS}", seen=seen)
    assert (cell.concurrency, cell.requests) == (8, 32)
    assert (seen[0].step, seen[0].note) == (Step.COMMAND, "working")


async def test_file_of_results_and_repeats_of_one_concurrency() -> None:
    script = f"echo '{result(100)}' >> \"$1\"; echo '{result(104)}' >> \"$1\""
    (cell,) = await run("bash", "-c", script, "x", "{output}")
    assert cell.total_rate
    assert cell.total_rate.values == (100.0, 104.0)
    assert cell.total_rate.low < 100 < cell.total_rate.median < 104
    assert cell.requests == 18


async def test_arguments_are_never_read_by_a_shell(tmp_path: Path) -> None:
    words = ["; touch evil", "$(touch evil)", "`touch evil`", "a b", "*", ""]
    script = "import sys, json; print(json.dumps({'output_throughput': 1, 'completed': 1,"
    script += " 'errors': sys.argv[1:]}))"
    (cell,) = await run("python3", "-c", script, *words)
    assert set(cell.errors) == {word for word in words if word}


@pytest.mark.parametrize(
    ("command", "what", "why"),
    [
        (("bash", "-c", "echo broken >&2; exit 3"), "failed with status 3", "broken"),
        (("no-such-program-here",), "failed with status 127", "no-such-program-here not found"),
        (("echo", "nothing"), "gave no results", "none of its lines"),
        (("echo", '{"a": 1}'), "gave no results", "output_throughput is missing"),
    ],
)
async def test_failures(command: tuple[str, ...], what: str, why: str) -> None:
    with pytest.raises(CommandFailed) as told:
        await run(*command)
    assert what in told.value.what
    assert why in told.value.why
    assert told.value.remedy


@pytest.mark.parametrize(
    ("then", "said"),
    [("exit 3", "failed with status 3"), ("sleep 1000", "did not end within 1 s")],
)
async def test_results_before_a_failure_are_kept_and_say_so(then: str, said: str) -> None:
    kept: list[Cell] = []
    with pytest.raises(CommandFailed, match=said):
        await run("bash", "-c", f"echo '{result(100)}'; {then}", seconds=1.0, kept=kept)
    assert values(kept[-1]) == (100.0,)
    assert kept[-1].notes[-1].endswith(f"{said}, after these figures")
    assert all(each.partial for each in kept)


def broken_off(
    *runs: Said, begun: tuple[Cell, ...] = (), seconds: float = 3600.0
) -> tuple[list[Cell], BaseException | None]:
    """What was handed over, in virtual time, and how it ended."""
    kept: list[Cell] = []

    async def work() -> BaseException | None:
        host, clock = ExternalHost(*runs), asyncio.get_running_loop().time
        bench = Bench(DirectPorts(), "127.0.0.1", 1, SGLANG, host=cast(Host, host), clock=clock)
        wanted = BenchPlan(command=("any",), command_seconds=seconds)
        try:
            await bench.run(wanted, begun=begun, on_cell=kept.append)
        except BenchError as error:
            return error
        return None

    return kept, in_virtual_time(work())


def values(cell: Cell) -> tuple[float, ...]:
    assert cell.total_rate
    return cell.total_rate.values


def test_results_before_a_broken_link_are_kept_as_partial() -> None:
    said = [(5.0, line(100)), (5.0, line(104)), (5.0, line(300, 8)), (5.0, b"")]
    kept, error = broken_off(said)
    assert isinstance(error, ConnectionLost)
    last = {cell.concurrency: cell for cell in kept}
    assert values(last[4]) == (100.0, 104.0)
    assert values(last[8]) == (300.0,)
    for cell in last.values():
        assert cell.partial
        assert cell.notes[-1] == (
            "partial: the link broke during the external bench, after these figures"
        )


def test_results_are_handed_over_as_they_come_and_whole_at_the_end() -> None:
    kept, error = broken_off([(5.0, line(100)), (5.0, line(104))])
    assert error is None
    assert [(values(cell), cell.partial) for cell in kept] == [
        ((100.0,), True),
        ((100.0, 104.0), True),
        ((100.0, 104.0), False),
    ]
    assert "had not ended when these figures came" in kept[0].notes[-1]
    assert not any("partial" in note for note in kept[-1].notes)


def test_lines_in_one_go_are_handed_over_together() -> None:
    kept, _ = broken_off([(0.0, line(100 + each)) for each in range(50)])
    assert [len(values(cell)) for cell in kept] == [1, 50]


def test_a_bench_that_is_given_up_keeps_what_came_a_moment_before() -> None:
    kept: list[Cell] = []

    async def work() -> None:
        host = ExternalHost([(5.0, line(100)), (0.0, line(104)), (3600.0, line(1))])
        clock = asyncio.get_running_loop().time
        bench = Bench(DirectPorts(), "127.0.0.1", 1, SGLANG, host=cast(Host, host), clock=clock)
        running = asyncio.create_task(
            bench.run(BenchPlan(command=("any",)), on_cell=kept.append),
        )
        await asyncio.sleep(10.0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    in_virtual_time(work())
    assert [values(cell) for cell in kept] == [(100.0,), (100.0, 104.0)]
    assert all(cell.partial for cell in kept)
    assert "had not ended when these figures came" in kept[-1].notes[-1]


def test_partial_results_make_room_for_whole_ones_and_not_for_fewer() -> None:
    earlier, _ = broken_off([(5.0, line(100)), (5.0, line(104)), (5.0, b"")])
    begun = (earlier[-1], Cell(concurrency=1, requests=1))
    kept, _ = broken_off([(5.0, line(90)), (5.0, line(7, 1)), (5.0, b"")], begun=begun)
    assert kept == []
    kept, _ = broken_off([(5.0, line(90)), (5.0, line(7, 1))], begun=begun)
    assert [(values(cell), cell.partial) for cell in kept] == [((90.0,), False)]


async def test_same_bench_waits_for_an_earlier_one_to_end(tmp_path: Path) -> None:
    """As after a broken link, beyond which the earlier one goes on for a while."""
    log = tmp_path / "log"
    script = f"echo begun >> {log}; sleep 1; echo ended >> {log}; echo '{result(1)}'"
    await asyncio.gather(run("bash", "-c", script), run("bash", "-c", script))
    assert log.read_text().split() == ["begun", "ended"] * 2


async def test_time_is_limited_and_nothing_is_left(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    with pytest.raises(CommandFailed, match="did not end within 1 s"):
        await run("bash", "-c", f"echo $$ > {mark}; sleep 1000 & sleep 1000", seconds=1.0)
    # Leaving the program waits for the end of what it started.
    assert not psutil.pid_exists(int(mark.read_text()))

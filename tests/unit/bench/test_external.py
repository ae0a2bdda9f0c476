"""External benches as real programs of this machine."""

from __future__ import annotations

import json
from pathlib import Path

import psutil
import pytest

from ddtui.bench.bench import Bench
from ddtui.bench.errors import CommandFailed
from ddtui.bench.progress import Progress, Step
from ddtui.core.bench_plan import BenchPlan
from ddtui.core.measurement import Cell
from ddtui.engines.sglang import SGLANG
from ddtui.hosts.local import LocalHost
from ddtui.hosts.ports import DirectPorts

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
    return json.dumps(
        {"max_concurrency": 4, "completed": 9, "output_throughput": rate, "mean_tpot_ms": 10}
    )


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
    (cell,) = kept
    assert cell.total_rate
    assert cell.total_rate.values == (100.0,)
    assert cell.notes[-1].endswith(f"{said}, after these figures")


async def test_time_is_limited_and_nothing_is_left(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    with pytest.raises(CommandFailed, match="did not end within 1 s"):
        await run("bash", "-c", f"echo $$ > {mark}; sleep 1000 & sleep 1000", seconds=1.0)
    # Leaving the program waits for the end of what it started.
    assert not psutil.pid_exists(int(mark.read_text()))

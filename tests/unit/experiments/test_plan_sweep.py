"""A sweep worked out on a host: what blocks, what is the same, what was measured, and the order."""

import asyncio

import msgspec
import pytest

from ddtui.config.grid_text import parse_grid
from ddtui.core.bench_plan import BenchPlan
from ddtui.core.configuration_key import configuration_key
from ddtui.core.engine import Engine
from ddtui.core.experiment import Experiment, InForce
from ddtui.core.launch import Finding, Launch, Level, Limits, Plan, Request, Value
from ddtui.core.measurement import (
    Cell,
    Measurement,
    MeasurementState,
    Provenance,
    Spread,
)
from ddtui.core.sweep import Sweep
from ddtui.engines.sglang import SGLANG
from ddtui.experiments.grid import expand
from ddtui.experiments.matching import Point
from ddtui.experiments.plan_known import (
    circumstances,
    knobs_known,
    knobs_planned,
    rate_of,
    usable_again,
    values_in_force,
)
from ddtui.experiments.plan_sweep import Arranged, arranged, planned, with_baseline
from ddtui.hosts.base import LinkDown

PROGRAM = ("python", "-m", "sglang.launch_server", "--model-path", "/m")
BASE = Launch((*PROGRAM, "--budget", "8"))


async def plan_of(request: Request) -> Plan:
    """A server on which topk does nothing and budget 13 is refused."""
    budget = request.knobs.get("budget", 8)
    argv = (*PROGRAM, "--budget", str(budget))
    findings = (
        Finding(Level.ERROR, "r", "budget 13 brings bad luck", "", "take 12"),
        Finding(Level.WARNING, "w", "beware"),
    )
    return Plan(request, BASE, Launch(argv), (), findings if budget == 13 else findings[1:])


def key_of(budget: int) -> str:
    return configuration_key((*PROGRAM, "--budget", str(budget)), {})


async def worked(text: str, loaded: str = "", measured: dict[str, Measurement] | None = None) -> (
    Arranged
):  # fmt: skip
    sweep: Sweep = parse_grid(text)
    found = await planned(expand(sweep).combinations, plan_of)
    found = with_baseline(sweep, found, key_of(8))
    return arranged(sweep, found, loaded, None if measured is None else measured.get)


def titles(result: Arranged) -> list[str]:
    return [each.combination.title for each in result.runs]


def measurement(key: str = "k", **changes: object) -> Measurement:
    cell = Cell(
        concurrency=1,
        requests=3,
        user_rate=Spread(180, 170, 190),
        acceptance_length=Spread(4.5, 4.4, 4.6),
        step_time=Spread(0.025, 0.024, 0.026),
        positions=(0.9, 0.5),
    )
    plain = Measurement(
        id="m", host="h", simulated=True, unit="u", configuration=key, plan=BenchPlan(),
        state=MeasurementState.COMPLETE, began=1.0, ended=61.0, cells=(cell,),
        knobs={"block size": "16", "budget": "35", "top-k": "4"},
        provenance=Provenance(engine_version="0.5"),
    )  # fmt: skip
    return msgspec.structs.replace(plain, **changes)


async def test_what_is_blocked_takes_out_itself_only() -> None:
    result = await worked("budget=4,13,16")
    assert titles(result) == ["budget 4", "budget 16"]
    (blocked,) = result.blocked
    assert blocked.combination.title == "budget 13"
    assert blocked.blocked == ("budget 13 brings bad luck; take 12",)
    assert result.runs[0].warnings == ("beware",)
    assert result.runs[0].key == key_of(4)


async def test_what_the_server_does_not_tell_apart_is_measured_once() -> None:
    result = await worked("budget=4,16 topk=2,4")
    assert titles(result) == ["budget 4 topk 2", "budget 16 topk 2"]
    assert [(each.combination.title, each.same_as) for each in result.same] == [
        ("budget 4 topk 4", "budget 4 topk 2"),
        ("budget 16 topk 4", "budget 16 topk 2"),
    ]


async def test_what_is_in_force_is_the_baseline_and_runs_first() -> None:
    result = await worked("budget=4,8,16", loaded=key_of(16))
    assert titles(result) == ["budget 16", "budget 8", "budget 4"]
    assert [each.combination.baseline for each in result.runs] == [False, True, False]
    first = await worked("budget=4,16")
    assert [each.combination.baseline for each in first.runs] == [True, False]
    blocked = await worked("budget=13,16")
    assert [each.combination.baseline for each in blocked.runs] == [True]


async def test_the_baseline_again_stays_last() -> None:
    result = await worked("budget=8,4,16 again", loaded=key_of(8))
    assert titles(result) == ["budget 8", "budget 4", "budget 16", "budget 8"]
    assert [each.again for each in result.runs] == [False, False, False, True]
    assert titles(await worked("budget=8 again")) == ["budget 8"]


async def test_what_was_measured_already_is_offered() -> None:
    earlier = measurement(key_of(4))
    result = await worked("budget=4,8,16", measured={key_of(4): earlier})
    by_title = {each.combination.title: each.measured for each in result.runs}
    assert by_title == {"budget 4": earlier, "budget 8": None, "budget 16": None}


async def test_without_a_host_all_is_kept_as_it_is() -> None:
    told: list[int] = []
    sweep = parse_grid("budget=4,13 window=12 block_size=8,16 match")
    found = await planned(expand(sweep).combinations, None, told.append)
    result = arranged(sweep, found, "")
    assert told == [1, 2, 3, 4]
    assert titles(result) == ["block_size 8 budget 4 window 12", "block_size 8 budget 13 window 12"]
    assert len(result.blocked) == 2


async def test_a_host_that_fails_ends_all_with_its_own_error() -> None:
    begun: list[Request] = []

    async def fails(request: Request) -> Plan:
        begun.append(request)
        await asyncio.sleep(0)
        raise LinkDown("the link is down")

    with pytest.raises(LinkDown, match="the link is down"):
        await planned(expand(parse_grid("budget=1,2,3,4,5,6,7,8,9")).combinations, fails)
    assert len(begun) < 9
    assert len(asyncio.all_tasks()) == 1


def test_values_in_force_by_setting() -> None:
    engine: Engine = SGLANG
    argv = (
        *PROGRAM, "--speculative-algorithm", "DDTREE", "--speculative-ddtree-budget", "16",
        "--speculative-dflash-block-size", "8", "--enable-metrics",
    )  # fmt: skip
    found = values_in_force(Launch(argv, {"SGLANG_DDTREE_MAX_TOPK": "6"}), engine)
    assert (found["budget"], found["block_size"], found["topk"]) == (16, 8, 6)
    assert found["flag:enable-metrics"] is True
    assert found["env:SGLANG_DDTREE_MAX_TOPK"] == "6"


def test_what_matching_is_told() -> None:
    found = circumstances({"max_running": 16}, [measurement(), measurement("other")], "k")
    assert (found.max_running, found.acceptance, found.positions) == (16, 4.5, (0.9, 0.5))
    assert found.points == (Point(block_size=16, budget=35, acceptance=4.5, step_seconds=0.025),)
    assert rate_of([measurement()], None) == 180
    assert rate_of([], None) is None


def test_only_an_undisturbed_measurement_of_this_version_is_used_again() -> None:
    fine = measurement()
    disturbed = measurement(disturbed=("others",))
    older = measurement(provenance=Provenance(engine_version="0.4"))
    assert usable_again([disturbed, older, fine], "0.5") is fine
    assert usable_again([disturbed, older], "0.5") is None


async def test_no_matched_one_is_the_baseline() -> None:
    sweep = parse_grid("block_size=16 budget=8,16 match")
    found = await planned(expand(sweep, base={"block_size": 8}).combinations, None)
    assert not any(each.combination.baseline for each in with_baseline(sweep, found, "k"))
    sweep = parse_grid("block_size=8,16 budget=8,16 match")
    found = await planned(expand(sweep, base={"block_size": 8}).combinations, None)
    first, *others = with_baseline(sweep, found, "k")
    assert first.combination.request.knobs == {"block_size": 8, "budget": 8}
    assert first.combination.baseline
    assert not any(each.combination.baseline for each in others)


def test_knobs_of_a_plan_have_what_the_server_chooses_itself() -> None:
    before: dict[str, Value] = {"block_size": 8, "budget": 8, "draft_tokens": 8, "flag:x": "1"}
    after = Launch((*PROGRAM, "--max-running-requests", "16"))
    kept = knobs_planned(after, SGLANG, Request(), before)
    assert kept == {"block_size": 8, "budget": 8, "draft_tokens": 8, "max_running": 16}
    asked = Request(knobs={"block_size": 16, "budget": None})
    assert knobs_planned(after, SGLANG, asked, before) == {"block_size": 8, "max_running": 16}


def test_what_is_known_of_an_experiment_without_its_host() -> None:
    asked = Request(knobs={"budget": 12, "window": None})
    one = Experiment(id="e", host="h", title="t", request=asked, knobs={"topk": 6})
    in_force = InForce(knobs={"block_size": 8, "topk": 4, "window": 2048})
    assert knobs_known(one, in_force, None) == {"block_size": 8, "topk": 6, "budget": 12}
    seen = measurement(knobs={"block size": "16", "top-k": "5", "algorithm": "DDTREE"})
    told = {"block_size": 16, "topk": 5, "algorithm": "DDTREE"}
    assert knobs_known(one, in_force, seen) == told


def test_matching_is_told_what_the_host_bears() -> None:
    limits = Limits(trained_block=8, max_running=32, graph_widths=(9, 17))
    found = circumstances({"window": 2048}, [], "", limits)
    assert (found.trained_block, found.max_running, found.graph_widths) == (8, 32, (9, 17))
    assert found.window == 2048
    assert circumstances({"max_running": 16}, [], "", limits).max_running == 16

"""Starts of the simulated engine: order, formats, memory, failures; and the unit around it."""

from __future__ import annotations

import asyncio
import random
import re
from pathlib import Path

import pytest

from ddtui.core.events import Phase, PhaseBegan
from ddtui.core.samples import JournalLine
from ddtui.demo.config import ArgumentsRefused, parse
from ddtui.demo.failures import FAILURES
from ddtui.demo.machine import UNIT_FILE, Machine
from ddtui.demo.scenarios import SCENARIOS
from ddtui.demo.speed_model import SpeedModel
from ddtui.demo.startup import FULL_LOAD_SECONDS, GIB, StartPlan
from ddtui.engines.sglang import SGLang
from tests.unit.demo.conftest import FAST

FIXTURES = Path(__file__).parents[2] / "fixtures" / "sglang"
FLAGS = ("--model-path", "/m", "--tp-size", "8")
DDTREE = (
    *(*FLAGS, "--speculative-algorithm", "DDTREE", "--speculative-draft-model-path", "/d"),
    *("--speculative-ddtree-budget", "8"),
)


def plan_of(flags: tuple[str, ...] = DDTREE, failure: str | None = None) -> StartPlan:
    return StartPlan(parse(flags), speed=10.0, rng=random.Random(3), failure=failure)


def texts(machine: Machine) -> list[str]:
    return [entry.message() for entry in machine.journal.entries()]


async def wait_for(machine: Machine, fragment: str) -> None:
    async with asyncio.timeout(20):
        async for entries in machine.journal.follow(0):
            if any(fragment in entry.message() for entry in entries):
                return


def test_the_engine_adapter_sees_the_phases_in_order() -> None:
    reader, phases = SGLang().log_reader(), []
    for number, step in enumerate(plan_of().steps()):
        rank = f" {step.role}" if step.role.startswith("TP") else ""
        text = f"[2026-11-29 17:48:00{rank}] {step.text}" if step.stamped else step.text.strip()
        for event in reader.read(JournalLine(stamp=float(number), text=text)):
            if isinstance(event, PhaseBegan) and event.phase not in phases:
                phases.append(event.phase)
    assert [phase for phase in phases if phase is not Phase.READY] == [
        phase for phase in Phase if phase in phases and phase is not Phase.READY
    ]
    assert set(phases) >= {Phase.TARGET, Phase.DRAFTER, Phase.KV_CACHE, Phase.GRAPHS}


def shape(line: str) -> str:
    """A log line with its figures, names and stamps taken out."""
    line = re.sub(r"^\[[^\]]*\] ", "", line.strip())
    line = re.sub(r"(type|attention_backend|model|mask_token)=[^,\s]+", r"\1=…", line)
    line = line.replace("cpu graph", "cuda graph").replace("available_cpu_mem", "available_gpu_mem")
    line = re.sub(r"quant=[^,]+, |None|True|False", "", line)
    return re.sub(r"-?\d+(\.\d+)?", "#", line)


@pytest.mark.parametrize(
    "beginning",
    [
        "Init parallel begin.",
        "Init parallel ends.",
        "Memory baseline taken.",
        "Load weight begin.",
        "Load weight end.",
        "Initialized DFLASH draft runner.",
        "DFLASH draft runner ready.",
        "Memory pool end.",
        "max_total_num_tokens=",
        "Engine startup timings (s):",
        "INFO:     Started server process",
        "INFO:     Application startup complete.",
        "INFO:     Uvicorn running on",
        "Prefill batch,",
        "The server is fired up and ready to roll!",
    ],
)
def test_lines_have_the_shape_of_a_real_engines(beginning: str) -> None:
    real = (FIXTURES / "sglang-fresh-dflash.log").read_text(errors="replace").splitlines()
    real_shapes = {shape(line) for line in real if f"] {beginning}" in line}
    printed = [step.text.replace("{pid}", "7") for step in plan_of().steps()]
    ours = {shape(text) for text in printed if text.startswith(beginning)}
    assert ours
    assert {line.replace("<|MASK|>", "") for line in ours} <= real_shapes


async def test_decode_lines_have_the_shape_of_a_real_engines() -> None:
    machine = Machine(scenario="serving", speed=FAST)
    machine.start()
    await wait_for(machine, "Decode batch")
    await machine.close()
    real = (FIXTURES / "sglang-fresh-dflash.log").read_text(errors="replace").splitlines()
    real_shapes = {shape(line) for line in real if "] Decode batch" in line}
    ours = {shape(text) for text in texts(machine) if "Decode batch" in text}
    assert ours == real_shapes


def test_memory_and_reads_grow_to_the_whole_checkpoint() -> None:
    plan = plan_of()
    moments = [plan.ready_at * step / 50 for step in range(51)]
    for rank in range(8):
        held = [plan.memory(moment, rank) for moment in moments]
        assert held == sorted(held)
        assert 80 * GIB < held[-1] < 95 * GIB
    read = [plan.read_bytes(moment) for moment in moments]
    assert read == sorted(read)
    assert 548e9 < read[-1] < 560e9


def test_a_load_is_short_unless_it_is_what_one_looks_at() -> None:
    def seconds(scenario: str) -> float:
        return FULL_LOAD_SECONDS / Machine(scenario=scenario).speed

    assert 8 < seconds("serving") == seconds("idle") < 12
    assert 20 < seconds("loading") == seconds("hang") == seconds("failing") < 30


@pytest.mark.parametrize("name", [name for name in FAILURES if name != "hang"])
def test_a_failing_start_ends_with_its_message(name: str) -> None:
    plan = plan_of(failure=name)
    printed = "".join(step.text + "\n" for step in plan.steps())
    assert (FAILURES[name].message or "[Errno 98]") in printed
    assert "fired up" not in printed
    assert plan.steps() == sorted(plan.steps(), key=lambda step: step.at)


def test_budgets_have_the_known_figures() -> None:
    for budget, rate, length in ((8, 170, 4.3), (12, 149, 4.81), (16, 147.5, 5.04)):
        config = parse([*DDTREE[:-1], str(budget)])
        model = SpeedModel(config, random.Random(1))
        assert model.acceptance_length == pytest.approx(length, rel=0.02)
        measured = sum(model.accepted() + 1 for _ in range(20_000)) / 20_000
        assert measured == pytest.approx(length, rel=0.03)
        assert measured / model.step_seconds(1) == pytest.approx(rate, rel=0.05)


@pytest.mark.parametrize("budget", [1, 2, 4, 8, 64])
@pytest.mark.parametrize("block", [4, 8, 16])
def test_no_pass_accepts_more_than_its_nodes_or_its_block(budget: int, block: int) -> None:
    sizes = ("--speculative-dflash-block-size", str(block))
    model = SpeedModel(parse([*DDTREE[:-1], str(budget), *sizes]), random.Random(1))
    most = min(budget, block - 1)
    counts = [0] * (most + 1)
    for _ in range(20_000):
        counts[model.accepted(1.1)] += 1  # an easy request; beyond the last place it would raise
    assert 1.0 <= model.acceptance_length <= most + 1
    usual = sum(model.accepted() + 1 for _ in range(20_000)) / 20_000
    assert usual == pytest.approx(model.acceptance_length, rel=0.03)
    assert model.horizon == most


@pytest.mark.parametrize(
    ("flags", "status", "words"),
    [
        (("--speculative-bogus", "3"), 2, "unrecognized arguments: --speculative-bogus 3"),
        (("--port", "abc"), 2, "argument --port: invalid int value: 'abc'"),
        (("--speculative-algorithm", "NONSENSE"), 1, "Unknown speculative algorithm name"),
        (("--speculative-algorithm", "DFLASH"), 1, "requires setting --speculative-draft-model"),
        ((*DDTREE[4:], "--speculative-draft-window-size", "4"), 1, "window-size must be >="),
        (
            (
                *DDTREE[4:],
                *("--speculative-dflash-block-size", "16", "--speculative-num-draft-tokens", "8"),
            ),
            1,
            "but they differ",
        ),
    ],
)
def test_bad_arguments_are_refused_as_the_real_engine_does(
    flags: tuple[str, ...], status: int, words: str
) -> None:
    with pytest.raises(ArgumentsRefused, match=re.escape(words)) as refused:
        parse([*FLAGS, *flags])
    assert refused.value.status == status


def test_the_units_own_command_line_is_accepted() -> None:
    command = UNIT_FILE.split("ExecStart=")[1].split("\nRestart")[0].replace("\\\n", " ").split()
    config = parse(command, {"SGLANG_DDTREE_MAX_TOPK": "6"})
    assert (config.tp, config.port, config.budget, config.block_size) == (8, 30000, 8, 8)
    assert (config.topk, config.window) == (6, 2048)


async def test_the_loading_scenario_passes_through_all_states() -> None:
    machine = Machine(scenario="loading", speed=FAST)
    machine.start()
    await wait_for(machine, "fired up and ready to roll!")
    joined = "\n".join(texts(machine))
    order = (
        *("Started llm-sglang", "server_args=", "Init parallel begin", "Load weight begin"),
        *("64/64", "Initialized DDTree worker", "KV Cache is allocated"),
        *("Capture target verify", "max_total_num_tokens=", "Uvicorn running", "fired up"),
    )
    positions = [joined.index(words) for words in order]
    assert positions == sorted(positions)
    assert machine.engine_on(30000) is machine.unit.engine
    await machine.close()


async def test_the_failing_scenario_leaves_a_failed_unit() -> None:
    machine = Machine(scenario="failing", speed=FAST)
    machine.start()
    await wait_for(machine, "Failed with result 'signal'.")
    joined = "\n".join(texts(machine))
    assert "Unsupported architecture" in joined
    assert "code=killed, status=9/KILL" in joined
    assert (machine.unit.active_state, machine.unit.result) == ("failed", "signal")
    assert machine.unit.show(["ExecMainStatus", "ControlGroup", "MainPID"]).splitlines() == [
        "ExecMainStatus=9",
        "ControlGroup=",
        "MainPID=0",
    ]
    await machine.close()


async def test_the_crash_loop_is_restarted_by_the_manager() -> None:
    machine = Machine(scenario="crash-loop", speed=FAST)
    machine.start()
    await wait_for(machine, "restart counter is at 1.")
    assert machine.unit.restarts == 1
    assert "Main process exited, code=exited, status=1/FAILURE" in "\n".join(texts(machine))
    await machine.close()


async def test_restart_with_other_flags_goes_through_a_drop_in() -> None:
    machine = Machine(scenario="idle", speed=FAST)
    machine.start()
    unit = machine.unit
    await wait_for(machine, "ready to roll!")
    async with asyncio.timeout(10):
        flags = " ".join(unit.command[3:]).replace("budget 8", "budget 12").split()
        before = unit.invocation
        await unit.restart(flags)
        held = machine.world.memory_of(0, machine.clock(), unit.engine)
        assert held > 80 * GIB, "the old run's memory is given back late"
        await wait_for(machine, "tree_budget=12")
    engine = unit.engine
    assert engine is not None
    assert engine.config.budget == 12
    assert unit.invocation is not before
    assert unit.drop_ins == ("/etc/systemd/system/llm-sglang.service.d/50-ddtui.conf",)
    assert "Deactivated successfully." in "\n".join(texts(machine))
    await machine.close()


def test_a_machine_of_no_known_scenario_is_refused() -> None:
    with pytest.raises(ValueError, match="serving, idle"):
        Machine(scenario="none")
    assert set(SCENARIOS) == {"serving", "idle", "loading", "failing", "crash-loop", "hang"}

"""The load generator against an engine that streams by a known schedule, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest

from ddtui.bench.bench import Bench
from ddtui.bench.errors import BenchError, ConnectionLost, NothingSucceeded, ServerRefused
from ddtui.bench.progress import Progress, Step
from ddtui.core.bench_plan import BenchPlan
from ddtui.core.generation import Prompt
from ddtui.core.measurement import Cell
from ddtui.engines.sglang import SGLANG
from ddtui.hosts.base import Port, Receiver
from tests.support.stub_engine import MODEL, PORT, MemoryConnector, Schedule, StubEngine
from tests.support.virtual_time import in_virtual_time

Endpoint = Literal["chat", "generate"]


def measure(
    engine: StubEngine,
    plan: BenchPlan,
    *,
    away: float = 0.0,
    connector: MemoryConnector | None = None,
    **options: Any,
) -> tuple[Cell, ...]:
    reached = connector or MemoryConnector(engine, away)

    async def work() -> tuple[Cell, ...]:
        clock = asyncio.get_running_loop().time
        bench = Bench(reached, "127.0.0.1", PORT, SGLANG, clock=clock)
        return await bench.run(plan, **options)

    cells = in_virtual_time(work())
    assert reached.open == 0, "a connection is left open"
    return cells


def plan(**changes: Any) -> BenchPlan:
    plain = BenchPlan(concurrency=(1,), requests=4, output_tokens=101, repeats=3)
    return msgspec.structs.replace(plain, **changes)


def near(value: float, share: float = 0.01) -> Any:
    return pytest.approx(value, rel=share)


@pytest.mark.parametrize("endpoint", ["chat", "generate"])
@pytest.mark.parametrize("concurrency", [1, 7, 64, 256])
def test_figures_are_within_one_percent_of_the_truth(endpoint: Endpoint, concurrency: int) -> None:
    many = concurrency > 50
    schedule = Schedule(tokens=41 if many else 101)
    engine = StubEngine(lambda _: schedule)
    requests = concurrency if many else 2 * concurrency
    (cell,) = measure(
        engine,
        plan(endpoint=endpoint, concurrency=(concurrency,), requests=requests, repeats=2),
        budget=15,
    )
    assert cell.requests == 2 * requests
    assert cell.failed == cell.stalled == 0
    assert cell.output_tokens == 2 * requests * schedule.tokens
    assert cell.ttft
    assert cell.tpot
    assert cell.user_rate
    assert cell.total_rate
    assert cell.acceptance_length
    assert cell.ttft.median == near(schedule.ttft)
    assert cell.tpot.median == near(schedule.tpot)
    assert cell.user_rate.median == near(1 / schedule.tpot)
    assert cell.total_rate.median == near(concurrency * schedule.tokens / schedule.duration)
    assert cell.acceptance_length.median == near(schedule.acceptance)
    assert cell.acceptance_macro == near(schedule.acceptance)
    assert cell.node_use == near((schedule.acceptance - 1) / 15)
    histogram = schedule.histogram
    expected = [sum(histogram[at:]) / sum(histogram) for at in range(1, len(histogram))]
    assert cell.positions == pytest.approx(expected)
    assert (cell.step_time is None) == (concurrency > 1)
    if cell.step_time:
        assert cell.step_time.median == near(schedule.gap)
    assert engine.most_running == concurrency
    assert cell.steady
    assert cell.notes == ()


def test_itl_is_of_tokens_and_not_of_events() -> None:
    schedule = Schedule(steps=(4,), tokens=401)
    (cell,) = measure(StubEngine(lambda _: schedule), plan(output_tokens=401))
    assert cell.itl
    assert cell.itl_p99
    assert cell.itl.median == near(schedule.gap / 4)
    assert cell.itl_p99.median == near(schedule.gap / 4)


def test_first_event_with_several_tokens_is_left_out_of_the_time_between() -> None:
    schedule = Schedule(first=6, steps=(2,), tokens=26)
    (cell,) = measure(StubEngine(lambda _: schedule), plan())
    assert cell.tpot
    assert cell.tpot.median == near(schedule.gap / 2)


def test_server_that_counts_only_at_the_end_gives_all_but_itl() -> None:
    schedule = Schedule()
    engine = StubEngine(lambda _: schedule, counts_on_the_way=False)
    (cell,) = measure(engine, plan())
    assert cell.tpot
    assert cell.tpot.median == near(schedule.tpot)
    assert cell.itl is None
    assert cell.output_tokens == 12 * schedule.tokens
    assert any("ITL is not known" in note for note in cell.notes)


def test_reasoning_counts_for_the_first_token_and_visible_output_comes_later() -> None:
    schedule = Schedule(reasoning=61)
    (cell,) = measure(StubEngine(lambda _: schedule), plan())
    visible = next(at for at, _, count in schedule.events() if count > 61)
    assert cell.ttft
    assert cell.ttfo
    assert cell.ttft.median == near(schedule.ttft)
    assert cell.ttfo.median == near(visible)


def test_thinking_model_and_greedy_settings_are_asked_for() -> None:
    engine = StubEngine()
    measure(engine, plan(thinking=False, output_tokens=77))
    asked = engine.requests[0]
    assert asked["model"] == MODEL
    assert asked["max_tokens"] == 77
    assert asked["temperature"] == 0
    assert asked["chat_template_kwargs"] == {"thinking": False, "enable_thinking": False}
    assert asked["stream_options"] == {"include_usage": True, "continuous_usage_stats": True}


@pytest.mark.parametrize("away", [0.0, 0.15])
def test_engine_s_own_figures_do_not_move_with_the_distance(away: float) -> None:
    schedule = Schedule(ttft=0.3)
    (cell,) = measure(StubEngine(lambda _: schedule), plan(), away=away)
    assert cell.link_rtt == pytest.approx(2 * away, abs=1e-6)
    assert cell.ttft
    assert cell.ttft.median == pytest.approx(schedule.ttft + 2 * away, rel=0.01)
    assert cell.server_ttft == near(schedule.ttft)
    assert cell.server_acceptance == near(100 / sum(schedule.histogram))
    # On the way of a request and of its answer the engine has nothing to do.
    assert cell.server_rate == near(schedule.tokens / (schedule.duration + 2 * away), 0.06)
    assert cell.tpot
    assert cell.tpot.median == near(schedule.tpot)


def test_connection_that_is_slow_to_open_is_no_part_of_the_first_token_s_time() -> None:
    class Slow(MemoryConnector):
        async def open_port(self, address: str, port: int, receiver: Receiver) -> Port:
            await asyncio.sleep(0.5)
            return await super().open_port(address, port, receiver)

    engine, schedule = StubEngine(), Schedule()
    wanted = plan(concurrency=(4,), repeats=1, warmup_batches=0)
    (cell,) = measure(engine, wanted, connector=Slow(engine))
    assert cell.ttft
    assert cell.ttft.median == near(schedule.ttft)


def test_answer_that_is_compressed_unasked_is_told() -> None:
    class Compressing(StubEngine):
        async def _stream(
            self, path: str, number: int, plan: Schedule, fault: str, send: Callable[[bytes], None]
        ) -> None:
            send(b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 3\r\n\r\nxyz")

    with pytest.raises(NothingSucceeded) as told:
        measure(Compressing(), plan())
    assert told.value.why == "the answer is compressed (gzip), unasked"


def test_engine_s_rate_at_concurrency_is_the_client_s() -> None:
    (cell,) = measure(StubEngine(), plan(concurrency=(32,), requests=128))
    assert cell.total_rate
    assert cell.server_rate == near(cell.total_rate.median, 0.02)


def test_warm_up_goes_on_until_two_batches_agree() -> None:
    def slower_at_first(number: int) -> Schedule:
        return Schedule(gap=0.02 if number >= 12 else 0.1 - number // 4 * 0.03)

    (cell,) = measure(StubEngine(slower_at_first), plan())
    assert cell.warmup_batches == 5
    assert cell.steady
    assert cell.tpot
    assert cell.tpot.median == near(Schedule().tpot)


def test_unsteady_warm_up_is_told() -> None:
    engine = StubEngine(lambda number: Schedule(gap=0.02 * (1 + number // 4 % 2)))
    (cell,) = measure(engine, plan(warmup_batches=3))
    assert not cell.steady
    assert any("no two in a row agreed" in note for note in cell.notes)
    assert cell.total_rate
    assert cell.total_rate.low < cell.total_rate.median < cell.total_rate.high


def test_cache_is_emptied_before_each_batch_and_a_failure_is_told() -> None:
    engine = StubEngine()
    measure(engine, plan())
    assert engine.flushed == 2 + 3
    engine = StubEngine()
    (cell,) = measure(engine, plan(flush_cache=False))
    assert engine.flushed == 0
    engine.running = 1  # somebody else's
    (cell,) = measure(engine, plan())
    assert any("could not be emptied (400" in note for note in cell.notes)


def test_stalled_stream_is_ended_told_apart_and_in_no_mean() -> None:
    engine = StubEngine(fault=lambda number: "stall" if number == 10 else "")
    (cell,) = measure(engine, plan(stall_seconds=5.0))
    assert (cell.requests, cell.stalled, cell.failed) == (11, 1, 0)
    assert cell.tpot
    assert cell.tpot.high == near(Schedule().tpot)
    assert any("1 streams stalled, after" in note for note in cell.notes)


@pytest.mark.parametrize(
    ("concurrency", "numbers", "told"),
    [
        (1, {7}, True),
        (1, {15}, True),
        (1, {0, 5}, True),
        (4, {3}, False),
        (4, {15}, False),
        (4, {40}, True),
        (4, {30, 31}, True),
        (16, {20}, False),
        (16, {150}, True),
        (8, set(range(7)), False),
    ],
)
def test_total_rate_beside_a_hang_is_right_or_left_out(
    concurrency: int, numbers: set[int], told: bool
) -> None:
    requests = 16 * concurrency

    def measured(fault: str) -> Cell:
        engine = StubEngine(fault=lambda number: fault if number in numbers else "")
        wanted = plan(
            concurrency=(concurrency,), requests=requests, repeats=1, warmup_batches=0,
            stall_seconds=120.0,
        )  # fmt: skip
        return measure(engine, wanted)[0]

    clean, hung = measured(""), measured("stall")
    assert clean.total_rate
    assert clean.server_rate is not None
    assert (hung.requests, hung.stalled) == (requests - len(numbers), len(numbers))
    assert hung.server_rate is None
    if told:
        assert hung.total_rate
        # All streams of this engine are in step, so that a beginning too many is one of each.
        assert hung.total_rate.median == near(clean.total_rate.median, 0.015)
        assert any("that time is left out of the rates" in note for note in hung.notes)
    else:
        assert hung.total_rate is None
        assert any("rates: those of the batch are left out" in note for note in hung.notes)
    # Alone, a request is not faster for what hangs before and after it.
    assert (hung.user_rate is not None) == (told or concurrency == 1)


def test_warm_up_without_a_rate_does_not_agree() -> None:
    engine = StubEngine(fault=lambda number: "stall" if number in {1, 5} else "")
    (cell,) = measure(engine, plan(concurrency=(4,), requests=4, stall_seconds=5.0))
    assert (cell.warmup_batches, cell.steady) == (4, True)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("cut", "the connection ended in the middle of the answer"),
        ("error", "CUDA out of memory"),
        ("abort", "aborted by the engine"),
        ("refuse", "400: too long for this model"),
    ],
)
def test_failed_request_is_counted_with_its_reason(fault: str, said: str) -> None:
    engine = StubEngine(fault=lambda number: fault if number == 9 else "")
    (cell,) = measure(engine, plan(endpoint="generate"))
    assert (cell.requests, cell.failed) == (11, 1)
    assert cell.errors == {said: 1}
    assert cell.tpot
    assert cell.tpot.median == near(Schedule().tpot)


@pytest.mark.parametrize(
    ("fault", "error", "why"),
    [
        ("refuse", ServerRefused, "too long for this model"),
        ("error", NothingSucceeded, "CUDA out of memory"),
        ("stall", NothingSucceeded, "no data for 5 s"),
    ],
)
def test_nothing_that_can_be_measured(fault: str, error: type[BenchError], why: str) -> None:
    with pytest.raises(error) as told:
        measure(StubEngine(fault=lambda _: fault), plan(stall_seconds=5.0))
    assert why in told.value.why
    assert told.value.remedy


def test_missing_key_is_told_before_anything_is_measured() -> None:
    with pytest.raises(ServerRefused, match="API key"):
        measure(StubEngine(api_key="secret"), plan())


def test_engine_that_goes_away_ends_the_bench_and_whole_cells_stay() -> None:
    engine = StubEngine()
    connector = MemoryConnector(engine)
    kept: list[Cell] = []

    def fail(number: int) -> str:
        if kept:
            connector.down = "connection refused"
            return "cut"
        return ""

    engine.fault = fail
    with pytest.raises(ConnectionLost, match="broke while it was measured"):
        measure(engine, plan(concurrency=(1, 2)), connector=connector, on_cell=kept.append)
    assert [cell.concurrency for cell in kept] == [1]


def test_cells_that_were_measured_are_not_measured_again() -> None:
    whole = Cell(concurrency=2, requests=7)
    engine, new = StubEngine(), list[Cell]()
    cells = measure(engine, plan(concurrency=(1, 2)), begun=(whole,), on_cell=new.append)
    assert cells[1] is whole
    assert [cell.concurrency for cell in new] == [1]
    engine = StubEngine()
    assert measure(engine, plan(concurrency=(2,)), begun=(whole,)) == (whole,)
    assert not engine.requests


def test_requests_of_others_are_told() -> None:
    engine = StubEngine()

    def schedule(number: int) -> Schedule:
        engine.generated += 50 * (number == 10)
        return Schedule()

    engine.schedule = schedule
    (cell,) = measure(engine, plan())
    assert any(note.startswith("disturbed: the engine generated") for note in cell.notes)


def test_what_a_last_pass_decodes_beyond_the_end_is_of_no_others() -> None:
    schedule = Schedule(steps=(5,), tokens=97, beyond=4)
    (cell,) = measure(StubEngine(lambda _: schedule), plan())
    assert cell.notes == ()


def test_progress_shows_the_step_the_requests_and_the_rate() -> None:
    seen: list[Progress] = []
    engine = StubEngine(lambda _: Schedule(tokens=501))
    measure(engine, plan(output_tokens=501), on_progress=seen.append)
    assert seen[0].step is Step.PREPARING
    assert {each.step for each in seen} == {Step.PREPARING, Step.WARMING_UP, Step.MEASURING}
    last = seen[-1]
    assert (last.batch, last.batches, last.done, last.requests) == (3, 3, 4, 4)
    middle = [each for each in seen if each.step is Step.MEASURING and each.done == 2]
    assert middle[-1].rate == near(125, 0.15)
    assert len(middle[-1].series) > 10
    assert [at for at, _ in last.series] == sorted(at for at, _ in last.series)


def cancelled(work: Callable[[Bench], Awaitable[Any]]) -> tuple[StubEngine, MemoryConnector]:
    engine = StubEngine(lambda _: Schedule(tokens=100_000))
    connector = MemoryConnector(engine)

    async def run() -> None:
        bench = Bench(connector, "127.0.0.1", PORT, SGLANG, clock=asyncio.get_running_loop().time)
        task = asyncio.ensure_future(work(bench))
        await asyncio.sleep(3.0)
        assert connector.open >= 4
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert connector.open == 0
        await asyncio.sleep(0.1)

    in_virtual_time(run())
    return engine, connector


def test_cancelling_ends_every_stream() -> None:
    engine, _ = cancelled(lambda bench: bench.run(plan(concurrency=(4,), output_tokens=100_000)))
    assert engine.running == 0


def test_cancelling_questions_ends_every_stream() -> None:
    asked = [Prompt.of("one")] * 9
    engine, _ = cancelled(lambda bench: bench.ask(asked, output_tokens=100_000))
    assert engine.running == 0


def test_questions_are_answered_in_their_order_with_text_and_reasoning() -> None:
    engine = StubEngine(lambda number: Schedule(tokens=10 + number, reasoning=5, steps=(1,)),
                        fault=lambda number: "abort" if number == 2 else "")  # fmt: skip

    async def work() -> None:
        connector = MemoryConnector(engine)
        bench = Bench(connector, "127.0.0.1", PORT, SGLANG, clock=asyncio.get_running_loop().time)
        prompts = [Prompt.of(f"task {number}") for number in range(4)]
        answers = await bench.ask(prompts, output_tokens=64, concurrency=2)
        assert [each.tokens for each in answers if not each.error] == [10, 11, 13]
        assert answers[0].text == " word" * 5
        assert answers[0].reasoning == " word" * 5
        assert answers[0].finish == "length"
        assert (answers[2].finish, answers[2].error) == ("failed", "aborted by the engine")
        assert connector.open == 0

    in_virtual_time(work())


def test_prompts_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match="cannot be read"):
        measure(StubEngine(), plan(prompts=str(tmp_path / "nowhere.jsonl")))

"""How long experiments take: from what was done before, else a guess that says so."""

from ddtui.core.bench_plan import BenchPlan
from ddtui.core.change_record import ChangeRecord, StepRecord
from ddtui.core.load_history import LoadHistory, LoadRecord
from ddtui.core.measurement import Measurement, MeasurementState
from ddtui.experiments.eta import Estimate, bench_estimate, later, load_estimate, queue_eta
from ddtui.experiments.order import Item

MODELS = {"target": "/models/kimi", "drafter": "/models/draft"}
FLAGS = {"tp-size": "8", "speculative-ddtree-budget": "16"}


def load_of(seconds: float, budget: str = "16", model: str = "/models/kimi") -> LoadRecord:
    return LoadRecord(
        model=model,
        drafter="/models/draft",
        tp=8,
        flags={"speculative-ddtree-budget": budget},
        began=seconds,
        invocation=f"{seconds}{budget}",
        seconds=seconds,
    )


def measurement(seconds: float, state: MeasurementState = MeasurementState.COMPLETE) -> Measurement:
    return Measurement(
        id="m", host="h", simulated=True, unit="u", configuration="k", plan=BenchPlan(),
        state=state, began=100.0, ended=100.0 + seconds,
    )  # fmt: skip


def change(ending: str, stopping: float) -> ChangeRecord:
    steps = (("locked", 0), ("stopping", 1), ("releasing", 3), ("starting", stopping),
             ("loading", stopping + 1))  # fmt: skip
    return ChangeRecord(
        id="c", kind="apply", host="h", unit="u", who="w", began=0.0, ended=500.0, ending=ending,
        steps=tuple(StepRecord(name, float(at)) for name, at in steps),
    )  # fmt: skip


def test_a_load_takes_as_long_as_those_of_the_same_model() -> None:
    past = LoadHistory([load_of(400), load_of(420, "8"), load_of(460), load_of(9, model="/other")])
    assert load_estimate(past, FLAGS, MODELS) == Estimate(420, "median of 3 loads of this model")
    changes = [change("in force", 20), change("failed", 300), change("in force", 24)]
    assert load_estimate(past, FLAGS, MODELS, changes) == Estimate(
        442, "median of 3 loads of this model, with 22 s to stop and release"
    )
    assert load_estimate(past, FLAGS, {"target": "/new"}) is None


def test_a_bench_takes_as_long_as_those_of_the_same_plan() -> None:
    earlier = [measurement(60), measurement(70), measurement(5, MeasurementState.PARTIAL)]
    found = Estimate(65, "median of 2 benches by plan default")
    assert bench_estimate(BenchPlan(), earlier, rate=10) == found
    mine = bench_estimate(BenchPlan(name="mine"), earlier)  # however it is called
    assert mine == Estimate(65, "median of 2 benches by plan mine")
    assert bench_estimate(BenchPlan(repeats=9), earlier) is None


def test_a_plan_that_was_never_run_is_guessed_and_says_so() -> None:
    plan = BenchPlan(concurrency=(1, 16), requests=32, output_tokens=100, repeats=3, coding=False)
    assert bench_estimate(plan, [], rate=100) == Estimate(
        5 * 32 * 100 / 100 + 5 * 32 * 100 / 800,
        "guessed: 2 cells x 5 batches at 100 tok/s; plan coding x1,16 was never run",
        guess=True,
    )
    coding = bench_estimate(BenchPlan(), [], rate=100)
    assert coding is not None
    assert "and the coding tasks" in coding.source
    external = bench_estimate(BenchPlan(command=("x",), command_seconds=600), [])
    assert external is not None
    assert (external.seconds, external.guess) == (600, True)
    assert bench_estimate(plan, [], rate=0) is None
    assert bench_estimate(plan, []) is None


def test_a_queue_adds_up_and_shares_loads() -> None:
    items = [
        Item(id="1", key="a"),
        Item(id="2", key="b"),
        Item(id="3", key="c", held=True),
        Item(id="4", key="b"),
        Item(id="5", key="c", loads=False),
    ]
    load, bench = Estimate(400, "loads"), Estimate(60, "benches")
    found = queue_eta(items, "a", lambda _: load, lambda _: bench)
    assert [leg.ends for leg in found.legs] == [60, 520, None, 580, 580]
    assert [leg.loads for leg in found.legs] == [False, True, False, False, False]
    assert (found.reloads, found.seconds, found.guess) == (1, 580, False)
    assert found.sources == ("benches", "loads", "measured already")


def test_what_is_not_known_makes_the_rest_unknown_but_not_what_comes_before() -> None:
    items = [Item(id="1", key="a"), Item(id="2", key="b")]
    bench = Estimate(60, "guessed", guess=True)
    found = queue_eta(items, "a", lambda _: None, lambda _: bench)
    assert [leg.ends for leg in found.legs] == [60, None]
    assert (found.seconds, found.reloads, found.guess) == (None, 1, True)


def test_times_go_by() -> None:
    def bench(_: str) -> Estimate:
        return Estimate(60, "a bench")

    items = [Item(id="a", key="k"), Item(id="b", key="k"), Item(id="c", key="k", held=True)]
    eta = later(queue_eta(items, "k", lambda _: None, bench), 70)
    assert [each.ends for each in eta.legs] == [0, 50, None]
    assert eta.seconds == 50

"""Queues in the store: their order, who gets what, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec
import pytest
from sqlalchemy import update

from ddtui.core.bench_plan import BenchPlan
from ddtui.core.experiment import ENDED, WAITING, Experiment, ExperimentState, Match, Place
from ddtui.core.launch import Request
from ddtui.core.measurement import Cell, Measurement, MeasurementState, Spread
from ddtui.store import Stale, Store, StoreError
from ddtui.store.places import between
from ddtui.store.tables import experiments as table

REQUEST = Request("fast", {"budget": 8, "window": None}, {"api-key": "secret"}, {"A": None})


def experiment(name: str, **fields: object) -> Experiment:
    values: dict = {"id": name, "host": "ct200", "title": name, "request": REQUEST, "created": 1.0}
    return Experiment(**{**values, **fields})


def measurement(name: str, **fields: object) -> Measurement:
    values: dict = {
        "id": name,
        "host": "ct200",
        "simulated": False,
        "unit": "llm.service",
        "configuration": "key",
        "plan": BenchPlan(),
        "state": MeasurementState.COMPLETE,
        "began": 1.0,
    }
    return Measurement(**{**values, **fields})


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store.open(tmp_path / "s.db")
    yield opened
    opened.close()


def ids(store: Store, host: str = "ct200", *, simulated: bool = False) -> str:
    return "".join(each.id for each in store.experiments.queue(host, simulated=simulated))


def claim(store: Store, who: str = "runner") -> Experiment | None:
    return store.experiments.claim("ct200", simulated=False, who=who, at=5.0)


# ---- what is kept -------------------------------------------------------------------------------


def test_an_experiment_comes_back_as_it_was(store: Store) -> None:
    whole = experiment(
        "a",
        plan=BenchPlan(name="p", concurrency=(1, 8), command=("x", "y"), thinking=False),
        match=Match("ratio", "16 x 2 = 32", "budget", 32, "block size 8"),
        cause={"title": "out of memory", "evidence": ["line"], "remedy": "less"},
        baseline=True,
        hypothesis="wider is not better",
        state=ExperimentState.HELD,
    )
    (kept,) = store.experiments.put([whole])
    store.close()
    again = Store.open(Path(store.where))
    assert again.experiments.get("a") == kept == msgspec.structs.replace(whole, position=1.0)
    assert again.experiments.get("b") is None
    again.close()


def test_several_are_added_whole_or_not_at_all(store: Store) -> None:
    store.experiments.put([experiment("a")])
    with pytest.raises(StoreError, match="UNIQUE"):
        store.experiments.put([experiment("b"), experiment("a")])
    with pytest.raises(Stale):
        store.experiments.put([experiment("c")], Place("before", "nowhere"))
    assert ids(store) == "a"
    assert store.experiments.put([]) == []


def test_an_unreadable_experiment_costs_only_itself(store: Store) -> None:
    store.experiments.put([experiment(name) for name in "abc"])
    with store._engine.begin() as connection:
        connection.execute(update(table).where(table.c.id == "a").values(record={"id": 5}))
    assert ids(store) == "bc"
    assert store.experiments.get("a") is None
    with pytest.raises(Stale, match="cannot be read"):
        store.experiments.change("a", WAITING, note="x")
    taken = claim(store)
    assert taken is not None
    assert taken.id == "b"
    store.experiments.put([experiment("d")], Place("after", "a"))
    assert ids(store) == "bdc"


def test_what_cannot_be_read_is_nothing_to_wait_for(store: Store) -> None:
    """A runner that waited for it would never end."""

    def any_pending(host: str = "ct200") -> bool:
        return store.experiments.has_any(host, (ExperimentState.PENDING,), simulated=False)

    assert not any_pending()
    store.experiments.put([experiment("a"), experiment("b", state=ExperimentState.HELD)])
    assert any_pending()
    assert not any_pending("other")
    with store._engine.begin() as connection:
        connection.execute(update(table).where(table.c.id == "a").values(record={"id": 5}))
    assert not any_pending()
    assert claim(store) is None
    store.experiments.put([experiment("c")])
    assert any_pending()


def test_hosts_and_simulated_ones_never_mix(store: Store) -> None:
    kept = store.experiments
    kept.put([experiment("a")])
    kept.put([experiment("b", simulated=True)])
    kept.put([experiment("c", host="other", sweep="s")])
    assert (ids(store), ids(store, simulated=True), ids(store, "other")) == ("a", "b", "c")
    assert kept.claim("other", simulated=True, who="r", at=1.0) is None
    with pytest.raises(Stale):
        kept.move("a", Place("before", "b"))
    kept.change_settings("ct200", simulated=True, paused=True)
    assert not kept.settings("ct200", simulated=False).paused
    assert kept.beginning("c", "ct200", simulated=False) == []
    assert kept.clear("other", simulated=True, who="w", at=1.0, only=None) == []
    assert claim(store) is not None


# ---- the order ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("moved", "place", "expected"),
    [
        ("c", Place("first"), "cabd"),
        ("a", Place("last"), "bcda"),
        ("d", Place("before", "b"), "adbc"),
        ("a", Place("after", "c"), "bcad"),
        ("b", Place("before", "b"), "abcd"),
        ("b", Place("after", "a"), "abcd"),
    ],
)
def test_moves(store: Store, moved: str, place: Place, expected: str) -> None:
    store.experiments.put([experiment(name) for name in "abcd"])
    store.experiments.move(moved, place)
    assert ids(store) == expected


def test_new_ones_are_put_anywhere_in_their_order(store: Store) -> None:
    store.experiments.put([experiment(name) for name in "ab"])
    store.experiments.put([experiment(name) for name in "cd"], Place("first"))
    store.experiments.put([experiment(name) for name in "ef"], Place("after", "a"))
    assert ids(store) == "cdaefb"


def test_places_never_run_out(store: Store) -> None:
    """Halving a gap ends after 50 times or so: then all are numbered anew."""
    store.experiments.put([experiment(name) for name in "abcd"])
    for _ in range(120):
        store.experiments.move("c", Place("after", "a"))
        store.experiments.move("d", Place("after", "a"))
    assert ids(store) == "adcb"
    places = [each.position for each in store.experiments.queue("ct200", simulated=False)]
    assert places == sorted(set(places))


def test_no_room_between_neighbours_is_told() -> None:
    assert between(None, None, 2) == [1.0, 2.0]
    assert between(1.0, None, 1) == [2.0]
    assert between(None, 1.0, 1) == [0.0]
    assert between(1.0, 2.0, 1) == [1.5]
    assert between(1.0, 1.0 + 2**-52, 1) is None
    assert between(1e300, None, 1) is None


def test_what_runs_comes_first_and_what_ended_last(store: Store) -> None:
    store.experiments.put([experiment(name) for name in "abcd"])
    first, second = claim(store), claim(store)
    assert first is not None
    assert second is not None
    store.experiments.move("d", Place("first"))
    done = msgspec.structs.replace(first, state=ExperimentState.DONE)
    store.experiments.end(done, who="runner", at=9.0)
    assert ids(store) == "bdca"


def test_what_ended_is_in_the_order_of_its_ends_whatever_the_clocks_say(store: Store) -> None:
    store.experiments.put([experiment(name) for name in "abc"])
    queue = store.experiments
    for name, at in (("a", 9.0), ("b", 5.0)):
        claim(store)
        done = msgspec.structs.replace(experiment(name), state=ExperimentState.DONE)
        queue.end(done, who="runner", at=at)
    queue.change("c", {ExperimentState.PENDING}, state=ExperimentState.CANCELLED, ended=1.0)
    assert ids(store) == "abc"
    numbers = [each.ended_as for each in queue.queue("ct200", simulated=False)]
    assert numbers == sorted(set(numbers))
    assert numbers[0] > 0

    def cleared() -> list[int]:
        found = queue.queue("ct200", simulated=False, cleared=True)
        return [each.ended_as for each in found]

    queue.clear("ct200", simulated=False, who="", at=0.0, only=None)
    assert cleared() == numbers
    queue.change("a", {ExperimentState.DONE}, state=ExperimentState.PENDING, ended=None)
    assert cleared() == [0, *numbers[1:]]


# ---- states -------------------------------------------------------------------------------------


def test_a_change_of_what_is_no_longer_so_is_refused_and_says_what_it_is(store: Store) -> None:
    store.experiments.put([experiment("a")])
    assert claim(store) is not None
    before = store.experiments.version("ct200", simulated=False)
    with pytest.raises(Stale, match="is running") as caught:
        store.experiments.change("a", WAITING, title="new")
    assert caught.value.now == store.experiments.get("a")
    with pytest.raises(Stale, match="is not there"):
        store.experiments.change("zz", WAITING, title="new")

    def fails(now: Experiment) -> Experiment:
        raise ZeroDivisionError(now.id)

    with pytest.raises(ZeroDivisionError):
        store.experiments.revise("a", ExperimentState, fails)
    assert store.experiments.version("ct200", simulated=False) == before


def test_the_version_grows_with_every_change(store: Store) -> None:
    kept, seen = store.experiments, [0]

    def grown() -> bool:
        seen.append(kept.version("ct200", simulated=False))
        return seen[-1] > seen[-2]

    assert kept.version("ct200", simulated=False) == 0
    kept.put([experiment("a")])
    assert grown()
    kept.change("a", WAITING, note="n")
    assert grown()
    kept.change_settings("ct200", simulated=False, leave="best")
    assert grown()
    store.measurements.put(measurement("m"))
    assert grown()
    assert claim(store) is not None
    assert grown()
    assert claim(store) is None
    assert not grown()


def test_the_next_pending_one_is_taken_up(store: Store) -> None:
    store.experiments.put([experiment("h", state=ExperimentState.HELD), experiment("a")])
    taken = claim(store)
    assert taken is not None
    assert (taken.id, taken.state, taken.attempts) == ("a", ExperimentState.RUNNING, 1)
    assert (taken.runner, taken.began) == ("runner", 5.0)
    assert claim(store) is None
    assert [each.id for each in store.experiments.running("ct200", simulated=False)] == ["a"]
    store.experiments.give_back("a", who="runner", at=6.0)
    again = claim(store)
    assert again is not None
    assert again.attempts == 2


def test_what_is_given_back_is_next_whatever_was_added_meanwhile(store: Store) -> None:
    """It may be loaded, and measured in part: another one before it would undo both."""
    kept = store.experiments
    kept.put([experiment("a"), experiment("b")])
    first = claim(store)
    assert first is not None
    kept.end(msgspec.structs.replace(first, state=ExperimentState.DONE), who="runner", at=6.0)
    assert claim(store) is not None
    kept.put([experiment("c")])
    kept.put([experiment("d")], Place("first"))
    kept.give_back("b", who="runner", at=7.0)
    order = [each.id for each in kept.queue("ct200", simulated=False)]
    assert order == ["b", "d", "c", "a"]
    again = claim(store)
    assert again is not None
    assert again.id == "b"


def test_a_paused_queue_gives_nothing(store: Store) -> None:
    store.experiments.put([experiment("a")])
    store.experiments.change_settings("ct200", simulated=False, paused=True)
    assert claim(store) is None
    store.experiments.change_settings("ct200", simulated=False, paused=False)
    assert claim(store) is not None


def test_settings_are_kept_one_by_one(store: Store) -> None:
    store.experiments.change_settings("ct200", simulated=False, leave="best")
    store.experiments.change_settings("ct200", simulated=False, baseline={"measurement": "m"})
    kept = store.experiments.settings("ct200", simulated=False)
    assert (kept.leave, kept.paused, kept.baseline) == ("best", False, {"measurement": "m"})


def test_who_lost_an_experiment_can_write_nothing_of_it(store: Store) -> None:
    kept = store.experiments
    kept.put([experiment("a")])
    mine = claim(store, "sleeper")
    assert mine is not None
    kept.step("a", "loading", who="sleeper", at=6.0, configuration="key", measurement="m")
    over = kept.take_over("a", who="next", at=7.0)
    assert (over.step, over.configuration, over.measurement) == ("loading", "key", "m")
    done = msgspec.structs.replace(mine, state=ExperimentState.DONE)
    late: Sequence[Callable[[], object]] = (
        lambda: kept.step("a", "measuring", who="sleeper", at=8.0),
        lambda: kept.end(done, who="sleeper", at=8.0),
        lambda: kept.give_back("a", who="sleeper", at=8.0),
        lambda: store.measurements.finish(done, measurement("m"), who="sleeper", at=8.0),
        lambda: store.measurements.put(measurement("m", experiment="a"), who="sleeper"),
    )
    for call in late:
        with pytest.raises(Stale, match="run by next"):
            call()
    assert store.measurements.get("m") is None
    assert kept.get("a") == over
    store.measurements.put(measurement("m", experiment="a"), who="next")
    assert store.measurements.get("m") is not None


def test_steps_are_logged_and_tell_of_a_wish_to_cancel(store: Store) -> None:
    kept = store.experiments
    kept.put([experiment("a", by="ada@desk")])
    assert claim(store) is not None
    assert not kept.step("a", "planning", who="runner", at=6.0).cancel
    kept.change("a", ExperimentState, cancel=True)
    assert kept.step("a", "loading", who="runner", at=7.0, detail="x" * 9000).cancel
    log = kept.log("a")
    assert [(each.what, each.who, each.at) for each in log] == [
        ("added", "ada@desk", 1.0),
        ("taken up", "runner", 5.0),
        ("planning", "runner", 6.0),
        ("loading", "runner", 7.0),
    ]
    assert len(log[-1].detail) == 2000


def test_what_ends_keeps_what_was_written_meanwhile(store: Store) -> None:
    kept = store.experiments
    kept.put([experiment("a")])
    mine = claim(store)
    assert mine is not None
    kept.change("a", ExperimentState, note="seen at noon", cancel=True)
    failed = msgspec.structs.replace(
        mine, state=ExperimentState.FAILED, cause={"title": "out of memory"}, reloaded=True
    )
    ended = kept.end(failed, who="runner", at=9.0)
    assert ended == kept.get("a")
    assert (ended.note, ended.ended, ended.reloaded) == ("seen at noon", 9.0, True)
    assert (ended.step, ended.cancel) == ("", False)
    assert kept.log("a")[-1].detail == "out of memory"
    with pytest.raises(ValueError, match="does not end running"):
        kept.end(mine, who="runner", at=9.0)


def test_only_ended_ones_are_cleared(store: Store) -> None:
    kept = store.experiments
    kept.put([experiment(name, sweep="s") for name in "abc"])
    mine = claim(store)
    assert mine is not None
    kept.end(msgspec.structs.replace(mine, state=ExperimentState.DONE), who="runner", at=9.0)
    assert [each.id for each in kept.clear("ct200", simulated=False, who="w", at=1.0, only=None)]
    assert ids(store) == "bc"
    everything = kept.queue("ct200", simulated=False, cleared=True)
    assert [(each.id, each.cleared) for each in everything][-1] == ("a", True)


# ---- measurements -------------------------------------------------------------------------------


def test_a_measurement_comes_back_as_it_was_and_then_is(store: Store) -> None:
    cell = Cell(concurrency=1, requests=20, total_rate=Spread(1.0, 0.9, 1.1, (1.0, 1.0)))
    first = measurement("m", state=MeasurementState.RUNNING)
    second = measurement("m", cells=(cell,), ended=9.0)
    for each in (first, second):
        store.measurements.put(each)
        assert store.measurements.get("m") == each
    assert store.measurements.of_host("ct200", simulated=False) == [second]
    assert store.measurements.get("n") is None


def test_an_experiment_and_its_measurement_end_together(store: Store) -> None:
    store.experiments.put([experiment("a")])
    mine = claim(store)
    assert mine is not None
    done = msgspec.structs.replace(mine, state=ExperimentState.DONE)
    ended = store.measurements.finish(done, measurement("m"), who="runner", at=9.0)
    assert (ended.state, ended.measurement) == (ExperimentState.DONE, "m")
    assert store.measurements.get("m") is not None
    with pytest.raises(Stale, match="is done"):
        store.measurements.finish(done, measurement("n"), who="runner", at=9.0)
    assert store.measurements.get("n") is None


def test_measurements_of_a_host(store: Store) -> None:
    kept = store.measurements
    kept.put(measurement("a", began=1.0))
    kept.put(measurement("b", began=2.0, unit="other.service"))
    kept.put(measurement("c", began=3.0, state=MeasurementState.PARTIAL))
    kept.put(measurement("d", simulated=True))
    kept.put(measurement("e", host="other"))

    def found(**which: object) -> str:
        which = {"simulated": False, **which}
        return "".join(each.id for each in kept.of_host("ct200", **which))  # type: ignore[arg-type]

    assert found() == "cba"
    assert found(unit="llm.service") == "ca"
    assert found(since=2.0) == "cb"
    assert found(most=1) == "c"
    assert found(state=MeasurementState.COMPLETE) == "ba"
    assert found(simulated=True) == "d"


def test_what_may_be_used_again(store: Store) -> None:
    kept, plan = store.measurements, BenchPlan(name="usual", temperature=1.0)
    kept.put(measurement("a", plan=plan))
    kept.put(measurement("b", plan=plan, began=2.0))
    kept.put(measurement("c", plan=plan, state=MeasurementState.PARTIAL))
    kept.put(measurement("d", plan=BenchPlan(temperature=0.5)))
    kept.put(measurement("e", plan=plan, configuration="another"))
    kept.put(measurement("f", plan=plan, configuration=""))
    kept.put(measurement("g", plan=plan, simulated=True))

    def found(host: str = "ct200", key: str = "key", **plan: object) -> str:
        same = kept.of_configuration(host, key, BenchPlan(**plan), simulated=False)  # type: ignore[arg-type]
        return "".join(each.id for each in same)

    assert found(temperature=1, name="renamed") == "ba"
    assert found(temperature=1.0, repeats=5) == ""
    assert found("other", temperature=1.0) == ""
    assert found(key="", temperature=1.0) == ""


def test_an_unreadable_measurement_costs_only_itself(store: Store) -> None:
    from ddtui.store.tables import measurements

    for name in "ab":
        store.measurements.put(measurement(name))
    with store._engine.begin() as connection:
        which = update(measurements).where(measurements.c.id == "a")
        connection.execute(which.values(record={"id": 5}))
    assert [each.id for each in store.measurements.of_host("ct200", simulated=False)] == ["b"]
    assert store.measurements.get("a") is None


def test_states_are_either_waiting_running_or_ended() -> None:
    assert set(ExperimentState) == WAITING | ENDED | {ExperimentState.RUNNING}

"""The load tracker on whole loads: what it may say, and what never."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime
from functools import partial

import pytest

from ddtui.core.events import BarMoved, FiredUp, Phase, PhaseBegan, PhaseEnded, PortOpened
from ddtui.core.load_history import LoadHistory, LoadRecord
from ddtui.core.load_progress import LoadTracker
from ddtui.core.samples import JournalLine
from ddtui.core.snapshot import PhaseStatus
from ddtui.engines.sglang.log_reader import SGLangLogReader
from tests.support.load_cases import CASES, GB, earlier, load, phase, target_bounds
from tests.support.load_replay import TRACES, feed, record_of, recorded, tracker_for, views
from tests.support.synthetic_loads import BEGAN


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("known", [True, False], ids=["history", "no history"])
def test_progress_never_goes_back_and_never_ends_early(case: str, known: bool) -> None:
    records = [earlier(drafter_last=CASES[case].drafter_last)] if known else []
    began, ended = target_bounds(load(case))
    whole, shares, last_index = 0.0, dict.fromkeys(Phase, 0.0), -1
    for moment, view in views(load(case), records):
        assert not view.finished
        assert view.fraction is None or whole <= view.fraction < 1.0
        whole = view.fraction or whole
        running = [each for each in view.phases if each.status is PhaseStatus.RUNNING]
        assert [each.phase for each in running] == [view.current]
        (now,) = running
        if now.fraction is not None:
            assert shares[now.phase] <= now.fraction < 1.0
            assert now.source, "a fraction without its source"
            shares[now.phase] = now.fraction
        if began < moment < ended:
            assert view.current is Phase.TARGET
        index = [each.phase for each in view.phases].index(view.current)
        assert index >= last_index or CASES[case].drafter_last
        last_index = index
    assert shares[Phase.TARGET] > 0.9


@pytest.mark.parametrize("case", CASES)
def test_the_ready_load_is_recorded_and_adds_up(case: str) -> None:
    record = record_of(load(case))
    assert record.seconds == pytest.approx(load(case).seconds, abs=0.1)
    assert sum(each.seconds for each in record.phases) == pytest.approx(record.seconds, abs=0.01)
    began, ended = target_bounds(load(case))
    assert record.phase_seconds(Phase.TARGET) == pytest.approx(ended - began, abs=0.5)
    scenario = CASES[case]
    if scenario.gpu_memory:
        taken = [b - a for a, b in zip(record.memory_before, record.memory_target, strict=True)]
        # The KV cache is not among the weights.
        assert taken == pytest.approx([scenario.size / scenario.tp] * scenario.tp, rel=0.01)
    assert cold_share(record) == pytest.approx(scenario.cold, abs=0.05)
    assert record.curve[0] == 0.0
    assert record.curve[-1] == 1.0
    assert list(record.curve) == sorted(record.curve)


@pytest.mark.parametrize(
    ("case", "source"),
    [
        ("closing bar", "GPU memory"),
        ("live bar", "log bar"),
        ("page-cached", "GPU memory"),
        ("one shard", "GPU memory"),
        ("no GPU memory", "storage reads"),
    ],
)
def test_the_source_of_the_weights_is_named(case: str, source: str) -> None:
    began, ended = target_bounds(load(case))
    sources = {
        phase(view, Phase.TARGET).source
        for moment, view in views(load(case))
        if began + 0.2 * (ended - began) < moment < began + 0.9 * (ended - began)
    }
    assert sources == {source}


@pytest.mark.parametrize("case", ["closing bar", "late release", "others on the GPUs", "one GPU"])
@pytest.mark.parametrize("known", [True, False], ids=["history", "no history"])
def test_the_share_of_the_weights_is_true(case: str, known: bool) -> None:
    scenario = CASES[case]
    began, ended = target_bounds(load(case))
    records = [earlier(tp=scenario.tp)] if known else []
    shown = dict(views(load(case), records))
    before = None
    for seen in load(case).seen:
        if seen.gpus is None or not began < seen.at < ended:
            continue
        before = before or seen.gpus
        if seen.at - BEGAN < 45:  # the memory of the previous run is still there
            continue
        view = shown[min(shown, key=lambda moment: abs(moment - seen.at - 0.6))]
        held = seen.gpus[0] - scenario.others - 1.6 * GB
        truth = held / (scenario.size / scenario.tp)
        if truth < 0.97:
            assert phase(view, Phase.TARGET).fraction == pytest.approx(truth, abs=0.03)


def cold_share(record: LoadRecord) -> float:
    """Share of the checkpoint that came from storage: 0 all from the page cache, 1 all cold."""
    assert record.read_bytes is not None
    assert record.checkpoint_bytes
    return min(1.0, record.read_bytes / record.checkpoint_bytes)


def test_the_straggler_is_named_by_memory_and_then_by_the_log() -> None:
    _, ended = target_bounds(load("straggler"))
    named, waiting = set(), set()
    for moment, view in views(load("straggler"), [earlier()]):
        if moment < ended:
            named.add(view.straggler)
            waiting.add(phase(view, Phase.TARGET).detail.partition("; ")[2])
        elif view.current not in {Phase.TARGET, Phase.DRAFTER}:
            assert view.straggler == ""
    assert named == {"", "TP3 (GPU 3)", "TP3"}
    assert "waiting for the slowest rank: TP3" in waiting


def test_no_straggler_where_all_go_alike() -> None:
    assert {view.straggler for _, view in views(load("closing bar"), [earlier()])} == {""}


def test_a_hang_at_the_end_says_who_is_waited_for() -> None:
    """Seven ranks are done, memory is full, and the eighth never says so."""
    whole = load("no bar")
    _, ended = target_bounds(whole)
    tracker = tracker_for(whole, [earlier()])
    for seen in whole.seen:
        if seen.at < ended + 1 and not (
            isinstance(seen.event, PhaseEnded) and seen.event.rank == "TP5"
        ):
            if seen.event is not None and seen.event.stamp > ended:
                continue
            feed(tracker, seen)
    last = dict.fromkeys(range(8), 17 * GB)
    for second in range(400):
        tracker.gpus(ended + 2 + second, last, None)
    view = tracker.view(ended + 402)
    target = phase(view, Phase.TARGET)
    assert view.current is Phase.TARGET
    assert target.fraction is not None
    assert target.fraction < 1.0
    assert "waiting for the slowest rank: TP5" in target.detail
    assert view.straggler == "TP5"
    assert view.stalled_for is not None
    assert view.stalled_for > 300


# ---- coming late, losing the log ----------------------------------------------------------------


@pytest.mark.parametrize("known", [True, False], ids=["history", "no history"])
def test_coming_while_weights_load(known: bool) -> None:
    """The journal is read from the start of the invocation; memory only from now on."""
    whole = load("closing bar")
    began, ended = target_bounds(whole)
    join = began + 0.5 * (ended - began)
    tracker = tracker_for(whole, [earlier()] if known else [])
    samples = [seen for seen in whole.seen if seen.event is None and seen.at >= join]
    events = [seen for seen in whole.seen if seen.event is not None]
    feed(tracker, samples.pop(0))
    for seen in events:
        if seen.at < join:
            feed(tracker, seen)
    for seen in samples[:3]:
        feed(tracker, seen)
    target = phase(tracker.view(samples[2].at), Phase.TARGET)
    assert target.began == pytest.approx(began)
    held = (samples[2].gpus or {})[0] - (1.6 * GB if known else 0)
    assert target.fraction == pytest.approx(held / 15e9, abs=0.03)
    assert target.source == "GPU memory"


def test_coming_after_it_was_ready_keeps_the_times() -> None:
    whole = load("closing bar")
    tracker = tracker_for(whole)
    for seen in whole.seen:
        if seen.event is not None:
            feed(tracker, seen)
    record = tracker.record()
    assert record is not None
    assert record.seconds == pytest.approx(whole.seconds, abs=0.1)
    assert record.memory_target == (15 * GB,) * 8  # the engine's own figures
    assert record.curve == ()


def test_without_a_log_memory_still_shows_progress() -> None:
    whole = load("no bar")
    began, ended = target_bounds(whole)
    tracker = tracker_for(whole, [earlier()])
    middle = (began + ended) / 2
    for seen in whole.seen:
        if seen.event is None and seen.at < middle:
            feed(tracker, seen)
    target = phase(tracker.view(middle), Phase.TARGET)
    assert target.status is PhaseStatus.RUNNING
    assert target.source == "GPU memory"
    assert target.fraction is not None
    assert 0.3 < target.fraction < 0.7


def test_lost_ends_do_not_hold_the_load() -> None:
    """Journald dropped every rank's `Load weight end`."""
    whole = load("closing bar")
    tracker = tracker_for(whole)
    for seen in whole.seen:
        if not (isinstance(seen.event, PhaseEnded) and seen.event.phase is Phase.TARGET):
            feed(tracker, seen)
    view = tracker.view(whole.ready)
    assert view.finished
    assert view.current is Phase.READY
    assert {each.status for each in view.phases} == {PhaseStatus.DONE}


def test_skew_brings_the_operators_clock_to_the_hosts() -> None:
    whole = load("closing bar")
    straight, skewed = tracker_for(whole, [earlier()]), tracker_for(whole, [earlier()])
    skewed.skew = 3600.0
    _, ended = target_bounds(whole)
    for seen in whole.seen:
        if seen.at < ended - 10:
            feed(straight, seen)
            feed(skewed, replace(seen, at=seen.at - 3600.0) if seen.event is None else seen)
    assert skewed.view(ended - 10) == straight.view(ended - 10)


# ---- ETA ----------------------------------------------------------------------------------------


def test_without_history_only_the_weights_are_estimated_and_the_source_says_so() -> None:
    began, ended = target_bounds(load("no drafter"))
    for moment, view in views(load("no drafter")):
        if moment < began or moment > ended:
            assert view.eta_seconds is None
            assert view.eta_source == "no earlier load of this model"
            assert view.fraction is None
        elif moment > began + 0.3 * (ended - began):
            assert (view.eta_source, view.eta_of) == ("present rate", Phase.TARGET)
            assert view.eta_seconds == pytest.approx(ended - moment, abs=0.25 * (ended - began))


def test_with_history_the_eta_is_for_the_whole_and_follows_the_present_rate() -> None:
    whole = load("closing bar")
    began, ended = target_bounds(whole)
    for moment, view in views(whole, [earlier()]):
        assert view.eta_seconds is not None
        assert view.eta_of is Phase.READY
        if moment > began + 0.4 * (ended - began):
            assert view.eta_seconds == pytest.approx(whole.ready - moment, abs=0.1 * whole.seconds)
        if began + 5 < moment < ended:
            assert view.eta_source == "1 load of this model, present rate"


def test_a_history_that_comes_late_is_used_from_then_on() -> None:
    history = LoadHistory()
    tracker = LoadTracker("now", BEGAN, history)
    tracker.configure("moonshotai/Kimi-K2.6", "drafter", 8, {})
    assert tracker.view(BEGAN + 5).eta_seconds is None
    history.add(earlier())
    view = tracker.view(BEGAN + 6)
    assert view.eta_source == "1 load of this model"
    assert view.eta_seconds == pytest.approx(earlier().seconds - 6, abs=1)


def test_a_load_teaches_nothing_to_itself() -> None:
    whole = load("no drafter")
    kept = record_of(whole)
    assert kept.invocation == whole.name
    sources = {view.eta_source for _, view in views(whole, [kept])}
    assert sources == {"no earlier load of this model", "present rate"}


def test_another_model_teaches_nothing() -> None:
    other = record_of(replace(load("closing bar"), model="another"))
    sources = {view.eta_source for _, view in views(load("closing bar"), [other])}
    assert sources == {"no earlier load of this model", "present rate"}


def test_a_new_drafter_is_estimated_by_its_size() -> None:
    alone = record_of(load("no drafter"))
    sources = {view.eta_source for _, view in views(load("closing bar"), [alone])}
    assert "1 load of this model, drafter by its size, present rate" in sources


@pytest.mark.parametrize("name", ["serial-tp2-cold", "serial-tp2-warm", "read-tp1-cold"])
@pytest.mark.parametrize("bar", [True, False])
def test_recorded_loads(name: str, bar: bool) -> None:
    whole = recorded(name, bar=bar)
    share = 0.0
    for _, view in views(whole, every=0.2):
        now = phase(view, Phase.TARGET)
        if now.fraction is not None:
            assert share <= now.fraction < 1.0
            share = now.fraction
    assert share > 0.85
    record = record_of(whole)
    gpus = whole.tp
    taken = [b - a for a, b in zip(record.memory_before, record.memory_target, strict=True)]
    assert taken == pytest.approx([whole.size / gpus] * gpus, rel=0.08)
    assert cold_share(record) == pytest.approx(0.0 if "warm" in name else 1.0, abs=0.05)


# ---- ends ---------------------------------------------------------------------------------------


def small(history: LoadHistory | None = None) -> LoadTracker:
    tracker = LoadTracker("x", 100.0, history or LoadHistory())
    tracker.configure("m", None, 1, {})
    return tracker


@pytest.mark.parametrize("failed", [True, False])
def test_a_start_that_ended_shows_where_and_stands_still(failed: bool) -> None:
    tracker = small()
    tracker.event(PhaseBegan(phase=Phase.TARGET, stamp=110.0))
    tracker.stopped(150.0, failed=failed)
    view = tracker.view(900.0)
    assert (view.failed, view.finished, view.ended) == (failed, False, 150.0)
    target = phase(view, Phase.TARGET)
    assert (target.status, target.began, target.ended) == (PhaseStatus.FAILED, 110.0, 150.0)
    assert view.eta_seconds is None
    assert view.stalled_for is None
    assert tracker.record() is None
    assert tracker.view(9000.0) == view


def test_a_phase_that_had_not_said_so_fails_too() -> None:
    tracker = small()
    tracker.event(PhaseBegan(phase=Phase.TARGET, stamp=110.0))
    tracker.event(PhaseEnded(phase=Phase.TARGET, stamp=140.0))
    tracker.stopped(150.0, failed=False)
    tracker.stopped(155.0, failed=True)  # systemd says why only when all processes are gone
    cache = phase(tracker.view(900.0), Phase.KV_CACHE)
    assert (cache.status, cache.began, cache.ended) == (PhaseStatus.FAILED, 140.0, 150.0)
    assert tracker.view(900.0).failed


@pytest.mark.parametrize("order", ["log first", "end first"])
def test_a_stop_after_it_was_ready_is_no_failed_load(order: str) -> None:
    """Asked once (`ddtui status`), the unit's state comes before the log is read."""
    tracker = small()
    steps = [
        partial(tracker.event, FiredUp(stamp=160.0)),
        partial(tracker.stopped, 500.0, failed=True),
    ]
    for step in steps if order == "log first" else reversed(steps):
        step()
    view = tracker.view(900.0)
    assert (view.failed, view.finished, view.ended, view.fraction) == (False, True, 160.0, 1.0)
    assert {each.status for each in view.phases} <= {PhaseStatus.DONE, PhaseStatus.SKIPPED}


def test_a_rank_that_is_ahead_ends_no_phase() -> None:
    tracker = tracker_for(load("closing bar"))
    for rank in ("TP0", "TP1"):
        tracker.event(PhaseBegan(phase=Phase.TARGET, stamp=BEGAN + 20, rank=rank))
    tracker.event(PhaseEnded(phase=Phase.TARGET, stamp=BEGAN + 90, rank="TP0"))
    tracker.event(PhaseBegan(phase=Phase.DRAFTER, stamp=BEGAN + 91, rank="TP0"))
    drafter = phase(tracker.view(BEGAN + 95), Phase.DRAFTER)
    assert (drafter.status, drafter.began, drafter.ended) == (PhaseStatus.PENDING, None, None)


def test_what_the_target_took_is_not_the_drafters() -> None:
    """The last samples before the drafter's begin are older than it."""
    tracker = LoadTracker("x", 100.0, LoadHistory())
    tracker.configure("m", "d", 1, {})
    tracker.checkpoint("target", 500 * GB, 64)
    tracker.checkpoint("drafter", 6 * GB, 1)
    for at in (99.0, 105.0):
        tracker.gpus(at, {0: 0}, None)
        tracker.storage_reads(at, 0)
    tracker.event(PhaseBegan(phase=Phase.TARGET, stamp=110.0))
    for second in range(20):
        tracker.gpus(111.0 + second, {0: 24 * GB * (second + 1)}, None)
        tracker.storage_reads(111.0 + second, 24 * GB * (second + 1))
    tracker.event(PhaseEnded(phase=Phase.TARGET, stamp=130.8))
    tracker.event(PhaseBegan(phase=Phase.DRAFTER, stamp=130.8))
    assert phase(tracker.view(130.9), Phase.DRAFTER).fraction is None
    tracker.storage_reads(131.0, 500 * GB)
    tracker.gpus(131.0, {0: 500 * GB}, None)
    assert phase(tracker.view(131.0), Phase.DRAFTER).fraction in {None, 0.0}
    tracker.storage_reads(132.0, 503 * GB)
    assert phase(tracker.view(132.0), Phase.DRAFTER).fraction == pytest.approx(0.5)
    tracker.gpus(133.0, {0: 504 * GB}, None)
    drafter = phase(tracker.view(133.0), Phase.DRAFTER)
    assert drafter.fraction == pytest.approx(2 / 3, abs=0.01)
    assert drafter.detail == "4.0 of 6.0 GB"


def test_phases_that_a_start_does_not_have_are_skipped() -> None:
    tracker = small()
    tracker.event(PhaseBegan(phase=Phase.TARGET, stamp=110.0))
    assert phase(tracker.view(111.0), Phase.DRAFTER).status is PhaseStatus.SKIPPED
    assert phase(tracker.view(111.0), Phase.GRAPHS).status is PhaseStatus.PENDING
    tracker.event(PhaseEnded(phase=Phase.TARGET, stamp=120.0))
    tracker.event(PhaseEnded(phase=Phase.KV_CACHE, stamp=122.0))
    tracker.event(PortOpened(stamp=125.0))
    view = tracker.view(126.0)
    assert view.current is Phase.WARMUP
    assert phase(view, Phase.GRAPHS).status is PhaseStatus.SKIPPED


def test_a_bar_that_closes_after_its_phase_changes_nothing() -> None:
    tracker = small()
    tracker.event(PhaseBegan(phase=Phase.TARGET, stamp=110.0))
    tracker.event(PhaseEnded(phase=Phase.TARGET, stamp=120.0))
    tracker.event(BarMoved(phase=Phase.TARGET, done=1, total=64, stamp=120.1))
    view = tracker.view(121.0)
    assert phase(view, Phase.TARGET).status is PhaseStatus.DONE
    assert view.current is Phase.KV_CACHE


def test_the_sum_of_reads_may_fall_when_a_process_ends() -> None:
    tracker = small()
    tracker.checkpoint("target", 10 * GB, 4)
    tracker.storage_reads(105.0, GB // 2)
    tracker.event(PhaseBegan(phase=Phase.TARGET, stamp=110.0))
    tracker.storage_reads(111.0, 0)
    tracker.storage_reads(112.0, 3 * GB)
    target = phase(tracker.view(112.0), Phase.TARGET)
    assert target.source == "storage reads"
    assert target.fraction == pytest.approx(0.3)


# ---- a real engine's log ------------------------------------------------------------------------

STAMPED = re.compile(r"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)")


@pytest.mark.parametrize("drafter", [None, "models/tiny-dflash"])
def test_a_real_log_passes_all_its_phases(drafter: str | None) -> None:
    """SGLang 0.5.23 on a CPU: no graphs, and weights that take no time at all."""
    name = "sglang-dflash.log" if drafter else "sglang-base.log"
    text = (TRACES.parent / "sglang" / name).read_text(errors="replace")
    reader, tracker, stamp = SGLangLogReader(), None, 0.0
    for line in text.split("\n"):
        if found := STAMPED.search(line):
            stamp = datetime.fromisoformat(found[1]).timestamp()
        if tracker is None and stamp:
            tracker = LoadTracker("i", stamp, LoadHistory())
            tracker.configure("models/tiny-qwen3", drafter, 1, {})
        if tracker is not None:
            for event in reader.read(JournalLine(stamp=stamp, text=line)):
                tracker.event(event)
    assert tracker is not None
    view, record = tracker.view(stamp), tracker.record()
    assert view.finished
    skipped = {each.phase for each in view.phases if each.status is PhaseStatus.SKIPPED}
    assert skipped == ({Phase.GRAPHS} if drafter else {Phase.GRAPHS, Phase.DRAFTER})
    assert record is not None
    assert record.seconds == pytest.approx(10.0, abs=5.0)

"""When a load is said to stand still, when it is not, and in which words."""

from __future__ import annotations

import re
from dataclasses import replace

import msgspec
import pytest

from ddtui.core.events import BarMoved, Phase, PhaseBegan
from ddtui.core.host_state import HostState
from ddtui.core.load_history import LoadRecord
from ddtui.core.load_progress import LoadTracker
from ddtui.core.load_stall import stall_words
from ddtui.core.samples import Gpu, SystemSample
from ddtui.core.snapshot import GpuView, LoadView, SystemView
from ddtui.engines.sglang import SGLang
from tests.support.load_cases import EARLIER, NOW, earlier, load, target_bounds
from tests.support.load_replay import feed, record_of, tracker_for, views
from tests.support.synthetic_loads import BEGAN, Scenario, make


def stalls(scenario: Scenario, records: list[LoadRecord]) -> list[float]:
    return [
        view.stalled_for
        for _, view in views(make(scenario), records)
        if view.stalled_for is not None
    ]


def test_what_moved_every_second_is_suspected_soon() -> None:
    long_pause = replace(NOW, pauses=((0.5, 240.0),))
    for records in ([earlier()], []):
        found = stalls(long_pause, records)
        assert 20 < min(found) < 24
        assert max(found) == pytest.approx(240, abs=5)


def only_the_log(seconds: float, records: list[LoadRecord]) -> LoadView:
    """Silence after a few shards of half a minute each, seen in the log alone."""
    tracker = tracker_for(load("no drafter"), records)
    tracker.event(PhaseBegan(phase=Phase.TARGET, stamp=BEGAN + 30))
    for done in range(1, 13):
        moved = BarMoved(phase=Phase.TARGET, done=done, total=20, stamp=BEGAN + 30 + 30 * done)
        tracker.event(moved)
    return tracker.view(BEGAN + 390 + seconds)


def test_a_log_that_speaks_rarely_is_given_time() -> None:
    assert only_the_log(170.0, []).stalled_for is None
    assert only_the_log(190.0, []).stalled_for == pytest.approx(190.0)


def hung(records: list[LoadRecord], *, pause: float = 0.0) -> tuple[LoadTracker, float]:
    """A load of which everything stops at half of the weights, and when."""
    whole = make(replace(NOW, name="hung", pauses=((0.3, pause),)))
    began, ended = target_bounds(whole)
    stops = began + 0.6 * (ended - began)
    tracker = tracker_for(whole, records)
    for seen in whole.seen:
        if seen.at <= stops:
            feed(tracker, seen)
    return tracker, stops


def stand_still(tracker: LoadTracker, since: float, seconds: int) -> LoadView:
    for second in range(seconds):
        tracker.gpus(since + second, dict(tracker.memory.latest), None)
    return tracker.view(since + seconds)


def test_busy_disks_may_be_what_it_waits_for() -> None:
    tracker, stops = hung([])
    tracker.disk(900e6)
    assert stand_still(tracker, stops, 60).stalled_for is None
    tracker.disk(0.0)
    assert stand_still(tracker, stops + 60, 1).stalled_for == pytest.approx(60, abs=3)


def test_a_load_that_paused_before_is_given_longer() -> None:
    tracker, stops = hung([], pause=15.0)
    assert stand_still(tracker, stops, 60).stalled_for is None
    assert stand_still(tracker, stops + 60, 40).stalled_for == pytest.approx(100, abs=3)


def test_a_rate_is_none_once_nothing_moves() -> None:
    tracker, stops = hung([])
    assert tracker.view(stops).eta_source == "present rate"
    view = stand_still(tracker, stops, 23)
    assert view.eta_seconds is None
    assert re.fullmatch(r"no progress for 2\d s", view.eta_source)
    assert view.stalled_for is not None
    assert view.advice == "GPU memory, storage reads and the log stand still"


def test_with_history_the_eta_does_not_count_down_while_nothing_moves() -> None:
    tracker, stops = hung([earlier()])
    early, late = stand_still(tracker, stops, 10), stand_still(tracker, stops + 10, 300)
    assert early.eta_seconds is not None
    assert late.eta_seconds == pytest.approx(early.eta_seconds, abs=1.5)
    assert late.eta_source == "1 load of this model; no progress for 5 m 09 s"


def test_a_stall_is_told_in_words_with_where_to_look() -> None:
    tracker, stops = hung([])
    view = stand_still(tracker, stops, 130)
    gpu = GpuView(Gpu(index=0, uuid="u", name="n", utilization=0.0), at=stops)
    system = SystemView(SystemSample(at=stops, source="proc", disk_read=0.0, disk_write=0.0), 0.0)
    snapshot = msgspec.structs.replace(
        HostState("h", SGLang()).snapshot(stops), gpus=(gpu,), system=system
    )
    words = stall_words(view, snapshot)
    assert re.match(r"loading target stands still at \d\d % for 2 m \d\d s: GPU memory", words)
    assert "GPU utilization 0 %, disks 0 MB/s. `py-spy dump" in words
    assert "dmesg" in words
    assert stall_words(msgspec.structs.replace(view, stalled_for=None), snapshot) == ""


def test_a_pause_that_earlier_loads_had_too_is_no_stall() -> None:
    usual = record_of(make(replace(EARLIER, pauses=((0.5, 50.0),))))
    assert stalls(replace(NOW, pauses=((0.5, 120.0),)), [usual]) == []


def test_a_steady_load_never_stalls() -> None:
    assert stalls(NOW, [earlier()]) == []


def test_time_in_which_nothing_was_observed_is_no_stall() -> None:
    whole = load("no bar")
    began, _ = target_bounds(whole)
    tracker = tracker_for(whole, [earlier()])
    for seen in whole.seen:
        if seen.at < began + 20:
            feed(tracker, seen)
    assert tracker.view(began + 600).stalled_for is None

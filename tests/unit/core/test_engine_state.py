import pytest

from ddtui.core.engine_state import CounterRate, EngineState
from ddtui.core.events import Decoded, Prefilled
from ddtui.core.samples import EngineCounters, EngineSample


def metrics(at: float, **counters: float | bool) -> EngineSample:
    return EngineSample(at, "/metrics", EngineCounters(**counters))  # type: ignore[arg-type]


def test_the_rate_of_a_counter_is_its_growth_over_the_window() -> None:
    rate = CounterRate(window=3.0)
    assert rate.add(0.0, 1000.0) is None
    assert rate.add(1.0, 1170.0) == pytest.approx(170.0)
    for second in range(2, 10):
        latest = rate.add(float(second), 1000.0 + 170.0 * second)
    assert latest == pytest.approx(170.0)


def test_a_counter_that_went_back_was_reset_and_gives_no_negative_rate() -> None:
    rate = CounterRate()
    rate.add(0.0, 5000.0)
    rate.add(1.0, 5170.0)
    assert rate.add(2.0, 12.0) is None
    assert rate.add(3.0, 182.0) == pytest.approx(170.0)


def test_the_counter_is_believed_before_the_decode_line_and_the_line_before_the_gauge() -> None:
    state = EngineState()
    state.apply(metrics(100.0, decode_tokens_total=0.0, generation_throughput=90.0))
    state.decoded(Decoded(throughput=150.0, stamp=100.5), 100.5)
    before = state.view(101.0, {}, "").throughput
    assert before is not None
    assert before.source == "decode line"
    state.apply(metrics(101.0, decode_tokens_total=170.0, generation_throughput=90.0))
    figure = state.view(101.0, {}, "").throughput
    assert figure is not None
    assert figure.value == pytest.approx(170.0)
    assert figure.source == "/metrics counter"


def test_a_stale_counter_gives_way_to_a_live_decode_line() -> None:
    state = EngineState()
    state.apply(metrics(100.0, decode_tokens_total=0.0))
    state.apply(metrics(101.0, decode_tokens_total=170.0))
    state.decoded(Decoded(throughput=150.0, stamp=140.0), 140.0)
    figure = state.view(141.0, {}, "").throughput
    assert figure is not None
    assert figure.source == "decode line"


def test_a_gauge_that_does_not_move_grows_old_though_it_is_polled() -> None:
    state = EngineState()
    for second in range(100, 130):
        state.apply(metrics(float(second), generation_throughput=171.5, acceptance_length=4.8))
    view = state.view(130.0, {}, "")
    assert view.throughput is not None
    assert view.throughput.stale(130.0)
    assert view.throughput.age(130.0) == pytest.approx(30.0)
    assert view.acceptance_length is not None
    assert view.acceptance_length.stale(130.0)


def test_a_lifetime_average_is_never_the_live_acceptance_length() -> None:
    state = EngineState()
    state.apply(metrics(100.0, acceptance_length=4.8, acceptance_is_lifetime=True))
    view = state.view(100.0, {}, "")
    assert view.acceptance_length is None
    assert view.acceptance_lifetime is not None
    assert view.acceptance_lifetime.note == "lifetime average"


def test_zero_is_how_the_gauge_says_that_nothing_was_decoded_yet() -> None:
    state = EngineState()
    state.apply(metrics(100.0, acceptance_length=0.0))
    assert state.view(100.0, {}, "").acceptance_length is None


def test_nothing_running_is_idle_and_a_running_request_is_not() -> None:
    state = EngineState()
    state.apply(metrics(100.0, running=0.0, decode_tokens_total=500.0))
    state.apply(metrics(101.0, running=0.0, decode_tokens_total=500.0))
    assert state.view(101.0, {}, "").idle
    state.apply(metrics(102.0, running=1.0, decode_tokens_total=600.0))
    assert not state.view(102.0, {}, "").idle


def test_log_lines_tell_of_the_queue_only_where_nothing_is_polled() -> None:
    state = EngineState()
    state.prefilled(Prefilled(running=3, queued=2, kv_usage=0.5, throughput=900.0, stamp=0.0), 50.0)
    view = state.view(50.0, {}, "")
    assert view.running is not None
    assert view.running.source == "log line"
    state.apply(metrics(51.0, running=1.0, queued=0.0, kv_usage=0.1))
    state.prefilled(Prefilled(running=9, queued=9, stamp=0.0), 51.5)
    view = state.view(52.0, {}, "")
    assert view.running is not None
    assert (view.running.value, view.running.source) == (1.0, "/metrics")


def test_a_new_invocation_forgets_figures_but_keeps_the_chart() -> None:
    state = EngineState()
    state.decoded(Decoded(throughput=150.0, acceptance_length=4.5, stamp=10.0), 10.0)
    state.reset()
    view = state.view(11.0, {}, "")
    assert view.throughput is None
    assert view.acceptance_length is None
    assert view.throughput_history.values == (150.0,)


def test_a_gauge_left_behind_when_the_tokens_stopped_is_not_live() -> None:
    state = EngineState()
    for second in range(100, 105):
        state.apply(metrics(float(second), decode_tokens_total=170.0 * second, running=1.0))
    for second in range(105, 125):
        state.apply(metrics(float(second), decode_tokens_total=170.0 * 104, running=1.0))
    running = state.view(124.0, {}, "").running
    assert running is not None
    assert running.stale(124.0)
    state.apply(metrics(125.0, decode_tokens_total=170.0 * 104, running=0.0))
    assert state.view(125.0, {}, "").idle

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from ddtui.core.samples import EngineCounters
from ddtui.engines.sglang import SGLANG
from tests.unit.engines.captures import FOLDER, text_of

CAPTURES = {
    "sglang-base.after.metrics.txt": EngineCounters(
        decode_tokens_total=2321.0,
        generation_tokens_total=2348.0,
        prompt_tokens_total=1141.0,
        generation_throughput=184.977782161963,
        running=0.0,
        queued=0.0,
        kv_usage=0.0,
        max_total_tokens=20000.0,
        cache_hit_rate=0.0,
        first_token_seconds_total=1.4640057389999583,
        first_tokens_total=8.0,
        requests_total=27.0,
    ),
    "sglang-fresh-dflash.during.metrics.txt": EngineCounters(
        decode_tokens_total=1097.0,
        generation_tokens_total=776.0,
        prompt_tokens_total=383.0,
        verify_calls_total=194.0,
        generation_throughput=1637.3157833357504,
        acceptance_length=4.2,
        draft_tokens=8.0,
        running=8.0,
        queued=0.0,
        kv_usage=0.02,
        max_total_tokens=20000.0,
        cache_hit_rate=0.9801136363636364,
        first_token_seconds_total=0.2177781970003707,
        first_tokens_total=6.0,
        requests_total=9.0,
    ),
    "sglang-fresh-dflash.after.metrics.txt": EngineCounters(
        decode_tokens_total=2391.0,
        generation_tokens_total=2348.0,
        prompt_tokens_total=1141.0,
        verify_calls_total=571.0,
        generation_throughput=538.1370329599201,
        acceptance_length=4.083333333333333,
        draft_tokens=8.0,
        running=0.0,
        queued=0.0,
        kv_usage=0.0,
        max_total_tokens=20000.0,
        cache_hit_rate=0.0,
        first_token_seconds_total=0.2602767300004416,
        first_tokens_total=8.0,
        requests_total=27.0,
    ),
    "sglang-ngram.during.metrics.txt": EngineCounters(
        decode_tokens_total=112.0,
        generation_tokens_total=8.0,
        prompt_tokens_total=13.0,
        verify_calls_total=4.0,
        generation_throughput=10.93825897737674,
        acceptance_length=2.1538461538461537,
        draft_tokens=8.0,
        running=8.0,
        queued=0.0,
        kv_usage=0.02,
        max_total_tokens=20000.0,
        cache_hit_rate=0.25559105431309903,
        first_token_seconds_total=1.880288529000154,
        first_tokens_total=3.0,
        requests_total=1.0,
    ),
}


def test_every_captured_exposition_has_its_figures() -> None:
    assert sorted(CAPTURES) == sorted(path.name for path in FOLDER.glob("*metrics.txt"))


@pytest.mark.parametrize("name", CAPTURES)
def test_the_figures_of_a_capture(name: str) -> None:
    assert SGLANG.parse_metrics(text_of(name)) == CAPTURES[name]


@pytest.mark.parametrize("name", CAPTURES)
def test_the_same_figures_as_a_general_parser_gives(name: str) -> None:
    sums: dict[str, float] = {}
    for family in text_string_to_metric_families(text_of(name)):
        for sample in family.samples:
            if sample.labels.get("mode", "decode") == "decode":
                sums[sample.name] = sums.get(sample.name, 0.0) + sample.value
    counters = SGLANG.parse_metrics(text_of(name))
    assert counters is not None
    assert counters.decode_tokens_total == sums["sglang:realtime_tokens_total"]
    assert counters.generation_tokens_total == sums["sglang:generation_tokens_total"]
    assert counters.prompt_tokens_total == sums["sglang:prompt_tokens_total"]
    assert counters.running == sums["sglang:num_running_reqs"]


def test_replicas_are_added_up_or_averaged() -> None:
    text = "\n".join(
        f'sglang:{name}{{dp_rank="{rank}",tp_rank="0",model_name="m"{extra}}} {value}'
        for name, extra, values in (
            ("num_running_reqs", "", (3, 5)),
            ("gen_throughput", "", (100.5, 200.5)),
            ("token_usage", "", (0.25, 0.75)),
            ("spec_accept_length", "", (4.0, 0.0)),
            ("spec_num_draft_tokens", "", (8, 8)),
            ("max_total_num_tokens", "", (1000, 1000)),
            ("cache_hit_rate", "", (0.0, 0.5)),
            ("realtime_tokens_total", ',mode="decode"', (10, 20)),
            ("realtime_tokens_total", ',mode="prefill_compute"', (1000, 2000)),
        )
        for rank, value in enumerate(values)
    )
    assert SGLANG.parse_metrics(text) == EngineCounters(
        running=8.0,
        generation_throughput=301.0,
        kv_usage=0.75,
        acceptance_length=4.0,
        draft_tokens=8.0,
        max_total_tokens=2000.0,
        cache_hit_rate=0.25,
        decode_tokens_total=30.0,
    )


def test_ranks_of_one_replica_are_not_added_up() -> None:
    text = "\n".join(
        f'sglang:gen_throughput{{tp_rank="{rank}",pp_rank="0"}} 100.0' for rank in (1, 0, 10)
    )
    counters = SGLANG.parse_metrics(text)
    assert counters is not None
    assert counters.generation_throughput == 100.0


def test_the_total_of_a_queue_is_the_series_without_a_priority() -> None:
    counters = SGLANG.parse_metrics(
        'sglang:num_queue_reqs{priority="",tp_rank="0"} 5.0\n'
        'sglang:num_queue_reqs{priority="1",tp_rank="0"} 3.0\n'
        'sglang:num_queue_reqs{priority="2",tp_rank="0"} 2.0\n'
    )
    assert counters is not None
    assert counters.queued == 5.0


def test_labels_that_look_like_the_format() -> None:
    counters = SGLANG.parse_metrics(
        'sglang:num_running_reqs{model_name="a} 9 {b\\" }",tp_rank="0"} 2.0\n'
        "sglang:gen_throughput 12.5\n"
        "sglang:token_usage{} NaN\n"
        "sglang:num_queue_reqs{} many\n"
        "sglang:cache_hit_rate{}\n"
    )
    assert counters == EngineCounters(running=2.0, generation_throughput=12.5)


@pytest.mark.parametrize("text", ["", "vllm:num_requests_running 1.0\n", "<html>404</html>"])
def test_another_engines_metrics_are_none(text: str) -> None:
    assert SGLANG.parse_metrics(text) is None


@given(st.text(max_size=200))
def test_no_text_is_an_error(text: str) -> None:
    SGLANG.parse_metrics(text)
    SGLANG.parse_metrics("sglang:gen_throughput" + text + "\nsglang:num_running_reqs{" + text)


@pytest.mark.parametrize(
    ("name", "value", "field"),
    [
        ("num_running_reqs", "-3", "running"),
        ("num_queue_reqs", "1e300", "queued"),
        ("token_usage", "-0.5", "kv_usage"),
        ("token_usage", "5.5", "kv_usage"),
        ("cache_hit_rate", "NaN", "cache_hit_rate"),
        ("spec_accept_length", "1e300", "acceptance_length"),
        ("spec_accept_length", "0.5", "acceptance_length"),
        ("spec_accept_length", "-4", "acceptance_length"),
        ("gen_throughput", "+Inf", "generation_throughput"),
        ("max_total_num_tokens", "-1", "max_total_tokens"),
        ("generation_tokens_total", "9" * 400, "generation_tokens_total"),
    ],
)
def test_impossible_figures_are_none(name: str, value: str, field: str) -> None:
    counters = SGLANG.parse_metrics(f'sglang:{name}{{model_name="m"}} {value}\n')
    assert counters == EngineCounters()
    assert getattr(counters, field) is None


def test_a_negative_figure_is_not_hidden_in_a_sum() -> None:
    text = "".join(
        f'sglang:num_running_reqs{{dp_rank="{rank}"}} {value}\n'
        for rank, value in enumerate((-3, 10))
    )
    assert SGLANG.parse_metrics(text) == EngineCounters()


def test_acceptance_is_measured_by_what_is_drafted() -> None:
    text = "sglang:spec_num_draft_tokens 8\nsglang:spec_accept_length {}\n"
    for value, expected in (("8.5", 8.5), ("17", None), ("1", 1.0)):
        counters = SGLANG.parse_metrics(text.format(value))
        assert counters is not None
        assert counters.acceptance_length == expected


def test_a_share_slightly_above_one_is_one() -> None:
    counters = SGLANG.parse_metrics("sglang:token_usage 1.03\n")
    assert counters is not None
    assert counters.kv_usage == 1.0


@pytest.mark.parametrize(
    "labels",
    ["a" * 200_000, 'x="' + "a" * 200_000, "a" * 3000, '=""' * 1000, '"' * 3000],
    ids=["name", "value", "short name", "no names", "quotes"],
)
def test_long_labels_are_read_in_no_time(labels: str) -> None:
    # Tried anew at each of its characters, the first of them would take minutes.
    text = f"sglang:token_usage{{{labels}}} 0.5\n" + "sglang:num_running_reqs 2\n"
    counters = SGLANG.parse_metrics(text)
    assert counters is not None
    assert counters.running == 2.0
    assert counters.kv_usage == (0.5 if len(labels) < 4000 else None)

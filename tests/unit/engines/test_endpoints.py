from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ddtui.core.samples import EngineCounters
from ddtui.engines.sglang import SGLANG
from ddtui.engines.sglang.endpoints import NotUnderstood, parse_models
from tests.unit.engines.captures import FOLDER, text_of

INFOS = sorted(path.name for path in FOLDER.glob("*server_info.txt"))


@pytest.mark.parametrize("name", INFOS)
def test_a_captured_server_info(name: str) -> None:
    sample, counters = SGLANG.parse_server_info(text_of(name), 5.0)
    raw = json.loads(text_of(name))
    assert (sample.at, sample.source, sample.version, sample.status) == (
        5.0,
        "/server_info",
        "0.5.23",
        "ready",
    )
    assert sample.launch_command == tuple(raw["launch_command"].split())
    assert sample.model == raw["served_model_name"]
    assert sample.arguments["port"] == raw["port"]
    assert sample.arguments["api_key"] is None
    assert sample.arguments["speculative_num_draft_tokens"] == raw["speculative_num_draft_tokens"]
    nested = {name for name, value in raw.items() if isinstance(value, (dict, list))}
    assert sample.arguments.keys() == raw.keys() - nested
    assert counters.generation_throughput == raw["internal_states"][0]["last_gen_throughput"]
    assert counters.max_total_tokens == 20000
    # The cache had been flushed, which resets the lifetime average: no figure, not a zero.
    assert counters.acceptance_length is None
    assert counters.acceptance_is_lifetime is False


def info(**changes: object) -> str:
    raw = json.loads(text_of(INFOS[0]))
    return json.dumps(raw | changes)


def test_secrets_do_not_leave_the_server_info() -> None:
    state = {"api_key": "hush-1", "last_gen_throughput": 1.0}
    sample, _ = SGLANG.parse_server_info(
        info(
            api_key="hush-2",
            admin_api_key="hush-3",
            ssl_keyfile_password="hush-4",
            watermark_key="hush-5",
            launch_command="--api-key hush-6 --admin-api-key=hush-7 --tp-size 8",
            internal_states=[state],
            max_total_tokens=123,
            speculative_token_map="/models/map.pt",
        ),
        0.0,
    )
    assert "hush" not in repr(sample)
    assert sample.arguments["api_key"] == "<redacted>"
    assert sample.arguments["max_total_tokens"] == 123
    assert sample.arguments["speculative_token_map"] == "/models/map.pt"
    assert sample.arguments["tokenizer_path"] == "models/tiny-qwen3"
    assert sample.launch_command[-2:] == ("--tp-size", "8")


def test_the_average_since_start_is_marked_as_such() -> None:
    states = [
        {"last_gen_throughput": 10.0, "avg_spec_accept_length": 4.0},
        {"last_gen_throughput": 20.0, "avg_spec_accept_length": 5.0},
    ]
    _, counters = SGLANG.parse_server_info(info(internal_states=states), 0.0)
    assert counters == EngineCounters(
        generation_throughput=30.0,
        acceptance_length=4.5,
        acceptance_is_lifetime=True,
        max_total_tokens=40000.0,
    )


def test_old_servers_give_one_state_and_no_launch_command() -> None:
    body = json.dumps(
        {
            "internal_states": {
                "model_path": "m",
                "tp_size": 2,
                "last_gen_throughput": 3.5,
                "avg_spec_accept_length": 2.5,
            },
            "version": "0.4.6",
        }
    )
    sample, counters = SGLANG.parse_server_info(body, 0.0, "/get_server_info")
    assert sample.arguments["tp_size"] == 2
    assert (sample.model, sample.version, sample.launch_command) == ("m", "0.4.6", ())
    assert (counters.generation_throughput, counters.acceptance_length) == (3.5, 2.5)
    assert sample.source == "/get_server_info"


@pytest.mark.parametrize("name", sorted(path.name for path in FOLDER.glob("*v1_loads.txt")))
def test_captured_loads(name: str) -> None:
    load = json.loads(text_of(name))["loads"][0]
    assert SGLANG.parse_loads(text_of(name)) == EngineCounters(
        generation_throughput=load["gen_throughput"],
        running=0.0,
        queued=0.0,
        kv_usage=0.0,
        max_total_tokens=20000.0,
        cache_hit_rate=0.0,
    )


def test_loads_of_two_replicas() -> None:
    loads = [
        {
            "num_running_reqs": 2,
            "num_waiting_reqs": 1,
            "token_usage": 0.5,
            "max_total_num_tokens": 100,
            "gen_throughput": 0.0,
            "cache_hit_rate": 0.5,
            "speculative": {"accept_length": 3.0, "accept_rate": 0.0},
        },
        {
            "num_running_reqs": 3,
            "num_waiting_reqs": 0,
            "token_usage": 0.25,
            "max_total_num_tokens": 100,
            "gen_throughput": 0.0,
            "cache_hit_rate": 0.0,
            "speculative": {"accept_length": 0.0, "accept_rate": 0.0},
        },
    ]
    # Requests run, and the throughput says 0: that server does not count it.
    assert SGLANG.parse_loads(json.dumps({"loads": loads})) == EngineCounters(
        running=5.0,
        queued=1.0,
        kv_usage=0.5,
        max_total_tokens=200.0,
        cache_hit_rate=0.25,
        acceptance_length=3.0,
        acceptance_is_lifetime=True,
    )


def test_models() -> None:
    assert parse_models(text_of("sglang-base.after.v1_models.txt")) == "models/tiny-qwen3"


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b"\xff\xfe", b"{", b"null", b"1"])
def test_an_answer_that_is_not_sglangs_says_what_is_wrong(body: bytes) -> None:
    with pytest.raises(NotUnderstood, match="the answer is no JSON"):
        SGLANG.parse_server_info(body, 0.0)
    with pytest.raises(NotUnderstood, match="the answer is no JSON"):
        SGLANG.parse_loads(body)


@pytest.mark.parametrize(
    "body",
    [
        "{}",
        '{"loads": []}',
        '{"loads": 3}',
        '{"loads": [1]}',
        '{"max_total_num_tokens": 1%s}' % ("0" * 400),
    ],
)
def test_odd_answers(body: str) -> None:
    sample, counters = SGLANG.parse_server_info(body, 0.0)
    assert (sample.version, counters) == ("", EngineCounters())
    if "[1]" in body:
        assert SGLANG.parse_loads(body) == EngineCounters()
    else:
        with pytest.raises(NotUnderstood, match="no loads"):
            SGLANG.parse_loads(body)


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(
                ["loads", "internal_states", "launch_command", "api_key", "num_running_reqs", "x"]
            ),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=12,
)


@given(JSON)
def test_no_json_is_an_unforeseen_error(document: object) -> None:
    body = json.dumps(document)
    for parse in (lambda: SGLANG.parse_server_info(body, 0.0), lambda: SGLANG.parse_loads(body)):
        try:
            parse()
        except NotUnderstood:
            continue


@pytest.mark.parametrize(
    "load",
    [
        {"num_running_reqs": -3, "num_waiting_reqs": -1, "token_usage": -0.5},
        {"token_usage": 5.5, "cache_hit_rate": 1e300, "gen_throughput": -1.0},
        {"speculative": {"accept_length": 1e300}, "max_total_num_tokens": -5},
        {"speculative": {"accept_length": -2.0}, "num_running_reqs": 1e300},
    ],
)
def test_impossible_figures_are_none(load: dict[str, object]) -> None:
    assert SGLANG.parse_loads(json.dumps({"loads": [load]})) == EngineCounters()
    hidden = {"num_running_reqs": 10, "num_waiting_reqs": 10}
    if load.get("num_running_reqs", 0) != 0:
        counters = SGLANG.parse_loads(json.dumps({"loads": [load, hidden]}))
        assert counters.running is None


def test_impossible_figures_of_the_report_are_none() -> None:
    state = {"last_gen_throughput": -1.0, "avg_spec_accept_length": 99.0}
    body = {"speculative_num_draft_tokens": 8, "internal_states": [state]}
    _, counters = SGLANG.parse_server_info(json.dumps(body), 1.0)
    assert counters == EngineCounters(draft_tokens=8.0)


def test_a_report_that_is_nested_deeply_is_no_crash() -> None:
    for depth in (100, 900):
        sample, _ = SGLANG.parse_server_info('{"a":' * depth + "1" + "}" * depth, 1.0)
        assert sample.arguments == {}
    with pytest.raises(NotUnderstood, match="no JSON"):
        SGLANG.parse_server_info('{"a":' * 100_000 + "1" + "}" * 100_000, 1.0)

"""The simulated engine's HTTP routes, through an SSH channel, beside captures of a real SGLang."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncssh
import httpx
import pytest

from ddtui.demo.host import DemoHost
from ddtui.demo.machine import PORT
from tests.unit.demo.conftest import FAST, Connect

FIXTURES = Path(__file__).parents[2] / "fixtures" / "sglang"


def captured(name: str) -> Any:
    return json.loads((FIXTURES / f"sglang-fresh-dflash.after.{name}.txt").read_text())


@asynccontextmanager
async def client(scenario: str = "idle", speed: float = FAST) -> AsyncIterator[httpx.AsyncClient]:
    host = await DemoHost.create(scenario=scenario, speed=speed)
    try:
        await host.wait_live()
        engine = host.machine.unit.engine
        if engine:
            engine.health_seconds = 0.01
        async with httpx.AsyncClient(
            transport=host.transport(), base_url=f"http://127.0.0.1:{PORT}", timeout=30
        ) as http:
            yield http
    finally:
        await host.close()


async def test_server_info_has_a_real_ones_keys_and_the_dialects() -> None:
    real = captured("server_info")
    async with client() as http:
        info = (await http.get("/server_info")).json()
    assert set(real) <= set(info)
    assert set(info) - set(real) == {"speculative_ddtree_budget"}
    assert set(real["internal_states"][0]) - {"avg_spec_accept_length"} <= set(
        info["internal_states"][0]
    )
    assert info["version"] == "0.5.23+simulated"
    assert (info["status"], info["tp_size"]) == ("ready", 8)
    assert info["speculative_algorithm"] == "DDTREE"
    assert info["speculative_ddtree_budget"] == 8
    assert info["speculative_num_draft_tokens"] == 8
    assert info["speculative_draft_window_size"] == 2048
    assert "--speculative-ddtree-budget 8" in info["launch_command"]


async def test_loads_models_and_model_info_have_a_real_ones_keys() -> None:
    real_info = json.loads((FIXTURES / "sglang-base.after.model_info.txt").read_text())
    real_models = json.loads((FIXTURES / "sglang-base.after.v1_models.txt").read_text())
    real_loads = captured("v1_loads")
    async with client() as http:
        loads = (await http.get("/v1/loads")).json()
        models = (await http.get("/v1/models")).json()
        info = (await http.get("/model_info")).json()
    assert set(loads) == set(real_loads)
    assert set(loads["loads"][0]) == set(real_loads["loads"][0])
    assert set(models["data"][0]) == set(real_models["data"][0])
    assert set(info) == set(real_info)


def series(text: str) -> set[tuple[str, frozenset[str]]]:
    """Names with the names of their labels."""
    found = set()
    for line in text.splitlines():
        match = re.match(r"(sglang:[a-z0-9_]+)\{(.*)\} ", line)
        if match:
            labels = frozenset(re.findall(r'([a-z_]+)="', match[2]))
            found.add((match[1], labels))
    return found


async def test_metrics_are_a_real_ones_names_and_labels() -> None:
    real = series((FIXTURES / "sglang-fresh-dflash.during.metrics.txt").read_text())
    async with client() as http:
        answer = await http.get("/metrics")
        await http.post("/generate", json={"text": "x", "sampling_params": {"max_new_tokens": 20}})
        later = (await http.get("/metrics")).text
    ours = series(answer.text)
    assert ours <= real
    assert {name for name, _ in ours} >= {
        "sglang:num_running_reqs",
        "sglang:num_queue_reqs",
        "sglang:gen_throughput",
        "sglang:token_usage",
        "sglang:spec_accept_length",
        "sglang:realtime_tokens_total",
        "sglang:generation_tokens_total",
        "sglang:spec_verify_calls_total",
    }
    decoded = re.search(r'realtime_tokens_total\{.*mode="decode".*\} (\S+)', later)
    assert decoded is not None
    assert float(decoded[1]) == 19  # the first token comes from the prefill


async def test_generate_reports_its_speculation() -> None:
    real = json.loads((FIXTURES / "sglang-fresh-dflash.generate_meta.json").read_text())
    async with client() as http:
        answer = await http.post(
            "/generate", json={"text": "hello", "sampling_params": {"max_new_tokens": 64}}
        )
        meta = answer.json()["meta_info"]
    assert set(meta) <= set(real)
    assert meta["completion_tokens"] == 64
    assert meta["spec_accept_length"] == 64 / meta["spec_verify_ct"]
    assert sum(meta["spec_correct_drafts_histogram"]) == meta["spec_verify_ct"]
    assert meta["finish_reason"]["type"] == "length"


async def test_generate_streams_growing_text() -> None:
    counts: list[int] = []
    async with client() as http:
        body = {"text": "hello", "sampling_params": {"max_new_tokens": 40}, "stream": True}
        async with http.stream("POST", "/generate", json=body) as answer:
            events = [line[6:] async for line in answer.aiter_lines() if line]
    assert events.pop() == "[DONE]"
    for event in events:
        value = json.loads(event)
        counts.append(value["meta_info"]["completion_tokens"])
        assert len(value["output_ids"]) == counts[-1]
        assert len(value["text"].split()) == counts[-1]
    assert counts == sorted(set(counts))
    assert counts[-1] == 40
    assert len(counts) < 40  # several tokens a chunk


async def test_chat_streams_usage_last() -> None:
    body = {
        "messages": [{"role": "user", "content": "hello"}],
        "max_tokens": 30,
        "stream": True,
        "stream_options": {"include_usage": True},
        "return_spec_tokens_details": True,
    }
    async with client() as http:
        async with http.stream("POST", "/v1/chat/completions", json=body) as answer:
            lines = [line async for line in answer.aiter_lines() if line]
        plain = await http.post("/v1/chat/completions", json=body | {"stream": False})
    assert lines[-1] == "data: [DONE]"
    events = [json.loads(line[6:]) for line in lines[:-1]]
    words = "".join(
        choice["delta"].get("content") or "" for event in events for choice in event["choices"]
    )
    assert len(words.split()) == 30
    assert events[-1]["usage"]["completion_tokens"] == 30
    assert events[-2]["sglext"]["spec_tokens_details"]["spec_verify_ct"] > 0
    assert plain.json()["usage"]["completion_tokens"] == 30


async def test_refusals_and_unknown_routes() -> None:
    async with client() as http:
        assert (await http.get("/health")).status_code == 200
        assert (await http.get("/ready")).status_code == 200
        assert (await http.get("/nope")).json() == {"detail": "Not Found"}
        assert (await http.get("/generate")).status_code == 405
        assert (await http.post("/generate", json={})).status_code == 400
        assert (await http.post("/generate", content=b"[")).status_code == 400
        assert (await http.post("/flush_cache")).status_code == 200


async def test_flush_is_refused_while_requests_run_and_an_abort_ends_them() -> None:
    body = {"text": "x", "sampling_params": {"max_new_tokens": 5000}, "stream": True}
    async with client() as http:
        async with http.stream("POST", "/generate", json=body) as answer:
            lines = answer.aiter_lines()
            first = json.loads((await anext(lines))[6:])
            assert (await http.post("/flush_cache")).status_code == 400
            await http.post("/abort_request", json={"rid": first["meta_info"]["id"]})
            rest = [line async for line in lines if line]
        assert json.loads(rest[-2][6:])["meta_info"]["finish_reason"]["type"] == "abort"
        assert (await http.post("/flush_cache")).status_code == 200


async def test_a_closed_port_refuses_the_connection(connect: Connect) -> None:
    _, connection = await connect("hang")
    with pytest.raises(asyncssh.ChannelOpenError) as refused:
        await connection.open_connection("127.0.0.1", PORT)
    assert refused.value.code == asyncssh.OPEN_CONNECT_FAILED
    assert refused.value.reason == "Connection refused"


async def test_background_traffic_moves_the_figures() -> None:
    host = await DemoHost.create(scenario="serving", speed=FAST)
    async with asyncio.timeout(20):
        await host.wait_live()
        async for entries in host.machine.journal.follow(0):
            if any("Decode batch" in entry.message() for entry in entries):
                break
        async with httpx.AsyncClient(transport=host.transport()) as http:
            answer = await http.get(f"http://127.0.0.1:{PORT}/v1/loads")
    await host.close()
    load = answer.json()["loads"][0]
    assert load["gen_throughput"] > 100
    assert 3.0 < load["speculative"]["accept_length"] < 6.0


async def test_made_up_users_rest_while_a_client_is_served() -> None:
    host = await DemoHost.create(scenario="serving", speed=FAST)
    async with asyncio.timeout(30):
        await host.wait_live()
        engine = host.machine.engine_on(PORT)
        assert engine is not None
        async for entries in host.machine.journal.follow(0):
            if any("Prefill batch" in entry.message() for entry in entries):
                break
        async with httpx.AsyncClient(transport=host.transport()) as http:
            await ask(http)
            await engine.scheduler.wait_idle()
            before = sum(engine.scheduler.totals.requests.values())
            for _ in range(8):
                await ask(http)
    assert sum(engine.scheduler.totals.requests.values()) == before + 8
    await host.close()


async def ask(http: httpx.AsyncClient) -> None:
    body = {"text": "x", "sampling_params": {"max_new_tokens": 100, "temperature": 0}}
    answer = await http.post(f"http://127.0.0.1:{PORT}/generate", json=body)
    assert answer.status_code == 200

"""The load generator through a real OpenSSH server: the engine's figures, and a cut link."""

from __future__ import annotations

import asyncio
from asyncio import to_thread
from contextlib import suppress

import httpx
import pytest

from ddtui.bench.bench import Bench
from ddtui.bench.errors import ConnectionLost
from ddtui.bench.external import BENCH
from ddtui.bench.transport import ThinTransport
from ddtui.collect.programs import HEARTBEAT_LIMIT
from ddtui.core.bench_plan import BenchPlan
from ddtui.core.measurement import Cell
from ddtui.engines.sglang import SGLANG
from ddtui.hosts.ssh import SshHost
from tests.host.gpuhost import DFLASH, PATIENCE, GpuHost, engine_command, wait_until

pytestmark = pytest.mark.host

UNIT = "bench-llm.service"
PORT = 30000


async def until_ready(host: SshHost) -> None:
    transport = ThinTransport(host)
    async with httpx.AsyncClient(transport=transport, timeout=30) as client, asyncio.timeout(60):
        while True:
            with suppress(httpx.TransportError):
                if (await client.get(f"http://127.0.0.1:{PORT}/ready")).status_code == 200:
                    return
            await asyncio.sleep(0.2)


async def test_bench_through_openssh(gpuhost: GpuHost) -> None:
    with gpuhost.unit(UNIT, engine_command(*DFLASH)):
        host = SshHost(gpuhost.name, ssh_config=gpuhost.ssh_config)
        await host.start()
        try:
            await host.wait_live()
            await until_ready(host)
            await command(host, gpuhost)
            await command_cut(host, gpuhost)
            # Of the command that was cut off, the host hears no more: it misses its heartbeat.
            await host.wait_live()
            await figures(host)
            await cut(host, gpuhost)
            wait = HEARTBEAT_LIMIT + PATIENCE
            await to_thread(wait_until, lambda: not gpuhost.programs(BENCH.label), wait, "its end")
        finally:
            await host.close()


async def figures(host: SshHost) -> None:
    bench = Bench(host, "127.0.0.1", PORT, SGLANG)
    plan = BenchPlan(
        requests=16, repeats=2, warmup_batches=2, output_tokens=64, concurrency=(1, 16)
    )
    alone, many = await bench.run(plan)
    for cell in (alone, many):
        assert (cell.requests, cell.failed) == (32, 0)
        assert cell.output_tokens == 32 * 64
        assert cell.acceptance_length
        assert cell.total_rate
        assert cell.ttft
        # The engine's counters are of what it says of each request, and of what came here.
        assert cell.server_acceptance == pytest.approx(cell.acceptance_length.median, rel=0.1)
        assert cell.server_rate == pytest.approx(cell.total_rate.median, rel=0.1)
        assert cell.server_ttft
        assert cell.link_rtt
        assert cell.server_ttft < cell.ttft.median + 0.05
    assert alone.step_time
    assert many.total_rate
    assert alone.total_rate
    assert many.total_rate.median > 3 * alone.total_rate.median


async def command(host: SshHost, gpuhost: GpuHost) -> None:
    """An external bench, ended with the task that waits for it."""
    words = ("bash", "-c", 'echo \'{"output_throughput": 9, "completed": 3}\' > "$1"', "x")
    bench = Bench(host, "127.0.0.1", PORT, SGLANG, host=host)
    (cell,) = await bench.run(BenchPlan(command=(*words, "{output}")))
    assert cell.total_rate
    assert cell.total_rate.median == 9
    endless = asyncio.ensure_future(bench.run(BenchPlan(command=("sleep", "12345"))))
    await to_thread(wait_until, lambda: gpuhost.programs(BENCH.label), what="it runs")
    endless.cancel()
    await asyncio.gather(endless, return_exceptions=True)
    await to_thread(wait_until, lambda: not gpuhost.programs(BENCH.label), what="it has ended")
    assert "12345" not in await to_thread(gpuhost.sh, "ps -eo args | grep 'sleep 1234[5]' || true")


async def cut(host: SshHost, gpuhost: GpuHost) -> None:
    """A cut link ends the bench with what was whole, and nothing hangs."""
    kept: list[Cell] = []
    seen = asyncio.Event()
    bench = Bench(host, "127.0.0.1", PORT, SGLANG)
    plan = BenchPlan(requests=4, repeats=1, warmup_batches=0, output_tokens=256, concurrency=(4, 2))

    def whole(cell: Cell) -> None:
        kept.append(cell)
        seen.set()

    running = asyncio.ensure_future(bench.run(plan, on_cell=whole))
    await asyncio.wait_for(seen.wait(), 60)
    await to_thread(gpuhost.link, "reset")
    try:
        with pytest.raises(ConnectionLost) as told:
            await asyncio.wait_for(running, 60)
    finally:
        await to_thread(gpuhost.heal)
    assert told.value.remedy
    assert [cell.concurrency for cell in kept] == [4]


async def command_cut(host: SshHost, gpuhost: GpuHost) -> None:
    """What an external bench has printed before the link breaks is kept, and says so."""
    kept: list[Cell] = []
    seen = asyncio.Event()
    await host.wait_live()
    bench = Bench(host, "127.0.0.1", PORT, SGLANG, host=host)
    words = ("bash", "-c", 'echo \'{"output_throughput": 9, "completed": 3}\'; sleep 12345')

    def came(cell: Cell) -> None:
        kept.append(cell)
        seen.set()

    running = asyncio.ensure_future(bench.run(BenchPlan(command=words), on_cell=came))
    await asyncio.wait_for(seen.wait(), 60)
    await to_thread(gpuhost.link, "reset")
    try:
        with pytest.raises(ConnectionLost):
            await asyncio.wait_for(running, 60)
    finally:
        await to_thread(gpuhost.heal)
    assert [(cell.partial, "link broke" in cell.notes[-1]) for cell in kept] == [
        (True, False),
        (True, True),
    ]

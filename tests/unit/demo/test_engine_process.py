"""The simulated engine as a program: output, port, children, signals, exit statuses."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@asynccontextmanager
async def engine(*flags: str) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "ddtui.demo.engine_process", *flags),
        stderr=asyncio.subprocess.PIPE,
        limit=1 << 20,
    )
    try:
        async with asyncio.timeout(40):
            yield process
    finally:
        if process.returncode is None:
            process.kill()
        assert process.stderr is not None
        await process.stderr.read()
        await process.wait()


async def read_until(process: asyncio.subprocess.Process, words: str) -> str:
    assert process.stderr is not None
    seen = b""
    while words.encode() not in seen:
        line = await process.stderr.readline()
        assert line, f"ended before {words!r}: {seen[-500:]!r}"
        seen += line
    return seen.decode()


def children(pid: int) -> list[str]:
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [Path(f"/proc/{child}/comm").read_text().strip() for child in found]


async def test_it_loads_serves_and_drains() -> None:
    port = free_port()
    flags = ("--port", str(port), "--load-seconds", "1.5", "--tp-size", "2", "--enable-metrics")
    async with engine(*flags) as process:
        text = await read_until(process, "Uvicorn running on")
        assert "\rMulti-thread loading shards:   2% Completed | 1/64 [" in text
        assert " TP1] Load weight end. elapsed=" in text
        assert children(process.pid) == ["sglang::schedul", "sglang::schedul", "sglang::detoken"]
        await read_until(process, "ready to roll!")
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as http:
            info = (await http.get("/server_info")).json()
            answer = await http.post(
                "/generate", json={"text": "x", "sampling_params": {"max_new_tokens": 8}}
            )
        assert info["launch_command"] == " ".join(flags)
        assert answer.json()["meta_info"]["completion_tokens"] == 8
        process.send_signal(signal.SIGTERM)
        await read_until(process, "Gracefully exiting...")
        assert await process.wait() == 0


@pytest.mark.parametrize(
    ("failure", "status", "words"),
    [
        ("ddtree-unknown", 1, "ValueError: Unknown speculative algorithm name: DDTREE"),
        ("sm120", -9, "Unsupported architecture"),
    ],
)
async def test_it_fails_as_asked(failure: str, status: int, words: str) -> None:
    flags = ("--port", "1", "--load-seconds", "1", "--simulate-failure", failure)
    async with engine(*flags) as process:
        await read_until(process, words)
        assert await process.wait() == status


async def test_an_unknown_flag_is_an_argparse_error() -> None:
    async with engine("--speculative-bogus", "3") as process:
        await read_until(process, "error: unrecognized arguments: --speculative-bogus 3")
        assert await process.wait() == 2


async def test_a_taken_port_is_noticed_after_the_load_and_sigterm_does_not_help() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        async with engine("--port", str(port), "--load-seconds", "0.5") as process:
            text = await read_until(process, "[Errno 98] error while attempting to bind")
            assert "Load weight end." in text
            await read_until(process, "Waiting for application shutdown.")
            process.send_signal(signal.SIGTERM)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(process.wait(), 0.5)

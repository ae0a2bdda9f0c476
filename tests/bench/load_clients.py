"""One client of the stub engine in a process of its own: `python -m tests.bench.load_clients NAME`.

Reads its settings as JSON from standard input, and prints CPU microseconds an event, and median and
99th percentile of how late its stamps are. Each client does what a load generator must: a time
stamp for every event, the counts out of its JSON, the answer's end. Through SSH it goes as ddtui
does (`_ssh`), or through a port of this machine that asyncssh forwards, as `ssh -L` would
(`_forward`).
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any

import asyncssh
import httpx
import msgspec

from ddtui.bench.event_stream import EventSplitter
from ddtui.bench.exchange import Limits, exchange
from ddtui.bench.transport import Connector, ThinTransport, timed_reads
from ddtui.core.garbage import all_set_apart
from ddtui.core.generation import Prompt, Wanted
from ddtui.engines.sglang import SGLANG
from ddtui.hosts.ports import DirectPorts
from ddtui.hosts.ssh.host import SshHost
from ddtui.hosts.ssh.http import SshTransport
from ddtui.hosts.ssh.target import SshTarget

Stamps = list[tuple[float, int]]
"""(Moment of the stamp, nanoseconds at which the server sent it)."""
One = Callable[[], Awaitable[Stamps]]
BODY = SGLANG.generation("chat").body(
    Prompt.of("Write a function. " * 20), Wanted(output_tokens=256)
)
PAUSE = 0.25


def url(settings: dict[str, Any]) -> str:
    return f"http://127.0.0.1:{settings['port']}/v1/chat/completions"


async def ours(settings: dict[str, Any], connector: Connector) -> tuple[One, httpx.AsyncClient]:
    """As the bench does it; lateness is told by a second way through the same transport."""
    client = httpx.AsyncClient(transport=ThinTransport(connector), timeout=60, trust_env=False)
    form, path = SGLANG.generation("chat"), url(settings)

    async def one() -> Stamps:
        request = client.build_request("POST", path, json=BODY)
        if settings["stamps"]:
            splitter, found = EventSplitter(), Stamps()
            response = await client.send(request, stream=True)
            async for pieces in timed_reads(response, PAUSE):
                for stamp, piece in pieces:
                    found += [(at, created(data)) for at, data in splitter.feed(stamp, piece)]
            await response.aclose()
            return found
        limits = Limits(output_tokens=1_000_000, stall_seconds=60)
        done = await exchange(client, request, form, time.perf_counter, pause=PAUSE, limits=limits)
        if not done.ok:
            raise RuntimeError(done.error)
        return []

    return one, client


async def stock(
    settings: dict[str, Any], transport: httpx.AsyncBaseTransport | None
) -> tuple[One, httpx.AsyncClient]:
    """Stock httpx with its own transport, `aiter_lines` and json: what comes first to mind."""
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    client = httpx.AsyncClient(transport=transport, timeout=60, limits=limits, trust_env=False)

    async def one() -> Stamps:
        found = Stamps()
        async with client.stream("POST", url(settings), json=BODY) as response:
            async for line in response.aiter_lines():
                if line.startswith("data: ") and line != "data: [DONE]":
                    stamp = time.perf_counter()
                    found.append((stamp, json.loads(line[6:])["created"]))
        return found

    return one, client


async def raw_aiohttp(settings: dict[str, Any]) -> tuple[One, Any]:
    """Nothing but aiohttp: chunks as they come, split at the empty line, json."""
    import aiohttp  # type: ignore[import-not-found]  # of this client alone

    session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))

    async def one() -> Stamps:
        found, held = Stamps(), b""
        async with session.post(url(settings), json=BODY) as response:
            async for piece in response.content.iter_any():
                stamp = time.perf_counter()
                *events, held = (held + piece).split(b"\n\n")
                for event in events:
                    data = event.removeprefix(b"data: ")
                    if data != b"[DONE]":
                        found.append((stamp, json.loads(data)["created"]))
        return found

    return one, session


def created(data: bytes) -> int:
    return 0 if data == b"[DONE]" else _created.decode(data).created


class Created(msgspec.Struct):
    created: int


_created = msgspec.json.Decoder(Created)


@asynccontextmanager
async def through_ssh(settings: dict[str, Any]) -> AsyncIterator[SshHost]:
    """A host as ddtui reaches it."""
    folder = Path(settings["folder"])
    target = SshTarget(
        name="bench",
        host="127.0.0.1",
        port=settings["ssh_port"],
        username=settings["user"],
        client_keys=(asyncssh.read_private_key(folder / "client"),),
        host_keys=(asyncssh.read_public_key(folder / "host.pub"),),
    )
    host = SshHost("bench", target)
    await host.start()
    try:
        async with asyncio.timeout(20):
            await host.wait_live()
        yield host
    finally:
        await host.close()


@asynccontextmanager
async def forwarded(settings: dict[str, Any]) -> AsyncIterator[int]:
    """A port of this machine that leads to the engine's."""
    folder = Path(settings["folder"])
    async with (
        asyncssh.connect(
            "127.0.0.1",
            settings["ssh_port"],
            username=settings["user"],
            client_keys=[asyncssh.read_private_key(folder / "client")],
            known_hosts=([asyncssh.read_public_key(folder / "host.pub")], [], []),
        ) as connection,
        await connection.forward_local_port(
            "127.0.0.1", 0, "127.0.0.1", settings["port"]
        ) as listener,
    ):
        yield listener.get_port()


async def all_at_once(one: One, streams: int) -> list[Stamps]:
    """Each stream begins in a turn of the loop of its own, as in `ddtui.bench.batch`."""
    tasks = []
    for _ in range(streams):
        tasks.append(asyncio.ensure_future(one()))
        await asyncio.sleep(0)
    return await asyncio.gather(*tasks)


async def measured(name: str, settings: dict[str, Any], host: SshHost | None) -> dict[str, float]:
    """Figures of one client."""
    own = name.startswith("ours")
    if own:
        one, client = await ours(settings, host or DirectPorts())
    elif name.startswith("stock"):
        live = host._supervisor.live if host else None
        channels = settings["streams"]
        one, client = await stock(settings, SshTransport(live, channels) if live else None)
    else:
        one, client = await raw_aiohttp(settings)
    await all_at_once(one, settings["streams"])  # connections, imports
    with all_set_apart() if own else nullcontext():
        before = resource.getrusage(resource.RUSAGE_SELF)
        found = await all_at_once(one, settings["streams"])
        after = resource.getrusage(resource.RUSAGE_SELF)
    await (client.aclose() if isinstance(client, httpx.AsyncClient) else client.close())
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    late = sorted(stamp - sent / 1e9 for each in found for stamp, sent in each if sent)
    result = {"cpu_us_an_event": 1e6 * cpu / (settings["streams"] * settings["events"])}
    if late:
        result["late_p50_ms"] = 1e3 * late[len(late) // 2]
        result["late_p99_ms"] = 1e3 * late[int(0.99 * (len(late) - 1))]
    return result


async def run(name: str, settings: dict[str, Any]) -> dict[str, float]:
    """Figures of one client, by the way that its name says."""
    if name.endswith("_ssh"):
        async with through_ssh(settings) as host:
            return await measured(name, settings, host)
    if name.endswith("_forward"):
        async with forwarded(settings) as port:
            return await measured(name, {**settings, "port": port}, None)
    return await measured(name, settings, None)


def main() -> int:
    settings = json.load(sys.stdin)
    sys.path[:0] = settings.get("path", [])
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[-1]})
    print(json.dumps(asyncio.run(run(sys.argv[1], settings))))
    return 0


if __name__ == "__main__":
    sys.exit(main())

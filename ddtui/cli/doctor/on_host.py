"""What the doctor looks at through the link: its quality, and whether its channels suffice."""

from __future__ import annotations

import asyncio
import time
from statistics import median

from ddtui.cli.doctor.check import Check, fail, ok, warn
from ddtui.cli.doctor.facts import Facts, parse_facts
from ddtui.collect.programs import FACTS
from ddtui.hosts.base import Host, HostError, Program

CHANNELS = 8
"""Sessions that ddtui keeps open at once at most: five sources and three short programs."""
SLOW = 0.3
"""Seconds for a short program, from which on the link is called slow."""

_NOTHING = Program("ddtui:nothing", ":\n")
_HOLD = Program("ddtui:hold", "echo up; read -r -t 10 _ || :\n")


async def ask_facts(host: Host, unit: str, nvidia_smi: str) -> tuple[Facts, float, float]:
    """The host's facts, and when they were asked for and had come (Unix seconds)."""
    asked = time.time()
    done = await host.run(FACTS, unit, nvidia_smi)
    facts = parse_facts(done.stdout)
    if not facts.complete:
        said = done.stderr.decode(errors="replace").strip()[-300:]
        raise HostError(
            f"the host's shell did not run the program: status {done.status}, {said or 'no words'}",
            "ddtui needs `bash` on the host and a login shell that runs `bash -c`",
        )
    return facts, asked, time.time()


async def latency(host: Host) -> list[Check]:
    """How long a short program takes, most of which is the way there and back."""
    took = []
    for _ in range(5):
        began = time.monotonic()
        await host.run(_NOTHING)
        took.append(time.monotonic() - began)
    text = f"{median(took) * 1000:.0f} ms for a short program (slowest {max(took) * 1000:.0f} ms)"
    if median(took) > SLOW:
        return [warn("latency", text, "the figures will be that late; nothing else suffers")]
    return [ok("latency", text)]


async def channels(host: Host) -> list[Check]:
    """Whether the host lets one connection have as many sessions as ddtui uses (MaxSessions)."""
    together = asyncio.Barrier(CHANNELS)

    async def hold() -> None:
        async with host.stream(_HOLD) as stream:
            async for line in stream.lines():
                if line == b"up":
                    break
            async with asyncio.timeout(5):
                await together.wait()

    results = await asyncio.gather(*(hold() for _ in range(CHANNELS)), return_exceptions=True)
    errors = [result for result in results if isinstance(result, BaseException)]
    if not errors:
        return [ok("channels", f"{CHANNELS} sessions at once over one connection")]
    refused = [error for error in errors if isinstance(error, HostError)]
    said = refused[0].what if refused else "some did not start"
    return [
        fail(
            "channels",
            f"{CHANNELS} sessions at once are too many for the host: {said}",
            f"set MaxSessions {CHANNELS + 2} or more in its sshd_config (the default is 10)",
        )
    ]

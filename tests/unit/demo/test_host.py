"""DemoHost as a Host: live at once, labelled, and gone without a trace."""

from __future__ import annotations

import asyncio

from ddtui.collect import programs
from ddtui.core.reach import Reach
from ddtui.core.samples import LinkState
from ddtui.demo.host import DemoHost
from tests.unit.demo.conftest import FAST


async def test_it_is_a_host_that_says_it_is_simulated_and_ends_cleanly() -> None:
    before = asyncio.all_tasks()
    host = DemoHost("serving", speed=FAST)
    assert (host.simulated, host.kind) == (True, Reach.DEMO)
    await host.start()
    await host.start()
    await host.wait_live()
    assert host.link.state is LinkState.LIVE
    done = await host.run(programs.FACTS, "", "")
    assert done.status == 0
    async with host.stream(programs.GPU, "", "index,name", "100") as stream:
        row = await anext(aiter(stream.lines()))
    assert row.startswith(b"0, NVIDIA RTX PRO 6000")
    await host.close()
    await host.close()
    assert asyncio.all_tasks() == before

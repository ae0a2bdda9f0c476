"""A runner whose connection is gone for itself alone: the host still has what it left there."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import psutil

from tests.host import at_a_line
from tests.host.gpuhost import GpuHost
from tests.host.queueing import (
    RUN,
    check,
    check_cells,
    ddtui,
    event,
    host,
    queue,
    runner,
    starts,
)
from tests.host.test_verbs import Ddtui

__all__ = ["ddtui", "host"]
TABLE = "moved"


@contextmanager
def unheard(host: GpuHost, pid: int) -> Iterator[None]:
    """What comes over the connections that a process has now is dropped by the host; new ones are
    heard. So it is when a laptop has moved to another network: nobody ends the old ones.
    """
    ports = [str(each.laddr.port) for each in psutil.Process(pid).net_connections("tcp")]
    chain = f"inet {TABLE} in"
    host.exec(
        "nft",
        f"add table inet {TABLE}; add chain {chain} {{ type filter hook input priority 0; }};"
        f"add rule {chain} tcp sport {{ {', '.join(ports)} }} drop",
    )
    try:
        yield
    finally:
        host.exec("nft", f"delete table inet {TABLE}")


def test_a_laptop_that_moves_to_another_network_goes_on(host: GpuHost, ddtui: Ddtui) -> None:
    """Its old lock is still held there, until its heartbeat is missed for long enough."""
    before = starts(host)
    queue(ddtui)
    process = runner(ddtui, at_a_line.command(signal.SIGSTOP, event("step", "measuring"), *RUN))
    try:
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        with unheard(host, process.pid):
            process.send_signal(signal.SIGCONT)
            events, said = process.communicate(timeout=250)
    finally:
        process.kill()
    told = [json.loads(each) for each in events.splitlines()]
    assert process.returncode == 0, said
    assert any("broken off" in each.get("text", "") for each in told), said
    check_cells(told)
    check(ddtui, host, before)

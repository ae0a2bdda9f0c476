"""A runner whose connection is gone for itself alone: the host still has what it left there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import psutil

from tests.host.gpuhost import GpuHost
from tests.host.test_runner import check, check_cells, ddtui, host, queue, runner, starts
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
    process = runner(ddtui)
    told = []
    try:
        assert process.stdout is not None
        for line in process.stdout:
            told.append(json.loads(line))
            if told[-1].get("step") == "measuring":
                break
        with unheard(host, process.pid):
            rest, said = process.communicate(timeout=150)
    finally:
        process.kill()
    told += [json.loads(each) for each in rest.splitlines()]
    assert process.returncode == 0, said
    assert any("broken off" in each.get("text", "") for each in told), said
    check_cells(told)
    check(ddtui, host, before)

"""Waiters are woken one a turn of the loop, and what existed before is not collected meanwhile."""

from __future__ import annotations

import asyncio
import socket

from ddtui.bench.turns import Turns


async def test_sockets_are_read_while_those_that_are_due_are_woken() -> None:
    loop, turns = asyncio.get_running_loop(), Turns()
    order, whole = list[str](), asyncio.Event()
    near, far = socket.socketpair()
    near.setblocking(False)

    def read() -> None:
        order.append(near.recv(1).decode())
        if len(order) == 8:
            whole.set()

    async def wait(number: int, waiter: asyncio.Future[None]) -> None:
        await waiter
        order.append(str(number))
        far.send(b"r")  # comes while the others are still to be woken

    waiters = [loop.create_future() for _ in range(4)]
    tasks = [asyncio.create_task(wait(*pair)) for pair in enumerate(waiters)]
    await asyncio.sleep(0)
    loop.add_reader(near, read)
    try:
        for waiter in waiters:
            turns.wake(waiter)
        async with asyncio.timeout(5):
            await asyncio.gather(*tasks, whole.wait())
    finally:
        loop.remove_reader(near)
        near.close()
        far.close()
    # A turn of the loop goes on with what is ready before it comes to the sockets: one behind.
    assert "".join(order) == "01r2r3rr"


async def test_one_that_is_no_longer_waited_for_keeps_nobody_waiting() -> None:
    loop, turns = asyncio.get_running_loop(), Turns()
    first, cancelled, last = (loop.create_future() for _ in range(3))
    for waiter in (first, cancelled, last):
        turns.wake(waiter)
    cancelled.cancel()
    async with asyncio.timeout(5):
        await asyncio.gather(first, last)
    turns.wake(again := loop.create_future())
    async with asyncio.timeout(5):
        await again

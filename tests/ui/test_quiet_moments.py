"""What is left to moments in which nobody types."""

from __future__ import annotations

import asyncio

import pytest
from textual import events

from tests.ui.control_world import FakeControl, control_app


async def test_garbage_is_collected_once_nobody_types(monkeypatch: pytest.MonkeyPatch) -> None:
    collected: list[float] = []
    now = [1_000.0]
    monkeypatch.setattr("ddtui.ui.app.COLLECT_INTERVAL", 0.05)
    monkeypatch.setattr("ddtui.ui.app.collect_if_due", lambda: collected.append(now[0]))
    app = control_app("idle", FakeControl(), key_clock=lambda: now[0])
    async with app.run_test() as pilot:
        key = events.Key("f24", None)
        key.time = now[0]
        app.post_message(key)
        await pilot.pause()
        collected.clear()
        await pilot.pause(0.3)
        assert not collected
        now[0] += 1.0
        async with asyncio.timeout(30):
            while not collected:
                await pilot.pause(0.05)

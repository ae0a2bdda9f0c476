"""The log screen under load, headless: prints figures as JSON.

With 20,000 lines kept and 500 lines a second arriving: what reading and painting cost, and how
long a key takes from its arrival to the paint that shows it.
"""

from __future__ import annotations

import asyncio
import gc
import json
import statistics
import time
from typing import Any

from textual import events

from ddtui.engines.sglang import SGLANG
from ddtui.ui.log_filter import compile_search
from ddtui.ui.screens.log import LogScreen
from tests.ui.log_world import LogApp, many

KEPT = 20_000
RATE = 500
SIZE = (120, 40)
KEYS = (
    "up",
    "pageup",
    "down",
    "pagedown",
    "g",
    "G",
    "n",
    "N",
    "v",
    "t",
    "t",
    "w",
    "w",
    "l",
    "l",
    "c",
)


class Bench(LogApp):
    """Notes when something was painted after an action was taken."""

    def __init__(self) -> None:
        super().__init__()
        self.log_screen = LogScreen(SGLANG)
        self.acted = False
        self.painted = asyncio.Event()

    async def run_action(self, *arguments: Any, **more: Any) -> bool:
        done = await super().run_action(*arguments, **more)
        self.acted = True
        return done

    def _display(self, *arguments: Any) -> None:
        super()._display(*arguments)
        if self.acted:
            self.painted.set()


async def read_all(app: Bench) -> tuple[float, float]:
    """Seconds until all lines were read, and the longest that the event loop was held meanwhile."""
    began = last = time.perf_counter()
    longest = 0.0
    app.buffer.extend(many(KEPT))
    app.feed()
    while app.log_screen.lines.busy:
        await asyncio.sleep(0)
        now = time.perf_counter()
        longest, last = max(longest, now - last), now
    return time.perf_counter() - began, longest


async def arrive(app: Bench, seconds: float) -> None:
    """Lines at the rate, 20 times a second."""
    number, end = KEPT, time.perf_counter() + seconds
    while time.perf_counter() < end:
        app.buffer.extend(many(RATE // 20, number))
        number += RATE // 20
        await asyncio.sleep(1 / 20)


async def following(app: Bench, seconds: float) -> float:
    """Share of a core while lines arrive and are followed."""
    began = time.process_time()
    lines = asyncio.create_task(arrive(app, seconds))
    await lines
    return (time.process_time() - began) / seconds


async def keys(app: Bench, rounds: int) -> list[float]:
    """Milliseconds from each key to the paint after its action, while lines arrive."""
    lines = asyncio.create_task(arrive(app, 3_600))
    took: list[float] = []
    for key in KEYS * rounds:
        await asyncio.sleep(0.05)
        app.acted = False
        app.painted.clear()
        began = time.perf_counter()
        app.post_message(events.Key(key, key if len(key) == 1 else None))
        try:
            await asyncio.wait_for(app.painted.wait(), 2)
        except TimeoutError:
            continue  # a key that changes nothing, such as `n` on the only match
        took.append((time.perf_counter() - began) * 1000)
    lines.cancel()
    return took


def search(app: Bench) -> float:
    """Milliseconds to search all lines."""
    app.log_screen.lines.set_search(compile_search("out of mem", regex=False))
    began = time.perf_counter()
    while app.log_screen.lines.step(1.0):
        pass
    return (time.perf_counter() - began) * 1000


async def run() -> dict[str, object]:
    gc.collect()
    gc.freeze()  # as `ddtui connect` does
    app = Bench()
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        seconds, longest = await read_all(app)
        share = await following(app, 5.0)
        searched = search(app)
        took = sorted(await keys(app, 10))
        return {
            "lines_kept": KEPT,
            "read_all_seconds": round(seconds, 3),
            "read_all_longest_hold_ms": round(longest * 1000, 1),
            "following_500_lines_per_second_core_percent": round(share * 100, 1),
            "search_all_ms": round(searched, 1),
            "key_to_paint_ms": {
                "keys": len(took),
                "p50": round(statistics.median(took), 1),
                "p99": round(took[int(len(took) * 0.99)], 1),
                "most": round(took[-1], 1),
            },
        }


if __name__ == "__main__":
    print(json.dumps(asyncio.run(run()), indent=2))

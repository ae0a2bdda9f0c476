"""How soon a key is answered while 64 GPUs at 10 Hz and 500 log lines a second arrive.

Goes back and forth between Monitor and Log; the time runs from the key to the last byte of what
only the other screen shows. The first time a screen is opened it is also built; that is told apart.
"""

from __future__ import annotations

import json
import sys
from statistics import median, quantiles

from tests.bench.terminal import Terminal

PRESSES = 300
MARKS = {"2": b"FOLLOW", "1": b"GPUs"}
LOAD = {
    "64 GPUs at 10 Hz, 500 log lines/s": ["--gpus", "64", "--hertz", "10", "--lines", "500"],
    "8 GPUs at 1 Hz, 2 log lines/s": [],
}


def latencies(arguments: list[str]) -> dict[str, float]:
    """Milliseconds from key to paint."""
    argv = [sys.executable, "-m", "tests.ui.show", "fed", *arguments]
    times, unanswered = [], 0
    with Terminal(argv) as terminal:
        terminal.until([b"GPUs"], 20)
        terminal.read(5)
        for number in range(PRESSES):
            key = "2" if number % 2 == 0 else "1"
            terminal.press(key)
            answered = terminal.until([MARKS[key]], 5)
            if answered is None:
                unanswered += 1
            else:
                times.append(1000 * answered)
            terminal.read(0.15 + (number % 7) * 0.037)  # not in step with the paints
        busy = terminal.cost(5)
    first, *later = times
    return {
        "p50_ms": round(median(later), 1),
        "p99_ms": round(quantiles(later, n=100)[98], 1),
        "worst_ms": round(max(later), 1),
        "first_opening_ms": round(first, 1),
        "unanswered": unanswered,
        "cpu_percent": busy["cpu_percent"],
    }


def run() -> dict[str, object]:
    """Latencies under each load."""
    return {"aim_p99_ms": 50, **{name: latencies(arguments) for name, arguments in LOAD.items()}}


if __name__ == "__main__":
    print(json.dumps(run(), indent=1))

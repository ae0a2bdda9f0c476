"""What the monitor costs in a 120x40 terminal, at 8 GPUs and 1 Hz, busy and idle.

The host is made up within the program, so that only the screen, the reducer and the samples are
counted. On a machine with NVIDIA GPUs, `connect local` is measured beside nvitop in the same run.
"""

from __future__ import annotations

import json
import shutil
import sys

from tests.bench.terminal import Terminal

SETTLE = 8.0
SECONDS = 25.0


def cost(argv: list[str], seconds: float = SECONDS) -> dict[str, float]:
    """CPU, memory and terminal traffic of a program once it has settled."""
    with Terminal(argv) as terminal:
        terminal.read(SETTLE)
        return terminal.cost(seconds)


def run() -> dict[str, object]:
    """Figures of each program."""
    fed = [sys.executable, "-m", "tests.ui.show"]
    results: dict[str, object] = {
        "busy: 8 GPUs at 1 Hz, 2 log lines/s": cost([*fed, "fed"]),
        "idle: 8 GPUs at 1 Hz, little changes": cost([*fed, "fed-idle", "--lines", "0.1"]),
    }
    if shutil.which("nvidia-smi"):
        ddtui = [sys.executable, "-m", "ddtui", "connect", "local"]
        results["connect local"] = cost(ddtui)
        if shutil.which("nvitop"):
            nvitop = ["nvitop", "--interval", "1", "--monitor", "full"]
            results["nvitop --interval 1"] = cost(nvitop)
            results["connect local, again"] = cost(ddtui)
    return results


if __name__ == "__main__":
    print(json.dumps(run(), indent=1))

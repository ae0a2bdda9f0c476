"""How fast a saved log is diagnosed, and in how much memory: prints figures as JSON."""

from __future__ import annotations

import json
import resource
import tempfile
import time
from pathlib import Path

from ddtui.cli.diagnose_sources import of_stream

CAPTURE = Path(__file__).resolve().parents[1] / "fixtures" / "sglang" / "sglang-dflash.log"
BYTES = 200_000_000
SERVED = (
    b"[2026-11-29 17:34:02 TP0] Decode batch, #running-req: 4, #token: 33012, token usage: 0.12, "
    b"accept len: 4.44, accept rate: 0.49, cuda graph: True, gen throughput (token/s): 610.72, "
    b"#queue-req: 5\n"
    b'[2026-11-29 17:34:02] INFO:     127.0.0.1:40210 - "POST /v1/chat/completions HTTP/1.1" 200\n'
    b"[2026-11-29 17:34:02 TP3] Another line of the engine, of a usual length, about nothing much\n"
)


def main() -> None:
    """Write a log of 200 MB, diagnose it, print."""
    started = CAPTURE.read_bytes().split(b"[2026-11-29 17:34:08] SIGTERM")[0]
    with tempfile.TemporaryFile() as file:
        file.write(started)
        while file.tell() < BYTES:
            file.write(SERVED * 1000)
        size = file.tell()
        file.seek(0)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        began = time.perf_counter()
        found = of_stream(file, "log", time.time()).diagnosis
        seconds = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    figures = {
        "lines_per_second": round(found.lines / seconds),
        "megabytes_per_second": round(size / seconds / 1e6, 1),
        "peak_memory_mib": peak // 1024,
        "grown_mib": (peak - before) // 1024,
        "ready": found.ready,
    }
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()

"""How many journal entries a second are decoded, split, cleaned and redacted.

The entries are a real engine's log as journalctl prints it (with its usual 25 fields), and hostile
ones. Prints JSON: `python -m tests.bench.bench_journal`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

from ddtui.collect.journal_entries import JournalReader

LOGS = Path(__file__).resolve().parents[1] / "fixtures" / "sglang"
ENTRIES = 20_000
DECODE = (
    "[2026-10-01 10:00:02 TP0 EP0] Decode batch, #running-req: 4, #token: 33012, "
    "token usage: 0.12, accept len: 4.44, accept rate: 0.49, cuda graph: True, "
    "gen throughput (token/s): 610.72, #queue-req: 5"
)
ACCESS = 'INFO:     127.0.0.1:51234 - "POST /v1/chat/completions HTTP/1.1" 200 OK'
HOSTILE = b"bad \xff\xfe \x1b[31mred\x1b[0m [@click=app.quit]x[/] api_key='sk-abcdefghijklmnop'\r"


def entry(number: int, message: object) -> bytes:
    """One entry with the fields that a real one has."""
    return json.dumps(
        {
            "__CURSOR": f"s=6409fe67f9f64fb79fb2a8fe3e4f0e23;i={number:x};b=3f059592c82743a6",
            "__REALTIME_TIMESTAMP": str(1795984817183708 + number),
            "__MONOTONIC_TIMESTAMP": str(973042824 + number),
            "_BOOT_ID": "3f059592c82743a6a517366762f4606e",
            "_MACHINE_ID": "d0fe68657c6d4889ac1fb109087fe6bd",
            "_HOSTNAME": "ct200",
            "_TRANSPORT": "stdout",
            "_STREAM_ID": "b5e1f0c7a1d34b62a0d5b0c4c1e6f001",
            "PRIORITY": "6",
            "SYSLOG_FACILITY": "3",
            "SYSLOG_IDENTIFIER": "python",
            "_PID": "4242",
            "_UID": "1000",
            "_GID": "1000",
            "_COMM": "python",
            "_EXE": "/opt/llm/venv/bin/python3.11",
            "_CMDLINE": "/opt/llm/venv/bin/python -m sglang.launch_server --model-path /m/kimi",
            "_CAP_EFFECTIVE": "0",
            "_SELINUX_CONTEXT": "unconfined\n",
            "_SYSTEMD_CGROUP": "/system.slice/llm.service",
            "_SYSTEMD_UNIT": "llm.service",
            "_SYSTEMD_SLICE": "system.slice",
            "_SYSTEMD_INVOCATION_ID": "e6a941403bd343afa98c9e53b071ed10",
            "MESSAGE": message,
        },
        ensure_ascii=False,
    ).encode()


def rate(messages: Callable[[int], object]) -> float:
    """Entries a second, the best of three runs."""
    raw = [entry(number, messages(number)) for number in range(ENTRIES)]
    best = 0.0
    for _ in range(3):
        reader = JournalReader()
        began = time.process_time()
        for start in range(0, ENTRIES, 200):
            reader.read(raw[start : start + 200])
        best = max(best, ENTRIES / (time.process_time() - began))
    return round(best)


def run() -> dict[str, object]:
    """Entries a second of CPU time, by kind of message."""
    log = (LOGS / "sglang-base.log").read_text(encoding="utf-8", errors="replace")
    lines = [line for line in log.splitlines() if line.strip()]
    return {
        "entries_per_second": {
            "decode lines": rate(lambda _: DECODE),
            "decode and access lines": rate(lambda n: DECODE if n % 2 else ACCESS),
            "a real engine's whole log": rate(lambda n: lines[n % len(lines)]),
            "byte arrays with control sequences and a secret": rate(lambda _: list(HOSTILE)),
        },
        "aim": 20_000,
    }


if __name__ == "__main__":
    print(json.dumps(run(), indent=1))

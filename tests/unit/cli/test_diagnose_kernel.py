"""Kernel lines in saved journals: only those of the start that is diagnosed tell why it ended."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from ddtui.cli.diagnose_sources import of_stream
from ddtui.core.cause_of_failure import UNRECOGNIZED

NOW = datetime(2026, 11, 29, 20, tzinfo=UTC).timestamp()

LOST = "NVRM: Xid (PCI:0000:41:00): 79, GPU has fallen off the bus."
SIGQUIT = "Received sigquit from a child process. It usually means the child failed."


def start(minute: int) -> list[tuple[int, str, str]]:
    """A start that fails 5 minutes later: minute, writer and text of each line."""
    at, end = f"[2026-11-29 17:{minute:02}:00]", minute + 5
    return [
        (minute, "python", f"{at} server_args=ServerArgs(model_path='/m/x', port=30000)"),
        (end, "python", f"[2026-11-29 17:{end:02}:00] Scheduler hit an exception: "),
        (end, "python", "Traceback (most recent call last):"),
        (end, "python", '  File "/x/y.py", line 3, in f'),
        (end, "python", "OddError: three"),
        (end, "python", f"[2026-11-29 17:{end:02}:00] {SIGQUIT}"),
    ]


def short(lines: list[tuple[int, str, str]]) -> bytes:
    ident = {"python": "python[7]", "kernel": "kernel"}
    texts = (f"Nov 29 17:{at:02}:00 ct200 {ident[who]}: {text}\n" for at, who, text in lines)
    return "".join(texts).encode()


def as_json(lines: list[tuple[int, str, str]]) -> bytes:
    def entry(at: int, who: str, text: str) -> str:
        stamp = int(datetime(2026, 11, 29, 17, at, tzinfo=UTC).timestamp() * 1e6)
        fields = {"__REALTIME_TIMESTAMP": str(stamp), "MESSAGE": text}
        if who == "kernel":
            return json.dumps(fields | {"_TRANSPORT": "kernel"})
        return json.dumps(fields | {"_PID": "7", "_SYSTEMD_UNIT": "llm.service"})

    return "\n".join(entry(*line) for line in lines).encode()


@pytest.mark.parametrize("form", [short, as_json])
@pytest.mark.parametrize(
    ("minute", "id_"),
    [(3, UNRECOGNIZED), (22, "gpu-fell-off-the-bus"), (40, UNRECOGNIZED)],
    ids=["of an earlier start", "of this start", "after its end"],
)
def test_the_kernels_lines_of_other_times(
    form: Callable[[list[tuple[int, str, str]]], bytes], minute: int, id_: str
) -> None:
    lines = sorted([*start(0), *start(20), (minute, "kernel", LOST)], key=lambda line: line[0])
    found = of_stream(io.BytesIO(form(lines)), "x.log", NOW).diagnosis
    assert found.earlier == 1
    assert found.cause is not None
    assert found.cause.id == id_


def test_much_that_the_kernel_says_of_other_things_takes_no_place() -> None:
    chatter = [(23, "kernel", f"[UFW BLOCK] IN=eth0 SRC=10.0.0.{n % 250}") for n in range(2000)]
    lines = sorted([*start(20), (22, "kernel", LOST), *chatter], key=lambda line: line[0])
    found = of_stream(io.BytesIO(short(lines)), "x.log", NOW).diagnosis
    assert found.cause is not None
    assert found.cause.id == "gpu-fell-off-the-bus"


def test_kernel_lines_behind_a_container_s_log_have_a_clock_of_their_own() -> None:
    own = "".join(f"{text}\n" for _, _, text in start(20)).encode()
    found = of_stream(io.BytesIO(own + short([(59, "kernel", LOST)])), "x.log", NOW).diagnosis
    assert found.cause is not None
    assert found.cause.id == "gpu-fell-off-the-bus"

from __future__ import annotations

import pytest

from ddtui.engines.sglang import SGLANG
from ddtui.engines.sglang.log_lines import message_start
from tests.unit.engines.captures import text_of


@pytest.mark.parametrize(
    ("line", "rank", "message"),
    [
        ("[2026-09-22 17:27:12] Load weight begin.", "", "Load weight begin."),
        ("[2026-09-22 17:27:12 TP0] x", "TP0", "x"),
        ("[2026-09-22 17:27:12 DP0 PP1 TP3 EP3] x", "DP0 PP1 TP3 EP3", "x"),
        ("[2026-09-22 17:27:12 ATTN_CP1 MOE_DP0 TP0] x", "ATTN_CP1 MOE_DP0 TP0", "x"),
        ("[2026-09-22 17:27:12.123 TP0] x", "TP0", "x"),
        ("[2026-09-22 17:27:12,123] x", "", "x"),
        ("[2026-09-22 17:27:12] INFO engine.py:156: x", "", "x"),
        ("[2026-09-22 17:27:12,173] [INFO] [PID-7-MainThread] [sglang.srt.x] >>> x", "", "x"),
        ("[2026-09-22 17:27:12 TP0] [ERROR] - x", "TP0", "x"),
        ("[2026-09-22 17:27:12 Mode.DECODE TP1] x", "Mode.DECODE TP1", "x"),
        ("[2026-09-22 17:27:12 TP0] [INFORMED] x", "TP0", "[INFORMED] x"),
        ("[2026-09-22 17:27:12 TP1] WARNING model_config.py:1098: x", "TP1", "x"),
        ("[2026-09-22 17:27:12] INFO:     x", "", "INFO:     x"),
        ("[17:27:12 TP1] a message of 0.3", "TP1", "a message of 0.3"),
        ("[17:27:12] another message of 0.3", "", "another message of 0.3"),
        ("[17:27:12 not a rank] x: long enough", "", None),
        ("[rank3]: Traceback (most recent call last):", "rank3", None),
        ("[2026-09-22 17:27:12 not a rank] x", "", None),
        ("[2026-09-22 17:27:12", "", None),
        ("[a-list, of things: that is long enough]", "", None),
        ("Traceback (most recent call last):", "", None),
        ("", "", None),
    ],
)
def test_stamp_and_rank(line: str, rank: str, message: str | None) -> None:
    assert SGLANG.rank(line) == rank
    start = message_start(line)
    assert (line[start:] if start >= 0 else None) == message


STAMP = "[2026-09-22 17:27:12 TP0] "


@pytest.mark.parametrize(
    ("line", "severity"),
    [
        ("[2026-09-22 17:27:12] WARNING server_args.py:1359: Mixed chunk is off", "warning"),
        ("[2026-09-22 17:27:12] ERROR scheduler.py:10: it is over", "error"),
        ("[2026-09-22 17:27:12] INFO engine.py:156: server_args=ServerArgs(a=1)", "info"),
        ("[2026-09-22 17:27:12,173] [WARNING] [PID-7] [sglang.srt.x] >>> x", "warning"),
        ("[2026-09-22 17:27:12,173] [CRITICAL] x", "error"),
        (STAMP + "Scheduler hit an exception: Traceback (most recent call last):", "error"),
        (
            STAMP + "Received sigquit from a child process. It usually means the child failed.",
            "error",
        ),
        (
            STAMP + "Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft=False)",
            "error",
        ),
        (STAMP + "ERROR:    [Errno 98] error while attempting to bind", "error"),
        (STAMP + "Health check failed. Server couldn't get a response from detokenizer", "error"),
        (STAMP + "WARNING:  Invalid HTTP request received.", "warning"),
        (STAMP + "KV cache pool is full. Retract requests. #retracted_reqs: 3", "warning"),
        (STAMP + "Custom allreduce is disabled because it's not supported on ...", "warning"),
        (STAMP + "Max running requests is reset to 48 for speculative decoding.", "warning"),
        (
            STAMP + "DFLASH block size mismatch: using speculative_num_draft_tokens=8 but ...",
            "warning",
        ),
        (STAMP + 'INFO:     127.0.0.1:1 - "POST /generate HTTP/1.1" 500 Internal', "warning"),
        (STAMP + 'INFO:     127.0.0.1:1 - "POST /generate HTTP/1.1" 200 OK', "info"),
        (STAMP + 'INFO:     127.0.0.1:1 - "GET /health HTTP/1.1" 503 Service Unavailable', "debug"),
        (STAMP + 'INFO:     127.0.0.1:1 - "GET /metrics HTTP/1.1" 200 OK', "debug"),
        (STAMP + "Ignore import error when loading sglang.srt.models.grok: 'x' failed to", "debug"),
        (STAMP + "Load weight begin. avail mem=21.34 GB", "info"),
        (STAMP + "Decode batch, #running-req: 8, cuda graph: False, gen throughput", "info"),
        (STAMP + "Receive: obj=GenerateReqInput(text='CUDA error: Warning, failed to')", "info"),
        ("Traceback (most recent call last):", "error"),
        ('  File "/opt/llm/x.py", line 3, in f', "error"),
        ("    raise ValueError(", "info"),
        ("ValueError: DFLASH speculative decoding requires ...", "error"),
        ("torch.OutOfMemoryError: CUDA out of memory.", "error"),
        ("[rank0]: RuntimeError: NCCL error", "error"),
        ("sglang serve: error: unrecognized arguments: --x", "error"),
        (
            "/opt/x.py:71: UserWarning: 'python -m sglang.launch_server' is still supported",
            "warning",
        ),
        ("host:12:34 [0] NCCL WARN Call to connect failed", "warning"),
        ("[W1129 17:48:01.123 ProcessGroup.cpp:1] something", "warning"),
        ("nanobind: leaked 4 instances!", "debug"),
        ("Multi-thread loading shards:  33% Completed | 2/6 [00:00<00:01, 2.50it/s]", "debug"),
    ],
)
def test_severity_is_inferred_where_no_level_is_written(line: str, severity: str) -> None:
    assert SGLANG.severity(line, 6) == severity
    assert SGLANG.severity(line, None) == severity


@pytest.mark.parametrize(
    ("priority", "severity"),
    [(2, "error"), (3, "error"), (4, "warning"), (5, "info"), (7, "debug")],
)
def test_a_priority_that_somebody_set_decides(priority: int, severity: str) -> None:
    assert SGLANG.severity("llm.service: Failed with result 'exit-code'.", priority) == severity


def test_a_server_that_works_logs_no_errors() -> None:
    lines = text_of("sglang-fresh-dflash.log").split("\n")
    assert [line for line in lines if SGLANG.severity(line, 6) == "error"] == []


def test_a_failed_start_shows_where() -> None:
    lines = text_of("sglang-fail-spec-ddtree.log").split("\n")
    errors = [line for line in lines if SGLANG.severity(line, 6) == "error"]
    assert errors[0] == "Traceback (most recent call last):"
    assert errors[-1] == "ValueError: Unknown speculative algorithm name: DDTREE"

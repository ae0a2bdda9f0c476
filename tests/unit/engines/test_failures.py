from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ddtui.core.events import Failed
from ddtui.core.samples import JournalLine
from ddtui.engines.sglang import SGLANG
from tests.unit.engines.captures import brief, events_of, told

T = "[2026-09-22 17:27:12]"
T0 = "[2026-09-22 17:27:12 TP0]"
HEADER = "Traceback (most recent call last):"


def test_an_exception_in_a_scheduler_and_what_follows_it() -> None:
    assert told(
        f"{T0} Scheduler hit an exception: {HEADER}",
        '  File "/x/scheduler.py", line 6371, in run_scheduler_process',
        "    scheduler = Scheduler(",
        "                ^^^^^^^^^^",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
        "",
        f"{T} Received sigquit from a child process. It usually means the child failed.",
        f"{T} kill_process_tree called: parent_pid=1, include_parent=True, pid=1",
        f"{T} Rank 0 scheduler died during initialization (exit code: -9). If exit code is -9",
    ) == [
        "failed torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
        "wrapper Received sigquit from a child process. It usually means the child failed.",
        "wrapper Rank 0 scheduler died during initialization (exit code: -9). If exit code is -9",
    ]


def test_the_rank_of_a_traceback_is_that_of_its_header() -> None:
    event = events_of(f"{T0} Scheduler hit an exception: {HEADER}\n  File x\nValueError: no")[0]
    assert event == Failed("ValueError: no", stamp=3.0, rank="TP0")


def test_tracebacks_of_several_processes_are_kept_apart() -> None:
    reader = SGLANG.log_reader()
    texts = [
        (HEADER, 1),
        (HEADER, 2),
        ('  File "a"', 1),
        ("KeyError: 'a'", 1),
        ('  File "b"', 2),
        ("RuntimeError: b", 2),
        ("NotAnException: there is no traceback any more", 2),
    ]
    events = [
        event
        for text, pid in texts
        for event in reader.read(JournalLine(stamp=0.0, text=text, pid=pid))
    ]
    assert [brief(event) for event in events] == [
        "0: failed KeyError: 'a'",
        "0: failed RuntimeError: b",
        "0: alone NotAnException: there is no traceback any more",
    ]


def test_lines_of_others_within_a_traceback_do_not_end_it() -> None:
    assert told(
        HEADER,
        '  File "a"',
        f"{T0} Load weight begin. avail mem=1 GB",
        "/x/awq.py:53: UserWarning: Only CUDA, HIP and XPU support AWQ currently.",
        "nanobind: leaked 4 instances!",
        "sglang.srt.errors.BadConfig: what it was",
    ) == ["began loading target", "failed sglang.srt.errors.BadConfig: what it was"]


def test_torchs_own_rank_prefix() -> None:
    assert told(
        f"[rank1]: {HEADER}",
        '[rank1]:   File "x.py", line 1, in f',
        "[rank1]: torch.distributed.DistBackendError: NCCL error in: x.cpp:1",
    ) == ["failed torch.distributed.DistBackendError: NCCL error in: x.cpp:1"]


@pytest.mark.parametrize(
    "end", ["KeyboardInterrupt", "SystemExit: 0", "asyncio.exceptions.CancelledError"]
)
def test_exceptions_by_which_a_stopped_process_ends_are_no_failures(end: str) -> None:
    assert told(HEADER, '  File "x"', end) == []


def test_a_failed_request_is_no_failure_of_the_engine() -> None:
    reader = SGLANG.log_reader()
    texts = [
        f"{T} ERROR:    Exception in ASGI application",
        "  + Exception Group Traceback (most recent call last):",
        '  |   File "x"',
        "  | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)",
        "  +-+---------------- 1 ----------------",
        "",
        "During handling of the above exception, another exception occurred:",
        "",
        HEADER,
        '  File "y"',
        "ValueError: a request was wrong",
    ]
    events = [e for text in texts for e in reader.read(JournalLine(stamp=1.0, text=text))]
    assert events == []


def test_what_comes_later_counts_again() -> None:
    reader = SGLANG.log_reader()
    texts = [
        (1.0, f"{T} ERROR:    Exception in ASGI application"),
        (1.1, HEADER),
        (1.2, "ValueError: a request was wrong"),
        (60.0, HEADER),
        (60.1, "RuntimeError: the engine is broken"),
    ]
    events = [e for at, text in texts for e in reader.read(JournalLine(stamp=at, text=text))]
    assert [brief(event) for event in events] == ["60.1: failed RuntimeError: the engine is broken"]


def test_exceptions_of_finalizers_are_no_failures() -> None:
    assert told("Exception ignored in: <function x>", HEADER, "TypeError: 'NoneType'") == []


def test_a_chain_begins_with_its_root() -> None:
    assert told(
        HEADER,
        '  File "x"',
        "FileNotFoundError: [Errno 2] No such file or directory: 'ninja'",
        "",
        "The above exception was the direct cause of the following exception:",
        "",
        HEADER,
        '  File "y"',
        "RuntimeError: Error building extension",
    ) == [
        "failed FileNotFoundError: [Errno 2] No such file or directory: 'ninja'",
        "wrapper RuntimeError: Error building extension",
    ]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            f"{T} Initialization failed. warmup error: {HEADER}",
            ["wrapper Initialization failed. warmup error:"],
        ),
        (
            f"{T} Initialization failed. warmup error: 503",
            ["failed Initialization failed. warmup error: 503"],
        ),
        (
            f"{T0} Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft=False)",
            ["wrapper Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft=False)"],
        ),
        (f"{T0} Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft=True)", []),
        (
            f"{T0} Watchdog timeout (self.watchdog_timeout=300)",
            ["wrapper Watchdog timeout (self.watchdog_timeout=300)"],
        ),
        (
            f"{T} SIGQUIT received. signum=3, frame=None. It usually means one child failed.",
            ["wrapper SIGQUIT received. signum=3, frame=None. It usually means one child failed."],
        ),
        (
            f"{T} ERROR:    Application startup failed. Exiting.",
            ["wrapper Application startup failed. Exiting."],
        ),
        (f"{T} Rank 0 is ready", []),
        (f"{T} Subprocess liveness monitor started", []),
        (
            "launch_server.py: error: unrecognized arguments: --x",
            ["failed unrecognized arguments: --x"],
        ),
        (
            "launch_server.py: error: argument --dtype: invalid choice: 'x'",
            ["failed argument --dtype: invalid choice: 'x'"],
        ),
        ("some tool: error: not the engine's", []),
        (
            "terminate called after throwing an instance of 'c10::Error'",
            ["wrapper terminate called after throwing an instance of 'c10::Error'"],
        ),
        (
            "  what():  CUDA error: an illegal memory access was encountered",
            ["failed CUDA error: an illegal memory access was encountered"],
        ),
        (
            "Fatal Python error: Segmentation fault",
            ["failed Fatal Python error: Segmentation fault"],
        ),
        ("Killed", ["wrapper Killed"]),
        (
            "/bin/bash: line 1:  1234 Killed                  python -m sglang.launch_server",
            [
                "wrapper /bin/bash: line 1:  1234 Killed                  "
                "python -m sglang.launch_server"
            ],
        ),
        ("Killed-by-name is an option", []),
        ("ValueError: said without a traceback", ["alone ValueError: said without a traceback"]),
    ],
)
def test_lines_that_tell_of_failures(line: str, expected: list[str]) -> None:
    assert told(line) == expected


def test_a_failure_is_made_safe_to_show() -> None:
    event = events_of(f"{HEADER}\nValueError: --api-key sk-secret1234 \x1b[31mred {'x' * 5000}")[0]
    assert isinstance(event, Failed)
    assert event.message.startswith("ValueError: --api-key <redacted> red xxx")
    assert len(event.message) <= 1000


PIECES = st.sampled_from(
    [
        HEADER,
        f"{T0} Scheduler hit an exception: {HEADER}",
        f"{T0} Load weight begin. avail mem=",
        f"{T0} Load weight end. elapsed=",
        f"{T0} KV Cache is allocated. #tokens: ",
        f"{T0} Memory pool end. avail mem=",
        f"{T0} Capture target verify CUDA graph begin. num_tokens_per_req=",
        f"{T} server_args={{'model_path': ",
        f"{T} server_args=ServerArgs(model_path=",
        f"{T} INFO:     Uvicorn running on ",
        f"{T0} Decode batch, #running-req: ",
        "Multi-thread loading shards:  33% Completed | ",
        "ValueError: ",
        "usage: ",
        "x: error: ",
        "[rank0]: ",
        "'",
        "{",
        "}",
        "(",
        ",",
        "\\",
        "GB",
        "1",
        ".",
        " ",
    ]
)


@settings(max_examples=300)
@given(st.lists(st.one_of(PIECES, st.text(max_size=30)), max_size=8).map("".join))
def test_no_line_is_an_error(text: str) -> None:
    events_of(text)
    for line in text.split("\n"):
        assert SGLANG.severity(line, 6) in ("error", "warning", "info", "debug")
        SGLANG.rank(line)


@given(st.binary(max_size=400))
def test_random_bytes_are_no_error(data: bytes) -> None:
    events_of(data.decode("utf-8", "replace"))
    events_of("[2026-09-22 17:27:12 TP0] " + data.decode("latin-1"))


def test_a_traceback_whose_header_was_cut_off() -> None:
    assert told(
        "    self.run()",
        '  File "/x/scheduler.py", line 6371, in run_scheduler_process',
        "    scheduler = Scheduler(",
        "Killed by nobody: no exception's usual name",
        "ValueError: no",
        "ValueError: not in a traceback any more",
    ) == ["failed ValueError: no", "alone ValueError: not in a traceback any more"]


@pytest.mark.parametrize(
    "frame",
    [
        'File "/x/scheduler.py", line 6371, in run_scheduler_process',
        ' File "/x/scheduler.py", line 6371, in <module>',
        '..packages/sglang/srt/scheduler.py", line 6371, in run',
    ],
)
def test_a_frame_that_was_cut_or_lost_its_indentation(frame: str) -> None:
    assert told(frame, "run()", "ValueError: no") == ["failed ValueError: no"]


def test_a_traceback_that_was_pasted_with_indentation() -> None:
    assert told(
        '  File "sglang/srt/managers/schedule_batch.py", line 2654, in _force_track_h',
        "      assert i % chunk_size == 0",
        "             ^^^^^^^^^^^^^^^^^^^",
        "  AssertionError",
    ) == ["failed AssertionError: assert i % chunk_size == 0"]


def test_an_exception_with_any_name_ends_a_traceback_without_a_header() -> None:
    assert told(
        '  File "/x/triton/compiler.py", line 483, in _init_handles',
        '    raise OutOfResources(self.metadata.shared, max_shared, "shared memory")',
        "triton.runtime.errors.OutOfResources: out of resource: shared memory",
    ) == ["failed triton.runtime.errors.OutOfResources: out of resource: shared memory"]


def test_what_is_added_to_every_message_says_nothing() -> None:
    assert told(
        HEADER,
        '  File "/x/scheduler.py", line 1, in run',
        "Exception: Capture cuda graph failed: it was so",
        "and so",
        "Possible solutions:",
        "1. set --mem-fraction-static to a smaller value (e.g., 0.8 or 0.7)",
    ) == ["failed Exception: Capture cuda graph failed: it was so", "more and so", "more ", "more "]


def test_an_assertion_without_words_is_told_by_its_code() -> None:
    assert told(
        HEADER,
        '  File "/x/common.py", line 3767, in pages',
        "    assert lengths.device == cpu",
        "           ^^^^^^^^^^^^^^^^^^^^^",
        "AssertionError",
    ) == ["failed AssertionError: assert lengths.device == cpu"]


def test_a_triton_kernel_that_does_not_compile_is_told_by_what_is_wrong_in_it() -> None:
    assert told(
        HEADER,
        '  File "/x/compiler.py", line 80, in make_ir',
        "triton.compiler.errors.CompilationError: at 322:24:",
        "        if width == 2:",
        "        ^",
        "AssertionError('initial value for `x` is of type fp16')",
    ) == [
        "wrapper triton.compiler.errors.CompilationError: at 322:24:",
        "failed AssertionError('initial value for `x` is of type fp16')",
    ]


def test_words_on_processes_that_have_ended() -> None:
    lines = [
        "Killed",
        "./serve.sh: line 33: 13293 Killed                     sglang serve --port 1",
        "zsh: killed     python -m sglang.launch_server",
        "/x/resource_tracker.py:279: UserWarning: resource_tracker: There appear to be 1 leaked "
        "semaphore objects to clean up at shutdown",
    ]
    assert told(*lines) == [f"wrapper {line}" for line in lines]
    assert told("Killed? No", "x: line 3: Killed") == []


def test_a_fatal_error_of_the_interpreter_ends_its_process() -> None:
    (event,) = events_of("Fatal Python error: Aborted")
    assert isinstance(event, Failed)
    assert event.ends_process

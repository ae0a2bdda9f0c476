"""What a log that begins late, or ends without a word, tells of its engine."""

from __future__ import annotations

import pytest

from ddtui.core.cause_of_failure import NOT_IN_LOG, UNRECOGNIZED
from ddtui.core.diagnosis import diagnose
from ddtui.engines.sglang import SGLANG
from tests.support.diagnosed_log import HEADER, SIGQUIT, UP, Log, cause_id, unit

# ---- logs that begin late ----------------------------------------------------------------------

DECODE = (
    "Decode batch, #running-req: 1, #token: 640, token usage: 0.00, accept len: 3.20, "
    "cuda graph: True, gen throughput (token/s): 190.00, #queue-req: 0"
)
PREFILL = "Prefill batch, #new-seq: 1, #new-token: 512, #cached-token: 0, #running-req: 0"


def test_a_log_of_nothing_but_requests_is_of_an_engine_that_is_ready() -> None:
    log = Log().say(DECODE, "TP0").say(DECODE, "TP0", after=2)
    found = diagnose(log.lines, engine=SGLANG)
    assert (found.ready, found.failed, found.decode.count) == (True, False, 2)
    assert [(phase.name, phase.start, phase.end) for phase in found.phases] == [
        ("ready", None, None)
    ]


def test_prefill_batches_alone_tell_the_same_once_they_are_no_warm_up() -> None:
    log = Log().say(PREFILL)
    assert not diagnose(log.lines, engine=SGLANG).ready
    log.say(PREFILL).say(PREFILL)
    assert diagnose(log.lines, engine=SGLANG).ready


def test_batches_of_a_start_do_not_make_it_ready() -> None:
    log = Log().say("Load weight begin. avail mem=90.00 GB")
    for _ in range(5):
        log.say(PREFILL).say(DECODE)
    assert not diagnose(log.lines, engine=SGLANG).ready


def test_what_ended_a_log_that_began_late() -> None:
    log = Log().say(DECODE).say(f"Scheduler hit an exception: {HEADER}", after=5)
    log.bare('  File "x.py", line 1, in f', "RuntimeError: the end").say(SIGQUIT, after=1)
    found = diagnose(log.lines, engine=SGLANG)
    assert (found.ready, found.failed) == (False, True)
    assert found.cause is not None
    assert found.cause.title == "RuntimeError: the end"


# ---- the end -----------------------------------------------------------------------------------

TRACKER = (
    "/x/resource_tracker.py:279: UserWarning: resource_tracker: There appear to be 1 leaked "
    "shared_memory objects to clean up at shutdown"
)


def test_a_start_that_ends_without_a_word_has_failed() -> None:
    log = Log().say("Load weight begin. avail mem=90.00 GB").bare(TRACKER)
    found = diagnose(log.lines, engine=SGLANG)
    assert (found.ready, found.failed) == (False, True)
    assert found.cause is not None
    assert found.cause.id == "ended-without-a-word"


def test_a_helper_that_ends_during_a_start_does_not_end_it() -> None:
    log = Log().say("Load weight begin. avail mem=90.00 GB").bare(TRACKER)
    log.say("INFO:     Uvicorn running on http://127.0.0.1:30000 (Press CTRL+C to quit)")
    assert not diagnose(log.lines, engine=SGLANG).failed
    log.say(UP).bare(TRACKER)
    found = diagnose(log.lines, engine=SGLANG)
    assert (found.ready, found.failed) == (True, False)


def test_an_engine_that_was_killed_when_it_was_ready_is_not_ready() -> None:
    log = Log().say(UP).say(DECODE, after=5).bare("Killed")
    found = diagnose(log.lines, engine=SGLANG)
    assert (found.ready, found.failed) == (False, True)
    assert found.cause is not None
    assert found.cause.id == "killed"


def test_a_word_on_another_process_that_was_killed_does_not_count_where_batches_go_on() -> None:
    log = Log().say(UP).say(DECODE, after=5).bare("client.sh: line 3: 77 Killed   bench")
    assert diagnose(log.lines, engine=SGLANG).failed
    found = diagnose(log.say(DECODE, after=5).lines, engine=SGLANG)
    assert (found.ready, found.failed) == (True, False)


def test_an_engine_that_crashed_in_native_code_is_not_ready() -> None:
    log = Log().say(UP).say(DECODE, after=5).bare("Fatal Python error: Segmentation fault")
    found = diagnose(log.lines, engine=SGLANG)
    assert (found.ready, found.failed) == (False, True)
    assert found.cause is not None
    assert found.cause.id == "segmentation-fault"


def test_where_only_a_consequence_is_left_of_a_log_that_is_told() -> None:
    log = Log().bare(
        "The above exception was the direct cause of the following exception:",
        HEADER,
        '  File "x.py", line 1, in f',
        "RuntimeError: it could not be built",
    )
    found = diagnose(log.say(SIGQUIT).lines, engine=SGLANG)
    assert found.cause is not None
    assert found.cause.title == "RuntimeError: it could not be built"


@pytest.mark.parametrize(
    ("before", "id_"),
    [
        ((), "gpu-memory-short"),
        (("Load weight begin. avail mem=90.00 GB",), "weights-do-not-fit"),
        (
            ("Load weight begin. avail mem=90.00 GB", "Load weight end. type=A, avail mem=9 GB"),
            "gpu-memory-full",
        ),
        (("Memory pool end. avail mem=2.00 GB",), "gpu-memory-full"),
        ((UP,), "gpu-memory-full"),
    ],
)
def test_where_gpu_memory_ran_out(before: tuple[str, ...], id_: str) -> None:
    log = Log()
    for text in before:
        log.say(text)
    log.say(f"Scheduler hit an exception: {HEADER}", after=1)
    log.bare("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.").say(SIGQUIT)
    found = diagnose(log.lines, engine=SGLANG)
    assert found.cause is not None
    assert found.cause.id == id_


def test_what_torch_adds_to_every_error_of_cuda_is_no_cause() -> None:
    log = Log().say(f"Scheduler hit an exception: {HEADER}")
    log.bare(
        "RuntimeError: CUDA error: an error of its own",
        "For debugging consider passing CUDA_LAUNCH_BLOCKING=1",
        "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.",
    ).say(SIGQUIT)
    found = diagnose(log.lines, engine=SGLANG)
    assert found.cause is not None
    assert found.cause.title == "RuntimeError: CUDA error: an error of its own"


def test_a_graph_that_failed_because_another_rank_is_gone_is_not_told_as_the_graphs() -> None:
    log = Log().say("Capture cuda graph begin. This can take up to several minutes.", "TP3")
    log.say(f"Scheduler hit an exception: {HEADER}", "TP3")
    log.bare("Exception: Capture cuda graph failed: pair.cc:534] Connection closed by peer [::1]:1")
    found = diagnose(log.say(SIGQUIT).lines, engine=SGLANG)
    assert found.cause is not None
    assert found.cause.id == "peer-lost"
    assert "Connection closed by peer" in found.cause.evidence[0]


@pytest.mark.parametrize("ranks", [1, 30])
def test_a_node_that_only_says_that_another_one_is_gone(ranks: int) -> None:
    log = Log().starting()
    for rank in range(ranks):
        log.say(f"Scheduler hit an exception: {HEADER}", f"TP{rank}")
        log.bare('  File "/x"', f"RuntimeError: [gloo] Connection closed by peer [10.0.0.2]:{rank}")
    found = log.say(SIGQUIT).diagnosed()
    assert found.cause is not None
    assert found.cause.id == "peer-lost"
    assert "10.0.0.2" in found.cause.evidence[0]


@pytest.mark.parametrize(
    ("lines", "id_"),
    [
        (["Exit code: -9", HEADER, '  File "/x"', "EOFError"], "killed"),
        ([HEADER, '  File "/x"', "EOFError"], "process-lost"),
        ([HEADER, '  File "/x"', "EOFError: Ran out of input"], UNRECOGNIZED),
        ([HEADER, '  File "/x"', "Exception: Server process exited with code -9."], NOT_IN_LOG),
        (
            [
                HEADER,
                '  File "/x"',
                "RuntimeError: Rank 3 successfully reached monitoredBarrier,"
                " but received errors while waiting for send/recv from rank 0.",
            ],
            "peer-lost",
        ),
        (
            [
                "x.cu:93: op(): block: [2,0,0], thread: [1,0,0] Assertion `i < n` failed.",
                HEADER,
                '  File "/x"',
            ],
            "illegal-memory-access",
        ),
        (
            ["max_total_tokens=20480 is larger than the profiled value -48848.", HEADER],
            "no-room-for-kv-cache",
        ),
    ],
)
def test_what_only_tells_that_another_process_failed(lines: list[str], id_: str) -> None:
    found = Log().starting().bare(*lines).say(SIGQUIT).diagnosed()
    assert found.cause is not None
    assert found.cause.id == id_


@pytest.mark.parametrize("blanks", ["", " ", "  ", "      "])
def test_words_of_a_cpp_exception_are_told(blanks: str) -> None:
    log = Log().starting().bare("terminate called after throwing an instance of 'x::Error'")
    found = log.bare(f"{blanks}what():  op.length <= op.bytes. 4 vs 3").say(SIGQUIT).diagnosed()
    assert found.cause is not None
    assert found.cause.title == "op.length <= op.bytes. 4 vs 3"


def test_an_exception_whose_traceback_was_cut_off_is_told_where_the_engine_ends() -> None:
    log = Log().bare("ValueError: cannot be accessed from Triton (cpu tensor?)").say(SIGQUIT)
    found = log.diagnosed()
    assert found.cause is not None
    assert (found.cause.id, found.cause.title) == (
        UNRECOGNIZED,
        "ValueError: cannot be accessed from Triton (cpu tensor?)",
    )


def test_an_exception_without_a_traceback_is_no_failure_of_a_start_that_goes_on() -> None:
    log = Log().starting().bare("ImportError: optional thing").say("Load weight begin.", after=2)
    assert not log.diagnosed().failed
    found = log.crash("KeyError: 'real'").diagnosed()
    assert found.cause is not None
    assert found.cause.title == "KeyError: 'real'"


@pytest.mark.parametrize(
    "message",
    [
        "torch.AcceleratorError: CUDA error: an illegal memory access was encountered",
        "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 106496",
        "OSError: You are trying to access a gated repo.",
    ],
)
def test_a_log_that_is_no_more_than_an_exception(message: str) -> None:
    log = Log().bare(message, "Make sure of it.", "CUDA kernel errors might be asynchronous.")
    found = log.diagnosed()
    assert found.failed
    assert cause_id(found) in {"illegal-memory-access", "kernel-shared-memory", "hub-access-denied"}
    log = Log().bare(message).say("kill_process_tree called: parent_pid=1, include_parent=True")
    found = log.diagnosed()
    assert found.failed
    assert cause_id(found) in {"illegal-memory-access", "kernel-shared-memory", "hub-access-denied"}


def test_an_exception_at_the_end_of_a_log_is_no_failure_while_the_unit_runs() -> None:
    log = Log().starting().bare("ImportError: optional thing")
    assert log.diagnosed().failed
    assert not log.diagnosed(unit("success", "active", "", 0)).failed
    assert not Log().up().bare("ImportError: optional thing").diagnosed().failed


def test_an_exception_that_says_in_its_next_line_what_it_is_about() -> None:
    log = Log().starting().bare(HEADER, '  File "/x", line 1, in f')
    log.bare("pydantic_core.ValidationError: 1 validation error for ModelConfig")
    log.bare("  Value error, max_num_scheduled_tokens is set to -1792 [type=value_error]")
    found = log.say(SIGQUIT).diagnosed()
    assert found.cause is not None
    assert found.cause.title.endswith(
        "for ModelConfig Value error, max_num_scheduled_tokens is set to -1792 [type=value_error]"
    )
    assert found.cause.evidence[1].startswith("Value error, max_num")


def test_what_another_process_says_in_between_is_not_of_the_message() -> None:
    log = Log().starting().bare(HEADER, '  File "/x", line 1, in f')
    log.bare("pydantic_core.ValidationError: 1 validation error for ModelConfig")
    found = log.say("Another line").bare("  Value error, of nothing").say(SIGQUIT).diagnosed()
    assert found.cause is not None
    assert found.cause.title == "pydantic_core.ValidationError: 1 validation error for ModelConfig"


def test_a_general_signature_says_with_the_exceptions_words_what_it_was() -> None:
    found = Log().starting().crash("ModuleNotFoundError: No module named 'deep_ep'").diagnosed()
    assert found.cause is not None
    assert found.cause.id == "module-missing"
    assert found.cause.title.endswith(": ModuleNotFoundError: No module named 'deep_ep'")
    long = Log().starting().crash("ImportError: cannot import name 'x' " + "y" * 400).diagnosed()
    assert long.cause is not None
    assert long.cause.title.endswith("y…")
    words = "cannot import name 'deterministic' from 'sgl_kernel' " * 8
    whole = Log().starting().crash(f"ImportError: {words}").diagnosed().cause
    assert whole is not None
    assert whole.title.endswith("…")
    assert whole.title.removesuffix("…").split()[-1] in words.split()
    unknown = Log().starting().crash("OddError: " + "seven blue words " * 60).diagnosed().cause
    assert unknown is not None
    assert unknown.id == "unrecognized"
    assert unknown.title.removesuffix("…").split()[-1] in {"seven", "blue", "words"}
    assert len(long.cause.title) < 300


def test_an_assertion_is_known_by_the_code_that_it_quotes() -> None:
    log = Log().starting().say(f"Scheduler hit an exception: {HEADER}", "TP0")
    log.bare('  File "/x"', "    assert param.size() == loaded_weight.size()", "AssertionError")
    found = log.say(SIGQUIT).diagnosed()
    assert cause_id(found) == "weights-do-not-match"


def serving_startup_fails(log: Log) -> Log:
    """What the main process of a node without a server of its own does at its end."""
    log.say("INFO:     Waiting for application startup.").say(f"ERROR:    {HEADER}")
    log.bare('  File "/x"', "AttributeError: 'NoneType' object has no attribute 'server_args'")
    return log.say("ERROR:    Application startup failed. Exiting.")


def test_a_node_of_workers_that_ended_in_order() -> None:
    log = Log().starting().say("Dummy health check server started in background thread at x:1")
    assert log.diagnosed().ready
    log.say("Scheduler or DataParallelController 12 terminated with 0", after=60)
    found = serving_startup_fails(log).diagnosed()
    assert (found.failed, found.stopped, found.cause) == (False, True, None)


def test_a_node_of_workers_that_failed_is_not_told_by_what_follows() -> None:
    log = Log().starting().say("Scheduler or DataParallelController 12 terminated with 255")
    found = serving_startup_fails(log).diagnosed()
    assert found.failed
    assert cause_id(found) == NOT_IN_LOG


@pytest.mark.parametrize(
    "line", ["sglang: 0.4.10.post2", "sglang                    0.5.6.post2", "sglang==0.5.23"]
)
def test_a_version_that_stands_in_a_report_is_told(line: str) -> None:
    log = Log().bare(line, "sglang-router                    0.3.2").say(UP)
    found = diagnose(log.lines, engine=SGLANG)
    assert found.version == line.rpartition(" ")[2].removeprefix("sglang==")
    assert not found.config


# ---- last words --------------------------------------------------------------------------------


ASSERTION = "x/rdma.cpp:801: Plane::build(): Assertion `hdr.type == Type::Reg' failed."


def test_an_assertion_of_the_c_library_is_the_root_of_what_other_ranks_say() -> None:
    log = Log().up().bare(ASSERTION).bare(HEADER, '  File "/x"')
    log.bare("RuntimeError: [gloo/transport/tcp/pair.cc:547] Connection closed by peer")
    found = log.say(SIGQUIT, after=1).diagnosed()
    assert found.cause is not None
    assert (found.cause.id, found.cause.title) == (UNRECOGNIZED, ASSERTION)


def test_last_words_without_a_stamp_may_be_younger_than_the_line_before_them() -> None:
    log = Log().up().say(DECODE, "TP0")
    second = log.second
    log.bare(HEADER, '  File "/x"', "RuntimeError: of the engine")
    found = log.say(SIGQUIT, after=300).diagnosed()
    assert (found.cause and found.cause.title) == "RuntimeError: of the engine"

    log = Log().up().say(DECODE, "TP0")
    assert log.second == second
    log.bare(HEADER, '  File "/x"', "RuntimeError: of a request").say("INFO:     500", after=1)
    found = log.say(SIGQUIT, after=300).diagnosed()
    assert cause_id(found) == NOT_IN_LOG


def test_the_signal_of_an_exit_code_does_not_hide_why_the_process_was_ended() -> None:
    crashed = "Subprocess scheduler_0 (pid=7) crashed with exit code -6. Triggering SIGQUIT"
    log = Log().up().say("Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft=False)")
    found = log.say(SIGQUIT, after=5).say(crashed).diagnosed()
    assert cause_id(found) == "watchdog-timeout"
    found = Log().up().say(crashed).say(SIGQUIT).diagnosed()
    assert cause_id(found) == "process-crashed"
    found = Log().up().bare(ASSERTION).say(crashed).say(SIGQUIT).diagnosed()
    assert cause_id(found) == UNRECOGNIZED


def test_memory_that_ran_out_after_another_ranks_weights_did_so_after_all_of_them() -> None:
    log = Log().say("Memory pool end. avail mem=0.49 GB", "TP1")
    found = log.crash("torch.OutOfMemoryError: CUDA out of memory. Tried", "TP0").diagnosed()
    assert cause_id(found) == "gpu-memory-full"


@pytest.mark.parametrize("length", [3, 40, 400])
def test_a_compilers_output_belongs_to_the_exception_that_tells_of_it(length: int) -> None:
    error = "/x/rope.cuh:8:10: fatal error: cuda_fp8.h: No such file or directory"
    output = [f"[1/{n}] nvcc -c {n}.cu" for n in range(length)]
    log = Log().starting().say(f"Scheduler hit an exception: {HEADER}", "TP0", after=1)
    log.bare('  File "/x"', "RuntimeError: ninja exited with status 1", "stdout:", *output)
    log.bare("FAILED: [code=1] x.o", error, "collect2: error: ld returned 1 exit status")
    found = log.say(SIGQUIT, after=1).diagnosed()
    assert found.cause is not None
    assert (found.cause.id, found.cause.evidence[0]) == ("cuda-headers-missing", error)


@pytest.mark.parametrize(
    "error",
    [
        "/usr/bin/ld: cannot find cuda_0.o: No such file or directory",
        'x/rope.cuh(12): error: identifier "half8" is undefined',
    ],
)
def test_the_compilers_own_words_prove_it_before_those_of_who_ran_it(error: str) -> None:
    said = ("RuntimeError: ninja exited with status 1", "stdout:", "[1/2] c++ x.o -o x.so")
    log = Log().starting().say(f"Scheduler hit an exception: {HEADER}", "TP0")
    log.bare('  File "/x"', *said, "collect2: error: ld returned 1 exit status", error)
    found = log.bare("ninja: build stopped: subcommand failed.", "").say(SIGQUIT).diagnosed()
    assert found.cause is not None
    assert (found.cause.id, found.cause.evidence[0]) == ("kernel-compilation-failed", error)


def test_no_output_follows_an_exception_that_does_not_tell_of_any() -> None:
    log = Log().starting().say(f"Scheduler hit an exception: {HEADER}", "TP0", after=1)
    log.bare('  File "/x"', "RuntimeError: of the engine", *["noise"] * 40)
    found = log.bare("/x/y.cu:8:10: fatal error: cuda_fp8.h: No such file").diagnosed()
    assert (found.cause and found.cause.title) == "RuntimeError: of the engine"


def test_the_exception_of_a_traceback_that_was_cut_out_may_stand_right_behind_the_end() -> None:
    log = Log().starting().bare("[TP0] Scheduler hit an exception:")
    log.bare("AttributeError: 'Method' object has no attribute 'runner'")
    found = log.bare("[TP0] Received sigquit from a child process. It usually means").diagnosed()
    assert found.cause is not None
    assert found.cause.title == "AttributeError: 'Method' object has no attribute 'runner'"


def test_a_warm_up_that_no_server_answers() -> None:
    log = Log().up()
    log.lines.pop()
    log.say(f"Initialization failed. warmup error: {HEADER}", after=3)
    log.bare('  File "/x"', "ConnectionRefusedError: [Errno 111] Connection refused")
    log.bare("During handling of the above exception, another exception occurred:", HEADER)
    pool = "HTTPConnectionPool(host='127.0.0.1', port=30000)"
    log.bare('  File "/x"', f"requests.exceptions.ConnectionError: {pool}: Max retries exceeded")
    assert cause_id(log.diagnosed()) == "warmup-refused"


def test_a_client_that_waits_for_the_server_in_the_same_log_says_nothing_of_it() -> None:
    pool = "HTTPConnectionPool(host='localhost', port=30000): Max retries exceeded with url: /v1"
    log = Log().up().bare(HEADER, '  File "/x"', f"requests.exceptions.ConnectionError: {pool}")
    found = log.diagnosed()
    assert (found.ready, found.failed) == (True, False)


# ---- logs whose middle is missing --------------------------------------------------------------


def test_many_batches_tell_that_an_engine_came_up_where_its_log_does_not() -> None:
    log = Log().starting().say("Load weight begin. avail mem=90.00 GB", after=1)
    for _ in range(49):
        log.say(DECODE, "TP0", after=1)
    assert not log.diagnosed().ready
    found = log.say(DECODE, "TP0", after=1).diagnosed()
    assert (found.ready, found.failed, found.decode.count) == (True, False, 50)
    assert [(phase.name, phase.end) for phase in found.phases][-2:] == [
        ("loading target", None),
        ("ready", None),
    ]
    assert cause_id(log.crash("RuntimeError: of the engine").diagnosed()) == UNRECOGNIZED


def test_a_memory_fault_that_amds_runtime_reports_is_the_root_of_the_abort() -> None:
    log = Log().up().bare("Memory access fault by GPU node-4 (Agent handle: 0x2) on address 0x7e.")
    found = log.bare("Fatal Python error: Aborted").say(SIGQUIT, after=1).diagnosed()
    assert cause_id(found) == "illegal-memory-access"


def test_of_exceptions_without_tracebacks_the_last_before_the_end_or_the_first_behind_it() -> None:
    def lines(*texts: str) -> str:
        found = Log().starting().bare(*texts).diagnosed()
        return found.cause.title if found.cause is not None else ""

    assert lines("OSError: a", "OSError: b", SIGQUIT, "OSError: c", "OSError: d") == "OSError: b"
    assert lines(SIGQUIT, *["noise"] * 20, "OSError: c", "OSError: d") == "OSError: c"
    told = lines(SIGQUIT, "RuntimeError: sglang subprocess exited with code -9 before it was ready")
    assert told.startswith("The log does not say")

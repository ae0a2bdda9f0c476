"""The rules by which a cause is chosen, one at a time."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ddtui.core.cause_of_failure import NOT_IN_LOG, UNRECOGNIZED
from ddtui.core.decode_figures import MOST_KEPT, Series
from ddtui.core.diagnosis import LogExamination, diagnose
from ddtui.core.examination import Diagnosis
from ddtui.core.samples import JournalLine, UnitStatus
from ddtui.engines.sglang import SGLANG

HEADER = "Traceback (most recent call last):"
SIGQUIT = "Received sigquit from a child process. It usually means the child failed."
UP = "The server is fired up and ready to roll!"


def stamped(second: float, text: str, rank: str = "") -> str:
    clock = f"17:{int(second) // 60:02}:{int(second) % 60:02}"
    return f"[2026-11-29 {clock}{' ' + rank if rank else ''}] {text}"


class Log:
    """A log that is written line by line, as the journal gives it."""

    def __init__(self) -> None:
        self.lines: list[JournalLine] = []
        self.second = 0.0

    def say(self, text: str, rank: str = "", *, pid: int | None = None, after: float = 0) -> Log:
        self.second += after
        return self.bare(stamped(self.second, text, rank), pid=pid)

    def bare(self, *texts: str, pid: int | None = None) -> Log:
        self.lines += [JournalLine(1000 + self.second, text, pid=pid) for text in texts]
        return self

    def systemd(self, *texts: str) -> Log:
        self.lines += [JournalLine(1000 + self.second, text, from_manager=True) for text in texts]
        return self

    def starting(self) -> Log:
        return self.say("server_args={'model_path': '/m/x', 'tp_size': 2}", after=5)

    def crash(self, message: str, rank: str = "TP0", pid: int | None = None) -> Log:
        self.say(f"Scheduler hit an exception: {HEADER}", rank, pid=pid, after=1)
        self.bare('  File "/x/scheduler.py", line 1, in run', "    run()", message, "", pid=pid)
        return self.say(SIGQUIT, after=1)

    def up(self) -> Log:
        self.starting().say("Load weight begin. avail mem=90.00 GB", after=1)
        self.say(
            "Load weight end. elapsed=9.00 s, type=X, avail mem=1 GB, mem usage=1 GB.", after=9
        )
        self.say("INFO:     Uvicorn running on http://127.0.0.1:1 (Press CTRL+C to quit)", after=9)
        return self.say(UP, after=2)

    def diagnosed(self, unit: UnitStatus | None = None, kernel: tuple[str, ...] = ()) -> Diagnosis:
        return diagnose(self.lines, engine=SGLANG, unit=unit, kernel=kernel)


def cause_id(found: Diagnosis) -> str:
    return found.cause.id if found.cause is not None else ""


def unit(
    result: str, state: str = "failed", exit_code: str = "killed", exit_status: int = 9
) -> UnitStatus:
    return UnitStatus(
        "llm.service",
        active_state=state,
        result=result,
        exit_code=exit_code,
        exit_status=exit_status,
    )


def test_an_unknown_failure_is_its_own_last_line() -> None:
    found = Log().starting().crash("KeyError: 'experts.w13_blockscale'").diagnosed()
    assert found.cause is not None
    assert (found.cause.id, found.cause.title) == (
        UNRECOGNIZED,
        "KeyError: 'experts.w13_blockscale'",
    )
    assert found.cause.remedy


def test_a_secret_at_the_place_where_a_line_is_cut_is_masked_first() -> None:
    """Cut before it is told by its shape, its beginning would be shown."""
    message = "ValueError: " + "x" * 574 + " Bearer 4f9a8b7c6d5e4f3a2b1c0d9e8f7a6b5c4d3e2f1a"
    found = Log().starting().crash(message).diagnosed()
    assert found.cause is not None
    shown = " ".join((found.cause.title, *found.cause.evidence))
    assert "Bearer" in shown
    assert "4f9" not in shown


def test_the_first_traceback_wins_over_what_other_ranks_say_of_it() -> None:
    log = Log().starting().say(f"Scheduler hit an exception: {HEADER}", "TP3")
    log.bare('  File "/x"', "RuntimeError: shape mismatch in rotary", "")
    log.say(f"Scheduler hit an exception: {HEADER}", "TP0", after=1)
    log.bare(
        '  File "/x"', "torch.distributed.DistBackendError: NCCL error in: x, unhandled system"
    )
    log.bare("RuntimeError: [gloo] Connection closed by peer [127.0.0.1]:40123").say(SIGQUIT)
    found = log.diagnosed()
    assert found.cause is not None
    assert found.cause.title == "RuntimeError: shape mismatch in rotary"


def test_a_lost_peer_is_never_the_cause() -> None:
    log = Log().starting().say(f"Scheduler hit an exception: {HEADER}", "TP0")
    log.bare('  File "/x"', "RuntimeError: [/x/gloo/pair.cc:534] Connection closed by peer [::1]:4")
    log.say(f"Scheduler hit an exception: {HEADER}", "TP3")
    log.bare('  File "/x"', "IndexError: list index out of range").say(SIGQUIT)
    found = log.diagnosed()
    assert found.cause is not None
    assert found.cause.title == "IndexError: list index out of range"


@pytest.mark.parametrize("style", ["pids", "ranks", "torch", "mixed"])
@pytest.mark.parametrize("seed", range(5))
def test_tracebacks_of_eight_ranks_interleaved(style: str, seed: int) -> None:
    random.seed(seed)
    queues: list[list[tuple[str, int | None]]] = []
    last = "ValueError: vocabulary of 163840 cannot be cut into 7 parts"
    body = ['  File "/x/a.py", line 1, in f', "    f()", "    ^^^", '  File "/x/b.py", line 2']
    for rank in range(8):
        name = f"TP{rank}"
        if style == "ranks":
            texts = [stamped(9, text, name) for text in (HEADER, *body, last)]
        elif style == "torch":
            texts = [f"[rank{rank}]: {text}" for text in (HEADER, *body, last)]
        else:
            head = stamped(9, f"Scheduler hit an exception: {HEADER}", name)
            texts = [head, *body, last]
        queues.append([(text, 100 + rank if style == "pids" else None) for text in texts])
    log = Log().starting()
    while queues:
        queue = random.choice(queues)
        text, pid = queue.pop(0)
        log.bare(text, pid=pid)
        queues = [each for each in queues if each]
    found = log.say(SIGQUIT).diagnosed()
    assert found.cause is not None
    assert (found.cause.id, found.cause.title) == (UNRECOGNIZED, last)


def test_a_rank_that_goes_on_has_survived_its_traceback() -> None:
    log = Log().starting().bare(HEADER, '  File "/x"', "ImportError: no fast tokenizer")
    log.say("Load weight begin. avail mem=90.00 GB", after=1)
    assert not log.diagnosed().failed
    found = log.crash("RuntimeError: real", rank="").diagnosed()
    assert found.cause is not None
    assert found.cause.title == "RuntimeError: real"


def test_another_rank_that_goes_on_proves_nothing() -> None:
    log = Log().starting().say("Load weight begin. avail mem=90.00 GB", "TP0")
    log.say(f"Scheduler hit an exception: {HEADER}", "TP1").bare('  File "/x"', "ValueError: one")
    log.say("Load weight begin. avail mem=20.00 GB", "TP0")
    assert log.diagnosed().failed


def test_what_failed_before_it_was_ready_is_forgotten() -> None:
    log = Log().starting().bare(HEADER, '  File "/x"', "OSError: No space left on device")
    log.up()
    assert (log.diagnosed().ready, log.diagnosed().cause) == (True, None)


def test_a_traceback_after_ready_is_a_requests_until_the_engine_dies() -> None:
    log = Log().up()
    log.bare(HEADER, '  File "/x"', "ValueError: of a request")
    assert log.diagnosed().ready
    log.second += 300
    found = log.crash("RuntimeError: of the engine").diagnosed()
    assert not found.ready
    assert found.cause is not None
    assert found.cause.title == "RuntimeError: of the engine"


def test_many_failed_requests_do_not_hide_the_end() -> None:
    log = Log().up()
    for n in range(500):
        log.second += 1
        log.bare(HEADER, '  File "/x"', f"ValueError: request {n}")
    log.second += 60
    found = log.crash(
        "torch.AcceleratorError: CUDA error: device-side assert triggered"
    ).diagnosed()
    assert cause_id(found) == "illegal-memory-access"


def test_another_server_on_the_port_answers_the_warm_up() -> None:
    log = Log().starting().say("INFO:     Application startup complete.", after=60)
    log.say(
        "ERROR:    [Errno 98] error while attempting to bind on address ('127.0.0.1', 30000): "
        "address already in use"
    )
    log.say(UP, after=2).systemd(
        "llm.service: Main process exited, code=exited, status=3/NOTIMPLEMENTED",
        "llm.service: Failed with result 'exit-code'.",
    )
    found = log.diagnosed()
    assert (found.ready, found.failed, cause_id(found)) == (False, True, "http-port-taken")


def test_an_orderly_stop_is_no_failure() -> None:
    log = Log().up().say("SIGTERM received. signum=None frame=None. Draining requests", after=60)
    log.say(
        "Subprocess scheduler_0 (pid=9) crashed with exit code -15. Triggering SIGQUIT", after=2
    )
    log.systemd("Stopping llm.service...", "llm.service: Deactivated successfully.")
    found = log.diagnosed(unit("success", "inactive"))
    assert (found.ready, found.failed, found.stopped, found.cause) == (True, False, True, None)
    assert found.phases[-1].end is not None


# ---- who killed it -------------------------------------------------------------------------------

KILLED = "Rank 0 scheduler died during initialization (exit code: -9). If exit code is -9 (SIGKILL)"


def test_sigkill_alone_proves_no_lack_of_memory() -> None:
    log = Log().starting().say(KILLED)
    assert cause_id(log.diagnosed()) == "killed"
    assert cause_id(log.diagnosed(unit("signal"))) == "killed"


def test_systemds_result_proves_it() -> None:
    found = Log().starting().say(KILLED).diagnosed(unit("oom-kill"))
    assert found.cause is not None
    assert found.cause.id == "host-out-of-memory"
    assert "llm.service: Result=oom-kill, code=killed, status=9/KILL" in found.cause.evidence


@pytest.mark.parametrize(
    ("line", "id_"),
    [
        ("Out of memory: Killed process 77 (sglang::schedul) total-vm:1kB", "host-out-of-memory"),
        ("Out of memory: Killed process 77 (chrome) total-vm:1kB", "killed"),
        ("Memory cgroup out of memory: Killed process 77 (python)", "host-out-of-memory"),
        ("NVRM: Xid (PCI:0000:41:00): 79, GPU has fallen off the bus.", "gpu-fell-off-the-bus"),
    ],
)
def test_the_kernels_log_proves_it(line: str, id_: str) -> None:
    assert cause_id(Log().starting().say(KILLED).diagnosed(kernel=(line,))) == id_


def test_sglangs_own_sigkill_is_told_by_its_traceback() -> None:
    log = Log().starting().crash("RuntimeError: rope scaling").say(KILLED)
    log.systemd("llm.service: Main process exited, code=killed, status=9/KILL")
    found = log.diagnosed(unit("signal"))
    assert found.cause is not None
    assert found.cause.title == "RuntimeError: rope scaling"


def test_only_wrappers_are_told_as_what_they_are() -> None:
    found = Log().starting().say(SIGQUIT).diagnosed()
    assert found.cause is not None
    assert found.cause.id == NOT_IN_LOG
    assert "does not say" in found.cause.title
    assert SIGQUIT in found.cause.evidence[0]


def test_a_unit_that_failed_without_a_word() -> None:
    found = Log().starting().diagnosed(unit("exit-code", exit_code="exited", exit_status=1))
    assert found.cause is not None
    assert found.cause.id == NOT_IN_LOG
    assert "llm.service: Result=exit-code, code=exited, status=1" in found.cause.evidence


@pytest.mark.parametrize(
    ("status", "id_"), [(203, "program-not-found"), (200, "working-folder-missing")]
)
def test_systemds_own_statuses(status: int, id_: str) -> None:
    state = unit("exit-code", exit_code="exited", exit_status=status)
    assert cause_id(diagnose([], engine=SGLANG, unit=state)) == id_


# ---- several invocations -------------------------------------------------------------------------


def test_the_last_invocation_is_diagnosed() -> None:
    log = Log().starting().crash("RuntimeError: first")
    log.systemd("llm.service: Failed with result 'signal'.", "Started llm.service - SGLang.")
    found = log.up().diagnosed()
    assert (found.ready, found.earlier, found.cause) == (True, 1, None)


def test_a_crash_loop_is_told_by_its_last_start() -> None:
    log = Log()
    for n in range(4):
        log.systemd("Started llm.service - SGLang.").starting().crash(f"RuntimeError: try {n}")
        log.systemd(
            "llm.service: Main process exited, code=killed, status=9/KILL",
            "llm.service: Failed with result 'signal'.",
            f"llm.service: Scheduled restart job, restart counter is at {n + 1}.",
        )
    log.systemd("llm.service: Start request repeated too quickly.")
    found = log.diagnosed()
    assert found.cause is not None
    assert (found.cause.title, found.earlier, found.restarts) == ("RuntimeError: try 3", 3, 4)


def test_invocations_without_a_word_of_systemd() -> None:
    log = Log().up().crash("RuntimeError: first").starting()
    found = log.diagnosed()
    assert (found.failed, found.ready, found.earlier) == (False, False, 1)


def test_the_start_before_the_last_one_is_kept() -> None:
    log = Log().starting().crash("RuntimeError: first").starting()
    examination = LogExamination(SGLANG)
    for line in log.lines:
        examination.take(line)
    assert examination.before is not None
    assert cause_id(examination.before) == UNRECOGNIZED


def test_other_units_that_start_meanwhile_begin_nothing() -> None:
    log = Log().up().systemd("Started apt-daily.service - Daily apt download activities.")
    found = log.say("Decode batch, #running-req: 1, gen throughput (token/s): 9.0").diagnosed()
    assert (found.earlier, found.ready, found.decode.count) == (0, True, 1)


def test_invocation_ids_decide_where_they_are_known() -> None:
    lines = [
        JournalLine(float(n), stamped(n, "hello"), invocation=name)
        for n, name in enumerate(["a", "a", "b"])
    ]
    found = diagnose(lines, engine=SGLANG)
    assert (found.earlier, found.lines) == (1, 1)


# ---- notes ---------------------------------------------------------------------------------------


def notes(found: Diagnosis) -> list[str]:
    return [note.id for note in found.notes]


@pytest.mark.parametrize(("length", "told"), [("1.05", True), ("4.80", False)])
def test_low_acceptance_is_worth_a_note(length: str, told: bool) -> None:
    log = Log().up()
    for _ in range(6):
        log.say(
            f"Decode batch, #running-req: 1, accept len: {length}, gen throughput (token/s): 9.0",
            after=1,
        )
    found = log.diagnosed()
    assert found.cause is None
    assert ("low-acceptance" in notes(found)) is told


def test_simulated_acceptance_is_worth_a_note() -> None:
    state = UnitStatus(
        "llm.service", active_state="active", environment=("SGLANG_SIMULATE_ACC_LEN=4.2",)
    )
    assert notes(Log().up().diagnosed(state)) == ["simulated-acceptance"]
    log = Log().bare("+ export SGLANG_SIMULATE_ACC_LEN=4.2").up()
    assert notes(log.diagnosed()) == ["simulated-acceptance"]


# ---- bounds --------------------------------------------------------------------------------------


def test_a_series_stays_small_and_its_median_true() -> None:
    series = Series()
    for n in range(MOST_KEPT * 5):
        series.add(float(n))
    median = series.median()
    assert median is not None
    assert series.count == MOST_KEPT * 5
    assert median == pytest.approx(MOST_KEPT * 2.5, rel=0.01)
    sketch = series.sketch(10)
    assert len(sketch) == 10
    assert list(sketch) == sorted(sketch)


PIECES = st.sampled_from(
    [
        HEADER,
        f"Scheduler hit an exception: {HEADER}",
        SIGQUIT,
        UP,
        "torch.OutOfMemoryError: CUDA out of memory",
        "ValueError: x",
        "During handling of the above exception, another exception occurred:",
        "[Errno 98] error while attempting to bind on address",
        "Load weight begin. avail mem=1 GB",
        "Load weight end. ",
        "SIGTERM received",
        "server_args={'model_path': 'x'}",
        "Decode batch, #running-req: nan, gen throughput (token/s): inf, accept len: -1",
        "exit code: -9",
        "    raise ValueError",
        "",
    ]
)
HOSTILE = st.builds(
    lambda text, head, stamp, flags: JournalLine(
        stamp,
        head + text,
        from_manager=flags[0],
        continued=flags[1],
        bar=flags[2],
        invocation="ab"[flags[3]],
        pid=flags[3],
    ),
    st.one_of(PIECES, st.text(max_size=80)),
    st.sampled_from(["", "[2026-11-29 17:20:00] ", "[2026-11-29 17:20:00 TP1] ", "[rank3]: "]),
    st.floats(0, 2e9),
    st.tuples(*[st.booleans()] * 4),
)


@settings(max_examples=200, deadline=None)
@given(st.lists(HOSTILE, max_size=40))
def test_no_log_is_an_error_and_a_cause_is_always_told(lines: list[JournalLine]) -> None:
    found = diagnose(lines, engine=SGLANG)
    assert (found.cause is not None) is found.failed
    assert not (found.ready and found.failed)
    if found.cause is not None:
        assert found.cause.title
        assert "unknown error" not in found.cause.title.lower()


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
    assert long.cause.title.endswith("...")
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

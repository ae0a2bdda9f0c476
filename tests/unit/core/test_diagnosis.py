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
from ddtui.core.kernel_words import KernelLine
from ddtui.core.samples import JournalLine, UnitStatus
from ddtui.engines.sglang import SGLANG
from tests.support.diagnosed_log import HEADER, SIGQUIT, UP, Log, cause_id, stamped, unit


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
    assert cause_id(Log().starting().say(KILLED).diagnosed(kernel=(KernelLine(0.0, line),))) == id_


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

"""The monitor tells of a failure by its cause."""

from __future__ import annotations

from ddtui.core.host_state import HostState
from ddtui.core.samples import (
    HealthSample,
    JournalLine,
    JournalSample,
    ListenerOwner,
    ListenerSample,
    UnitSample,
    UnitStatus,
)
from ddtui.core.snapshot import ReadinessState, Severity, Snapshot, Verdict
from ddtui.engines.sglang import SGLANG

RUN = "b" * 32
T = "[2026-11-29 17:20:00]"
CRASH = (
    f"{T[:-1]} TP0] Scheduler hit an exception: Traceback (most recent call last):",
    '  File "/x/scheduler.py", line 1, in run_scheduler_process',
    "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.",
    f"{T} Received sigquit from a child process. It usually means the child failed.",
)


def host_with(*texts: str, manager: tuple[str, ...] = (), **unit: object) -> HostState:
    state = HostState("ct200", SGLANG)
    fields: dict[str, object] = {"active_state": "active", "sub_state": "running"} | unit
    status = UnitStatus("llm.service", invocation=RUN, started_at=1000.0, **fields)  # type: ignore[arg-type]
    lines = [JournalLine(1001.0, text, RUN) for text in texts]
    lines += [JournalLine(1002.0, text, RUN, from_manager=True) for text in manager]
    state.apply(UnitSample(1000.0, "systemd", UnitStatus("llm.service", invocation=RUN)))
    state.apply(JournalSample(1001.0, "journal", tuple(lines)))
    state.apply(UnitSample(1002.0, "systemd", status))
    return state


def alert(snapshot: Snapshot) -> str:
    return next(each.text for each in snapshot.alerts if each.key == "readiness")


def test_a_failed_unit_shows_cause_and_remedy() -> None:
    state = host_with(
        *CRASH, active_state="failed", result="signal", exit_code="killed", exit_status=9
    )
    snapshot = state.snapshot(1003.0)
    assert snapshot.diagnosis is not None
    assert snapshot.diagnosis.id == "no-room-for-kv-cache"
    assert snapshot.readiness.state is ReadinessState.FAILED
    assert snapshot.diagnosis.title in snapshot.readiness.summary
    assert snapshot.diagnosis.title in alert(snapshot)
    assert snapshot.diagnosis.remedy in alert(snapshot)
    # Nothing is worked out again while nothing is new.
    assert state.snapshot(1004.0).diagnosis is snapshot.diagnosis


def test_a_crash_loop_shows_it_too() -> None:
    state = host_with(
        *CRASH, active_state="activating", sub_state="auto-restart", result="signal", restarts=1
    )
    snapshot = state.snapshot(1003.0)
    assert snapshot.readiness.state is ReadinessState.CRASH_LOOP
    assert "Nothing is left for the KV cache" in alert(snapshot)


def test_systemds_word_on_memory_comes_before_the_engines_sigkill() -> None:
    state = host_with(
        f"{T} Rank 0 scheduler died during initialization (exit code: -9).",
        manager=("llm.service: Failed with result 'oom-kill'.",),
    )
    diagnosis = state.snapshot(1003.0).diagnosis
    assert diagnosis is not None
    assert diagnosis.id == "host-out-of-memory"


def test_an_engine_that_works_has_no_diagnosis() -> None:
    state = host_with(f"{T} The server is fired up and ready to roll!")
    assert state.snapshot(1003.0).diagnosis is None


def test_a_server_whose_port_is_anothers_is_not_ready_whatever_it_logs() -> None:
    state = host_with(
        f"{T} ERROR:    [Errno 98] error while attempting to bind on address ('127.0.0.1', 1)",
        f"{T} The server is fired up and ready to roll!",
    )
    state.apply(HealthSample(1003.0, "/health", "/health", 200, seconds=0.1))
    state.apply(ListenerSample(1003.0, "ss", 30000, ListenerOwner.SAME_USER))
    snapshot = state.snapshot(1004.0)
    assert snapshot.readiness.state is not ReadinessState.READY
    evidence = {each.name: each.verdict for each in snapshot.readiness.evidence}
    assert evidence["log"] is Verdict.AGAINST
    assert snapshot.diagnosis is not None
    assert snapshot.diagnosis.id == "http-port-taken"


def test_a_process_that_is_older_than_its_unit_is_told() -> None:
    why = "50-ddtui.conf was changed after it began"
    (told,) = host_with(older=(why,)).snapshot(1003.0).alerts
    assert (told.key, told.severity) == ("older", Severity.WARNING)
    assert why in told.text
    assert told.text.endswith("restart due")
    stopped = host_with(older=(why,), active_state="inactive").snapshot(1003.0)
    assert "older" not in {each.key for each in stopped.alerts}

"""How a load ends by systemd's word: failed, stopped, or over long before the engine was."""

from __future__ import annotations

import pytest

from ddtui.core.host_state import HostState
from ddtui.core.load_eta import weights_pace
from ddtui.core.samples import JournalLine, JournalSample, UnitSample, UnitStatus
from ddtui.core.snapshot import LoadView, PhaseStatus
from ddtui.engines.sglang import SGLang

RUN, NEXT = "a" * 32, "b" * 32


def unit(active: str, sub: str, *, run: str = RUN, **fields: object) -> UnitStatus:
    values: dict[str, object] = {
        "name": "u",
        "load_state": "loaded",
        "active_state": active,
        "sub_state": sub,
        "invocation": run,
        "started_at": 1000.0,
        "result": "success",
    }
    return UnitStatus(**{**values, **fields})  # type: ignore[arg-type]


def told(state: HostState, at: float, status: UnitStatus) -> LoadView:
    state.apply(UnitSample(at=at, source="systemctl", unit=status))
    load = state.snapshot(at).load
    assert load is not None
    return load


def test_a_killed_engine_had_loaded_though_its_end_is_heard_of_first() -> None:
    state = HostState("h", SGLang())
    dead = unit("failed", "failed", result="signal", state_changed_at=5000.0)
    assert told(state, 9000.0, dead).failed  # all that is known before the log is read
    line = JournalLine(
        stamp=1026.0,
        text="[2026-07-01 10:00:00] The server is fired up and ready to roll!",
        invocation=RUN,
    )
    state.apply(JournalSample(at=9000.1, source="journal", lines=(line,)))
    load = told(state, 9001.0, dead)
    assert (load.finished, load.failed, load.ended) == (True, False, 1026.0)


def test_a_load_ended_when_systemd_says_so_not_when_we_came() -> None:
    dead = unit("failed", "failed", result="exit-code", state_changed_at=1026.0)
    load = told(HostState("h", SGLang()), 9000.0, dead)
    assert (load.failed, load.ended) == (True, 1026.0)


@pytest.mark.parametrize("sub", ["auto-restart", "auto-restart-queued"])
def test_each_death_of_a_crash_loop_is_seen_though_no_start_is(sub: str) -> None:
    """The unit is asked less often than it dies."""
    state = HostState("h", SGLang())
    for run, began in ((RUN, 1000.0), (NEXT, 1003.0)):
        dying = unit(
            "activating",
            sub,
            run=run,
            started_at=began,
            state_changed_at=began + 1.0,
            result="exit-code",
        )
        load = told(state, began + 2.0, dying)
        assert (load.invocation, load.failed, load.ended) == (run, True, began + 1.0)
        assert load.phases[0].status is PhaseStatus.FAILED
        later = state.snapshot(began + 500.0).load
        assert later == load


def test_whoever_stops_a_load_has_not_made_it_fail() -> None:
    state = HostState("h", SGLang())
    told(state, 1001.0, unit("active", "running"))
    stopping = told(state, 1011.0, unit("deactivating", "stop-sigterm", state_changed_at=1010.0))
    assert (stopping.failed, stopping.finished, stopping.ended) == (False, False, 1010.0)
    over = told(state, 1020.0, unit("inactive", "dead", state_changed_at=1019.0))
    assert over == stopping


def test_a_crash_is_known_as_one_while_its_processes_still_end() -> None:
    state = HostState("h", SGLang())
    dying = unit("deactivating", "final-sigterm", state_changed_at=1010.0, result="exit-code")
    assert told(state, 1011.0, dying).failed


def test_bars_that_all_come_at_one_moment_tell_no_pace_and_break_nothing() -> None:
    points = [(1_000.8, number / 64) for number in range(1, 65)]
    found = weights_pace(points, 1_000.0, (), 120.0)
    assert found is not None
    assert found > 0

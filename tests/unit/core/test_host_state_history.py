"""The history that the reducer is given is the one it uses, even while it is still empty."""

from __future__ import annotations

from ddtui.core.host_state import HostState
from ddtui.core.load_history import LoadHistory
from ddtui.core.samples import SystemSample, UnitSample, UnitStatus
from ddtui.engines.sglang import SGLang
from tests.support.load_replay import record_of
from tests.support.synthetic_loads import Scenario, make

COMMAND = ("python", "-m", "sglang.launch_server", "--model-path", "moonshotai/Kimi-K2.6")


def test_a_history_filled_later_reaches_the_load_in_progress() -> None:
    history = LoadHistory()
    state = HostState("ct200", SGLang(), history=history)
    unit = UnitStatus(
        name="u",
        active_state="active",
        invocation="a" * 32,
        started_at=1000.0,
        command_line=COMMAND,
    )
    state.apply(SystemSample(at=400.0, source="proc", host_at=1000.0))
    state.apply(UnitSample(at=401.0, source="systemd", unit=unit))
    before = state.snapshot(405.0).load
    assert before is not None
    assert before.eta_seconds is None
    record = record_of(make(Scenario("earlier", seed=1, tp=1, has_drafter=False)))
    history.add(record)
    after = state.snapshot(405.0).load
    assert after is not None
    assert after.eta_seconds is not None
    # The host's clock is 600 s ahead: the load began 5 s before on either clock.
    assert abs(after.eta_seconds - (record.seconds - 5.0)) < 1.0

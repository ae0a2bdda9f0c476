"""Readiness is proved by a conjunction; each of these takes one part away or puts a lie in."""

import pytest

from ddtui.core.host_state import HostState
from ddtui.core.samples import (
    Collector,
    EngineCounters,
    EngineSample,
    HealthSample,
    JournalLine,
    JournalSample,
    LinkSample,
    LinkState,
    ListenerOwner,
    ListenerSample,
    ServerInfoSample,
    SourceSample,
    SourceStatus,
    UnitSample,
    UnitStatus,
)
from ddtui.core.snapshot import ReadinessState, Snapshot, Verdict
from ddtui.engines.sglang import SGLANG

OLD, NEW = "a" * 32, "b" * 32
COMMAND = (
    "/opt/venv/bin/python",
    "-m",
    "sglang.launch_server",
    "--model-path",
    "/models/kimi",
    "--tp-size",
    "8",
    "--port",
    "30000",
)


def unit(invocation: str = NEW, **fields: object) -> UnitStatus:
    values: dict[str, object] = {
        "name": "llm.service",
        "load_state": "loaded",
        "active_state": "active",
        "sub_state": "running",
        "result": "success",
        "main_pid": 4242,
        "invocation": invocation,
        "started_at": 1000.0,
        "command_line": COMMAND,
    }
    values.update(fields)
    return UnitStatus(**values)  # type: ignore[arg-type]


def said(at: float, text: str, invocation: str = NEW) -> JournalSample:
    return JournalSample(at, "journal", (JournalLine(at, text, invocation),))


class Story:
    """Feeds samples to a HostState and looks at the readiness it gives."""

    def __init__(self) -> None:
        self.state = HostState("ct200", SGLANG)
        self.state.apply(LinkSample(100.0, "link", LinkState.LIVE))

    def serving(self, at: float, invocation: str = NEW) -> None:
        """Everything that a serving engine shows."""
        self.state.apply(said(at, f"[2026-11-29 17:00:00] {FIRED_UP}", invocation))
        self.answering(at, invocation)

    def heard(self, at: float, invocation: str = NEW) -> None:
        """A sign of life of the unit watcher."""
        self.state.apply(UnitSample(at, "systemctl", unit(invocation)))

    def answering(self, at: float, invocation: str = NEW) -> None:
        """The same without its log."""
        self.heard(at, invocation)
        self.listener(at, ListenerOwner.UNIT)
        self.state.apply(HealthSample(at, "/health", "/health", 200, seconds=0.0))
        self.state.apply(EngineSample(at, "/metrics", EngineCounters(running=0.0)))
        self.state.apply(ServerInfoSample(at, "/server_info", {}, COMMAND))

    def listener(self, at: float, owner: ListenerOwner) -> None:
        self.state.apply(ListenerSample(at, "/proc/net/tcp", 30000, owner, pid=4242))

    def at(self, now: float) -> Snapshot:
        return self.state.snapshot(now)


FIRED_UP = "The server is fired up and ready to roll!"


@pytest.fixture
def story() -> Story:
    story = Story()
    story.state.apply(UnitSample(1000.0, "systemctl", unit()))
    return story


def verdict(snapshot: Snapshot, name: str) -> Verdict:
    return next(e.verdict for e in snapshot.readiness.evidence if e.name == name)


def test_everything_together_is_ready_and_proved(story: Story) -> None:
    story.serving(1100.0)
    readiness = story.at(1101.0).readiness
    assert readiness.state is ReadinessState.READY
    assert readiness.summary == "ready (proved)"
    assert {piece.verdict for piece in readiness.evidence} == {Verdict.PROVED}


def test_an_answer_of_200_alone_is_not_ready(story: Story) -> None:
    story.state.apply(HealthSample(1100.0, "/health", "/health", 200, seconds=0.0))
    assert story.at(1101.0).readiness.state is not ReadinessState.READY


def test_the_ready_line_alone_is_not_ready(story: Story) -> None:
    story.state.apply(said(1100.0, f"[2026-11-29 17:00:00] {FIRED_UP}"))
    assert story.at(1101.0).readiness.state is ReadinessState.WARMING_UP


def test_an_active_unit_alone_is_starting(story: Story) -> None:
    assert story.at(1001.0).readiness.state is ReadinessState.STARTING


def test_503_while_models_answer_is_warming_up(story: Story) -> None:
    text = "[2026-11-29 17:00:00] INFO:     Uvicorn running on http://127.0.0.1:30000"
    story.state.apply(said(1090.0, text + " (Press CTRL+C to quit)"))
    story.listener(1100.0, ListenerOwner.UNIT)
    story.state.apply(HealthSample(1100.0, "/health", "/health", 503, seconds=0.0))
    story.state.apply(EngineSample(1100.0, "/metrics", EngineCounters(running=0.0)))
    assert story.at(1100.5).readiness.state is ReadinessState.WARMING_UP


def test_another_process_on_the_port_is_never_ready(story: Story) -> None:
    story.serving(1100.0)
    story.listener(1100.5, ListenerOwner.FOREIGN)
    snapshot = story.at(1101.0)
    assert snapshot.readiness.state is not ReadinessState.READY
    assert verdict(snapshot, "port owner") is Verdict.AGAINST


def test_a_server_with_other_flags_is_never_ready(story: Story) -> None:
    story.serving(1100.0)
    other = (*COMMAND, "--speculative-ddtree-budget", "16")
    story.state.apply(ServerInfoSample(1100.5, "/server_info", {}, other))
    snapshot = story.at(1101.0)
    assert snapshot.readiness.state is not ReadinessState.READY
    configuration = next(e for e in snapshot.readiness.evidence if e.name == "configuration")
    assert configuration.verdict is Verdict.AGAINST
    assert "speculative-ddtree-budget 16 (unit: unset)" in configuration.detail


def test_what_the_old_process_answered_does_not_count_for_the_new_one() -> None:
    story = Story()
    story.state.apply(UnitSample(900.0, "systemctl", unit(OLD, started_at=900.0)))
    story.serving(950.0, OLD)
    assert story.at(951.0).readiness.state is ReadinessState.READY
    story.state.apply(UnitSample(1000.0, "systemctl", unit(NEW, started_at=1000.0)))
    # asked of the old process before the restart was seen, answered after it
    story.state.apply(HealthSample(1000.4, "/health", "/health", 200, seconds=1.0))
    assert story.at(1000.5).readiness.state is ReadinessState.STARTING
    story.state.apply(said(1000.6, f"[2026-11-29 17:00:00] {FIRED_UP}", OLD))
    assert story.at(1000.7).readiness.state is ReadinessState.STARTING


def test_a_late_word_about_the_old_invocation_does_not_bring_it_back(story: Story) -> None:
    story.state.apply(UnitSample(1200.0, "systemctl", unit(OLD, started_at=900.0)))
    story.serving(1300.0, NEW)
    assert story.at(1300.5).readiness.state is ReadinessState.READY


def test_a_socket_of_the_same_user_needs_the_ready_line_beside_it(story: Story) -> None:
    story.state.apply(HealthSample(1100.0, "/health", "/health", 200, seconds=0.0))
    story.state.apply(ServerInfoSample(1100.0, "/server_info", {}, COMMAND))
    story.heard(1100.0)
    story.listener(1100.0, ListenerOwner.SAME_USER)
    assert story.at(1100.5).readiness.state is not ReadinessState.READY
    story.state.apply(said(1101.0, f"[2026-11-29 17:00:00] {FIRED_UP}"))
    readiness = story.at(1101.5).readiness
    assert readiness.state is ReadinessState.READY
    assert readiness.summary == "ready (4 of 5 proved)"


def test_a_ready_engine_that_stops_answering_is_degraded(story: Story) -> None:
    story.serving(1100.0)
    assert story.at(1101.0).readiness.state is ReadinessState.READY
    story.listener(1139.0, ListenerOwner.UNIT)
    degraded = story.at(1140.0).readiness
    assert degraded.state is ReadinessState.DEGRADED
    assert "no answer for 40 s" in degraded.summary


def test_readiness_remembers_since_when(story: Story) -> None:
    story.serving(1100.0)
    first = story.at(1101.0).readiness.since
    story.state.apply(EngineSample(1105.0, "/metrics", EngineCounters(running=0.0)))
    assert story.at(1106.0).readiness.since == first == 1100.0


@pytest.mark.parametrize(
    ("fields", "expected", "words"),
    [
        ({"load_state": "not-found", "active_state": "inactive"}, ReadinessState.ABSENT, "no unit"),
        ({"load_state": "masked", "active_state": "inactive"}, ReadinessState.MASKED, "masked"),
        ({"active_state": "inactive", "sub_state": "dead"}, ReadinessState.STOPPED, "stopped"),
        ({"active_state": "deactivating"}, ReadinessState.STOPPING, "stopping"),
        (
            {
                "active_state": "failed",
                "result": "signal",
                "exit_code": "killed",
                "exit_status": 9,
            },
            ReadinessState.FAILED,
            "signal, killed, status 9",
        ),
        (
            {"active_state": "activating", "sub_state": "auto-restart", "restarts": 3},
            ReadinessState.CRASH_LOOP,
            "restarted 3 times",
        ),
        (
            {"active_state": "inactive", "load_state": "bad-setting"},
            ReadinessState.FAILED,
            "could not read its unit file",
        ),
    ],
)
def test_a_unit_that_is_not_up_says_why(
    fields: dict[str, object], expected: ReadinessState, words: str
) -> None:
    story = Story()
    story.state.apply(UnitSample(1000.0, "systemctl", unit(NEW, **fields)))
    readiness = story.at(1001.0).readiness
    assert readiness.state is expected
    assert words in readiness.summary


@pytest.mark.parametrize("active", ["activating", "reloading", "refreshing"])
def test_a_unit_that_systemd_works_on_is_up(active: str) -> None:
    story = Story()
    story.state.apply(UnitSample(1000.0, "systemctl", unit(NEW, active_state=active)))
    readiness = story.at(1001.0).readiness
    assert readiness.state not in {ReadinessState.STOPPED, ReadinessState.UNKNOWN}
    assert readiness.evidence[0].verdict is Verdict.MISSING


def test_nothing_heard_is_unknown_and_says_so() -> None:
    readiness = Story().at(0.0).readiness
    assert readiness.state is ReadinessState.UNKNOWN
    assert "nothing heard" in readiness.summary


def linked(story: Story, at: float, state: LinkState) -> None:
    story.state.apply(LinkSample(at, "link", state))


def test_a_cut_link_says_nothing_of_the_engine(story: Story) -> None:
    linked(story, 1000.0, LinkState.LIVE)
    story.serving(1100.0)
    assert story.at(1101.0).readiness.state is ReadinessState.READY
    linked(story, 1112.0, LinkState.RETRYING)
    assert story.at(1400.0).readiness.state is ReadinessState.READY


def test_after_a_cut_the_engine_is_given_time_to_answer_again(story: Story) -> None:
    linked(story, 1000.0, LinkState.LIVE)
    story.serving(1100.0)
    since = story.at(1101.0).readiness.since
    linked(story, 1112.0, LinkState.RETRYING)
    linked(story, 1400.0, LinkState.LIVE)
    assert story.at(1405.0).readiness.state is ReadinessState.READY
    assert story.at(1405.0).readiness.since == since
    assert story.at(1420.0).readiness.state is ReadinessState.DEGRADED


def test_ready_counts_from_the_engines_own_word_when_it_was_there_before_us(story: Story) -> None:
    story.state.apply(said(1050.0, f"[2026-11-29 17:00:00] {FIRED_UP}"))
    story.answering(5000.0)
    assert story.at(5001.0).readiness.since == 1050.0


def test_a_failed_unit_counts_from_its_end(story: Story) -> None:
    failed = unit(active_state="failed", result="signal", state_changed_at=1080.0)
    story.state.apply(UnitSample(1200.0, "systemctl", failed))
    assert story.at(1201.0).readiness.since == 1080.0


def test_the_first_death_is_a_failure_and_the_second_a_loop(story: Story) -> None:
    dead: dict[str, object] = {"active_state": "activating", "sub_state": "auto-restart"}
    story.state.apply(UnitSample(1100.0, "systemctl", unit(NEW, restarts=0, **dead)))
    assert story.at(1100.5).readiness.state is ReadinessState.FAILED
    story.state.apply(UnitSample(1101.0, "systemctl", unit(NEW, restarts=1, **dead)))
    assert story.at(1101.5).readiness.state is ReadinessState.CRASH_LOOP


def test_a_crash_loop_stays_one_while_the_engine_starts_again(story: Story) -> None:
    error = "ValueError: DFLASH speculative decoding requires setting a draft model."
    traceback = ["Traceback (most recent call last):", '  File "x.py", line 1, in <module>', error]
    for text in traceback:
        story.state.apply(said(1050.0, text))
    again = unit("c" * 32, restarts=2, started_at=1110.0)
    story.state.apply(UnitSample(1110.0, "systemctl", again))
    readiness = story.at(1111.0).readiness
    assert readiness.state is ReadinessState.CRASH_LOOP
    assert "after 2 deaths in a row" in readiness.summary
    assert "last: " in readiness.summary
    story.serving(1200.0, "c" * 32)
    snapshot = story.at(1201.0)
    assert snapshot.readiness.state is ReadinessState.READY
    assert snapshot.diagnosis is None


def test_the_figures_of_a_dead_engine_are_stale_at_once(story: Story) -> None:
    story.serving(1100.0)
    assert story.at(1100.5).engine.idle
    story.state.apply(UnitSample(1101.0, "systemctl", unit(active_state="failed")))
    engine = story.at(1101.0).engine
    assert engine.running is not None
    assert engine.running.stale(1101.0)
    assert not engine.idle


def test_a_busy_engine_whose_health_is_not_asked_stays_ready(story: Story) -> None:
    story.serving(1100.0)
    assert story.at(1101.0).readiness.state is ReadinessState.READY
    story.heard(1900.0)
    story.listener(1900.0, ListenerOwner.UNIT)
    story.state.apply(EngineSample(1900.0, "/metrics", EngineCounters(running=5.0)))
    assert story.at(1901.0).readiness.summary == "ready (proved)"


def test_a_restart_after_the_hosts_clock_was_set_back_is_seen(story: Story) -> None:
    story.serving(1100.0)
    assert story.at(1101.0).readiness.state is ReadinessState.READY
    earlier = unit("c" * 32, started_at=200.0)
    story.state.apply(UnitSample(1102.0, "systemctl", earlier))
    assert story.at(1102.5).readiness.state is ReadinessState.STARTING
    story.serving(1200.0, "c" * 32)
    assert story.at(1201.0).readiness.state is ReadinessState.READY


def test_nobody_has_looked_at_the_port_yet_is_not_ready(story: Story) -> None:
    """Another server may answer while the unit's own says that it is ready."""
    story.state.apply(said(1100.0, f"[2026-11-29 17:00:00] {FIRED_UP}"))
    story.heard(1100.0)
    story.state.apply(HealthSample(1100.0, "/health", "/health", 200, seconds=0.0))
    story.state.apply(ServerInfoSample(1100.0, "/server_info", {}, COMMAND))
    assert story.at(1100.5).readiness.state is ReadinessState.WARMING_UP
    story.listener(1101.0, ListenerOwner.FOREIGN)
    assert story.at(1101.5).readiness.state is ReadinessState.WARMING_UP
    story.listener(1102.0, ListenerOwner.UNIT)
    assert story.at(1102.5).readiness.state is ReadinessState.READY


def test_a_port_whose_owner_cannot_be_seen_needs_every_other_witness(story: Story) -> None:
    story.state.apply(said(1100.0, f"[2026-11-29 17:00:00] {FIRED_UP}"))
    story.heard(1100.0)
    story.listener(1100.0, ListenerOwner.UNKNOWN)
    story.state.apply(HealthSample(1100.0, "/health", "/health", 200, seconds=0.0))
    assert story.at(1100.5).readiness.state is ReadinessState.WARMING_UP
    story.state.apply(ServerInfoSample(1101.0, "/server_info", {}, COMMAND))
    assert story.at(1101.5).readiness.state is ReadinessState.READY


def test_a_service_that_answers_ok_to_everything_is_no_engine(story: Story) -> None:
    story.heard(1100.0)
    story.listener(1100.0, ListenerOwner.UNIT)
    story.state.apply(HealthSample(1100.0, "/health", "/health", 200, seconds=0.0))
    assert story.at(1100.5).readiness.state is not ReadinessState.READY


def test_a_unit_not_heard_of_is_not_proved_to_be_up(story: Story) -> None:
    story.serving(1100.0)
    assert verdict(story.at(1101.0), "unit") is Verdict.PROVED
    assert verdict(story.at(1130.0), "unit") is Verdict.MISSING


def test_a_host_without_the_unit_says_why() -> None:
    story = Story()
    why = "no systemd on this host (systemctl not found)"
    absent = SourceSample(1000.0, "systemd", Collector.UNIT, SourceStatus.ABSENT, why)
    story.state.apply(absent)
    readiness = story.at(1001.0).readiness
    assert readiness.state is ReadinessState.ABSENT
    assert readiness.summary == why

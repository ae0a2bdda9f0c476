"""HostState: the reducer through which every sample goes.

It does no I/O and has no clock of its own: the same samples give the same snapshots, live or
replayed.
"""

from __future__ import annotations

import msgspec

from ddtui.core.alerts import AlertBook
from ddtui.core.cause_of_failure import Cause
from ddtui.core.engine import Engine
from ddtui.core.engine_state import EngineState
from ddtui.core.events import AnyEvent, Decoded, Prefilled
from ddtui.core.gpu_state import GpuState
from ddtui.core.invocation import Invocation
from ddtui.core.load_history import LoadHistory, LoadRecord
from ddtui.core.log_buffer import CAPACITY, LogBuffer
from ddtui.core.readiness import Moment, assess, readiness
from ddtui.core.samples import (
    AnySample,
    CheckpointSample,
    Collector,
    EngineSample,
    GpuProcessSample,
    GpuSample,
    HealthSample,
    JournalLine,
    JournalSample,
    LinkSample,
    LinkState,
    ListenerSample,
    RankIoSample,
    ReportRefusedSample,
    ServerInfoSample,
    SourceSample,
    SourceStatus,
    SystemSample,
    UnitSample,
    UnitStatus,
)
from ddtui.core.snapshot import LoadView, Readiness, ReadinessState, Snapshot, SystemView

_ENDED = {"inactive", "failed"}
_RUNS_KEPT = 16
_SAY_WHY = {SourceStatus.ABSENT, SourceStatus.FAILED}


class HostState:
    """Reduces samples to what is known of one host."""

    def __init__(
        self,
        host: str,
        engine: Engine,
        *,
        simulated: bool = False,
        gpu_interval: float = 1.0,
        history: LoadHistory | None = None,
        log_lines: int = CAPACITY,
    ) -> None:
        self._host = host
        self._engine = engine
        self._simulated = simulated
        self._gpu_interval = gpu_interval
        self._history = LoadHistory() if history is None else history
        self._link = LinkSample(0.0, "link", LinkState.CONNECTING)
        self._live_since = 0.0
        self._heard_at: float | None = None
        self._sources: dict[Collector, SourceSample] = {}
        self._gpus = GpuState()
        self._figures = EngineState()
        self._system: SystemSample | None = None
        self._skew: float | None = None
        self._unit: UnitStatus | None = None
        self._unit_at: float | None = None
        self._run: Invocation | None = None
        self._runs: dict[str, Invocation] = {}
        """Invocations seen, by identity, the last few."""
        self._last_cause: Cause | None = None
        """Why the invocation before failed: what a crash loop is about while it starts again."""
        self._checkpoints: dict[str, CheckpointSample] = {}
        self._readiness: Readiness | None = None
        self._alerts = AlertBook()
        self._finished: list[LoadRecord] = []
        self._recorded: set[str] = set()
        self.log = LogBuffer(log_lines)
        self.suppressed = 0

    def apply(self, sample: AnySample) -> None:
        """Take one sample."""
        match sample:
            case LinkSample():
                if sample.state is LinkState.LIVE and self._link.state is not LinkState.LIVE:
                    self._live_since = sample.at
                self._link = sample
                return
            case SourceSample():
                self._sources[sample.collector] = sample
                return
            case GpuSample():
                self._take_gpus(sample)
            case GpuProcessSample():
                self._gpus.apply_processes(sample)
            case SystemSample():
                self._take_system(sample)
            case UnitSample():
                self._take_unit(sample)
            case JournalSample():
                self._take_journal(sample)
            case _:
                self._take_engine(sample)
        self._heard_at = sample.at

    def _take_engine(self, sample: AnySample) -> None:
        """Samples that belong to the invocation in force."""
        run = self._run
        match sample:
            case EngineSample():
                if run is not None and sample.at >= run.seen_at:
                    self._figures.apply(sample)
            case HealthSample() if run is not None:
                run.take_health(sample)
            case ListenerSample() if run is not None and sample.at >= run.seen_at:
                run.listener = sample
            case ServerInfoSample() if run is not None and sample.at >= run.seen_at:
                run.info = self._figures.info = sample
                run.refusals = 0
            case ReportRefusedSample() if run is not None and sample.at >= run.seen_at:
                run.refusals += 1
            case RankIoSample() if run is not None:
                run.tracker.storage_reads(sample.at, sample.read_bytes)
            case CheckpointSample():
                self._checkpoints[sample.role] = sample
                if run is not None and sample.size is not None:
                    run.tracker.checkpoint(sample.role, sample.size, sample.shards)
            case _:
                pass  # without an invocation in force nobody can say whose answer it is

    def _take_gpus(self, sample: GpuSample) -> None:
        self._gpus.apply(sample)
        if self._run is not None:
            used = {
                gpu.index: gpu.memory_used for gpu in sample.gpus if gpu.memory_used is not None
            }
            self._run.tracker.gpus(sample.at, used, self._gpus.unit_memory())

    def _take_system(self, sample: SystemSample) -> None:
        self._system = sample
        if sample.host_at is not None:
            self._skew = sample.host_at - sample.at
            if self._run is not None:
                self._run.tracker.skew = self._skew
        if self._run is not None:
            self._run.tracker.disk((sample.disk_read or 0.0) + (sample.disk_write or 0.0))

    def _take_unit(self, sample: UnitSample) -> None:
        unit, before = sample.unit, self._unit
        self._unit, self._unit_at = unit, sample.at
        self._follow(unit, before, sample.at)
        if self._run is None or unit.invocation not in {"", self._run.identity}:
            return
        self._run.configure(unit)
        self._run.take_end(unit, self._host_time(sample.at))

    def _follow(self, unit: UnitStatus, before: UnitStatus | None, at: float) -> None:
        """Turn to the invocation that systemd names, whatever the clocks say.

        One that was left before is believed at the second word: the first may be late.
        """
        identity, run = unit.invocation, self._run
        if not identity or (run is not None and run.identity == identity):
            return
        known = self._runs.get(identity)
        if known is None:
            began = unit.started_at if unit.started_at is not None else self._host_time(at)
            self._begin(identity, began, at)
        elif before is not None and before.invocation == identity:
            self._run = known
            self._figures.reset()

    def _begin(self, identity: str, began: float, seen_at: float) -> None:
        """A new invocation: nothing heard of the last one counts for it."""
        if self._run is not None:
            self._last_cause = self._run.cause(None) or self._last_cause
        run = Invocation(identity, began, seen_at, self._engine, self._history)
        self._run = self._runs[identity] = run
        if len(self._runs) > _RUNS_KEPT:
            del self._runs[next(iter(self._runs))]
        run.tracker.skew = self._skew or 0.0
        self._figures.reset()
        for checkpoint in self._checkpoints.values():
            if checkpoint.size is not None:
                run.tracker.checkpoint(checkpoint.role, checkpoint.size, checkpoint.shards)

    def _take_journal(self, sample: JournalSample) -> None:
        self.log.extend(sample.lines)
        self.suppressed += sample.suppressed
        self.log.suppressed = self.suppressed
        for line in sample.lines:
            if line.from_manager or not line.invocation:
                self._take_manager_line(line)
                continue
            run = self._run
            if line.invocation not in self._runs and (run is None or line.stamp >= run.began):
                self._begin(line.invocation, line.stamp, sample.at)
                run = self._run
            if run is not None and line.invocation == run.identity:
                for event in run.read(line):
                    self._take_event(event)

    def _take_manager_line(self, line: JournalLine) -> None:
        run = self._run
        if run is not None and line.from_manager and line.invocation == run.identity:
            run.read_manager(line)

    def _take_event(self, event: AnyEvent) -> None:
        match event:
            case Decoded():
                self._figures.decoded(event, self._operator_time(event.stamp))
            case Prefilled():
                self._figures.prefilled(event, self._operator_time(event.stamp))
            case _:
                pass

    def _operator_time(self, stamp: float) -> float:
        return stamp - (self._skew or 0.0)

    def _host_time(self, at: float) -> float:
        return at + (self._skew or 0.0)

    def finished_loads(self) -> list[LoadRecord]:
        """Records of loads that have become ready since this was last asked."""
        run = self._run
        if run is not None and run.identity not in self._recorded:
            record = run.tracker.record()
            if record is not None:
                self._recorded.add(run.identity)
                self._finished.append(record)
        finished, self._finished = self._finished, []
        return finished

    def _knobs(self) -> tuple[dict[str, str], str]:
        """Named knobs by the strongest source there is."""
        run, unit = self._run, self._unit
        variables = unit.variables if unit is not None else {}
        if run is not None and run.info is not None and run.info.arguments:
            return self._engine.knobs(run.info.arguments, variables), run.info.source
        if run is not None and run.configured:
            return self._engine.knobs(run.configured, variables), "log"
        if unit is not None and unit.command_line:
            flags = self._engine.flags(unit.command_line)
            return self._engine.knobs(dict(flags), variables), "command line"
        return {}, ""

    def _assess(self, load: LoadView | None, now: float) -> Readiness:
        """Readiness now; while the link is down, as it was when the host was last heard."""
        run = self._run
        live = self._link.state is LinkState.LIVE
        moment = Moment(
            now if live else min(now, self._heard_at or now),
            self._live_since,
            self._figures.answered_at,
            self._unit_at if self._unit_at is not None else 0.0,
        )
        cause = run.cause(self._unit) if run is not None else None
        found = assess(self._unit, run, load, self._engine, moment, cause, earlier=self._last_cause)
        source = self._sources.get(Collector.UNIT)
        if self._unit is None and source is not None and source.status in _SAY_WHY:
            absent = source.status is SourceStatus.ABSENT
            state = ReadinessState.ABSENT if absent else ReadinessState.UNKNOWN
            found = (state, source.detail, ())
        if run is not None and found[0] is ReadinessState.READY and run.was_ready_at is None:
            run.was_ready_at = now
            self._last_cause = None
        return readiness(self._readiness, found, self._state_began(found[0], load), now)

    def _state_began(self, state: ReadinessState, load: LoadView | None) -> float | None:
        """When a state began by the host's own word, on the operator's clock."""
        run, unit = self._run, self._unit
        stamp = unit.state_changed_at if unit is not None else None
        if state is ReadinessState.READY:
            stamp = run.fired_up if run is not None else None
        elif self._is_up() and load is not None:
            phase = next((each for each in load.phases if each.phase is load.current), None)
            stamp = phase.began if phase is not None else None
        return None if stamp is None else self._operator_time(stamp)

    def _is_up(self) -> bool:
        """Whether a process of the unit is there, or is being started or stopped."""
        unit = self._unit
        if unit is None or unit.is_auto_restarting:
            return False
        return unit.active_state not in _ENDED

    def _diagnosis(self, state: ReadinessState) -> Cause | None:
        """Why the engine is down: an earlier cause only while systemd restarts it in a loop."""
        cause = self._run.cause(self._unit) if self._run is not None else None
        looping = state is ReadinessState.CRASH_LOOP
        return cause or (self._last_cause if looping else None)

    def snapshot(self, now: float) -> Snapshot:
        """Everything known, as of `now` (operator's clock)."""
        run = self._run
        load = run.tracker.view(self._host_time(now)) if run is not None else None
        self._readiness = self._assess(load, now)
        state = self._readiness.state
        knobs, knobs_source = self._knobs()
        snapshot = Snapshot(
            at=now,
            host=self._host,
            simulated=self._simulated,
            link=self._link,
            last_heard=self._heard_at,
            sources=dict(self._sources),
            gpus=self._gpus.views(),
            gpu_source=self._gpus.source,
            gpu_at=self._gpus.at,
            gpu_interval=self._gpu_interval,
            processes=self._gpus.processes,
            system=SystemView(self._system, self._skew) if self._system else None,
            unit=self._unit,
            unit_at=self._unit_at,
            listener=run.listener if run is not None else None,
            checkpoints=tuple(self._checkpoints.values()),
            engine=self._figures.view(now, knobs, knobs_source, up=self._is_up()),
            load=load,
            readiness=self._readiness,
            alerts=(),
            log=self.log,
            diagnosis=self._diagnosis(state),
            server_info=run.info if run is not None else None,
            report_refusals=run.refusals if run is not None else 0,
        )
        return msgspec.structs.replace(snapshot, alerts=self._alerts.update(snapshot))

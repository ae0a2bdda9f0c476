"""The load of one invocation of the unit: its phases, how far it is, and when it will be ready.

`LoadTracker` fuses what the engine's log, the GPUs' memory and the storage say. Who knows what:

    load_phases    the order of phases from the log, over all ranks
    load_memory    growth of GPU memory above what others hold
    load_weights   share of the weights loaded, by the best source there is
    load_history   earlier loads
    load_eta       what earlier loads say, and the pace of this one
    load_time_left seconds until ready, from both
    load_stall     whether it still moves
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ddtui.core.events import AnyEvent, BarMoved, FiredUp, Phase, PhaseBegan, PhaseEnded, PortOpened
from ddtui.core.load_eta import Experience
from ddtui.core.load_history import LoadHistory, LoadRecord, relevant_flags
from ddtui.core.load_memory import GpuMemory
from ddtui.core.load_phases import USUAL_ORDER, WEIGHTS, PhaseTimeline, Stretch
from ddtui.core.load_record import make_record
from ddtui.core.load_stall import LOG, MEMORY, READS, StallWatch
from ddtui.core.load_time_left import Estimate, TimeLeft
from ddtui.core.load_weights import ALMOST, LATE, Bar, WeightsProgress
from ddtui.core.snapshot import LoadView, PhaseStatus, PhaseView

BY_HISTORY = "elapsed vs history"
_GROWTH_OF_WEIGHTS = 2 * 2**30
"""Without a log: a mean growth of GPU memory beyond this can only be weights, bytes."""
_HIDDEN = 0.95
"""A phase whose progress nobody sees is never shown further than this."""


class LoadTracker:
    """Follows one load. Pure: no clock and no I/O of its own.

    Times are Unix seconds on the host's clock, except the `at` of `gpus` and `storage_reads`, which
    is the operator's; `skew` (host's clock minus operator's, seconds) leads from one to the other
    and may be set at any time.
    """

    def __init__(
        self, invocation: str, began: float, history: LoadHistory, skew: float = 0.0
    ) -> None:
        self.invocation = invocation
        self.skew = skew
        self.model = ""
        self.drafter: str | None = None
        self.flags: dict[str, str] = {}
        self.timeline = PhaseTimeline(began)
        self.memory = GpuMemory()
        self.weights = {
            Phase.TARGET: WeightsProgress(target=True),
            Phase.DRAFTER: WeightsProgress(target=False),
        }
        self.stall = StallWatch(began)
        self._history = history
        self._known = Experience()
        self._learned = -1
        """The revision of the history that is known."""
        self._bars: dict[Phase, Bar] = {}
        self._ended: float | None = None
        self._failed = False
        self._heard = False
        self._late_seen = False
        self._shown: dict[Phase, float] = {}
        self._shown_whole = 0.0
        self._reads = self._reads_seen = 0

    # ---- what is observed -----------------------------------------------------------------------

    def configure(self, model: str, drafter: str | None, tp: int, flags: Mapping[str, str]) -> None:
        """Say what is being loaded: models as on the command line, ranks on this host, flags."""
        self.model, self.drafter, self.flags = model, drafter, relevant_flags(flags)
        self.timeline.tp = max(1, tp)
        self._learned = -1

    def checkpoint(self, role: str, size: int, shards: int | None) -> None:
        """Say how large a model is on disk: `target` or `drafter`, bytes, number of files."""
        weights = self.weights[Phase.DRAFTER if role == "drafter" else Phase.TARGET]
        weights.checkpoint, weights.shards = size, shards

    def event(self, event: AnyEvent) -> None:
        """Take what a line of the log says."""
        if self.timeline.ready_at is not None:
            return
        timeline, stamp, before = self.timeline, event.stamp, self._current()
        match event:
            case PhaseBegan():
                timeline.begin(event.phase, stamp, event.rank)
            case PhaseEnded():
                timeline.end(event.phase, stamp, event.rank, event.seconds, event.memory_used)
            case BarMoved():
                self._move_bar(event)
            case PortOpened():
                timeline.begin(Phase.WARMUP, stamp)
            case FiredUp():
                timeline.finish(stamp)
            case _:
                return
        self._heard = True
        self.stall.progress(stamp, before, LOG)  # the time without progress was spent there
        self._look_back()

    def _move_bar(self, event: BarMoved) -> None:
        """A bar that comes after its phase's end was held back by the journal."""
        stretch = self.timeline.last_of(event.phase)
        if stretch is None:
            self.timeline.begin(event.phase, event.stamp)
        elif not stretch.open:
            return
        weights = self.weights.get(event.phase)
        bar = weights.bar if weights else self._bars.setdefault(event.phase, Bar())
        if weights is None and event.done < bar.done:
            bar = self._bars[event.phase] = Bar()  # the next of several bars
        bar.move(event.stamp, event.done, event.total)
        self._observe(event.stamp)

    def gpus(
        self, at: float, memory_used: Mapping[int, int], unit_memory: Mapping[int, int] | None
    ) -> None:
        """Take GPU memory in use, bytes by index (`at`: operator's clock).

        `unit_memory`: what the unit's own processes hold, where the driver tells.
        """
        at += self.skew
        if self.timeline.ready_at is not None or self._ended is not None:
            return
        before = sum(self.memory.latest.values())
        self.memory.add(at, memory_used, unit_memory)
        self._look_back()
        if not self._heard and self.timeline.last_of(Phase.TARGET) is None:
            self._infer_begin(at)
        grown = self.stall.grew(max(before, sum(self.memory.latest.values())))
        self._tick(at, MEMORY, progress=self._observe(at) or grown)

    def storage_reads(self, at: float, read_bytes: int | None) -> None:
        """Take the bytes that all processes of the unit have read from storage so far.

        The sum falls when a process ends and takes its own figure with it: only rises count.
        """
        at += self.skew
        if read_bytes is None or self.timeline.ready_at is not None or self._ended is not None:
            return
        self._reads += max(0, read_bytes - self._reads_seen)
        self._reads_seen = read_bytes
        for phase in WEIGHTS:
            stretch = self.timeline.last_of(phase)
            if stretch is None or stretch.open:
                weights = self.weights[phase]
                late = weights.reads_before is None and phase is Phase.TARGET
                began = None if stretch is None else stretch.began
                if stretch is not None and phase is Phase.DRAFTER:
                    began = stretch.all_began if stretch is self.timeline.current else None
                weights.observe_reads(at, self._reads, began, late)
        read = self.stall.read(self._reads)
        self._tick(at, READS, progress=self._observe(at) or read)

    def disk(self, rate: float) -> None:
        """Take what the host's disks read and write, bytes per second."""
        self.stall.disk(rate)

    def stopped(self, at: float, failed: bool) -> None:
        """The unit ended (`at`: host's clock). May be said again: the first time counts.

        The log may still tell what came before that, as it is read from the start of the run: a
        load that had become ready has not failed.
        """
        if self._ended is None:
            self._ended = at
        self._failed = self._failed or failed

    def _infer_begin(self, at: float) -> None:
        """Nothing can be read of the log: memory that grows this much is weights."""
        gpus = self.memory.gpus(self.timeline.tp)
        if gpus and sum(self.memory.latest[gpu] for gpu in gpus) > _GROWTH_OF_WEIGHTS * len(gpus):
            self.timeline.begin(Phase.TARGET, at)

    def _look_back(self) -> None:
        """Whether ddtui came when weights were already loading, known once the log is read."""
        first, target = self.memory.first_at, self.timeline.first_of(Phase.TARGET)
        if self._late_seen or first is None or target is None:
            return
        self._late_seen = True
        if first > target.began + LATE:
            self.memory.came_late()

    def _observe(self, at: float) -> bool:
        stretch = self.timeline.current
        weights = self.weights.get(stretch.phase)
        if weights is None or not stretch.open:
            return False
        gpus = self.memory.gpus(self.timeline.tp)
        record = self._experience.memory_record(target=weights.target)
        return weights.observe(at, stretch, self.memory, gpus, record)

    def _tick(self, at: float, source: str, *, progress: bool) -> None:
        if progress:
            self.stall.progress(at, self._current(), source)
        else:
            self.stall.idle(at)

    @property
    def _experience(self) -> Experience:
        """Earlier loads; the history may be read from the store only while this load goes on."""
        if self._learned != self._history.revision and self.model:
            self._learned = self._history.revision
            like = self._history.like(self.model, self.drafter, self.timeline.tp, self.flags)
            self._known = Experience(
                [record for record in like if record.invocation != self.invocation]
            )
        return self._known

    # ---- what is shown --------------------------------------------------------------------------

    def view(self, now: float) -> LoadView:
        """The load as of `now` (host's clock), or as of its end."""
        ready, current = self.timeline.ready_at, self._current()
        ended = ready if ready is not None else self._death()
        if ended is not None:
            return self._view(ended, current, Estimate(None, ""), ended)
        earlier = self._experience.longest_gap(current)
        quiet = self.stall.quiet(now, current, earlier) if current in WEIGHTS else None
        left = TimeLeft(self.timeline, self.weights, self._bars, self._experience, self._without())
        view = self._view(now, current, left.estimate(current, now, quiet), None)
        stalled_for = self.stall.stalled(now, current, earlier)
        weights = self.weights.get(current)
        return msgspec.structs.replace(
            view,
            stalled_for=stalled_for,
            advice=self.stall.advice(current) if stalled_for is not None else "",
            straggler=weights.straggler if weights is not None else "",
        )

    def _view(
        self, now: float, current: Phase, estimate: Estimate, ended: float | None
    ) -> LoadView:
        ready = self.timeline.ready_at is not None
        return LoadView(
            invocation=self.invocation,
            began=self.timeline.began,
            phases=tuple(self._phase(phase, current, now) for phase in self._order()),
            current=current,
            finished=ready,
            failed=self._failed and not ready,
            ended=ended,
            fraction=1.0 if ready else self._whole(now, estimate),
            eta_seconds=estimate.seconds,
            eta_of=estimate.of,
            eta_source=estimate.source,
        )

    def _death(self) -> float | None:
        """When the unit ended before it was ready; never before what its log still told."""
        if self._ended is None:
            return None
        last = self.timeline.stretches[-1]
        return max(self._ended, last.began, last.ended or last.began)

    def _current(self) -> Phase:
        """The phase of the slowest rank; between two phases the one that comes."""
        if self.timeline.ready_at is not None:
            return Phase.READY
        stretch = self.timeline.current
        if stretch.open:
            return stretch.phase
        begun = {Phase.READY, *(each.phase for each in self.timeline.stretches)}
        order = [phase for phase in self._order() if phase not in self._without()]
        later = order[order.index(stretch.phase) + 1 :] if stretch.phase in order else []
        return next((phase for phase in later if phase not in begun), stretch.phase)

    def _order(self) -> tuple[Phase, ...]:
        """The phases as earlier loads had them, or as this one has them where it goes otherwise."""
        seen = list(dict.fromkeys(stretch.phase for stretch in self.timeline.stretches))
        earlier = [each.phase for record in self._experience.records[:1] for each in record.phases]
        needed = {*seen, Phase.DRAFTER} - self._without()
        order = list(dict.fromkeys(earlier)) if needed <= set(earlier) else list(USUAL_ORDER)
        if [phase for phase in order if phase in seen] != seen:
            order = [*seen, *order]
        return tuple(dict.fromkeys([*order, *USUAL_ORDER, Phase.READY]))

    def _without(self) -> frozenset[Phase]:
        """Phases that this start does not have."""
        return frozenset({Phase.DRAFTER} if self.model and self.drafter is None else ())

    def _phase(self, phase: Phase, current: Phase, now: float) -> PhaseView:
        expected = self._experience.seconds(phase)
        stretch, first = self.timeline.last_of(phase), self.timeline.first_of(phase)
        status = self._status(phase, current)
        failed = status is PhaseStatus.FAILED
        running = status is PhaseStatus.RUNNING or failed
        # Many phases say so only at their end: they began where the one before them ended.
        since = self.timeline.stretches[-1].ended if running else None
        began = first.began if first is not None else since
        ended = stretch.ended if stretch is not None and not running else None
        if failed:
            ended = now
        elif status is PhaseStatus.PENDING:
            began = ended = None
        if phase is Phase.READY:
            began = ended = self.timeline.ready_at
        fraction, source, detail = 1.0 if status is PhaseStatus.DONE else None, "", ""
        if running:
            fraction, source, detail = self._progress(phase, stretch, now, since)
        return PhaseView(phase, status, began, ended, fraction, source, detail, expected)

    def _status(self, phase: Phase, current: Phase) -> PhaseStatus:
        ready = self.timeline.ready_at is not None
        if phase is Phase.READY:
            return PhaseStatus.DONE if ready else PhaseStatus.PENDING
        if phase is current:
            return PhaseStatus.RUNNING if ready or self._ended is None else PhaseStatus.FAILED
        if (stretch := self.timeline.last_of(phase)) is not None:
            # Some ranks may be ahead of the slowest one, in a phase that counts only after its own.
            return PhaseStatus.PENDING if stretch.open else PhaseStatus.DONE
        past = self.timeline.last_of(Phase.WARMUP) is not None
        absent = phase in self._without() or ready or (past and phase is not Phase.WARMUP)
        return PhaseStatus.SKIPPED if absent else PhaseStatus.PENDING

    def _progress(
        self, phase: Phase, stretch: Stretch | None, now: float, since: float | None
    ) -> tuple[float | None, str, str]:
        """Fraction of a running phase, its source and a detail. It never goes back."""
        weights, bar = self.weights.get(phase), self._bars.get(phase)
        fraction, source, detail = None, "", ""
        expected = self._experience.seconds(phase)
        if weights is not None and weights.reading is not None:
            reading = weights.reading
            fraction, source, detail = reading.fraction, reading.source, reading.detail
        elif bar is not None and bar.live(now):
            fraction, source = bar.fraction, "log bar"
            detail = f"{bar.done} of {bar.total}"
        elif expected and (start := stretch.began if stretch is not None else since) is not None:
            fraction, source = min(_HIDDEN, max(0.0, now - start) / expected), BY_HISTORY
        if stretch is not None and weights is not None and stretch.open:
            waiting = self._waiting(stretch, weights, fraction)
            detail = f"{detail}; {waiting}" if detail and waiting else detail or waiting
        if fraction is None:
            return None, source, detail
        self._shown[phase] = min(ALMOST, max(fraction, self._shown.get(phase, 0.0)))
        return self._shown[phase], source, detail

    def _waiting(self, stretch: Stretch, weights: WeightsProgress, fraction: float | None) -> str:
        """What weights that look complete still wait for."""
        missing = self.timeline.waiting_for(stretch)
        if stretch.ended_ranks and missing:
            if len(missing) == 1 or weights.straggler:
                slowest = next(iter(missing)) if len(missing) == 1 else weights.straggler
                return f"waiting for the slowest rank: {slowest}"
            return f"waiting for {len(missing)} of {self.timeline.tp} ranks"
        if fraction is not None and fraction >= ALMOST:
            return "waiting for the engine to say that the weights are loaded"
        return ""

    def _whole(self, now: float, estimate: Estimate) -> float | None:
        """Share of the whole load in time; None without anything that tells the whole."""
        if estimate.seconds is None or not self._experience.records:
            return self._shown_whole or None
        elapsed = max(0.0, now - self.timeline.began)
        whole = elapsed + estimate.seconds
        share = min(ALMOST, elapsed / whole) if whole > 0 else 0.0
        self._shown_whole = max(self._shown_whole, share)
        return self._shown_whole

    # ---- what is kept ---------------------------------------------------------------------------

    def record(self) -> LoadRecord | None:
        """What the history keeps of this load; None before the engine is ready."""
        if self.timeline.ready_at is None or not self.model:
            return None
        return make_record(
            invocation=self.invocation,
            models=(self.model, self.drafter),
            flags=self.flags,
            timeline=self.timeline,
            memory=self.memory,
            weights=self.weights,
            gaps=self.stall.longest,
        )

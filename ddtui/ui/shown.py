"""What is on the screen: a snapshot, the moment it is looked at, and how far to believe it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

from ddtui.core.log_buffer import LogBuffer
from ddtui.core.samples import Collector, LinkSample, LinkState, SourceStatus
from ddtui.core.snapshot import STALE_AFTER_INTERVALS, Figure, ReadinessState, Snapshot
from ddtui.ui.glyphs import UNICODE, Glyphs
from ddtui.ui.queue_source import QueueView
from ddtui.ui.source import ReconfigurationView

SLOW_SOURCE_VALID = 15.0
"""Seconds for which a reading of the unit or the machine holds; a sign of life comes more often."""
SKEW_SHOWN = 2.0
"""Seconds of difference between the clocks from which it is shown."""


@dataclass(frozen=True)
class Shown:
    """A snapshot with the time and the glyphs to draw it with."""

    snapshot: Snapshot
    now: float
    """Unix seconds on the operator's clock; frozen while paused."""
    link: LinkSample
    """The link as it is, also while the rest is paused."""
    paused_at: float | None = None
    paused_log: LogBuffer | None = None
    """The end of the log as it was when the rest was paused: the snapshot's own goes on."""
    glyphs: Glyphs = UNICODE
    read_only: bool = False
    keys: dict[str, str] = field(default_factory=dict)
    """Keys by action id, as they are written, for hints."""
    reconfiguration: ReconfigurationView | None = None
    """The one to show: it goes on, or has ended and was not dismissed."""
    holder: str = ""
    """Who else is changing the unit, and since when."""
    queue: QueueView | None = None
    """The host's queue; None where there is none."""

    @property
    def connected(self) -> bool:
        """Whether the link is live: nothing is the present while it is not."""
        return self.snapshot.link.state is LinkState.LIVE

    @property
    def age(self) -> float | None:
        """Seconds since anything came from the host; None when nothing ever did."""
        heard = self.snapshot.last_heard
        return None if heard is None else max(0.0, self.now - heard)

    @property
    def host_now(self) -> float:
        """The host's own clock, for spans that began by it."""
        system = self.snapshot.system
        skew = system.clock_skew if system is not None else None
        return self.now + (skew or 0.0)

    def source_stale(self, collector: Collector) -> bool:
        """Whether a collector's readings are too old to be taken for the present."""
        at, valid = self._reading(collector)
        return at is not None and (not self.connected or self.now - at > valid)

    def source_age(self, collector: Collector) -> float | None:
        """Seconds since a collector's last reading; None when there is none."""
        at, _ = self._reading(collector)
        return None if at is None else max(0.0, self.now - at)

    def _reading(self, collector: Collector) -> tuple[float | None, float]:
        shot = self.snapshot
        if collector is Collector.GPU:
            return shot.gpu_at, max(1.0, shot.gpu_interval) * STALE_AFTER_INTERVALS
        if collector is Collector.SYSTEM:
            return (shot.system.sample.at if shot.system else None), SLOW_SOURCE_VALID
        if collector is Collector.UNIT:
            return shot.unit_at, SLOW_SOURCE_VALID
        return shot.last_heard, SLOW_SOURCE_VALID

    def source_trouble(self, collector: Collector) -> str:
        """Why a collector has nothing to show, in words; empty while it has."""
        state = self.snapshot.sources.get(collector)
        if state is None or state.status in {SourceStatus.LIVE, SourceStatus.STARTING}:
            return ""
        words = f"{state.status}: {state.detail}" if state.detail else str(state.status)
        return f"{words}; {state.remedy}" if state.remedy else words

    def figure_stale(self, figure: Figure | None) -> bool:
        """Whether a figure is out of date. An idle engine's figures are not: they rest."""
        if figure is None:
            return False
        if not self.connected:
            return True
        return figure.stale(self.now) and not self.snapshot.engine.idle

    @property
    def faded(self) -> bool:
        """Whether all that is known is out of date: it came before the link broke."""
        return not self.connected and self.snapshot.last_heard is not None

    @property
    def waiting(self) -> str:
        """What to say where nothing was heard yet."""
        return "waiting for the first reading" if self.connected else "not connected yet"


_NOT_LOADING = frozenset(
    {
        ReadinessState.READY,
        ReadinessState.DEGRADED,
        ReadinessState.STOPPED,
        ReadinessState.STOPPING,
        ReadinessState.MASKED,
        ReadinessState.ABSENT,
    }
)


def loading(snapshot: Snapshot) -> bool:
    """Whether a load is going on, or ended badly: it then deserves its timeline.

    An engine that is proved ready has loaded, even where its log was not seen.
    """
    load = snapshot.load
    if load is None or snapshot.readiness.state in _NOT_LOADING:
        return False
    return not load.finished or load.failed


def urgent_key(snapshot: Snapshot) -> Hashable:
    """What must be painted at once when it changes: states and words, no figures."""
    unit, load = snapshot.unit, snapshot.load
    return (
        snapshot.link.state,
        snapshot.link.detail,
        snapshot.link.attempt,
        snapshot.readiness.state,
        (unit.active_state, unit.sub_state, unit.invocation) if unit else None,
        (load.current, load.finished, load.failed) if load else None,
        tuple(alert.key for alert in snapshot.alerts),
        tuple((each, state.status) for each, state in snapshot.sources.items()),
        snapshot.engine.idle,
        bool(snapshot.gpus),
    )


def urgent_change(view: ReconfigurationView | None) -> Hashable:
    """The same for a reconfiguration."""
    if view is None:
        return None
    question = view.question.id if view.question is not None else ""
    steps = tuple((each.name, each.status) for each in view.steps)
    return (view.id, steps, view.ending, question, view.interrupted)


def urgent_queue(view: QueueView | None) -> Hashable:
    """The same for a queue and its runner."""
    if view is None:
        return None
    run = view.run
    who = (run.where, run.unknown)
    return (view.version, view.problem, who, run.step, run.stopping, run.waiting, run.ended)


def plan_facts(shown: Shown) -> Hashable:
    """What a plan depends on, as far as it is watched."""
    shot = shown.snapshot
    unit, info = shot.unit, shot.server_info
    outside = sorted(each.pid for each in shot.processes if not each.in_unit)
    arguments: Mapping[str, object] = info.arguments if info is not None else {}
    return (
        shot.link.state,
        shot.readiness.state,
        (unit.invocation, unit.command_line, unit.environment, unit.drop_ins) if unit else None,
        tuple(outside),
        shot.listener.owner if shot.listener is not None else None,
        str(sorted((name, str(value)) for name, value in arguments.items())),
    )

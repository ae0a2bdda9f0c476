"""What is known of one invocation of the unit: one start, from its first log line to its end."""

from __future__ import annotations

from collections.abc import Iterable

from ddtui.core.cause_of_failure import Cause
from ddtui.core.engine import Engine
from ddtui.core.events import (
    AnyEvent,
    Configured,
    Draining,
    Failed,
    FiredUp,
    PortOpened,
)
from ddtui.core.examination import Examination
from ddtui.core.load_history import LoadHistory
from ddtui.core.load_progress import LoadTracker
from ddtui.core.samples import (
    HealthSample,
    JournalLine,
    ListenerSample,
    ServerInfoSample,
    UnitStatus,
)

FAILURES_KEPT = 50
_OVER = {"inactive", "failed", "deactivating"}


class Invocation:
    """Gathers the evidence of one start. Nothing of an earlier start may count for it."""

    def __init__(
        self, identity: str, began: float, seen_at: float, engine: Engine, history: LoadHistory
    ) -> None:
        self.identity = identity
        self.began = began
        """Host's clock."""
        self.seen_at = seen_at
        """Operator's clock: answers to questions asked before this are another invocation's."""
        self.tracker = LoadTracker(identity, began, history)
        self.configured: dict[str, str | int | float | bool | None] = {}
        self.fired_up: float | None = None
        self.port_opened: float | None = None
        self.draining: float | None = None
        self.failures: list[Failed] = []
        self.health: HealthSample | None = None
        self.healthy: HealthSample | None = None
        """The last answer of a health endpoint that said 200."""
        self.listener: ListenerSample | None = None
        self.info: ServerInfoSample | None = None
        self.refusals = 0
        """Times that it has refused its report since it gave one."""
        self.was_ready_at: float | None = None
        self._engine = engine
        self._reader = engine.log_reader()
        self._examination = Examination(engine)
        self._cause: Cause | None = None
        self._cause_of: tuple[object, ...] = ()
        """What the cause was worked out from."""
        self._configured_for: tuple[str, ...] = ()

    def configure(self, unit: UnitStatus) -> None:
        """Tell the load tracker what is being loaded, once the command line is known."""
        if not unit.command_line or unit.command_line == self._configured_for:
            return
        self._configured_for = unit.command_line
        flags = self._engine.flags(unit.command_line)
        models = self._engine.models(unit.command_line)
        try:
            tp = int(flags.get("tp-size") or flags.get("tensor-parallel-size") or flags["tp"])
        except (KeyError, ValueError):
            tp = 1
        self.tracker.configure(models.get("target", ""), models.get("drafter"), tp, flags)

    def take_end(self, unit: UnitStatus, at: float) -> None:
        """Tell the load tracker of the end, where the unit (seen at `at`, host's clock) is over.

        A unit that is being stopped loads nothing any more. A load has failed unless somebody
        stopped it; an engine that was up has loaded whatever became of it.
        """
        restarting = unit.is_auto_restarting
        if not restarting and unit.active_state not in _OVER:
            return
        failed = restarting or unit.active_state == "failed" or unit.result not in {"", "success"}
        ended = min(at, unit.state_changed_at or at)
        self.tracker.stopped(max(ended, self.began), failed and self.was_ready_at is None)

    def read(self, line: JournalLine) -> Iterable[AnyEvent]:
        """Take one line of this invocation's journal; returns its events."""
        events = list(self._reader.read(line))
        self._examination.take(line, events)
        for event in events:
            self.tracker.event(event)
            match event:
                case Configured(values=values):
                    self.configured.update(values)
                case PortOpened():
                    self.port_opened = event.stamp
                case FiredUp():
                    self.fired_up = event.stamp
                case Draining():
                    self.draining = event.stamp
                case Failed():
                    if len(self.failures) < FAILURES_KEPT:
                        self.failures.append(event)
                case _:
                    pass
        return events

    def read_manager(self, line: JournalLine) -> None:
        """Take a line in which systemd tells of this invocation."""
        self._examination.take(line, ())

    def cause(self, unit: UnitStatus | None) -> Cause | None:
        """Why it failed; None while it has not. Worked out anew only when there is news."""
        if unit is not None and unit.invocation not in {"", self.identity}:
            unit = None
        news: tuple[object, ...] = (self._examination.revision,)
        if unit is not None:
            news += (unit.active_state, unit.sub_state, unit.result, unit.exit_status)
        if news != self._cause_of:
            self._cause_of = news
            self._cause = self._examination.cause(unit)
        return self._cause

    def take_health(self, sample: HealthSample) -> None:
        """Take a health answer, unless it was asked for before this invocation was seen."""
        asked_at = sample.at - (sample.seconds or 0.0)
        if asked_at < self.seen_at:
            return
        self.health = sample
        if sample.status == 200:
            self.healthy = sample

    @property
    def root_failure(self) -> Failed | None:
        """The first failure that is no wrapper around another one."""
        for failure in self.failures:
            if not failure.wrapper:
                return failure
        return self.failures[0] if self.failures else None

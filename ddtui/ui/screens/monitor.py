"""The monitor: everything that matters of one host, at a glance."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Container

from ddtui.core.events import Phase
from ddtui.ui.actions import Scope, bindings
from ddtui.ui.layout import Need, Part, Plan, alert_room, change_room, plan
from ddtui.ui.messages import ChangeDismissed, PauseToggled
from ddtui.ui.queue_short_rows import short_rows
from ddtui.ui.screens.built import built
from ddtui.ui.screens.live import LiveScreen
from ddtui.ui.shown import Shown, loading
from ddtui.ui.source import ReconfigurationView
from ddtui.ui.widgets.alerts import Alerts, alert_rows
from ddtui.ui.widgets.canvas import Canvas
from ddtui.ui.widgets.engine import EnginePanel
from ddtui.ui.widgets.gpus import GpuPanel, foreign_processes
from ddtui.ui.widgets.header import Header
from ddtui.ui.widgets.key_bar import KeyBar
from ddtui.ui.widgets.load import LoadPanel, warning_rows
from ddtui.ui.widgets.log_tail import LogTail
from ddtui.ui.widgets.machine import SystemPanel, UnitPanel
from ddtui.ui.widgets.queue_panel import QueuePanel
from ddtui.ui.widgets.readiness import ReadinessPanel, has_loaded, long_summary
from ddtui.ui.widgets.reconfiguration import ReconfigurationPanel, compact_rows, fitting_rows
from ddtui.ui.widgets.too_small import TooSmall


class MonitorScreen(LiveScreen):
    """Panels placed by `ddtui.ui.layout.plan`."""

    BINDINGS = bindings(Scope.MONITOR)
    DEFAULT_CSS = """
    MonitorScreen { layout: vertical; overflow: hidden; background: $background; }
    MonitorScreen > #panels { height: 1fr; overflow: hidden; }
    MonitorScreen > #panels > * { position: absolute; display: none; }
    """

    def __init__(self) -> None:
        super().__init__(id="monitor")
        self._plan: Plan = {}
        self._shown: Shown | None = None

    def compose(self) -> ComposeResult:
        with Container(id="panels"):
            yield Header(id=Part.HEADER)
            yield Alerts(id=Part.ALERTS)
            yield ReconfigurationPanel(id=Part.CHANGE)
            yield GpuPanel(id=Part.GPUS)
            yield EnginePanel(id=Part.ENGINE)
            yield LoadPanel(id=Part.LOAD)
            yield ReadinessPanel(id=Part.READINESS)
            yield UnitPanel(id=Part.UNIT)
            yield SystemPanel(id=Part.SYSTEM)
            yield LogTail(id=Part.LOG)
            yield QueuePanel(id=Part.QUEUE)
            yield TooSmall(id=Part.TOO_SMALL)
        yield KeyBar()

    def show(self, shown: Shown) -> None:
        self._shown = shown
        if not built(self):
            return
        self._place()
        paused = shown.paused_at is not None
        self.query_one(KeyBar).retitle({"monitor.pause": "Resume"} if paused else {})
        for canvas in self.query(Canvas):
            canvas.show(shown)

    def on_resize(self) -> None:
        self._place()

    def _place(self) -> None:
        """Move panels where the plan has changed, which is rare: it costs a layout."""
        if self._shown is None or not self.size.width:
            return
        width, height = self.size.width, self.size.height - 1
        wanted = plan(width, height, needs(self._shown, width, height))
        if wanted == self._plan:
            return
        self._plan = wanted
        for canvas in self.query(Canvas):
            region = wanted.get(Part(canvas.id or ""))
            canvas.display = region is not None
            if region is not None:
                canvas.styles.offset = (region.x, region.y)
                canvas.styles.width = region.width
                canvas.styles.height = region.height

    def action_pause(self) -> None:
        """Freeze what is shown, or go on."""
        self.post_message(PauseToggled())

    def action_hide(self) -> None:
        """Hide a reconfiguration that has ended."""
        self.post_message(ChangeDismissed())


def needs(shown: Shown, width: int, height: int) -> Need:
    """What decides the plan, from a snapshot."""
    shot = shown.snapshot
    is_loading = loading(shot)
    phases = 6
    if shot.load is not None:
        phases = len([each for each in shot.load.phases if each.phase is not Phase.READY])
    warnings = len(warning_rows(shot.load, shown)) if shot.load is not None else 0
    view = shown.reconfiguration
    # In half the width, where panels stand beside each other.
    summary = len(long_summary(shot.readiness, (width // 2 if width >= 100 else width) - 4))
    return Need(
        change=_change_lines(view, shown, width - 4, change_room(height)) if view else 0,
        gpus=len(shot.gpus),
        foreign=int(foreign_processes(shot.processes)),
        alerts=len(alert_rows(shown, width, alert_room(height))),
        loading=is_loading,
        phases=phases,
        warnings=warnings,
        evidence=max(1, len(shot.readiness.evidence)) + has_loaded(shot) + summary,
        queue=_queue_lines(shown),
    )


def _change_lines(view: ReconfigurationView, shown: Shown, width: int, room: int) -> int:
    """Lines of a reconfiguration: what has no room for all of them is told in fewer."""
    few = len(compact_rows(view, shown, width))
    return len(fitting_rows(view, shown, width, min(few, room)))


def _queue_lines(shown: Shown) -> int:
    """Lines of the queue in short; none where nothing of it goes on."""
    view = shown.queue
    if view is None or not view.alive:
        return 0
    return len(short_rows(view, shown.now, 60, shown.glyphs))

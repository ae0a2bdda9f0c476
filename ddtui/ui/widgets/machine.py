"""The unit as systemd sees it, and the machine's own load."""

from __future__ import annotations

from ddtui.core.samples import Collector, SystemSample, UnitStatus
from ddtui.ui import format as fmt
from ddtui.ui.ink import Ink, Row, grid
from ddtui.ui.shown import Shown
from ddtui.ui.widgets.bars import bar
from ddtui.ui.widgets.canvas import Drawing, Panel


class UnitPanel(Panel):
    """State, process, memory and drop-ins of the unit."""

    def draw(self, shown: Shown, width: int, height: int) -> Drawing:
        stale = shown.source_stale(Collector.UNIT)
        drawing = _drawing("Unit", Collector.UNIT, shown, stale)
        unit = shown.snapshot.unit
        if unit is None:
            drawing.rows = [_nothing(Collector.UNIT, shown)]
            return drawing
        drawing.title.add(f"  {fmt.clean(unit.name)}", Ink.LABEL)
        drawing.rows = grid(unit_pieces(unit, shown), width, _columns(width))[:height]
        return drawing


class SystemPanel(Panel):
    """Processor, memory, disks and network of the machine."""

    def draw(self, shown: Shown, width: int, height: int) -> Drawing:
        stale = shown.source_stale(Collector.SYSTEM)
        drawing = _drawing("System", Collector.SYSTEM, shown, stale)
        system = shown.snapshot.system
        if system is None:
            drawing.rows = [_nothing(Collector.SYSTEM, shown)]
            return drawing
        if system.sample.uptime is not None:
            drawing.title.add(f"  up {fmt.ago(system.sample.uptime)}", Ink.LABEL)
        drawing.rows = grid(system_pieces(system.sample, shown), width, _columns(width))[:height]
        return drawing


def _columns(width: int) -> int:
    return 4 if width >= 130 else 3 if width >= 84 else 2 if width >= 50 else 1


def _drawing(name: str, collector: Collector, shown: Shown, stale: bool) -> Drawing:
    drawing = Drawing(title=Row(name, Ink.TITLE), faded=stale)
    if stale:
        drawing.note = Row(f"STALE {fmt.ago(shown.source_age(collector))}", Ink.WARN)
    return drawing


def _nothing(collector: Collector, shown: Shown) -> Row:
    return Row(shown.source_trouble(collector) or shown.waiting, Ink.LABEL)


def _pair(label: str, value: str, ink: Ink = Ink.TEXT) -> Row:
    return Row(f"{label} ", Ink.LABEL).add(fmt.clean(value), ink)


def unit_pieces(unit: UnitStatus, shown: Shown) -> list[Row]:
    """What is worth knowing of the unit, the important first."""
    failed = unit.active_state == "failed"
    state = Row(f"{unit.active_state} ({unit.sub_state})", Ink.BAD if failed else Ink.STRONG)
    pieces = [state]
    if unit.result and unit.result != "success":
        code = f", {unit.exit_code} {unit.exit_status}" if unit.exit_code else ""
        pieces.append(_pair("result", f"{unit.result}{code}", Ink.BAD))
    if unit.load_state not in {"loaded", ""}:
        pieces.append(Row(unit.load_state, Ink.WARN))
    if unit.needs_daemon_reload:
        pieces.append(Row("daemon-reload needed", Ink.WARN))
    running = unit.started_at is not None and unit.main_pid
    pieces.append(
        _pair("up", fmt.ago(shown.host_now - (unit.started_at or 0)) if running else fmt.NOTHING)
    )
    pieces.append(_pair("pid", str(unit.main_pid) if unit.main_pid else fmt.NOTHING))
    restarts = fmt.number(unit.restarts)
    pieces.append(_pair("restarts", restarts, Ink.WARN if unit.restarts else Ink.TEXT))
    pieces.append(_pair("memory", fmt.memory(unit.memory)))
    pieces.append(_pair("tasks", fmt.number(unit.tasks)))
    pieces.append(_pair("invocation", unit.invocation[:8] or fmt.NOTHING))
    names = [path.rsplit("/", 1)[-1] for path in unit.drop_ins]
    pieces.append(_pair("drop-ins", ", ".join(names) if names else "none"))
    return pieces


def system_pieces(sample: SystemSample, shown: Shown) -> list[Row]:
    """The machine's figures, the important first."""
    glyphs = shown.glyphs
    share = None if sample.cpu is None else sample.cpu / 100
    cpu = Row("CPU ", Ink.LABEL).extend(bar(share, 6, Ink.UTILIZATION, glyphs))
    cpu.put(fmt.percent(sample.cpu), 6, right=True)
    if sample.cores:
        cpu.add(f" of {sample.cores}", Ink.LABEL)
    total, free = sample.memory_total, sample.memory_available
    used = None if total is None or free is None else total - free
    filled = used / total if used is not None and total else None
    memory = Row("RAM ", Ink.LABEL).extend(bar(filled, 6, Ink.MEMORY, glyphs))
    memory.add(f" {fmt.gib(used, 0)}/{fmt.gib(total, 0)}").add(" GiB", Ink.LABEL)
    pieces = [
        cpu,
        _pair("load", fmt.number(sample.load_1m, 1)),
        memory,
        _pair("page cache", fmt.memory(sample.page_cache)),
    ]
    if sample.model_disk or sample.model_disk_read is not None:
        pieces.append(_pair("model disk read", fmt.rate(sample.model_disk_read)))
    return [
        *pieces,
        _pair("disks read", fmt.rate(sample.disk_read)),
        _pair("network in", fmt.rate(sample.network_in)),
        _pair("network out", fmt.rate(sample.network_out)),
        _pair("disks write", fmt.rate(sample.disk_write)),
    ]

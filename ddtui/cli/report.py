"""A snapshot as text for `ddtui status`: what is known, from which source, and how old it is."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from ddtui.cli.output import Paint, clean, folded, narrowed, table
from ddtui.core.events import Phase
from ddtui.core.knobs import by_name
from ddtui.core.samples import Collector, LinkState, SourceStatus, UnitStatus
from ddtui.core.snapshot import (
    EngineView,
    Figure,
    GpuView,
    LoadView,
    PhaseStatus,
    ReadinessState,
    Severity,
    Snapshot,
    Verdict,
)
from ddtui.ui import format as fmt

_MARKS = {
    Verdict.PROVED: ("+", "green"),
    Verdict.CONSISTENT: ("~", "cyan"),
    Verdict.MISSING: ("?", "yellow"),
    Verdict.AGAINST: ("!", "red"),
}
_BAD = {ReadinessState.FAILED, ReadinessState.CRASH_LOOP, ReadinessState.DEGRADED}
_LABEL = 11
_MORE = 2
"""How much further to the right a line goes on that was too long."""
_WIDTH = 110
"""Columns after which long lists go on in the next line, at most."""
_GPU_HEAD = ("#", "GPU", "MEMORY GiB", "UTIL", "POWER W", "TEMP", "OF UNIT GiB")
_GPU_GIVE = ((1, 8), (4, 0), (6, 0), (5, 0))
"""How the columns of the GPUs give way where there is no room."""


def lines(snapshot: Snapshot, paint: Paint, width: int | None = None) -> list[str]:
    """The whole report, as wide as the terminal at most."""
    return [
        part
        for line in _lines(snapshot, paint, width)
        for part in folded(line, width, _LABEL + _MORE)
    ]


def _lines(snapshot: Snapshot, paint: Paint, width: int | None) -> list[str]:
    runs = snapshot.unit is None or _runs(snapshot.unit)
    return [
        _head(snapshot, paint),
        *_link(snapshot, paint),
        *_unit(snapshot, paint),
        *_readiness(snapshot, paint),
        *_knobs(snapshot.engine, min(width or _WIDTH, _WIDTH), runs=runs),
        *_load(snapshot.load, paint),
        *_gpus(snapshot, paint, width),
        *_engine(snapshot, paint),
        *_system(snapshot),
        *_sources(snapshot, paint),
        *_alerts(snapshot, paint),
    ]


def _row(label: str, text: str) -> str:
    return f"{label:<{_LABEL}}{text}".rstrip()


def _more(text: str) -> str:
    return " " * _LABEL + text


def _head(snapshot: Snapshot, paint: Paint) -> str:
    state = snapshot.readiness.state
    style = "green" if state is ReadinessState.READY else "red" if state in _BAD else "yellow"
    simulated = "  (simulated)" if snapshot.simulated else ""
    return f"{paint(snapshot.host, 'bold')}{simulated}  {paint(state.value, style, 'bold')}"


def _link(snapshot: Snapshot, paint: Paint) -> list[str]:
    link = snapshot.link
    style = "green" if link.state is LinkState.LIVE else "red"
    detail = f"  {clean(link.detail)}" if link.detail else ""
    heard = ""
    if snapshot.last_heard is not None:
        heard = f"  last heard {fmt.ago(snapshot.at - snapshot.last_heard)} ago"
    # There is one look: nothing is tried again.
    word = "unreachable" if link.state is LinkState.RETRYING else link.state.value
    rows = [_row("link", f"{paint(word, style)}{detail}{heard}")]
    if link.remedy:
        rows.append(_more(f"-> {clean(link.remedy)}"))
    return rows


def _unit(snapshot: Snapshot, paint: Paint) -> list[str]:
    unit = snapshot.unit
    if unit is None:
        source = snapshot.sources.get(Collector.UNIT)
        absent = source is not None and source.status is SourceStatus.ABSENT
        return [_row("unit", paint("none is known" if absent else "nothing heard", "yellow"))]
    words = [
        clean(unit.name),
        f"{unit.active_state} ({unit.sub_state})" if unit.active_state else "",
    ]
    if unit.load_state not in {"", "loaded"}:
        words.append(unit.load_state)
    if unit.main_pid:
        words.append(f"pid {unit.main_pid}")
    since = unit.started_at if _runs(unit) else unit.state_changed_at
    if since is not None and snapshot.unit_at is not None:
        skew = (snapshot.system.clock_skew or 0.0) if snapshot.system else 0.0
        words.append(f"for {fmt.duration(snapshot.at + skew - since)}")
    if unit.restarts:
        words.append(paint(f"{unit.restarts} restarts", "yellow"))
    rows = [_row("unit", "  ".join(filter(None, words)))]
    rows += [_more(text) for text in _unit_notes(unit)]
    return rows


def _runs(unit: UnitStatus) -> bool:
    """Whether the unit has a process: what is known of its engine is so now."""
    return unit.is_up and not unit.is_auto_restarting


def _unit_notes(unit: UnitStatus) -> Iterable[str]:
    if unit.result not in {"", "success"}:
        yield f"last result: {clean(unit.result)}"
    if unit.drop_ins:
        yield f"drop-ins: {', '.join(map(clean, unit.drop_ins))}"
    if unit.needs_daemon_reload:
        yield "its files have changed since systemd read them (daemon-reload needed)"


def _readiness(snapshot: Snapshot, paint: Paint) -> list[str]:
    ready = snapshot.readiness
    since = ""
    if ready.since is not None:
        since = f"  (seen for {fmt.duration(snapshot.at - ready.since)})"
    rows = [_row("readiness", f"{clean(ready.summary) or ready.state.value}{since}")]
    for each in ready.evidence:
        mark, style = _MARKS[each.verdict]
        word = f"{each.verdict.value:<10}"
        text = f"{paint(mark, style)} {each.name:<14}{paint(word, style)}  {clean(each.detail)}"
        rows.append(_more(text.rstrip()))
    return rows


def _knobs(engine: EngineView, width: int, *, runs: bool) -> list[str]:
    """What is in force, or only asked for (by the command line), or was in force last.

    Knobs are called as `--set` takes them.
    """
    if not engine.knobs:
        return []
    knobs = ", ".join(f"{name} {clean(value)}" for name, value in by_name(engine.knobs).items())
    text = f"{knobs}  ({clean(engine.knobs_source)})"
    first, *rest = textwrap.wrap(text, max(24, width - _LABEL))
    label = "asked" if engine.knobs_source == "command line" else "in force" if runs else "last"
    rows = [_row(label, first), *map(_more, rest)]
    if engine.model:
        version = f"  version {clean(engine.version)}" if engine.version else ""
        rows.append(_row("model", f"{clean(engine.model)}{version}"))
    return rows


def _load(load: LoadView | None, paint: Paint) -> list[str]:
    if load is None:
        return []
    if load.finished or load.failed or load.ended is not None:
        took = "" if load.ended is None else f" after {fmt.duration(load.ended - load.began)}"
        word = paint("failed", "red") if load.failed else "ready" if load.finished else "stopped"
        return [_row("load", f"{word}{took}")]
    source = f" ({clean(load.eta_source)})" if load.eta_source else ""
    eta = f"ETA unknown{source}"
    if load.eta_seconds is not None and load.eta_of is Phase.READY:
        eta = f"ETA {fmt.duration(load.eta_seconds)}{source}"
    elif load.eta_seconds is not None:
        eta = f"weights loaded in {fmt.duration(load.eta_seconds)}{source}, the rest is not known"
    share = "" if load.fraction is None else f"  {load.fraction:.0%}"
    rows = [_row("load", f"{load.current.value}{share}  {eta}")]
    for phase in load.phases:
        if phase.status in {PhaseStatus.PENDING, PhaseStatus.SKIPPED}:
            continue
        amount = "" if phase.fraction is None else f"{phase.fraction:.0%} by {phase.source}"
        took = ""
        if phase.began is not None and phase.ended is not None:
            amount, took = "", fmt.duration(phase.ended - phase.began)
        text = f"{phase.phase.value:<22}{phase.status.value:<9}{took or amount}"
        rows.append(_more(text.rstrip()))
    if load.stalled_for is not None:
        rows.append(_more(paint(f"no progress for {fmt.duration(load.stalled_for)}", "red")))
    if load.straggler:
        rows.append(_more(f"behind the others: {clean(load.straggler)}"))
    return rows


def _gpus(snapshot: Snapshot, paint: Paint, width: int | None) -> list[str]:
    if not snapshot.gpus:
        return []
    age = "" if snapshot.gpu_at is None else f", {fmt.ago(snapshot.at - snapshot.gpu_at)} ago"
    rows = [_GPU_HEAD, *map(_gpu_cells, snapshot.gpus)]
    unknown = all(view.unit_memory is None for view in snapshot.gpus)
    room = None if width is None else width - _LABEL
    kept = narrowed(rows, room, _GPU_GIVE, without={6} if unknown else ())
    aligned = table(kept, right=[n for n, name in enumerate(kept[0]) if name != "GPU"])
    out = [_row("gpus", f"{len(snapshot.gpus)}  ({clean(snapshot.gpu_source)}{age})")]
    out.append(_more(paint(aligned[0], "dim")))
    for view, text in zip(snapshot.gpus, aligned[1:], strict=True):
        note = f"  {paint('LOST: ' + clean(view.gpu.lost), 'red')}" if view.gpu.lost else ""
        out.append(_more(text + note))
    return out


def _gpu_cells(view: GpuView) -> tuple[str, ...]:
    gpu = view.gpu
    return (
        str(gpu.index),
        clean(gpu.name).removeprefix("NVIDIA ") or fmt.NOTHING,
        f"{fmt.gib(gpu.memory_used)} / {fmt.gib(gpu.memory_total)}",
        fmt.percent(gpu.utilization),
        f"{fmt.number(gpu.power)} / {fmt.number(gpu.power_limit)}",
        "" if gpu.temperature is None else f"{fmt.number(gpu.temperature)} °C",
        fmt.gib(view.unit_memory),
    )


def _engine(snapshot: Snapshot, paint: Paint) -> list[str]:
    engine, now = snapshot.engine, snapshot.at
    shown = (
        ("tok/s", engine.throughput, fmt.tokens_per_second),
        ("prefill tok/s", engine.prefill_throughput, fmt.tokens_per_second),
        ("acceptance length", engine.acceptance_length, lambda v: fmt.number(v, 2)),
        ("acceptance, lifetime", engine.acceptance_lifetime, lambda v: fmt.number(v, 2)),
        ("running", engine.running, fmt.number),
        ("queued", engine.queued, fmt.number),
        ("KV cache in use", engine.kv_usage, lambda v: fmt.percent(v * 100)),
    )
    rows = [
        (name, write(figure.value), _origin(figure, now, paint))
        for name, figure, write in shown
        if figure is not None
    ]
    idle = "idle: no request is running" if engine.idle else ""
    if not rows:
        return [_row("engine", idle or "no figures")]
    out = [_row("engine", idle)] if idle else []
    for n, text in enumerate(table(rows, right=(1,))):
        out.append(_more(text) if n or idle else _row("engine", text))
    return out


def _origin(figure: Figure, now: float, paint: Paint) -> str:
    note = f", {clean(figure.note)}" if figure.note else ""
    text = f"{clean(figure.source)}, {fmt.ago(figure.age(now))} ago{note}"
    return paint(f"{text}, STALE", "yellow") if figure.stale(now) else text


def _system(snapshot: Snapshot) -> list[str]:
    if snapshot.system is None:
        return []
    s = snapshot.system.sample
    used = None
    if s.memory_total is not None and s.memory_available is not None:
        used = s.memory_total - s.memory_available
    words = [
        f"CPU {fmt.percent(s.cpu)}",
        f"memory {fmt.memory(used)} of {fmt.memory(s.memory_total)}",
        f"load {fmt.number(s.load_1m, 2)}",
        f"disk read {fmt.rate(s.disk_read)}",
        f"net in {fmt.rate(s.network_in)}, out {fmt.rate(s.network_out)}",
    ]
    return [_row("system", "  ".join(words))]


def _sources(snapshot: Snapshot, paint: Paint) -> list[str]:
    """Only what is missing: a source that works shows by its figures."""
    rows = []
    told = set()
    for collector, source in snapshot.sources.items():
        if source.status in {SourceStatus.LIVE, SourceStatus.STARTING} or source.detail in told:
            continue
        told.add(source.detail)
        style = "red" if source.status is SourceStatus.FAILED else "yellow"
        word = paint(f"{collector.value} {source.status.value}", style)
        rows.append(f"{word}: {clean(source.detail)}")
        if source.remedy:
            rows.append(f"  -> {clean(source.remedy)}")
    return [_row("missing", rows[0]), *map(_more, rows[1:])] if rows else []


def _alerts(snapshot: Snapshot, paint: Paint) -> list[str]:
    styles = {Severity.INFO: "cyan", Severity.WARNING: "yellow", Severity.CRITICAL: "red"}
    return [
        _row(
            "" if n else "alerts",
            f"{paint(alert.severity.value, styles[alert.severity])}: {clean(alert.text)}",
        )
        for n, alert in enumerate(snapshot.alerts)
    ]

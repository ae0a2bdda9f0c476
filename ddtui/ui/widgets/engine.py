"""The engine's figures: throughput and acceptance length large, then the rest, and their past."""

from __future__ import annotations

from ddtui.core.samples import Collector
from ddtui.core.snapshot import EngineView, Figure, ReadinessState
from ddtui.ui import format as fmt
from ddtui.ui.ink import Ink, Row, flow, wrapped
from ddtui.ui.shown import Shown
from ddtui.ui.widgets.bars import bar, big_digits
from ddtui.ui.widgets.canvas import Drawing, Panel
from ddtui.ui.widgets.chart import Plot, Scale, charts, largest, nice_ceiling

_DOWN = {
    ReadinessState.ABSENT,
    ReadinessState.MASKED,
    ReadinessState.STOPPED,
    ReadinessState.FAILED,
    ReadinessState.CRASH_LOOP,
}
AGE_SHOWN = 5.0
"""Seconds from which the age of a live figure is worth saying."""


class EnginePanel(Panel):
    """Live figures of the engine and two charts."""

    def draw(self, shown: Shown, width: int, height: int) -> Drawing:
        engine = shown.snapshot.engine
        drawing = Drawing(title=Row("Engine", Ink.TITLE), faded=shown.faded)
        drawing.title.extend(_identity(engine))
        if shown.faded:
            drawing.note = Row(f"STALE {fmt.ago(shown.age)}", Ink.WARN)
        elif engine.idle:
            drawing.note = Row("idle: no requests", Ink.LABEL)
        if not _has_figures(engine):
            drawing.rows = wrapped(_absent_words(shown), width, Ink.LABEL)
            return drawing
        if height >= 9:
            drawing.rows = _tall(shown, width, height)
        else:
            drawing.rows = _low(shown, width, height)
        return drawing


def _identity(engine: EngineView) -> Row:
    row = Row()
    if engine.model:
        row.add("  " + fmt.clean(engine.model).rstrip("/").rsplit("/", 1)[-1][:40], Ink.LABEL)
    if engine.version:
        row.add(f"  {fmt.clean(engine.version)[:20]}", Ink.LABEL)
    return row


def _has_figures(engine: EngineView) -> bool:
    return any(
        figure is not None
        for figure in (engine.throughput, engine.acceptance_length, engine.running, engine.kv_usage)
    )


def _absent_words(shown: Shown) -> str:
    if trouble := shown.source_trouble(Collector.ENGINE):
        return trouble
    state = shown.snapshot.readiness.state
    if state in _DOWN:
        return f"no figures: the engine is not running ({state})"
    if not shown.connected:
        return shown.waiting
    return "no figures yet: the engine has not answered"


def _source_words(figure: Figure | None, shown: Shown, *, short: bool) -> tuple[str, Ink]:
    """Where a figure comes from, and its age when that matters."""
    if figure is None:
        return "idle" if shown.snapshot.engine.idle else "no figure now", Ink.DIM
    age = figure.age(shown.now)
    note = f", {fmt.clean(figure.note)}" if figure.note else ""
    source = f"{fmt.clean(figure.source)}{note}"
    if not shown.connected:  # the whole panel says how old it is
        return source, Ink.LABEL
    if shown.figure_stale(figure):
        stale = f"stale {fmt.ago(age)}"
        return stale if short else f"{stale}, {source}", Ink.WARN
    if age > AGE_SHOWN:  # before the source: where there is little room the source is cut
        return f"{fmt.ago(age)} ago, {source}", Ink.LABEL
    return source, Ink.LABEL


def _value_ink(figure: Figure | None, ink: Ink, shown: Shown) -> Ink:
    return Ink.DIM if figure is None or shown.figure_stale(figure) else ink


def acceptance(engine: EngineView) -> Figure | None:
    """The acceptance length to show: of now, else the lifetime average, whose note says so."""
    return engine.acceptance_length or engine.acceptance_lifetime


def _big(text: str, unit: str, ink: Ink, shown: Shown, places: int) -> list[Row]:
    """A figure in large digits with its unit; where it comes from is added where there is room.

    It ends at `places` cells whatever it is, so that nothing moves when it gets longer.
    """
    rows = [
        Row().to(max(0, places - row.width)).extend(row) if row.width else row
        for row in big_digits(text, ink, shown.glyphs)
    ]
    width = max([places, *(row.width for row in rows)]) + 1
    above, _, beside = unit.rpartition(" ")
    rows[0].to(width).add(above, Ink.TEXT)
    rows[1].to(width).add(beside, Ink.TEXT)
    rows[2].to(width)
    return rows


def _places(digits: int, shown: Shown, *, point: bool = False) -> int:
    """Cells of that many large digits, and of a point among them."""
    return digits * (1 if shown.glyphs.ascii else 3) + point


def _tall(shown: Shown, width: int, height: int) -> list[Row]:
    engine = shown.snapshot.engine
    length, throughput = acceptance(engine), engine.throughput
    speed_ink = Ink.DIM if engine.idle else _value_ink(throughput, Ink.THROUGHPUT, shown)
    speed = fmt.tokens_per_second(throughput.value if throughput else None)
    left = _big(speed, "tok/s", speed_ink, shown, _places(4, shown))
    taken = fmt.number(length.value if length else None, 2)
    most = max(length.value if length else 0.0, largest(engine.acceptance_history))
    places = _places(3 + (most >= 9.995), shown, point=True)
    right = _big(
        taken, "acceptance length", _value_ink(length, Ink.ACCEPTANCE, shown), shown, places
    )
    short = width < 84
    words, ink = _source_words(throughput, shown, short=short)
    left[2].add(*("idle", Ink.LABEL) if engine.idle else (words, ink))
    right[2].add(*_source_words(length, shown, short=short))
    # Beside each other at the middle; the words of the left one make room where they must.
    needed = max(row.width for row in right[:2])
    start = min(max(width // 2, max(row.width for row in left) + 3), width - needed)
    rows = [
        Row().extend(one.cut(start - 1)).to(start).extend(other).cut(width)
        for one, other in zip(left, right, strict=True)
    ]
    small = flow(small_figures(shown, bars=width >= 68), width, gap=2)
    spaced = height - len(rows) - len(small) >= 12
    rows += [Row(), *small, Row()] if spaced else small
    return rows + _charts(shown, width, height - len(rows))


def _charts(shown: Shown, width: int, height: int) -> list[Row]:
    """Both figures over one time axis; only throughput where there is no room for two."""
    engine = shown.snapshot.engine
    speed = Scale(0.0, nice_ceiling(largest(engine.throughput_history), 50.0))
    length = Scale(1.0, acceptance_ceiling(engine))
    plots: tuple[Plot, ...] = (
        Plot("tok/s", engine.throughput_history, speed, Ink.THROUGHPUT),
        Plot("acceptance length", engine.acceptance_history, length, Ink.ACCEPTANCE),
    )
    if height < 9:
        plots = plots[:1]
    return charts(plots, shown.now, (width, height), shown.glyphs)


def acceptance_ceiling(engine: EngineView) -> float:
    """The top of the acceptance scale: the block size where it is known, which none can exceed."""
    known = engine.knobs.get("block size", "")
    most = largest(engine.acceptance_history)
    if known.isdigit() and 2 <= int(known) <= 64 and most <= int(known):
        return float(int(known))
    for ceiling in (4.0, 8.0, 16.0, 32.0):
        if most <= ceiling:
            return ceiling
    return nice_ceiling(most, 32.0)


def small_figures(shown: Shown, *, bars: bool = True) -> list[Row]:
    """Requests, KV cache, prefill and graphs, each a short piece."""
    engine, glyphs = shown.snapshot.engine, shown.glyphs

    def piece(label: str, figure: Figure | None, text: str, unit: str = "") -> Row:
        row = Row(f"{label} ", Ink.LABEL).add(text, _value_ink(figure, Ink.STRONG, shown))
        if unit and figure is not None:
            row.add(unit, Ink.LABEL)
        if figure is not None and shown.figure_stale(figure) and shown.connected:
            row.add(f" stale {fmt.ago(figure.age(shown.now))}", Ink.WARN)
        return row

    kv = engine.kv_usage
    full = kv.value if kv else None
    pieces = [
        piece("running", engine.running, _count(engine.running).ljust(4)),
        piece("queued", engine.queued, _count(engine.queued).ljust(4)),
        piece("KV", kv, fmt.number(None if full is None else full * 100).rjust(3), " %"),
    ]
    if bars:
        pieces[-1].add(" ").extend(bar(full, 8, Ink.MEMORY, glyphs))
    prefill = engine.prefill_throughput
    if prefill is not None:
        pieces.append(piece("prefill", prefill, fmt.tokens_per_second(prefill.value), " tok/s"))
    if engine.graph_in_use is False and not engine.idle:
        pieces.append(Row(f"{glyphs.warn} no CUDA graph", Ink.WARN))
    return pieces


def _count(figure: Figure | None) -> str:
    return fmt.count(figure.value if figure else None)


def _low(shown: Shown, width: int, height: int) -> list[Row]:
    """Without room for large digits: throughput and acceptance in one line, then the rest."""
    engine = shown.snapshot.engine
    length, throughput = acceptance(engine), engine.throughput
    pieces = []
    speed = fmt.tokens_per_second(throughput.value if throughput else None)
    for text, unit, figure, ink in (
        (speed.rjust(5), "tok/s", throughput, Ink.THROUGHPUT),
        (
            fmt.number(length.value if length else None, 2).rjust(5),
            "acceptance length" if width >= 60 else "acceptance",
            length,
            Ink.ACCEPTANCE,
        ),
    ):
        idle = engine.idle and figure is throughput
        words, word_ink = (
            ("idle", Ink.LABEL) if idle else _source_words(figure, shown, short=width < 84)
        )
        if width < 72 and word_ink is Ink.LABEL:
            words = ""  # the other figures matter more than where these come from
        value_ink = Ink.DIM if idle else _value_ink(figure, ink, shown)
        pieces.append(Row(text, value_ink).add(f" {unit} ").add(words, word_ink))
    rows = [*flow(pieces, width), *flow(small_figures(shown), width, gap=2)]
    left = height - len(rows)
    return (rows + _charts(shown, width, left))[:height]

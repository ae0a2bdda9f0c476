"""The GPUs: one line each, or several a line where there are more of them than lines."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import wrap

from ddtui.core.gpus import throttle_words
from ddtui.core.samples import Collector, Gpu, GpuProcess
from ddtui.core.snapshot import GpuView
from ddtui.core.width import clip
from ddtui.ui import format as fmt
from ddtui.ui.ink import Ink, Row
from ddtui.ui.shown import Shown
from ddtui.ui.widgets.bars import bar
from ddtui.ui.widgets.canvas import Drawing, Panel
from ddtui.ui.widgets.chart import Scale, plot, resample, step_for, window_of

HOT = 85.0
"""Degrees Celsius from which a temperature is shown as a warning."""
_PERCENT = Scale(0.0, 100.0)
_QUIET_WORDS = frozenset({"idle"})
_CELL, _TINY = 24, 14
"""Least width of one GPU where several share a line: with a bar, and with two figures only."""
_DOUBLE = 84
"""Least width of a GPU in two lines."""


class GpuPanel(Panel):
    """All GPUs of the host."""

    def draw(self, shown: Shown, width: int, height: int) -> Drawing:
        shot = shown.snapshot
        stale = shown.source_stale(Collector.GPU)
        drawing = Drawing(title=Row("GPUs", Ink.TITLE), note=_note(shown, stale), faded=stale)
        if not shot.gpus:
            words = shown.source_trouble(Collector.GPU) or shown.waiting
            drawing.rows = [Row(line, Ink.LABEL) for line in wrap_words(words, width)][:height]
            return drawing
        drawing.title.add("  ").extend(totals(shot.gpus, width - 24))
        tail = [row.cut(width) for row in foreign_rows(shown)]
        drawing.rows = gpu_rows(shown, width, max(1, height - len(tail))) + tail
        return drawing


def wrap_words(text: str, width: int) -> list[str]:
    """Words in lines of `width` cells (text without wide characters)."""
    return wrap(fmt.clean(text), max(8, width))


def panel_height(gpus: int, foreign: int, width: int, most: int, *, double: bool = True) -> int:
    """Lines that the panel wants, its frame included, in at most `most`."""
    if gpus == 0:
        return min(most, 4)
    if not double:
        most = min(most, gpus + foreign + 2)
    return max(3, min(most, arrangement(gpus, width - 4, most - foreign - 2).lines + foreign + 2))


@dataclass(frozen=True)
class Arrangement:
    """How GPUs are put into lines."""

    columns: int
    lines: int
    double: bool = False
    """Two lines a GPU."""


def arrangement(gpus: int, width: int, height: int) -> Arrangement:
    """Two lines a GPU where there is room, else one, else several in a line."""
    if gpus * 2 <= height and width >= _DOUBLE:
        return Arrangement(1, gpus * 2, double=True)
    columns = 1
    for least in (_CELL, _TINY):
        while -(-gpus // columns) > height and width // (columns + 1) >= least:
            columns += 1
    return Arrangement(columns, -(-gpus // columns))


def _note(shown: Shown, stale: bool) -> Row:
    source = fmt.clean(shown.snapshot.gpu_source)
    if stale:
        return Row(f"STALE {fmt.ago(shown.source_age(Collector.GPU))}", Ink.WARN)
    return Row(source, Ink.LABEL)


def totals(views: tuple[GpuView, ...], room: int) -> Row:
    """What all GPUs are and do together."""
    gpus = [view.gpu for view in views]
    names = {fmt.clean(gpu.name).removeprefix("NVIDIA ") for gpu in gpus if gpu.name}
    used = [gpu.memory_used for gpu in gpus if gpu.memory_used is not None]
    total = [gpu.memory_total for gpu in gpus if gpu.memory_total is not None]
    busy = [gpu.utilization for gpu in gpus if gpu.utilization is not None]
    power = [gpu.power for gpu in gpus if gpu.power is not None]
    pieces = []
    if used and total:
        pieces.append(f"{fmt.gib(sum(used), 0)}/{fmt.gib(sum(total), 0)} GiB")
    if busy:
        pieces.append(f"{sum(busy) / len(busy):.0f} %")
    if power:
        watts = sum(power)
        pieces.append(f"{watts / 1000:.1f} kW" if watts >= 1000 else f"{watts:.0f} W")
    name = f"{len(gpus)} x {names.pop()}" if len(names) == 1 else str(len(gpus))
    figures = "  ".join(pieces)
    name = clip(name, max(len(str(len(gpus))), room - len(figures) - 2))
    return Row(name, Ink.LABEL).add("  ").add(figures, Ink.TEXT)


def gpu_rows(shown: Shown, width: int, height: int) -> list[Row]:
    """All GPUs in `height` lines; what does not fit even then is counted in the last line."""
    views = shown.snapshot.gpus
    how = arrangement(len(views), width, height)
    marks = max(mark_row(view.gpu).width for view in views)
    if how.double:
        return [row for view in views for row in double_row(view, shown, width)]
    if how.columns == 1 and how.lines <= height:
        return [gpu_row(view, shown, width, marks) for view in views]
    each = (width - 2 * (how.columns - 1)) // how.columns
    fitting, hidden = how.lines, 0
    if fitting > height:
        fitting = max(1, height - 1)
        hidden = len(views) - fitting * how.columns
    rows = []
    for line in range(fitting):
        row = Row()
        for column in range(how.columns):
            # Down the columns while all are shown, so that the order stays that of one column.
            index = line * how.columns + column if hidden else column * how.lines + line
            if index < len(views):
                row.to(column * (each + 2)).extend(gpu_row(views[index], shown, each, marks))
        rows.append(row)
    if hidden:
        rows.append(Row(f"and {hidden} more; they need a larger terminal", Ink.WARN))
    return rows


def _begin(gpu: Gpu, shown: Shown) -> Row:
    row = Row().put(str(gpu.index), 2, Ink.STRONG, right=True).add(" ")
    if gpu.lost:
        row.add(f"{shown.glyphs.failed} LOST ", Ink.BAD).add(gpu.lost, Ink.BAD)
    return row


def gpu_row(view: GpuView, shown: Shown, width: int, marks: int) -> Row:
    """One GPU in one line. `marks` is the room that the longest marks of any GPU need."""
    gpu = view.gpu
    row = _begin(gpu, shown)
    if gpu.lost:
        return row.cut(width)
    if width < _CELL - 2:
        return row.extend(_figures(gpu, width)).cut(width)
    figures = _figures(gpu, width)
    rest = width - row.width - figures.width - 1
    marked = min(marks + 1, max(0, rest - 8)) if marks and width >= 34 else 0
    rest -= marked
    length = min(36, rest if rest < 30 else rest * 11 // 20)
    history = rest - length - 1 if rest >= 30 else 0
    row.extend(_memory_bar(view, max(4, length), shown)).add(" ").extend(figures)
    if history:
        row.add(" ").extend(_history(view, history, 1, shown)[0])
    if marked:
        row.add(" ").extend(mark_row(gpu).cut(marked - 1))
    return row.cut(width)


def double_row(view: GpuView, shown: Shown, width: int) -> list[Row]:
    """One GPU in two lines: memory and utilization as bars, and its past beside them."""
    gpu = view.gpu
    first = _begin(gpu, shown)
    if gpu.lost:
        return [first.cut(width), Row()]
    fixed = 5 + 17 + 13 + 13
    length = max(8, min(40, (width - 3 - fixed) // 2))
    history = width - 3 - fixed - length
    share = None if gpu.utilization is None else gpu.utilization / 100
    first.add("mem  ", Ink.LABEL).extend(_memory_bar(view, length, shown))
    first.put(f"{fmt.gib(gpu.memory_used)}/{fmt.gib(gpu.memory_total)}", 12, right=True)
    first.put(" GiB", 5, Ink.LABEL).extend(_power(gpu, 10)).add(" ")
    hot = gpu.temperature is not None and gpu.temperature >= HOT
    first.put(fmt.number(gpu.temperature), 3, Ink.WARN if hot else Ink.TEXT, right=True)
    first.add(" °C", Ink.LABEL)
    second = Row("   util ", Ink.LABEL).extend(bar(share, length, Ink.UTILIZATION, shown.glyphs))
    second.put(fmt.number(gpu.utilization), 12, right=True).put(" %", 5, Ink.LABEL)
    second.put(fmt.number(gpu.sm_clock), 5, right=True).put(" MHz", 8, Ink.LABEL)
    second.extend(mark_row(gpu).cut(12))
    at = 3 + fixed + length
    past = _history(view, history, 2, shown)
    return [
        row.to(at).extend(line).cut(width) for row, line in zip((first, second), past, strict=True)
    ]


def _history(view: GpuView, cells: int, lines: int, shown: Shown) -> list[Row]:
    step = step_for(cells * 2, window_of(shown.now, view.utilization_history))
    values = resample(view.utilization_history, shown.now, cells * 2, step)
    return plot(values, lines, _PERCENT, Ink.UTILIZATION, shown.glyphs, fill=False)


def _memory_bar(view: GpuView, width: int, shown: Shown) -> Row:
    """How full the GPU's memory is."""
    gpu = view.gpu
    if gpu.memory_used is None or not gpu.memory_total:
        return bar(None, width, Ink.MEMORY, shown.glyphs)
    return bar(gpu.memory_used / gpu.memory_total, width, Ink.MEMORY, shown.glyphs)


def _figures(gpu: Gpu, width: int) -> Row:
    """Memory, utilization, power, temperature and clock, as many as a GPU's `width` has room for.

    Each stands in a field of fixed width.
    """
    row = Row()
    hot = gpu.temperature is not None and gpu.temperature >= HOT
    warmth = Ink.WARN if hot else Ink.TEXT
    if width < 62:
        row.put(fmt.gib(gpu.memory_used, 0), 3, right=True).add("G ", Ink.LABEL)
        row.put(fmt.number(gpu.utilization), 3, right=True).add("% ", Ink.LABEL)
        if width >= 44:
            row.put(fmt.number(gpu.power), 4, right=True).add("W ", Ink.LABEL)
        if width >= _CELL - 2:
            row.put(fmt.number(gpu.temperature), 3, warmth, right=True).add("°", Ink.LABEL)
        return row
    row.put(f"{fmt.gib(gpu.memory_used)}/{fmt.gib(gpu.memory_total)}", 11, right=True)
    row.add(" GiB ", Ink.LABEL)
    row.put(fmt.number(gpu.utilization), 3, right=True).add(" % ", Ink.LABEL)
    row.extend(_power(gpu, 9))
    row.add(" ").put(fmt.number(gpu.temperature), 3, warmth, right=True).add(" °C", Ink.LABEL)
    if width >= 92:
        row.add(" ").put(fmt.number(gpu.sm_clock), 4, right=True).add(" MHz", Ink.LABEL)
    return row


def _power(gpu: Gpu, width: int) -> Row:
    """Power of its limit, in watts, at the right of `width` cells and the unit."""
    limit = f"/{fmt.number(gpu.power_limit)}"
    row = Row().put(fmt.number(gpu.power), width - len(limit), right=True)
    return row.add(f"{limit} W", Ink.LABEL)


def mark_row(gpu: Gpu) -> Row:
    """What is out of the ordinary: throttling, uncorrected errors, MIG."""
    marks = [
        (word, Ink.WARN if word.startswith("hw") else Ink.LABEL)
        for word in throttle_words(gpu.throttle_reasons)
        if word not in _QUIET_WORDS
    ]
    if gpu.ecc_uncorrected:
        marks.insert(0, (f"ECC {fmt.count(gpu.ecc_uncorrected)}", Ink.BAD))
    if gpu.mig_enabled:
        marks.append(("MIG", Ink.LABEL))
    row = Row()
    for index, (word, ink) in enumerate(marks):
        row.add(", " if index else "", Ink.LABEL).add(word, ink)
    return row


def foreign_rows(shown: Shown) -> list[Row]:
    """Processes that hold GPU memory and do not belong to the unit, in one line."""
    by_process: dict[tuple[int, str], tuple[int, set[int]]] = {}
    indices = {view.gpu.uuid: view.gpu.index for view in shown.snapshot.gpus}
    for process in shown.snapshot.processes:
        if process.in_unit is False:
            memory, gpus = by_process.get((process.pid, process.name), (0, set()))
            gpus.add(indices.get(process.gpu_uuid, -1))
            by_process[process.pid, process.name] = (memory + (process.memory or 0), gpus)
    if not by_process:
        return []
    row = Row(f"{shown.glyphs.warn} outside the unit: ", Ink.WARN)
    ordered = sorted(by_process.items(), key=lambda item: -item[1][0])
    for index, ((pid, name), (memory, gpus)) in enumerate(ordered):
        if index:
            row.add(", ", Ink.LABEL)
        short = fmt.clean(name).rsplit("/", 1)[-1][:24]
        where = ",".join(str(gpu) for gpu in sorted(gpus) if gpu >= 0)
        row.add(f"{short or 'pid'} {pid}").add(f" {fmt.memory(memory)} on {where}", Ink.LABEL)
    return [row]


def foreign_processes(processes: tuple[GpuProcess, ...]) -> bool:
    """Whether any process outside the unit holds GPU memory."""
    return any(process.in_unit is False for process in processes)

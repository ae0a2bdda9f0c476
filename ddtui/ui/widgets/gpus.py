"""The GPUs: one line each, or several a line where there are more of them than lines."""

from __future__ import annotations

from textwrap import wrap

from ddtui.core.gpus import throttle_words
from ddtui.core.samples import Collector, Gpu, GpuProcess
from ddtui.core.snapshot import GpuView
from ddtui.ui import format as fmt
from ddtui.ui.ink import Ink, Row
from ddtui.ui.shown import Shown
from ddtui.ui.widgets.bars import bar
from ddtui.ui.widgets.canvas import Drawing, Panel
from ddtui.ui.widgets.chart import Scale, plot, resample, step_for

HOT = 85.0
"""Degrees Celsius from which a temperature is shown as a warning."""
_PERCENT = Scale(0.0, 100.0)
_QUIET_WORDS = frozenset({"idle"})
_CELL = 24
"""Least width of one GPU where several share a line."""
_HISTORY_WINDOW = 300.0


class GpuPanel(Panel):
    """All GPUs of the host."""

    def draw(self, shown: Shown, width: int, height: int) -> Drawing:
        shot = shown.snapshot
        stale = shown.source_stale(Collector.GPU)
        drawing = Drawing(title=Row("GPUs", Ink.TITLE), note=_note(shown, stale), faded=stale)
        if not shot.gpus:
            words = shown.source_trouble(Collector.GPU) or "waiting for the first reading"
            drawing.rows = [Row(line, Ink.LABEL) for line in wrap_words(words, width)][:height]
            return drawing
        drawing.title.add("  ").extend(totals(shot.gpus, width - 24))
        tail = [row.cut(width) for row in foreign_rows(shown)]
        drawing.rows = gpu_rows(shown, width, max(1, height - len(tail))) + tail
        return drawing


def wrap_words(text: str, width: int) -> list[str]:
    """Words in lines of `width` cells (text without wide characters)."""
    return wrap(fmt.clean(text), max(8, width))


def panel_height(gpus: int, foreign: int, width: int, most: int) -> int:
    """Lines that the panel wants, its frame included, in at most `most`."""
    if gpus == 0:
        return min(most, 4)
    lines = gpus
    columns = 1
    while lines + foreign + 2 > most and (width - 4) // (columns + 1) >= _CELL:
        columns += 1
        lines = -(-gpus // columns)
    return max(3, min(most, lines + foreign + 2))


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
    if len(name) + len(figures) + 2 > room:
        name = str(len(gpus))
    return Row(name, Ink.LABEL).add("  ").add(figures, Ink.TEXT)


def gpu_rows(shown: Shown, width: int, height: int) -> list[Row]:
    """All GPUs in `height` lines; what does not fit even then is counted in the last line."""
    views = shown.snapshot.gpus
    columns = 1
    while -(-len(views) // columns) > height and width // (columns + 1) >= _CELL:
        columns += 1
    lines = -(-len(views) // columns)
    if columns == 1 and lines <= height:
        return [gpu_row(view, shown, width) for view in views]
    each = (width - 2 * (columns - 1)) // columns
    fitting = min(lines, height)
    hidden = len(views) - fitting * columns
    if hidden > 0:
        fitting -= 1
        hidden = len(views) - fitting * columns
    rows = []
    for line in range(fitting):
        row = Row()
        for column in range(columns):
            # Down the columns while all are shown, so that the order stays that of one column.
            index = column * lines + line if hidden <= 0 else line * columns + column
            if index < len(views):
                row.to(column * (each + 2)).extend(gpu_row(views[index], shown, each))
        rows.append(row)
    if hidden > 0:
        rows.append(Row(f"and {hidden} more; they need a larger terminal", Ink.WARN))
    return rows


def gpu_row(view: GpuView, shown: Shown, width: int) -> Row:
    """One GPU in `width` cells."""
    gpu = view.gpu
    row = Row().put(str(gpu.index), 2, Ink.STRONG, right=True).add(" ")
    if gpu.lost:
        return row.add(f"{shown.glyphs.failed} LOST ", Ink.BAD).add(gpu.lost, Ink.BAD).cut(width)
    marks = mark_row(gpu)
    wide = width >= 62
    figures = _figures(gpu, wide=wide, clocks=width >= 92)
    # The rest is shared by the bar, the marks and the history.
    room = width - row.width - figures.width - 1
    if not wide:
        marked = min(marks.width + 1, max(0, room - 5)) if marks.width else 0
        row.extend(_memory_bar(view, max(4, room - marked), shown)).add(" ").extend(figures)
        return row.add(" ").extend(marks).cut(width) if marked else row.cut(width)
    history = max(0, min(60, (room - 26) // 2)) if room >= 44 else 0
    marked = max(marks.width, 8 if room - history >= 24 else 0)
    length = max(6, min(40, room - history - marked - (1 if marked else 0) - (1 if history else 0)))
    row.extend(_memory_bar(view, length, shown)).add(" ").extend(figures)
    if history:
        values = resample(
            view.utilization_history,
            shown.now,
            history * 2,
            step_for(history * 2, _HISTORY_WINDOW),
        )
        row.add(" ").extend(plot(values, 1, _PERCENT, Ink.UTILIZATION, shown.glyphs)[0])
    return row.add(" ").extend(marks).cut(width)


def _memory_bar(view: GpuView, width: int, shown: Shown) -> Row:
    """Used memory; the part that is surely not the unit's in another ink."""
    gpu = view.gpu
    if gpu.memory_used is None or not gpu.memory_total:
        return bar(None, width, Ink.MEMORY, shown.glyphs)
    return bar(gpu.memory_used / gpu.memory_total, width, Ink.MEMORY, shown.glyphs)


def _figures(gpu: Gpu, *, wide: bool, clocks: bool) -> Row:
    """Memory, utilization, power, temperature, each in a field of fixed width."""
    row = Row()
    if wide:
        row.put(f"{fmt.gib(gpu.memory_used)}/{fmt.gib(gpu.memory_total)}", 11, right=True)
        row.add(" GiB ", Ink.LABEL)
    else:
        row.put(fmt.gib(gpu.memory_used, 0), 3, right=True).add("G ", Ink.LABEL)
    row.put(fmt.number(gpu.utilization), 3, right=True).add(" %" if wide else "%", Ink.LABEL)
    if wide:
        row.add(" ").put(fmt.number(gpu.power), 4, right=True)
        row.add("/", Ink.LABEL).put(f"{fmt.number(gpu.power_limit)} W", 6, Ink.LABEL)
    hot = gpu.temperature is not None and gpu.temperature >= HOT
    row.add(" ").put(fmt.number(gpu.temperature), 3, Ink.WARN if hot else Ink.TEXT, right=True)
    row.add(" °C" if wide else "°", Ink.LABEL)
    if clocks:
        row.add(" ").put(fmt.number(gpu.sm_clock), 4, right=True).add(" MHz", Ink.LABEL)
    return row


def mark_row(gpu: Gpu) -> Row:
    """What is out of the ordinary: throttling, uncorrected errors, MIG."""
    row = Row()
    for word in throttle_words(gpu.throttle_reasons):
        if word not in _QUIET_WORDS:
            row.add(f"{word} ", Ink.WARN if word.startswith("hw") else Ink.LABEL)
    if gpu.ecc_uncorrected:
        row.add(f"ECC {fmt.count(gpu.ecc_uncorrected)} ", Ink.BAD)
    if gpu.mig_enabled:
        row.add("MIG ", Ink.LABEL)
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

"""One configuration in full: its verdict and why, its figures, and how to get it again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ddtui.core.measurement import Cell, Measurement, Spread, Verdict
from ddtui.experiments.columns import coding_share, verdict_word
from ddtui.experiments.comparison import Standing, step_time
from ddtui.experiments.insights import Note
from ddtui.experiments.results import ResultsView
from ddtui.experiments.results import Row as Result
from ddtui.experiments.wording import (
    difference_interval,
    factor,
    half_width,
    milliseconds,
    number,
    percent,
    rate,
)
from ddtui.ui import format as fmt
from ddtui.ui.glyphs import Glyphs
from ddtui.ui.ink import Ink, Row, flow, lines_of, wrapped
from ddtui.ui.shown import Shown
from ddtui.ui.widgets.results_table import VERDICT_INKS, factor_ink
from ddtui.ui.widgets.scrolled import ScrolledPanel

_NAME = 13
"""Columns of a fact's name."""
_BAR = 24
"""Columns of a bar of the histogram, at most."""


class ResultsDetail(ScrolledPanel):
    """Begins at the top with every other configuration."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002  (Textual's own name for it)
        super().__init__(id=id)
        self._view: ResultsView | None = None
        self._result: Result | None = None
        self._made: tuple[int, bool] | None = None
        self._kept: list[Row] = []

    def tell(self, view: ResultsView | None, result: Result | None) -> None:
        """Show another configuration, or the same one with other figures."""
        before = self._result.title if self._result else ""
        self._view, self._result, self._made = view, result, None
        self.renew(from_top=(result.title if result else "") != before)

    def title(self) -> Row:
        """The configuration's."""
        return Row(fmt.clean(self._result.title) if self._result else "Details", Ink.TITLE)

    def rows(self, shown: Shown, width: int) -> list[Row]:
        """All that is told, for a width in cells; kept until another one is told."""
        if self._view is None or self._result is None:
            return []
        if self._made != (width, shown.glyphs.ascii):
            self._made = (width, shown.glyphs.ascii)
            self._kept = detail_rows(self._view, self._result, width, shown.glyphs)
        return self._kept


def detail_rows(view: ResultsView, result: Result, width: int, glyphs: Glyphs) -> list[Row]:
    """Everything that is known of a row; the verdict first."""
    rows = verdict_rows(view, result, width, glyphs)
    rows += _to_know(result, width, glyphs)
    rows += _said(result, width)
    if result.cells:
        rows += _section(_cells_title(result), _cell_rows(result, view, width))
    if result.cell is not None and result.cell.positions:
        rows += _section(
            "Passes that accept at least this many drafted tokens",
            _positions(result, width, glyphs),
        )
    if result.coding is not None:
        rows += _section("Coding tasks", _coding_rows(result, width, glyphs))
    if result.reproduce or result.left_out:
        rows += _section("To measure it again", _again_rows(result, width))
    rows += _section("Provenance", _provenance_rows(result, width))
    if view.notes:
        rows += _section("What stands out in all results", note_rows(view.notes, width, glyphs))
    return [row.cut(width) for row in rows]


def verdict_rows(view: ResultsView, result: Result, width: int, glyphs: Glyphs) -> list[Row]:
    """The verdict with its interval, and what acceptance and step time did."""
    word, found = verdict_word(result), result.comparison
    word = "not compared" if word == fmt.NOTHING else word
    pieces = [Row(_sign(word, glyphs), VERDICT_INKS.get(word, Ink.LABEL))]
    decides = found.user_rate if found.by == "user" else found.total_rate
    if decides is not None and found.standing is not Standing.BASELINE:
        what = "" if found.by == "user" else " in total"
        gain = Row(difference_interval(decides), Ink.STRONG).add(f" tok/s{what}", Ink.LABEL)
        pieces += [gain, Row("against ", Ink.LABEL).add(fmt.clean(view.baseline))]
    elif found.standing is Standing.BASELINE:
        pieces.append(Row("the others are compared with it", Ink.LABEL))
    rows = flow(pieces, width, gap=2)
    if found.acceptance is not None and found.step_time is not None:
        factors = Row("acceptance ", Ink.LABEL)
        factors.add(factor(found.acceptance), factor_ink(found.acceptance))
        factors.add("  step time ", Ink.LABEL)
        factors.add(factor(found.step_time), factor_ink(found.step_time, less_is_better=True))
        if found.reason and factors.width + 2 + len(found.reason) <= width:
            rows.append(factors.add("  ").add(fmt.clean(found.reason)))
        else:
            rows += [factors.cut(width), *(wrapped(found.reason, width) if found.reason else [])]
    elif found.reason and result.state != "failed":
        rows += wrapped(found.reason, width, Ink.LABEL)
    return rows


def note_rows(notes: Sequence[Note], width: int, glyphs: Glyphs) -> list[Row]:
    """Notes, each with a dot before it."""
    rows: list[Row] = []
    for note in notes:
        first, *rest = wrapped(note.text, width - 2)
        rows.append(Row(f"{glyphs.pending} ", Ink.TITLE).extend(first))
        rows += [Row("  ").extend(each) for each in rest]
    return rows


def _sign(word: str, glyphs: Glyphs) -> str:
    signs = {"faster": glyphs.ok, "slower": glyphs.failed, "failed": glyphs.failed}
    signs |= {"unclear": glyphs.warn, "tie": "=", "baseline": glyphs.running}
    return f"{signs.get(word, glyphs.skipped)} {word}"


def _section(title: str, rows: list[Row]) -> list[Row]:
    return [Row(), Row(title, Ink.TITLE), *rows] if rows else []


def _fact(name: str, value: str, width: int, ink: Ink = Ink.TEXT) -> list[Row]:
    """A name and what it is, in as many lines as it takes."""
    if not value:
        return []
    first, *rest = wrapped(value, width - _NAME, ink)
    rows = [Row().put(name, _NAME, Ink.LABEL).extend(first)]
    return rows + [Row(" " * _NAME).extend(each) for each in rest]


def _to_know(result: Result, width: int, glyphs: Glyphs) -> list[Row]:
    rows: list[Row] = []
    if result.cause:
        ink = Ink.BAD if result.state == "failed" else Ink.WARN
        word = "failed" if result.state == "failed" else result.state
        rows += wrapped(f"{glyphs.failed} {word}: {result.cause}", width, ink)
    rows += _fact("do", result.remedy, width)
    for flag in result.flags:
        rows += wrapped(f"{glyphs.warn} {flag}", width, Ink.WARN)
    return rows


def _said(result: Result, width: int) -> list[Row]:
    rows: list[Row] = []
    for name, texts in (
        ("hypothesis", result.hypotheses),
        ("note", result.notes),
        ("matched", result.matches),
        ("sweep", result.sweeps),
    ):
        for text in texts:
            rows += _fact(name, text, width)
    return rows


# ---- figures -------------------------------------------------------------------------------


def _cells_title(result: Result) -> str:
    repeats = {len(cell.user_rate.values) for cell in result.cells if cell.user_rate is not None}
    many = f"{min(repeats)} repeats" if len(repeats) == 1 and min(repeats) > 1 else ""
    return f"Figures  medians of {many}" if many else "Figures"


def _middle(figure: Spread | None) -> float | None:
    return None if figure is None else figure.median


_CELL_COLUMNS: tuple[tuple[str, int, Callable[[Cell], str]], ...] = (
    ("users", 5, lambda cell: str(cell.concurrency)),
    ("tok/s/user", 11, lambda cell: rate(_middle(cell.user_rate))),
    ("±", 6, lambda cell: half_width(cell.user_rate).removeprefix("±")),
    ("accept", 7, lambda cell: number(_middle(cell.acceptance_length))),
    ("step ms", 8, lambda cell: milliseconds(_middle(step_time(cell)))),
    ("total", 7, lambda cell: rate(_middle(cell.total_rate))),
    ("TTFT ms", 8, lambda cell: milliseconds(_middle(cell.ttft))),
    ("ITL p99 ms", 11, lambda cell: milliseconds(_middle(cell.itl_p99))),
    ("requests", 9, lambda cell: str(cell.requests)),
    ("lost", 5, lambda cell: str(cell.failed + cell.stalled)),
    ("engine's tok/s", 15, lambda cell: rate(cell.server_rate)),
    ("engine's accept", 16, lambda cell: number(cell.server_acceptance)),
)
"""Name, width and text of each column, the most important first."""


def _cell_rows(result: Result, view: ResultsView, width: int) -> list[Row]:
    used, kept = 0, []
    for name, wide, text in _CELL_COLUMNS:
        if all(text(cell) in {fmt.NOTHING, "0"} for cell in result.cells):
            continue
        if used + wide > width:
            break
        used += wide
        kept.append((name, wide, text))
    rows = [Row()]
    for name, wide, _ in kept:
        rows[0].put(name, wide, Ink.LABEL, right=True)
    for cell in result.cells:
        row = Row()
        chosen = cell.concurrency == view.concurrency and len(result.cells) > 1
        for _, wide, text in kept:
            row.put(text(cell), wide, Ink.STRONG if chosen else Ink.TEXT, right=True)
        rows.append(row)
    if result.node_use is not None:
        rows += _fact("nodes used", f"{percent(result.node_use)} of the tree is accepted", width)
    for cell in result.cells:
        for error, count in cell.errors.items():
            rows += wrapped(f"{count} times at {cell.concurrency} users: {error}", width, Ink.WARN)
    return rows


def _positions(result: Result, width: int, glyphs: Glyphs) -> list[Row]:
    """How often at least 1, 2, ... drafts are accepted: a bar each."""
    positions = result.cell.positions if result.cell is not None else ()
    wide = max(4, min(_BAR, width - 12))
    rows = []
    for at, share in enumerate(positions, start=1):
        filled = round(max(0.0, min(1.0, share)) * wide)
        row = Row().put(str(at), 3, Ink.LABEL, right=True).add(" ")
        row.add(glyphs.bar * filled, Ink.ACCEPTANCE).add(glyphs.track * (wide - filled), Ink.TRACK)
        rows.append(row.add(percent(share).rjust(6)))
    return rows


def _coding_rows(result: Result, width: int, glyphs: Glyphs) -> list[Row]:
    coding = result.coding
    if coding is None:
        return []
    row = Row(f"{coding.passed}/{coding.total} pass", Ink.STRONG)
    row.add(f"  {coding_share(result)} by Wilson's interval", Ink.LABEL)
    rows = [row.cut(width)]
    if coding.isolation != "isolated":
        rows += wrapped(f"{glyphs.warn} run {coding.isolation}", width, Ink.WARN)
    rows += _fact("lost", ", ".join(coding.lost), width, Ink.BAD)
    rows += _fact("gained", ", ".join(coding.gained), width, Ink.GOOD)
    if coding.compared and not coding.lost and not coding.gained:
        rows += wrapped("the same tasks pass as with the baseline", width, Ink.LABEL)
    newest = next((each.coding for each in reversed(result.measurements) if each.coding), None)
    for task, verdict in newest.verdicts.items() if newest is not None else ():
        if verdict is not Verdict.PASS:
            why = newest.details.get(task, "") if newest is not None else ""
            rows += _fact(task, f"{verdict}{': ' if why else ''}{why}", width, Ink.LABEL)
    return rows


def _again_rows(result: Result, width: int) -> list[Row]:
    rows = lines_of(result.reproduce, width)
    if result.left_out:
        words = f"secrets that it lacks: {', '.join(result.left_out)}"
        rows += wrapped(words, width, Ink.WARN)
    return rows


# ---- where it comes from -------------------------------------------------------------------


def _provenance_rows(result: Result, width: int) -> list[Row]:
    rows = _fact("work", result.work, width)
    if result.load_seconds is not None:
        rows += _fact("load", fmt.duration(result.load_seconds), width)
    newest = result.newest or (result.measurements[-1] if result.measurements else None)
    if newest is not None:
        for name, value in _facts_of(newest):
            rows += _fact(name, value, width)
    for each in result.measurements:
        counts = "" if each.id in result.counted else ", not counted"
        when = fmt.date(each.began)
        rows += _fact("measured", f"{when}  {each.state}{counts}  {each.id}", width, Ink.LABEL)
    if result.configuration:
        rows += _fact("key", result.configuration[:16], width, Ink.LABEL)
    return rows


def _facts_of(measured: Measurement) -> Iterator[tuple[str, str]]:
    told = measured.provenance
    yield "engine", f"{told.engine} {told.engine_version}".strip()
    yield "driver", told.driver
    kinds = dict.fromkeys(told.gpus)
    yield "GPUs", ", ".join(f"{told.gpus.count(kind)} × {kind}" for kind in kinds)
    if told.clocks_mhz is not None:
        low, high = told.clocks_mhz
        yield "SM clock", f"{low:.0f} to {high:.0f} MHz"
    if told.temperature_c is not None:
        yield "hottest", f"{told.temperature_c:.0f} °C"
    yield "throttled", ", ".join(told.throttled)
    if told.foreign_requests:
        yield "others", f"{told.foreign_requests} requests of others were seen"
    yield "proved by", "; ".join(told.evidence)
    yield "in doubt", "; ".join(told.doubts)
    yield "drop-in", told.drop_in_hash[:16]
    yield "prompts", told.prompts_hash[:16]
    yield "invocation", told.invocation[:16]

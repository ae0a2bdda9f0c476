"""The results as a report in Markdown: tables, charts, and how to get every row again. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from urllib.parse import quote

from ddtui.core.measurement import Measurement
from ddtui.experiments.columns import coding_share, columns_of, marks_of, verdict_word
from ddtui.experiments.comparison import SMALLEST_DIFFERENCE, Standing
from ddtui.experiments.fastest import fastest_words
from ddtui.experiments.results import ResultsView, Row
from ddtui.experiments.wording import NOTHING, difference_interval, number, seconds

_SPECIAL = re.compile(
    r"([\\`*{}\[\]<>#!|~$^@&]|(?<![^\W_])_|_(?![^\W_])|:(?=//)|(?<=www)\.|^[-+=](?!\d))"
)
"""What may mean something. An underscore within a word does not, nor does a sign before a digit:
`block_size` and `-4.7 %` stay readable where nobody renders the report."""
"""What Markdown, and GitHub's own, give a meaning within a line."""


def markdown_text(view: ResultsView, pictures: Mapping[str, str], written: float) -> str:
    """The report.

    Args:
        view: What is reported.
        pictures: Titles of the charts by the names of their files, which lie beside the report.
        written: When; Unix seconds.
    """
    parts = (
        _head(view, written),
        _configurations(view),
        _notes(view),
        _charts(pictures),
        _failed(view),
        _coding(view),
        _provenance(view),
        _rows(view),
    )
    return "\n".join(line for part in parts for line in part).rstrip() + "\n"


def escaped(words: str) -> str:
    """Text that is nothing but text, in Markdown and in a cell of its tables."""
    return _SPECIAL.sub(r"\\\1", words)


def fenced(command: str) -> list[str]:
    """A command as a block of code that its own backticks cannot end."""
    longest = max((len(run) for run in re.findall(r"`+", command)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}sh", command, fence]


def _head(view: ResultsView, written: float) -> Iterator[str]:
    simulated = " (simulated)" if view.simulated else ""
    yield f"# Results of {escaped(view.host)}{simulated}"
    yield ""
    if view.simulated:
        yield "**All figures are of a simulated host: plausible, and measured on nothing.**"
        yield ""
    yield f"Written {_time(written)}. Compared at concurrency {view.concurrency}"
    yield f"with the baseline: {escaped(view.baseline) or 'nothing measured yet'}."
    if view.sweep:
        yield f"Sweep: {escaped(view.sweep)}."
    if view.waiting:
        yield f"Not ended yet: {view.waiting} experiments of the queue."
    yield ""
    drift = "the drift between loads"
    if view.margin <= SMALLEST_DIFFERENCE:
        drift = "the least that is told: a fresh load alone may change as much"
    yield (
        "Figures are medians over repeats, with 95 % intervals. A configuration is faster or "
        "slower when the 95 % interval of its ratio to the baseline (Welch's t on logarithms) "
        f"leaves 1 out by more than {view.margin * 100:.1f} %, {drift}; else it is a tie. "
        "tok/s per user is acceptance length over step time: a change pays if acceptance grows by "
        f"the larger factor. {NOTHING} means not measured."
    )
    yield ""


def _configurations(view: ResultsView) -> Iterator[str]:
    yield "## Configurations"
    yield ""
    if not view.rows:
        yield "Nothing was measured yet."
        yield ""
        return
    columns = columns_of(view)
    yield from _table(
        [column.title for column in columns],
        [list(texts) for texts in zip(*(column.texts for column in columns), strict=True)],
        [column.right for column in columns],
    )


def _notes(view: ResultsView) -> Iterator[str]:
    first = fastest_words(view.rows, view.margin)
    if notes := [*first, *(note.text for note in view.notes)]:
        yield "## What stands out"
        yield ""
        yield from (f"- {escaped(note)}" for note in notes)
        yield ""


def _charts(pictures: Mapping[str, str]) -> Iterator[str]:
    if pictures:
        yield "## Charts"
        yield ""
    for file, title in pictures.items():
        yield f"![{escaped(title)}]({quote(file)})"
        yield ""


def _failed(view: ResultsView) -> Iterator[str]:
    failed = [row for row in view.rows if row.state == "failed"]
    if not failed:
        return
    yield "## Failed"
    yield ""
    yield from _table(
        ["configuration", "cause", "what to do"],
        [[row.title, row.cause, row.remedy] for row in failed],
    )


def _coding(view: ResultsView) -> Iterator[str]:
    judged = [(row, row.coding) for row in view.rows if row.coding is not None]
    if not judged:
        return
    yield "## Coding tasks"
    yield ""
    yield from _table(
        ["configuration", "passed", "95 % (Wilson)", "gained", "lost", "run"],
        [
            [
                row.title,
                f"{coding.passed}/{coding.total}",
                coding_share(row),
                ", ".join(coding.gained) or NOTHING,
                ", ".join(coding.lost) or NOTHING,
                coding.isolation,
            ]
            for row, coding in judged
        ],
    )


def _provenance(view: ResultsView) -> Iterator[str]:
    rows = [(row, each) for row in view.rows for each in row.measurements if each.id in row.counted]
    if not rows:
        return
    yield "## Provenance"
    yield ""
    titles = ["configuration", "measured", "engine", "driver", "GPUs", "load s", "SM clock MHz"]
    yield from _table(
        [*titles, "hottest °C", "others' requests", "prompts", "drop-in", "measurement"],
        [_provenance_cells(row, each) for row, each in rows],
    )


def _provenance_cells(row: Row, measured: Measurement) -> list[str]:
    told = measured.provenance
    kinds = dict.fromkeys(told.gpus)
    gpus = ", ".join(f"{told.gpus.count(kind)} × {kind}" for kind in kinds)
    clocks = "–".join(f"{each:.0f}" for each in told.clocks_mhz or ())
    cells = [row.title, _time(measured.began), f"{told.engine} {told.engine_version}".strip()]
    cells += [told.driver, gpus, seconds(told.load_seconds), clocks, number(told.temperature_c)]
    cells += [str(told.foreign_requests), told.prompts_hash[:12], told.drop_in_hash[:12]]
    return [each or NOTHING for each in (*cells, measured.id)]


def _rows(view: ResultsView) -> Iterator[str]:
    if view.rows:
        yield "## Each configuration"
        yield ""
    for row in view.rows:
        yield f"### {escaped(row.title) or NOTHING}"
        yield ""
        yield from (f"- {line}" for line in _row_lines(row))
        yield ""
        if row.reproduce:
            yield from fenced(row.reproduce)
            yield ""


def _row_lines(row: Row) -> Iterator[str]:
    found = row.comparison
    decides = found.user_rate if found.by == "user" else found.total_rate
    verdict = f"**{escaped(verdict_word(row))}**"
    if decides is not None:
        verdict += f": {escaped(difference_interval(decides))}"
    why = found.why if found.standing is not Standing.BASELINE else ""
    yield verdict + (f". {escaped(why)}" if why else "")
    yield from _elsewhere(row)
    yield f"work: {escaped(row.work)}"
    if row.cause:
        yield f"cause: {escaped(row.cause)}"
    if row.remedy:
        yield f"what to do: {escaped(row.remedy)}"
    yield from (f"to know: {escaped(flag)}" for flag in row.flags)
    if marks := marks_of(row):
        yield f"marks: {escaped(marks)}"
    yield from (f"hypothesis: {escaped(each)}" for each in row.hypotheses)
    yield from (f"note: {escaped(each)}" for each in row.notes)
    yield from (f"matched: {escaped(each)}" for each in row.matches)
    if row.left_out:
        yield f"secrets that the command lacks: {escaped(', '.join(row.left_out))}"


def _elsewhere(row: Row) -> Iterator[str]:
    """The verdicts at the concurrencies that the report is not for."""
    shown = row.cell.concurrency if row.cell is not None else None
    for concurrency, found in row.comparisons.items():
        decides = found.user_rate if found.by == "user" else found.total_rate
        if decides is not None and concurrency != shown:
            where = f"at concurrency {concurrency}: **{escaped(found.standing)}**"
            why = f". {escaped(found.why)}" if found.why else ""
            yield f"{where}: {escaped(difference_interval(decides))}{why}"


def _table(
    titles: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[bool] = ()
) -> Iterator[str]:
    yield f"| {' | '.join(map(escaped, titles))} |"
    sides = [*right, *(False for _ in range(len(titles) - len(right)))]
    yield f"| {' | '.join('---:' if side else '---' for side in sides)} |"
    for row in rows:
        yield f"| {' | '.join(escaped(cell) for cell in row)} |"
    yield ""


def _time(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M} UTC"

"""The results as files: CSV, JSON, a report with its charts beside it, or the charts alone."""

from __future__ import annotations

import enum
from pathlib import Path

from ddtui.config.whole_file import is_replaced, write_whole
from ddtui.experiments.chart_data import AnyChart, charts_of
from ddtui.experiments.export import csv_text, json_text
from ddtui.experiments.markdown_report import markdown_text
from ddtui.experiments.results import ResultsView
from ddtui.experiments.svg_charts import drawn, sheet


class Form(enum.StrEnum):
    """What the results are written as; the value is the suffix of the file too."""

    CSV = "csv"
    JSON = "json"
    MD = "md"
    SVG = "svg"


def text_of(view: ResultsView, form: Form, now: float) -> str:
    """The results as one text; a report has no charts then. `now` in Unix seconds."""
    match form:
        case Form.CSV:
            return csv_text(view)
        case Form.JSON:
            return json_text(view)
        case Form.MD:
            return markdown_text(view, {}, now)
        case Form.SVG:
            return sheet(charts_of(view), f"Results of {view.host}").document()


def files_of(view: ResultsView, form: Form, file: Path) -> list[Path]:
    """The files that `write` makes: the one named, and a report's charts beside it.

    Raises OSError.
    """
    charts = _pictures(view, file) if form is Form.MD else {}
    return [file, *(file.with_name(name) for name in charts)]


def write(view: ResultsView, form: Form, file: Path, now: float) -> list[Path]:
    """Write a file, and a report's charts beside it; what is there is replaced. Raises OSError."""
    if form is not Form.MD:
        return [put(file, text_of(view, form, now))]
    pictures = _pictures(view, file)
    titles = {name: chart.title for name, chart in pictures.items()}
    report = put(file, markdown_text(view, titles, now))
    drawings = ((file.with_name(name), drawn(chart)) for name, chart in pictures.items())
    return [report, *(put(where, drawing.document()) for where, drawing in drawings)]


def put(file: Path, text: str) -> Path:
    """Write a file whole or not at all. Raises OSError."""
    # Line ends are the text's own: CSV has those of RFC 4180.
    write_whole(file, text.encode())
    return file


def _pictures(view: ResultsView, file: Path) -> dict[str, AnyChart]:
    """Beside a file only: what a pipe or a device has beside it is nobody's to write."""
    if not is_replaced(file):
        return {}
    return {f"{file.stem}-{chart.name}.svg": chart for chart in charts_of(view)}

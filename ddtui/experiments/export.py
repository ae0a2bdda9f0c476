"""The results as CSV and as JSON, for other programs. Pure.

CSV has one line a row and concurrency, and always the same columns in the same order. A text that a
spreadsheet would take for a formula gets an apostrophe before it (the advice of OWASP, "CSV
Injection"). What was not measured is an empty field. JSON has everything, provenance too; its keys
are those of the structures here and of `ddtui.core.measurement`.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any

import msgspec

from ddtui.core.json_text import json_text as encoded
from ddtui.core.knobs import KNOBS
from ddtui.core.measurement import Cell, Measurement, Spread
from ddtui.experiments.comparison import CodingView, Comparison, Standing, step_time
from ddtui.experiments.insights import Note
from ddtui.experiments.intervals import Ratio, usable
from ddtui.experiments.results import ResultsView, Row
from ddtui.experiments.rows import node_use

SCHEMA = 1
"""Grows when a key of the JSON changes its meaning; new keys alone do not make it grow."""

_FIGURES = ("user_rate", "total_rate", "acceptance_length", "step_time", "tpot", "ttft", "ttfo")
_RATIOS = {
    "user_rate": "user_rate",
    "total_rate": "total_rate",
    "acceptance": "acceptance_length",
    "step_time": "step_time",
}
"""Fields of a comparison, and what their columns are called."""
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")

Value = str | float | int | bool | None


class RowDocument(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the JSON."""

    title: str
    state: str
    simulated: bool
    configuration: str
    knobs: dict[str, str]
    work: str
    comparison: Comparison
    """At the concurrency of the document."""
    comparisons: dict[int, Comparison]
    """At each concurrency, by the margin of its own."""
    node_use: float | None
    step_time: Spread | None
    """At the concurrency of the document."""
    cells: tuple[Cell, ...]
    coding: CodingView | None
    load_seconds: float | None
    flags: tuple[str, ...]
    cause: str
    remedy: str
    hypotheses: tuple[str, ...]
    notes: tuple[str, ...]
    sweeps: tuple[str, ...]
    matches: tuple[str, ...]
    reproduce: str
    left_out: tuple[str, ...]
    experiments: tuple[str, ...]
    counted: tuple[str, ...]
    measurements: tuple[Measurement, ...]


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """The whole JSON. Spans in seconds, rates in tokens per second, times in Unix seconds."""

    schema: int = SCHEMA
    host: str
    simulated: bool
    sweep: str
    concurrency: int
    baseline: str
    margin: float
    margins: dict[int, float]
    waiting: int
    varying: tuple[str, ...]
    notes: tuple[Note, ...]
    rows: tuple[RowDocument, ...]


def document(view: ResultsView) -> Document:
    """What the JSON holds; encode it with msgspec, which writes no NaN."""
    shared = {field: getattr(view, field) for field in Document.__struct_fields__[1:-1]}
    rows = tuple(
        RowDocument(**{field: getattr(row, field) for field in RowDocument.__struct_fields__})
        for row in view.rows
    )
    return Document(**shared, rows=rows)


def json_text(view: ResultsView) -> str:
    """The JSON, indented."""
    return encoded(document(view))


def csv_text(view: ResultsView) -> str:
    """The CSV, as RFC 4180 has it, with a line of names."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    for row in view.rows:
        for cell in row.cells or (None,):
            found = dict(_fields(view, row, cell))
            writer.writerow([_field(found[name]) for name in COLUMNS])
    return out.getvalue()


def _fields(view: ResultsView, row: Row, cell: Cell | None) -> Iterator[tuple[str, Value]]:
    yield from (
        ("host", view.host),
        ("simulated", row.simulated),
        ("title", row.title),
        ("state", row.state),
        ("concurrency", cell.concurrency if cell is not None else None),
    )
    yield from _comparison(row, cell)
    for name in _FIGURES:
        yield from _figure(name, _figure_of(cell, name))
    yield "node_use", node_use(cell, row.knobs) if cell is not None else None
    for name in ("requests", "failed", "stalled", "output_tokens", "steady"):
        yield name, getattr(cell, name, None)
    for name in ("server_rate", "server_acceptance", "server_ttft", "link_rtt"):
        yield name, getattr(cell, name, None)
    yield from _coding(row.coding)
    yield from (
        ("load_seconds", row.load_seconds),
        ("work", row.work),
        ("flags", "; ".join(row.flags)),
        ("cause", row.cause),
        ("hypothesis", "; ".join(row.hypotheses)),
        ("note", "; ".join(row.notes)),
        ("sweep", "; ".join(row.sweeps)),
        ("match", "; ".join(row.matches)),
        ("reproduce", row.reproduce),
    )
    newest = row.newest
    told = newest.provenance if newest is not None else None
    for name in ("engine", "engine_version", "driver", "prompts_hash", "invocation"):
        yield name, getattr(told, name, None) or None
    yield "began", newest.began if newest is not None else None
    yield "configuration", row.configuration
    yield "measurements", " ".join(row.counted)
    yield "experiments", " ".join(row.experiments)
    for name in KNOBS:
        yield f"knob_{name}", row.knobs.get(name)
    more = (f"{name}={value}" for name, value in row.knobs.items() if name not in KNOBS)
    yield "knobs_more", " ".join(more)
    yield "margin", view.margins.get(cell.concurrency) if cell is not None else None


def _comparison(row: Row, cell: Cell | None) -> Iterator[tuple[str, Value]]:
    """Against the baseline at the same concurrency, whichever the view is for."""
    found = row.comparison if cell is None else row.comparisons[cell.concurrency]
    verdict: Value = "failed" if row.state == "failed" else str(found.standing)
    yield "verdict", verdict
    for field, name in _RATIOS.items():
        ratio: Ratio | None = getattr(found, field)
        yield f"{name}_ratio", ratio.value if ratio is not None else None
        yield f"{name}_ratio_low", ratio.low if ratio is not None else None
        yield f"{name}_ratio_high", ratio.high if ratio is not None else None
    yield "pays", found.pays
    yield "why", found.why if found.standing is not Standing.BASELINE else None


def _figure_of(cell: Cell | None, name: str) -> Spread | None:
    if cell is None:
        return None
    return step_time(cell) if name == "step_time" else usable(getattr(cell, name))


def _figure(name: str, figure: Spread | None) -> Iterator[tuple[str, Value]]:
    yield name, figure.median if figure is not None else None
    yield f"{name}_low", figure.low if figure is not None else None
    yield f"{name}_high", figure.high if figure is not None else None
    if name == "user_rate":
        yield "repeats", len(figure.values) or None if figure is not None else None


def _coding(known: CodingView | None) -> Iterator[tuple[str, Value]]:
    for name in ("passed", "total", "low", "high", "isolation"):
        yield f"coding_{name}", getattr(known, name, None)
    yield "coding_gained", "; ".join(known.gained) if known is not None else None
    yield "coding_lost", "; ".join(known.lost) if known is not None else None


def _field(value: Value) -> Any:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.6g}" if abs(value) < 1e6 else f"{value:.3f}"
    if isinstance(value, str) and value.lstrip(" '\"").startswith(_FORMULA):
        return f"'{value}"
    return value


_EMPTY = ResultsView(
    host="", simulated=False, concurrency=1, baseline="", margin=0.0, rows=(), varying=()
)
COLUMNS: tuple[str, ...] = tuple(
    name
    for name, _ in _fields(
        _EMPTY,
        Row(title="", state="failed", comparison=Comparison(standing=Standing.NOT_COMPARED)),
        None,
    )
)
"""Names of the columns, in their order."""

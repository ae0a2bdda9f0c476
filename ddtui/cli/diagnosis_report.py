"""A diagnosis as text and as JSON."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from datetime import UTC, datetime

import msgspec

from ddtui.cli.diagnose_sources import Diagnosed
from ddtui.cli.output import Paint, clean, table, terminal_width
from ddtui.core.decode_figures import DecodeSummary
from ddtui.core.examination import Diagnosis, Note, PhaseSpan, Scalar
from ddtui.engines import ENGINES
from ddtui.ui import format as fmt

_LABEL = 12
_WIDTH = 110
"""Most columns: longer lines are tiring to read."""
_BARS = "▁▂▃▄▅▆▇█"
_CONFIG_SHOWN = (
    *("model_path", "model", "served_model_name", "tp_size", "dp_size", "ep_size", "host", "port"),
    *("speculative_algorithm", "speculative_draft_model_path", "speculative_num_draft_tokens"),
    *("speculative_dflash_block_size", "speculative_draft_window_size", "num_tokens_per_req"),
    *("attention_backend", "speculative_draft_attention_backend", "mem_fraction_static"),
    *("kv_cache_dtype", "quantization", "context_length", "context_len", "max_running_requests"),
    *("max_total_num_tokens",),
)


class CauseJson(msgspec.Struct, frozen=True):
    """Why it failed."""

    id: str
    title: str
    evidence: tuple[str, ...]
    remedy: str
    link: str


class DecodeJson(msgspec.Struct, frozen=True):
    """The periodic decode lines in brief; null where no line told it."""

    count: int
    median_tokens_per_second: float | None
    median_acceptance_length: float | None
    notes: tuple[Note, ...]
    """What is to be known before these figures are used."""


class DiagnosisJson(msgspec.Struct, frozen=True):
    """The JSON of `ddtui diagnose --json`. Keys are added to, never renamed."""

    engine: str | None
    version: str | None
    ready: bool
    failed: bool
    cause: CauseJson | None
    phases: tuple[PhaseSpan, ...]
    config: dict[str, Scalar]
    decode: DecodeJson


def as_json(diagnosis: Diagnosis) -> DiagnosisJson:
    """The document of a diagnosis. Arguments that are not set are left out."""
    cause, decode = diagnosis.cause, diagnosis.decode
    return DiagnosisJson(
        engine=diagnosis.engine or None,
        version=diagnosis.version or None,
        ready=diagnosis.ready,
        failed=diagnosis.failed,
        cause=None
        if cause is None
        else CauseJson(cause.id, cause.title, cause.evidence, cause.remedy, cause.link),
        phases=diagnosis.phases,
        config={name: value for name, value in diagnosis.config.items() if value is not None},
        decode=DecodeJson(
            decode.count,
            decode.median_tokens_per_second,
            decode.median_acceptance_length,
            diagnosis.notes,
        ),
    )


def lines(found: Diagnosed, paint: Paint) -> list[str]:
    """The whole report."""
    diagnosis = found.diagnosis
    return [
        _head(found, paint),
        *_cause(diagnosis, paint),
        *_before(found.before, diagnosis),
        *_phases(diagnosis.phases, failed=diagnosis.failed),
        *_end(diagnosis),
        *_config(diagnosis),
        *_decode(diagnosis.decode),
        *_notes(diagnosis.notes, paint),
    ]


def _row(label: str, text: str) -> str:
    return f"{label:<{_LABEL}}{text}".rstrip()


def _wrapped(label: str, text: str) -> list[str]:
    width = max(40, min(_WIDTH, terminal_width() or _WIDTH))
    first, *rest = textwrap.wrap(clean(text), width - _LABEL) or [""]
    return [_row(label, first), *(" " * _LABEL + line for line in rest)]


def _head(found: Diagnosed, paint: Paint) -> str:
    diagnosis = found.diagnosis
    if diagnosis.failed:
        word = paint("failed", "red", "bold")
    elif diagnosis.ready:
        word = paint("was ready, then stopped" if diagnosis.stopped else "ready", "green", "bold")
    elif diagnosis.stopped:
        word = paint("stopped before it was ready", "yellow", "bold")
    else:
        word = paint("not ready, and no failure seen", "yellow", "bold")
    engine = " ".join(filter(None, (diagnosis.engine or "unknown engine", diagnosis.version)))
    words = [paint(clean(found.source), "bold"), clean(engine), word]
    if diagnosis.earlier:
        words.append(f"(the last of {diagnosis.earlier + 1} starts in this log)")
    if diagnosis.restarts:
        words.append(f"({diagnosis.restarts} restarts by systemd)")
    return "  ".join(words)


def _cause(diagnosis: Diagnosis, paint: Paint) -> list[str]:
    cause = diagnosis.cause
    if cause is None:
        return []
    title = _wrapped("cause", cause.title)
    rows = [row[:_LABEL] + paint(row[_LABEL:], "red", "bold") for row in title]
    rows += _wrapped("", f"[{cause.id}] {cause.explanation}".rstrip())
    for n, line in enumerate(cause.evidence):
        rows += _wrapped("" if n else "evidence", f"| {line}")
    rows += _wrapped("remedy", cause.remedy)
    if cause.link:
        rows.append(_row("see", clean(cause.link)))
    return rows


def _before(before: Diagnosis | None, now: Diagnosis) -> list[str]:
    if before is None or before.cause is None or now.failed or now.ready:
        return []
    cause = before.cause
    rows = _wrapped("before", f"the start before this one failed: {cause.title} [{cause.id}]")
    return [*rows, *_wrapped("", cause.remedy)]


def _phases(phases: Iterable[PhaseSpan], *, failed: bool) -> list[str]:
    rows = []
    for phase in phases:
        took = ""
        if phase.start is not None and phase.end is not None:
            took = fmt.duration(max(0.0, phase.end - phase.start))
        elif failed:
            took = "not ended"
        rows.append((phase.name, _clock(phase.start), took))
    return [_row("" if n else "phases", text) for n, text in enumerate(table(rows, right=(2,)))]


def _end(diagnosis: Diagnosis) -> list[str]:
    if diagnosis.ended is None:
        return []
    return _wrapped("ended", f"{_clock(diagnosis.ended)}  {diagnosis.ending}".rstrip())


def _clock(stamp: float | None) -> str:
    if stamp is None:
        return ""
    try:
        return datetime.fromtimestamp(stamp, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        return ""


def _config(diagnosis: Diagnosis) -> list[str]:
    config = {name: value for name, value in diagnosis.config.items() if value is not None}
    if not config:
        return []
    engine = ENGINES.get(diagnosis.engine)
    knobs = engine.knobs(dict(config)) if engine is not None else {}
    shown = {name: str(config[name]) for name in _CONFIG_SHOWN if name in config}
    rows = []
    if knobs:
        rows += _wrapped("knobs", ", ".join(f"{name} {value}" for name, value in knobs.items()))
    text = ", ".join(f"{name} {value}" for name, value in shown.items())
    more = len(config) - len(shown)
    rest = f" (and {more} more: --json)" if more > 0 else ""
    return [*rows, *_wrapped("config", (text or f"{more} arguments") + rest)]


def _decode(decode: DecodeSummary) -> list[str]:
    if not decode.count and not decode.acceptance:
        return []
    speed, length = decode.median_tokens_per_second, decode.median_acceptance_length
    rows = []
    if speed is not None:
        text = f"{fmt.tokens_per_second(speed)} tok/s median of {decode.count} lines"
        rows.append(_row("throughput", f"{text}  {_bars(decode.throughput)}"))
    if length is not None:
        rows.append(_row("acceptance", f"{length:.2f} median  {_bars(decode.acceptance)}"))
    return rows


def _bars(values: Iterable[float]) -> str:
    """The series as block characters from 0 to its greatest."""
    series = list(values)
    top = max(series, default=0.0)
    if top <= 0:
        return ""
    return "".join(_BARS[min(7, int(value / top * 7.999))] for value in series)


def _notes(notes: Iterable[Note], paint: Paint) -> list[str]:
    rows: list[str] = []
    for note in notes:
        rows += _wrapped(
            paint("note", "yellow") if not rows else "", f"{note.title}. {note.remedy}"
        )
    return rows

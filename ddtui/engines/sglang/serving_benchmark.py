"""Results of SGLang's own serving benchmark (`python -m sglang.bench_serving`), a JSON line each.

Format: benchmark/serving.py of 0.5.23, option `--output-file`. It is written by Python's json,
which knows `Infinity`.
"""

from __future__ import annotations

import json
from collections import Counter

from ddtui.core.measurement import Cell, Spread
from ddtui.core.redact import safe_text

_UNKNOWN = (
    "by sglang.bench_serving: of one run, without warm-up rules and without positions of accepted"
    " drafts"
)
_LIFETIME = (
    "its acceptance length is the server's average since its start or last flush, of other requests"
    " too"
)
_BOUNDS = {
    "completed": (1, 1e12),
    "max_concurrency": (1, 1e6),
    "concurrency": (0, 1e6),
    "output_throughput": (0, 1e9),
    "accept_length": (1, 1e4),
    "duration": (0, 1e9),
    "total_output_tokens": (0, 1e15),
    "mean_tpot_ms": (1e-3, 1e9),
    "median_ttft_ms": (1e-3, 1e9),
    "median_itl_ms": (1e-3, 1e9),
    "p99_itl_ms": (1e-3, 1e9),
}
"""What a figure can be: no token comes in a millionth of a second, no model accepts a book."""
_MOST_ERRORS = 20
"""Different ones that are kept."""
_NO_LIMIT = "without a limit of concurrency: the concurrency shown is the average, rounded"


def parse_result(line: bytes) -> Cell:
    """A line of results as a cell, with notes of what is not known.

    Raises ValueError when the line is no such result.
    """
    try:
        result = json.loads(line)
    except (ValueError, RecursionError) as exc:
        raise ValueError(f"not a line of JSON: {exc}") from exc
    if not isinstance(result, dict) or "output_throughput" not in result:
        raise ValueError("not a result of sglang.bench_serving: output_throughput is missing")
    completed = _number(result, "completed")
    if not completed:
        raise ValueError("sglang.bench_serving completed no request")
    notes = [_UNKNOWN, *_no_figures(result)]
    concurrency = _number(result, "max_concurrency")
    if not concurrency:
        concurrency = _number(result, "concurrency") or 1
        notes.append(_NO_LIMIT)
    acceptance = _number(result, "accept_length")
    if acceptance is not None:
        notes.append(_LIFETIME)
    tpot = _seconds(result, "mean_tpot_ms")
    errors = Counter(error for error in _texts(result.get("errors")) if error)
    return Cell(
        concurrency=max(1, round(concurrency)),
        requests=int(completed),
        failed=errors.total(),
        errors=_kept(errors),
        output_tokens=int(_number(result, "total_output_tokens") or 0),
        seconds=_number(result, "duration") or 0.0,
        user_rate=_one(1 / tpot if tpot else None),
        total_rate=_one(_number(result, "output_throughput")),
        ttft=_one(_seconds(result, "median_ttft_ms")),
        tpot=_one(tpot),
        itl=_one(_seconds(result, "median_itl_ms")),
        itl_p99=_one(_seconds(result, "p99_itl_ms")),
        acceptance_length=_one(acceptance),
        step_time=_one(
            acceptance * tpot if acceptance and tpot and round(concurrency) == 1 else None
        ),
        notes=tuple(notes),
    )


def _number(result: dict[str, object], name: str) -> float | None:
    value = result.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    # JSON's integers have no limit, and Python's has NaN. 0 is written for what is not known.
    least, most = _BOUNDS[name]
    return float(value) if value and least <= value <= most else None


def _seconds(result: dict[str, object], name: str) -> float | None:
    value = _number(result, name)
    return None if value is None else value / 1000


def _no_figures(result: dict[str, object]) -> list[str]:
    """What it says that cannot be, in words: such a figure is not shown."""
    return [
        f"{name} of {_shortly(result[name])} is no figure: left out"
        for name in _BOUNDS
        if result.get(name) and _number(result, name) is None
    ]


def _shortly(value: object) -> str:
    if isinstance(value, int) and not -(10**15) < value < 10**15:
        return "more than 10^15" if value > 0 else "less than -10^15"
    return safe_text(str(value), 40)


def _kept(errors: Counter[str]) -> dict[str, int]:
    """The most frequent ones, safe to show and to store."""
    kept: Counter[str] = Counter()
    for error, count in errors.most_common(_MOST_ERRORS):
        kept[safe_text(error, 200)] += count
    return dict(kept)


def _one(value: float | None) -> Spread | None:
    return None if value is None else Spread(value, value, value, (value,))


def _texts(value: object) -> list[str]:
    return [str(each) for each in value] if isinstance(value, list) else []

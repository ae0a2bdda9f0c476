"""Results of SGLang's own serving benchmark (`python -m sglang.bench_serving`), a JSON line each.

Format: benchmark/serving.py of 0.5.23, option `--output-file`. It is written by Python's json,
which knows `Infinity`.
"""

from __future__ import annotations

import json

from ddtui.core.measurement import Cell, Spread

_UNKNOWN = (
    "by sglang.bench_serving: of one run, without warm-up rules and without positions of accepted"
    " drafts"
)
_LIFETIME = (
    "its acceptance length is the server's average since its start or last flush, of other requests"
    " too"
)
_NO_FIGURE = 1e15
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
    notes = [_UNKNOWN]
    concurrency = _number(result, "max_concurrency")
    if not concurrency:
        concurrency = _number(result, "concurrency") or 1
        notes.append(_NO_LIMIT)
    acceptance = _number(result, "accept_length")
    if acceptance is not None:
        notes.append(_LIFETIME)
    tpot = _seconds(result, "mean_tpot_ms")
    errors = [error for error in _texts(result.get("errors")) if error]
    return Cell(
        concurrency=max(1, round(concurrency)),
        requests=int(completed),
        failed=len(errors),
        errors={error[:200]: errors.count(error) for error in dict.fromkeys(errors)},
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
    # JSON's integers have no limit; what is beyond this one is no figure.
    return float(value) if 0 <= value < _NO_FIGURE else None


def _seconds(result: dict[str, object], name: str) -> float | None:
    value = _number(result, name)
    return None if value is None else value / 1000


def _one(value: float | None) -> Spread | None:
    return None if value is None else Spread(value, value, value, (value,))


def _texts(value: object) -> list[str]:
    return [str(each) for each in value] if isinstance(value, list) else []

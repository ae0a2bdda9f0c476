"""SGLang's periodic `Decode batch` and `Prefill batch` lines, 0.4.6 to 0.5.23.

Both are `key: value` pairs after the word `batch` (with `[n]` behind it under
SGLANG_LOG_FORWARD_ITERS), in an order that changed between versions, some with a trailing comma.
Unknown keys are passed over.
"""

from __future__ import annotations

from ddtui.core.bounded import bounded_float
from ddtui.core.events import Decoded, Prefilled
from ddtui.engines.sglang.possible import acceptance_length, share

DECODE = "Decode batch"
PREFILL = "Prefill batch"

_USAGES = ("token usage", "full token usage", "swa token usage", "mamba usage")
"""Fill of each memory pool; the fullest one decides, as in the engine's own `token_usage`."""
_ACCEPTED = ("accept len", "acc len", "acceptance len", "accept length", "acceptance length")
"""The first is mainline's; forks call it otherwise."""
_GRAPHS = ("cuda graph", "cpu graph", "npu graph")


def decoded(message: str, stamp: float, rank: str) -> Decoded:
    """The event of a message that begins with `Decode batch`. Never raises."""
    values = _pairs(message, len(DECODE))
    return Decoded(
        stamp=stamp,
        rank=rank,
        throughput=_number(values, "gen throughput (token/s)"),
        acceptance_length=acceptance_length(_first_number(values, _ACCEPTED)),
        acceptance_rate=share(_number(values, "accept rate")),
        running=_whole(values, "#running-req"),
        queued=_whole(values, "#queue-req"),
        kv_usage=_usage(values),
        tokens=_whole(values, "#full token" if "#full token" in values else "#token"),
        graph=_graph(values),
    )


def prefilled(message: str, stamp: float, rank: str) -> Prefilled:
    """The event of a message that begins with `Prefill batch`. Never raises."""
    values = _pairs(message, len(PREFILL))
    return Prefilled(
        stamp=stamp,
        rank=rank,
        new_sequences=_whole(values, "#new-seq"),
        new_tokens=_whole(values, "#new-token"),
        cached_tokens=_whole(values, "#cached-token"),
        running=_whole(values, "#running-req"),
        queued=_whole(values, "#queue-req"),
        kv_usage=_usage(values),
        throughput=_number(values, "input throughput (token/s)"),
    )


def _pairs(message: str, start: int) -> dict[str, str]:
    if message[start : start + 2] == " [":
        start = message.find("]", start) + 1 or start
    pairs = (part.partition(": ") for part in message[start + 2 :].split(", "))
    return {key: value for key, _, value in pairs}


def _number(values: dict[str, str], key: str) -> float | None:
    text = values.get(key)
    if text is None:
        return None
    number = bounded_float(text.rstrip(" ,%"))
    return number if number is not None and number >= 0 else None


def _first_number(values: dict[str, str], keys: tuple[str, ...]) -> float | None:
    return next((_number(values, key) for key in keys if key in values), None)


def _whole(values: dict[str, str], key: str) -> int | None:
    number = _number(values, key)
    return None if number is None else int(number)


def _usage(values: dict[str, str]) -> float | None:
    found = [usage for key in _USAGES if (usage := share(_number(values, key))) is not None]
    return max(found) if found else None


def _graph(values: dict[str, str]) -> bool | None:
    for key in _GRAPHS:
        if key in values:
            return values[key].startswith("True")
    return None

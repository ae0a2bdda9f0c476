"""Numbers as the screens show them: short, of one width, and a dash where nothing is known."""

from __future__ import annotations

import math
from datetime import datetime

from ddtui.core import spans
from ddtui.core import text as core_text

NOTHING = "–"
"""Shown where no source gives a value; never a zero."""

TEXT_LIMIT = 2_000
"""Characters of one remote text that are ever looked at for showing it: more than any row holds."""

_GIB = 1 << 30


def clean(text: str) -> str:
    """Remote text as one line that neither moves the cursor nor hides anything; capped."""
    return core_text.clean(text, TEXT_LIMIT)


def known(value: float | None) -> bool:
    """Whether there is a number to show."""
    return value is not None and math.isfinite(value)


def number(value: float | None, digits: int = 0) -> str:
    """A number with a fixed count of decimals."""
    if value is None or not math.isfinite(value):
        return NOTHING
    return f"{value:.{digits}f}"


def count(value: float | None) -> str:
    """A number in at most five characters: 7, 999, 1.2k, 43k, 1.2M."""
    if value is None or not math.isfinite(value):
        return NOTHING
    for limit, unit in ((1e3, ""), (1e6, "k"), (1e9, "M"), (1e12, "G")):
        if abs(value) < limit * 0.9995:
            scaled = value / (limit / 1e3)
            digits = 1 if unit and abs(scaled) < 9.95 else 0
            return f"{scaled:.{digits}f}{unit}"
    return f"{value:.0e}"


def tokens_per_second(value: float | None) -> str:
    """A throughput in at most five characters: 9.7, 142, 1240, 12.3k."""
    if value is None or not math.isfinite(value):
        return NOTHING
    if abs(value) < 99.95:
        return f"{value:.1f}"
    if abs(value) < 9_999.5:
        return f"{value:.0f}"
    return f"{value / 1e3:.1f}k" if abs(value) < 99_950 else count(value)


def gib(value: float | None, digits: int = 1) -> str:
    """Bytes of memory in GiB, without the unit."""
    return NOTHING if value is None else number(value / _GIB, digits)


def memory(value: float | None) -> str:
    """Bytes of memory with a binary unit: 512 MiB, 88.1 GiB, 1.5 TiB."""
    if value is None or not math.isfinite(value):
        return NOTHING
    for limit, unit in ((1 << 20, "KiB"), (1 << 30, "MiB"), (1 << 40, "GiB"), (1 << 50, "TiB")):
        if value < limit * 0.9995:
            scaled = value / (limit / 1024)
            digits = 1 if scaled < 99.95 and unit in {"GiB", "TiB"} else 0
            return f"{scaled:.{digits}f} {unit}"
    return f"{value / (1 << 50):.0f} PiB"


def rate(value: float | None) -> str:
    """Bytes per second with a decimal unit, as disks and networks are sold: 3.1 GB/s."""
    if value is None or not math.isfinite(value):
        return NOTHING
    for limit, unit in ((1e6, "kB/s"), (1e9, "MB/s"), (1e12, "GB/s")):
        if value < limit * 0.9995:
            scaled = value / (limit / 1e3)
            return f"{scaled:.{1 if 0.05 <= scaled < 9.95 else 0}f} {unit}"
    return f"{value:.0e} B/s"


def percent(value: float | None) -> str:
    """A percentage (0 to 100)."""
    return NOTHING if not known(value) else f"{value:.0f} %"


def duration(seconds: float | None) -> str:
    """A span in its two largest units: 9 s, 6 m 12 s, 2 h 05 m, 3 d 04 h."""
    if seconds is None or not math.isfinite(seconds):
        return NOTHING
    return spans.duration(seconds)


def ago(seconds: float | None) -> str:
    """An age so exact that it does not tick: 9 s, 6 m, 2 h 30 m, 3 d 04 h."""
    if seconds is None or not math.isfinite(seconds):
        return NOTHING
    whole = max(0, int(seconds))
    if whole >= 3_600:
        return duration(whole - whole % 60)
    return f"{whole} s" if whole < 60 else f"{whole // 60} m"


def seconds(span: float | None) -> str:
    """A span, short ones to the tenth: 0.4 s, 12 s, 6 m 12 s."""
    if span is None or not math.isfinite(span):
        return NOTHING
    return f"{max(0.0, span):.1f} s" if span < 9.95 else duration(span)


def date(stamp: float | None, *, seconds: bool = False) -> str:
    """A moment with its day, in the operator's time: 2026-09-21 14:03."""
    if stamp is None or not math.isfinite(stamp):
        return NOTHING
    form = "%Y-%m-%d %H:%M:%S" if seconds else "%Y-%m-%d %H:%M"
    try:
        return datetime.fromtimestamp(stamp).astimezone().strftime(form)
    except (OverflowError, OSError, ValueError):  # a stamp no calendar holds
        return NOTHING


def clock(stamp: float | None) -> str:
    """A moment as the operator's wall clock: 14:03:22."""
    if stamp is None or not math.isfinite(stamp):
        return NOTHING
    try:
        return datetime.fromtimestamp(stamp).astimezone().strftime("%H:%M:%S")
    except (OverflowError, OSError, ValueError):  # a stamp no calendar holds
        return NOTHING

"""Spans of time in words, the same wherever an operator reads them."""

from __future__ import annotations


def duration(seconds: float) -> str:
    """A span in its two largest units: 9 s, 6 m 12 s, 2 h 05 m, 3 d 04 h."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3_600:
        return f"{whole // 60} m {whole % 60:02d} s"
    if whole < 86_400:
        return f"{whole // 3_600} h {whole % 3_600 // 60:02d} m"
    return f"{whole // 86_400} d {whole % 86_400 // 3_600:02d} h"


def about(seconds: float) -> str:
    """The same, a long one without seconds that would tick: 1 m 40 s, 6 m, 2 h 05 m."""
    whole = round(seconds / 60) * 60
    if seconds < 120:
        return duration(seconds)
    return f"{whole // 60} m" if whole < 3_600 else duration(whole)

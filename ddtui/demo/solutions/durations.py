"""Seconds of a duration such as `1h 30m`."""

from __future__ import annotations

import re

_SECONDS = {"w": 604800, "d": 86400, "h": 3600, "m": 60, "s": 1}


def parse_duration(text: str) -> int:
    """Read a duration."""
    if not re.fullmatch(r"[0-9]+[wdhms](?: ?[0-9]+[wdhms])*", text):
        raise ValueError(text)
    parts = re.findall(r"([0-9]+)([wdhms])", text)
    units = [unit for _, unit in parts]
    if units != [unit for unit in _SECONDS if unit in units]:
        raise ValueError(text)
    return sum(int(number) * _SECONDS[unit] for number, unit in parts)

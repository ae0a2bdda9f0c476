"""What a server says of a request and what cannot be: such a figure is left out, and told."""

from __future__ import annotations

import math

import msgspec

from ddtui.core.generation import Speculation

_MOST_DRAFTS = 256
"""Drafts that one pass may accept: several times the longest blocks."""
_SLACK = 16
"""Passes beyond one a token: a request that was put back and begun again counts some twice."""


def drafts_of(counts: Speculation, tokens: int) -> tuple[Speculation | None, str]:
    """The counts of drafts of an answer of so many tokens, as far as they can be; and what not.

    Every pass brings one token and the drafts that it accepted. The last one may bring more than
    the answer has, as many drafts as a pass may accept.
    """
    passes, accepted = counts.verifications, counts.accepted
    if not 0 < passes <= tokens + _SLACK:
        return None, f"{_shortly(passes)} verifications of {tokens} tokens"
    bars, doubt = counts.histogram, ""
    if len(bars) > _MOST_DRAFTS + 1:
        bars, doubt = (), f"a histogram of drafts with {len(bars)} bars"
    elif any(bar < 0 or bar > passes + _SLACK for bar in bars):
        bars, doubt = (), f"a histogram of drafts that {_shortly(passes)} verifications cannot give"
    last = len(bars) - 1 if bars else _MOST_DRAFTS
    if accepted is not None and not (
        0 <= accepted <= passes * last and accepted + passes <= tokens + _SLACK + last
    ):
        return None, f"{_shortly(accepted)} accepted drafts of {tokens} tokens"
    return msgspec.structs.replace(counts, histogram=bars), doubt


def seconds_of(said: float | None) -> float | None:
    """A time by the server's clock; None for what is none."""
    return said if said is not None and math.isfinite(said) and said >= 0 else None


def _shortly(count: int) -> str:
    return str(count) if abs(count) < 10**15 else f"{'-' if count < 0 else ''}more than 10^15"

"""The rates of a batch: of those times in which as many requests ran as the concurrency says.

A request that has stalled, or was refused, holds a place and brings nothing. The others are faster
then, by as much as nobody knows: neither what came meanwhile nor a multiple of it is the rate of
that concurrency. So such times are left out, with the tokens that came in them; until it hung, a
request that failed counts like any other. Where too little is left there is no figure. But a few
places of very many may be missing: the rate is as much higher, at most, as their share.

The rate of one user is of the end of a batch too, where no more is sent and fewer and fewer run, as
benches count it. Where much of that end is missing because requests failed, it is not.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from statistics import median

import msgspec

from ddtui.bench.exchange import Exchange, Outcome

Span = tuple[float, float]
_MOST_OF_IT = 0.9
"""Share of the window that is enough, however short the window is."""
_LITTLE = 0.02
"""Share of all places' time that may be lost without more ado."""
_ASTRAY = 0.03
"""Share by which the rate may be wrong, at worst, for what was cut out."""
_EMPTIER = 0.1
"""Share of all places' time that may be missing at the end of a batch, for the rate of one user."""


class Together(msgspec.Struct, frozen=True):
    """What came while all ran."""

    rate: float | None
    """Tokens per second; None where all ran for too short a time."""
    seconds: float
    """How long all ran."""
    enough: float
    """How long they had to."""
    lost_share: float
    """Share of the window that is left out, as not all of them did."""
    spans: tuple[Span, ...] = ()
    """When all ran."""


def together(exchanges: Sequence[Exchange], window: Span, concurrency: int) -> Together:
    """The rate within a window; one of `exchanges` at least was answered whole.

    Enough is the time of a typical answer. And where streams are in step, each gap may leave one
    beginning of an answer too many of each, or take it out: enough is also what makes that little.
    """
    length = window[1] - window[0]
    hung = sorted(filter(None, map(_hung, exchanges)))
    held = sum(max(0.0, min(end, window[1]) - max(begin, window[0])) for begin, end in hung)
    spans = _without(window, hung if held > _LITTLE * concurrency * length else [])
    seconds = sum(end - begin for begin, end in spans)
    good = [each for each in exchanges if each.ok]
    whole = median(each.ended - each.began for each in good)
    first = median((each.first_token or each.began) - each.began for each in good)
    edges = [window[0], *(edge for span in spans for edge in span), window[1]]
    gaps = [end - begin for begin, end in zip(edges[::2], edges[1::2], strict=True)]
    enough = max(min(whole, _MOST_OF_IT * length), sum(min(gap, first) for gap in gaps) / _ASTRAY)
    rate = None
    if 0 < enough <= seconds:
        tokens = sum(tokens_within(each, spans) for each in exchanges if _counts(each))
        rate = tokens / seconds
    lost = 1 - seconds / length if length > 0 else 0.0
    return Together(rate, seconds, enough, max(0.0, lost), tuple(spans))


def spans_of_one(
    exchanges: Sequence[Exchange], found: Together, window: Span, concurrency: int
) -> tuple[Span, ...] | None:
    """The times of which the rate of one user is; None for all, empty where there is no such rate.

    A request that runs alone has nobody to be faster for.
    """
    bad = sum(not each.ok for each in exchanges)
    if concurrency == 1 or not bad:
        return None
    if found.rate is None:
        return ()
    last = sorted(exchanges, key=lambda each: each.ended)[-concurrency:]
    missing = sum(not each.ok for each in last) / len(last)
    ended = max(each.ended for each in exchanges if each.ok)
    if missing * (ended - window[1]) > _EMPTIER * (ended - window[0]):
        return ()
    return found.spans if found.lost_share > 0 else None


def time_within(exchange: Exchange, spans: Sequence[Span]) -> tuple[float, float]:
    """Seconds within spans in which tokens came after the first one, and these tokens."""
    seconds = tokens = 0.0
    first = exchange.first_token
    if first is None:
        return 0.0, 0.0
    points = _course(exchange, first)
    for begin, end in spans:
        since, until = max(begin, first), min(end, exchange.ended)
        if until > since:
            seconds += until - since
            tokens += _until(points, until) - _until(points, since)
    return seconds, tokens


def _counts(each: Exchange) -> bool:
    """Whether what it brought is known: of one that broke off, by the counts on the way."""
    if each.ok or each.outcome is Outcome.OVERRUN:
        return each.ok
    return bool(each.points) and each.points[-1][1] is not None


def _hung(each: Exchange) -> Span | None:
    """When it held a place and brought nothing."""
    if each.ok:
        return None
    return (each.points[-1][0] if _counts(each) else each.began), each.ended


def _without(window: Span, gaps: Iterable[Span]) -> list[Span]:
    """The window without what lies in gaps, which are sorted."""
    left, at = [], window[0]
    for begin, end in gaps:
        if begin > at:
            left.append((at, min(begin, window[1])))
        at = max(at, end)
        if at >= window[1]:
            break
    else:
        left.append((at, window[1]))
    return [(begin, end) for begin, end in left if end > begin]


def counted(exchange: Exchange) -> list[tuple[float, int]]:
    """The reads that brought a known number of tokens, and the end."""
    points = [(stamp, count) for stamp, count in exchange.points if count is not None]
    if points and (exchange.tokens or 0) > points[-1][1]:
        points.append((exchange.ended, exchange.tokens or 0))
    return points


def tokens_within(exchange: Exchange, spans: Sequence[Span]) -> float:
    """Tokens that came within spans of time: between two reads in proportion to the time.

    Whole reads would make a batch of streams in step lose one of each to the jitter of the first.
    """
    if exchange.first_token is None:
        return 0.0
    points = _course(exchange, exchange.first_token)
    return sum(
        _until(points, end) - _until(points, begin)
        for begin, end in spans
        if end >= points[0][0] and begin <= exchange.ended
    )


def _course(exchange: Exchange, first: float) -> list[tuple[float, int]]:
    """When how many tokens had come; one by the first event where the server does not say."""
    points = counted(exchange) or [(first, 1)]
    if points[-1][0] < exchange.ended:
        points.append((exchange.ended, exchange.tokens or 0))
    return points


def _until(points: Sequence[tuple[float, int]], moment: float) -> float:
    """Tokens that had come by `moment`."""
    at = bisect_right(points, moment, key=lambda point: point[0])
    if at == 0:
        return 0.0
    if at == len(points):
        return float(points[-1][1])
    (before, count), (after, more) = points[at - 1], points[at]
    return count + (more - count) * (moment - before) / (after - before)

"""The figures of one batch out of its requests. Definitions; all times in seconds.

==================  ================================================================================
TTFT                first event with a token of any channel - send; median over the requests
TTFO                first visible content - send; median over the requests
TPOT                sum of (end - first token) / sum of (N - n1): N tokens by the server's count,
                    of which the first event brought n1. Where others failed or stalled beside them,
                    of the times of which the total rate is, or there is none (see `together`)
user rate           1 / TPOT
ITL                 gap between two reads / tokens of the second, once for each of those tokens
total rate          tokens that came within the window / its length. It begins with the first send
                    and ends when the first stream ends that no further request follows: from then
                    on fewer run than the concurrency says. Times in which a request that failed or
                    stalled held a place and brought nothing are left out (see `together`)
acceptance length   1 + sum of accepted drafts / sum of verifications
S_i                 share of verifications that accepted at least i drafts
step time           acceptance length x TPOT, at concurrency 1
==================  ================================================================================

Requests that failed or stalled are in none of them, but for what they brought to the total rate.

SGLang's own serving benchmark counts from the first *text*, divides by N - 1, and gives the mean of
the requests: an answer whose text is held back to its end (bytes that make no whole character yet)
has a TPOT of 0 there, which alone lowers the mean of eight by an eighth. A first event of several
tokens lowers it too. Where every answer has text from its first token on, and the first event
brings one token, both give the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from statistics import fmean, median

import msgspec

from ddtui.bench.believable import drafts_of, seconds_of
from ddtui.bench.exchange import Exchange
from ddtui.bench.spread import weighted_quantile
from ddtui.bench.together import (
    Span,
    Together,
    counted,
    spans_of_one,
    time_within,
    together,
)


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """What one batch gave."""

    requests: int
    output_tokens: int
    window: tuple[float, float]
    """When it began and ended, by the generator's clock."""
    together: Together
    """The total rate, and of how much of the window it is."""
    ttft: float
    ttfo: float | None = None
    tpot: float | None = None
    itl: float | None = None
    """Median over the tokens."""
    itl_p99: float | None = None
    acceptance_length: float | None = None
    acceptance_macro: float | None = None
    histogram: tuple[int, ...] = ()
    """Verifications by accepted drafts."""
    step_time: float | None = None
    server_ttft: float | None = None
    """Median of what the requests themselves say."""
    notes: tuple[str, ...] = ()

    @property
    def user_rate(self) -> float | None:
        """1 / TPOT."""
        return 1 / self.tpot if self.tpot else None

    @property
    def total_rate(self) -> float | None:
        """Tokens of all streams; None where too few of them ran together."""
        return self.together.rate


def figures(exchanges: Sequence[Exchange], concurrency: int) -> Figures | None:
    """The figures of a batch; None when no request was answered whole."""
    good = [each for each in exchanges if each.ok and each.first_token is not None and each.tokens]
    if not good:
        return None
    window = _window(exchanges, concurrency)
    all_ran = together(exchanges, window, concurrency)
    spans = spans_of_one(exchanges, all_ran, window, concurrency)
    notes: list[str] = []
    tpot = _tpot(good) if spans is None else _tpot_within(good, spans)
    itls = [pair for each in good for pair in _token_gaps(each, spans)]
    if not itls and tpot is not None and spans is None:
        notes.append(
            "the server counts no tokens on the way: the first event is taken for one token, and"
            " ITL is not known"
        )
    length, macro, histogram, derived, doubts = _acceptance(good)
    longest = max(each.tokens or 0 for each in good)
    if length is not None and length > longest:
        doubts.append(f"an acceptance length of {length:.1f} in answers of {longest} tokens")
        length, macro, histogram = None, None, ()
    notes += [f"not believed, and left out: the server says {doubt}" for doubt in doubts]
    if derived:
        notes.append("accepted drafts are not told: taken from tokens and verifications")
    if spans == () and all_ran.rate is not None:
        notes.append(
            "not clean: as requests failed or stalled, much of a batch's end was left to fewer than"
            f" {concurrency}: the rate of one user is left out"
        )
    ttfos = [each.first_output - each.began for each in good if each.first_output is not None]
    server = _server_ttfts(good, notes)
    return Figures(
        requests=len(good),
        output_tokens=sum(each.tokens or 0 for each in good),
        window=window,
        together=all_ran,
        ttft=median((each.first_token or 0.0) - each.began for each in good),
        ttfo=median(ttfos) if ttfos else None,
        tpot=tpot,
        itl=weighted_quantile(itls, 0.5),
        itl_p99=weighted_quantile(itls, 0.99),
        acceptance_length=length,
        acceptance_macro=macro,
        histogram=histogram,
        step_time=length * tpot if length and tpot and concurrency == 1 else None,
        server_ttft=median(server) if server else None,
        notes=tuple(notes),
    )


def _window(exchanges: Sequence[Exchange], concurrency: int) -> tuple[float, float]:
    """From the first send to the first end that no further request follows."""
    ends = sorted(each.ended for each in exchanges)
    return min(each.began for each in exchanges), ends[max(0, len(ends) - concurrency)]


def _server_ttfts(good: Iterable[Exchange], notes: list[str]) -> list[float]:
    """What the requests say, as far as it can be; what cannot is noted."""
    said = [each.server_ttft for each in good if each.server_ttft is not None]
    if wrong := [each for each in said if seconds_of(each) is None]:
        notes.append(f"not believed, and left out: the server says a TTFT of {wrong[0]:g} s")
    return [each for each in map(seconds_of, said) if each is not None]


def _first_tokens(exchange: Exchange) -> int:
    return exchange.first_tokens or 1


def _tpot(good: Iterable[Exchange]) -> float | None:
    seconds, tokens = 0.0, 0
    for each in good:
        later = (each.tokens or 0) - _first_tokens(each)
        if later > 0 and each.first_token is not None:
            seconds += each.ended - each.first_token
            tokens += later
    return seconds / tokens if tokens and seconds > 0 else None


def _tpot_within(good: Iterable[Exchange], spans: Sequence[Span]) -> float | None:
    found = [time_within(each, spans) for each in good]
    seconds, tokens = sum(each[0] for each in found), sum(each[1] for each in found)
    return seconds / tokens if tokens and seconds > 0 else None


def _token_gaps(exchange: Exchange, spans: Sequence[Span] | None) -> list[tuple[float, int]]:
    """(Seconds a token, tokens) of each read after the first; within spans, where some are given.

    A gap is within a span that both of its reads are in.
    """
    return [
        ((after - before) / (count - counted), count - counted)
        for (before, counted), (after, count) in pairwise(counted(exchange))
        if count > counted
        and (spans is None or any(begin <= before and after <= end for begin, end in spans))
    ]


def _acceptance(
    good: Iterable[Exchange],
) -> tuple[float | None, float | None, tuple[int, ...], bool, list[str]]:
    """Acceptance length (micro, macro), the histogram, whether drafts were derived, and doubts.

    Of the doubts the first one stands for all: an engine that counts wrongly does so each time.
    """
    accepted = verifications = 0
    each_length: list[float] = []
    histogram: list[int] = []
    derived, doubts = False, list[str]()
    for each in good:
        if each.speculation is None:
            continue
        counts, doubt = drafts_of(each.speculation, each.tokens or 0)
        if doubt and not doubts:
            doubts.append(doubt)
        if counts is None:
            continue
        drafts = counts.accepted
        if drafts is None:  # the first token comes from the prefill, each verification adds one
            drafts, derived = max(0, (each.tokens or 0) - 1 - counts.verifications), True
        accepted += drafts
        verifications += counts.verifications
        each_length.append(1 + drafts / counts.verifications)
        histogram += [0] * (len(counts.histogram) - len(histogram))
        for index, count in enumerate(counts.histogram):
            histogram[index] += count
    if not verifications:
        return None, None, (), False, doubts
    return 1 + accepted / verifications, fmean(each_length), tuple(histogram), derived, doubts


def positions(histogram: Sequence[int]) -> tuple[float, ...]:
    """Share of verifications that accepted at least 1, 2, ... drafts."""
    total = sum(histogram)
    if not total:
        return ()
    return tuple(sum(histogram[at:]) / total for at in range(1, len(histogram)))

"""The total rate of batches in which streams hang, by engines whose true rate is known."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from ddtui.bench.exchange import Exchange, Outcome
from ddtui.bench.figures import figures
from ddtui.bench.together import Together

STEP = 0.02
FIRST = 0.1
"""Seconds to a first token."""
STALL = 15.0

Speed = Callable[[int], float]
"""Tokens per second of each of so many streams that decode."""


def shared(streams: int) -> float:
    """An engine that decodes 400 tokens per second, whoever gets them."""
    return 400 / streams


def saturating(streams: int) -> float:
    """Each stream is slower beside others."""
    return 100 / (1 + 0.15 * streams)


@dataclass
class Stream:
    """One request on its way."""

    exchange: Exchange
    length: int
    fault: str
    came: float = 0.0
    told: int = field(default=0)

    def advance(self, now: float, tokens: float) -> bool:
        """Whether it has ended."""
        each = self.exchange
        if self.fault == "refuse":
            return now >= each.began + 0.01
        if self.stalled:
            if self.fault == "stall" and now < each.points[-1][0] + STALL:
                return False
            each.outcome = Outcome.STALLED if self.fault == "stall" else Outcome.FAILED
            return True
        if now < each.began + FIRST:
            return False
        self.came = max(1.0, self.came + tokens)
        if int(self.came) > self.told:
            self.told = min(int(self.came), self.length)
            each.first_token = each.first_token or now
            each.points.append((now, self.told))
            each.tokens = self.told
        if self.told < self.length:
            return False
        each.outcome = Outcome.OK
        return True

    @property
    def stalled(self) -> bool:
        return self.fault in {"stall", "cut"} and self.told >= self.length // 2

    @property
    def decodes(self) -> bool:
        return self.exchange.first_token is not None and not self.stalled


def batch(
    speed: Speed, places: int, requests: int, fault: Callable[[int], str], seed: int = 1
) -> list[Exchange]:
    rng = random.Random(seed)
    lengths = [rng.randint(80, 240) for _ in range(requests)]
    ended: list[Exchange] = []
    running: list[Stream] = []
    now, sent = 0.0, 0
    while running or sent < requests:
        while len(running) < places and sent < requests:
            each = Exchange(began=now, points=[], outcome=Outcome.FAILED)
            running.append(Stream(each, lengths[sent], fault(sent)))
            sent += 1
        now += STEP
        busy = sum(stream.decodes for stream in running)
        tokens = speed(max(1, busy)) * STEP
        for stream in list(running):
            if stream.advance(now, tokens if stream.decodes else 0.0):
                stream.exchange.ended = now
                ended.append(stream.exchange)
                running.remove(stream)
    return ended


def measured(
    speed: Speed, places: int, requests: int, fault: Callable[[int], str], seed: int = 1
) -> Together:
    found = figures(batch(speed, places, requests, fault, seed), places)
    assert found is not None
    return found.together


@pytest.mark.parametrize("speed", [shared, saturating])
@pytest.mark.parametrize("places", [2, 8, 16])
@pytest.mark.parametrize("kind", ["stall", "cut", "refuse"])
def test_rate_is_the_one_of_all_running_or_left_out(speed: Speed, places: int, kind: str) -> None:
    requests, given = 24 * places, 0
    truth = measured(speed, places, requests, lambda _: "").rate
    assert truth
    for seed in range(4):
        rng = random.Random(seed)
        bad = set(rng.sample(range(requests), 1 + seed % 3))
        found = measured(speed, places, requests, lambda number: kind * (number in bad), seed)  # noqa: B023
        if found.rate is not None:
            given += 1
            assert found.rate == pytest.approx(truth, rel=0.03), (bad, found)
    assert given >= 2


def test_more_than_were_ever_served_together_have_no_rate() -> None:
    """An engine that refuses half of what is sent never ran so many."""
    held = batch(shared, 8, 400, lambda number: "refuse" * (number % 2), 1)
    for each in held:  # each refusal takes its time
        if not each.ok:
            each.began -= 2.0
    late = figures(held, 8)
    assert late is not None
    assert late.together.lost_share > 0.5
    assert late.total_rate is None
    assert late.together.seconds < late.together.enough


def test_without_failures_it_is_the_whole_window() -> None:
    found = measured(shared, 4, 16, lambda _: "")
    assert found.lost_share == 0
    assert found.rate == pytest.approx(400, rel=0.05)
    single = measured(saturating, 4, 4, lambda _: "")  # one answer for each place
    assert single.rate
    assert single.seconds > single.enough


def test_counts_that_are_not_known_on_the_way_are_not_guessed() -> None:
    """A stream that hung has brought text, and nobody knows how many tokens."""
    found = batch(shared, 4, 96, lambda number: "stall" * (number == 50))
    clean = measured(shared, 4, 96, lambda _: "").rate
    for each in found:
        each.points = [(stamp, None) for stamp, _ in each.points]
        each.first_tokens = None
    told = figures(found, 4)
    assert told is not None
    assert told.total_rate == pytest.approx(clean, rel=0.03)


def test_an_answer_without_an_end_counts_for_nothing() -> None:
    found = batch(shared, 4, 96, lambda number: "cut" * (number == 50))
    clean = figures(found, 4)
    (bad,) = (each for each in found if not each.ok)
    bad.outcome, bad.tokens = Outcome.OVERRUN, 10**15
    bad.points[-1] = (bad.points[-1][0], 10**15)
    wild = figures(found, 4)
    assert clean is not None
    assert wild is not None
    assert clean.total_rate
    assert wild.total_rate == pytest.approx(clean.total_rate, rel=0.03)


def test_few_of_many_do_not_take_the_rate_away() -> None:
    """One of 64 that hangs for half of the time makes no more than a hundredth."""
    clean = measured(saturating, 64, 256, lambda _: "").rate
    found = measured(saturating, 64, 256, lambda number: "stall" * (number == 100))
    assert clean
    assert found.lost_share == 0
    assert found.rate == pytest.approx(clean, rel=0.03)


@pytest.mark.parametrize("counts", [True, False])
@pytest.mark.parametrize("speed", [shared, saturating])
@pytest.mark.parametrize("kind", ["stall", "cut", "refuse"])
@pytest.mark.parametrize("share", [0.0625, 0.5])
@pytest.mark.parametrize(("places", "requests"), [(4, 64), (8, 8), (16, 32)])
def test_a_user_is_not_faster_for_what_failed_beside_him(
    places: int, requests: int, share: float, kind: str, speed: Speed, counts: bool
) -> None:
    def rate(fault: Callable[[int], str]) -> float | None:
        ended = batch(speed, places, requests, fault)
        for each in ended if not counts else ():
            each.points = [(stamp, None) for stamp, _ in each.points]
        found = figures(ended, places)
        assert found is not None
        return found.user_rate

    clean = rate(lambda _: "")
    assert clean
    bad = set(random.Random(5).sample(range(requests), max(1, int(share * requests))))
    found = rate(lambda number: kind * (number in bad))
    # The clean one is of the batch's end too, where few ran; so it is higher than what is left.
    assert found is None or found <= 1.1 * clean


def test_where_all_run_long_enough_a_user_has_a_rate_beside_a_hang() -> None:
    ended = batch(saturating, 4, 64, lambda number: "stall" * (number == 20))
    found, clean = figures(ended, 4), figures(batch(saturating, 4, 64, lambda _: ""), 4)
    assert found is not None
    assert clean is not None
    assert found.together.lost_share > 0.1
    assert clean.user_rate
    assert found.user_rate == pytest.approx(clean.user_rate, rel=0.03)
    assert found.itl == pytest.approx(clean.itl, rel=0.03)


def test_half_of_the_places_empty_at_the_end_leave_no_rate_of_a_user() -> None:
    found = figures(batch(shared, 8, 8, lambda number: "cut" * (number % 2)), 8)
    assert found is not None
    assert found.total_rate is not None
    assert (found.tpot, found.itl, found.user_rate) == (None, None, None)
    assert any("the rate of one user is left out" in note for note in found.notes)
